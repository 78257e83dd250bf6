import { authenticationStatuses, deviceTypes } from "../../contract/authentication.js";
import { callbackForms, deliveryStatuses } from "../../contract/callback.js";
import { channels } from "../../contract/channel.js";
import type { Authentication, KeptMessage, KeyedCheck, KeyedStart, Origin, OutboxEvent, Send } from "../../domain/authentication.js";
import type { Decision } from "../../domain/decision.js";
import { digitsInSlot, idInSlot, isInSlot } from "../../domain/ids.js";
import { base36 } from "../../domain/time.js";
import type { StoredRecord } from "../../ports/store.js";
import { propertiesOf } from "../collections.js";
import type { Keyring } from "../keyring.js";

/** A stored record that cannot be read. It is left unchanged. */
export class CorruptRecord extends Error {
  override readonly name = "CorruptRecord";
}

/** How one field is stored. `base`: the creation time, which other times are relative to. */
interface Field<T> {
  readonly key: string;
  /** `undefined`: omitted; `read` supplies the default. */
  readonly pack: (value: T, base: number) => unknown;
  /** Throws if the stored value is invalid. */
  readonly read: (stored: unknown, base: number) => T;
}

type Table<T> = { readonly [K in keyof T]-?: Field<T[K]> };

const sound = <T>(holds: boolean, value: unknown): T => {
  if (!holds) throw new TypeError("a field does not have the form that was written");
  return value as T;
};

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
const isText = (value: unknown) => typeof value === "string";
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
/** Up to the latest time that a Date can hold. */
const isTime = (value: unknown) => Number.isSafeInteger(value) && Math.abs(value as number) <= 8.64e15;

const text = (key: string): Field<string> => ({ key, pack: (value) => value, read: (stored) => sound(isText(stored), stored) });
/** `usual`: the value that is omitted. */
const count = (key: string, usual = 0): Field<number> => ({
  key,
  pack: (value) => (value === usual ? undefined : value),
  read: (stored = usual) => sound(isCount(stored), stored),
});
const flag = (key: string): Field<boolean> => ({
  key,
  pack: (value) => (value ? 1 : undefined),
  read: (stored) => sound(stored === undefined || stored === 1, stored === 1),
});
/** Relative to the creation time; negative if clocks differ. */
const time = (key: string): Field<number> => ({
  key,
  pack: (value, base) => value - base || undefined,
  read: (stored = 0, base) => sound(isTime(stored) && isTime(base + (stored as number)), base + (stored as number)),
});
const oneOf = <T extends string>(key: string, words: readonly T[]): Field<T> => ({
  key,
  pack: (value) => words.indexOf(value) || undefined,
  read: (stored = 0) => sound(isCount(stored) && (stored as number) < words.length, words[stored as number]),
});
const maybe = <T>(field: Field<T>, first = 0): Field<T | undefined> => ({
  key: field.key,
  pack: (value, base) => (value === undefined ? undefined : (field.pack(value, base) ?? first)),
  read: (stored, base) => (stored === undefined ? undefined : field.read(stored, base)),
});
const mark = (key: string) => maybe(flag(key)) as Field<true | undefined>;
/** Stored unchanged, and omitted if empty. */
const array = <T>(key: string, isOne: (value: unknown) => boolean): Field<readonly T[]> => ({
  key,
  pack: (value) => (value.length === 0 ? undefined : value),
  read: (stored = []) => sound(Array.isArray(stored) && stored.every(isOne), stored),
});
/** `alone`: the field that is stored by itself if all others have their usual values. */
const list = <T extends object>(key: string, table: Table<T>, alone: keyof T & string): Field<readonly T[]> => {
  const { [alone]: only, ...others } = table;
  const whole = packing(table);
  const rest = packing(others as Table<Omit<T, typeof alone>>);
  const packOne = (one: T, base: number): unknown => (rest.isUsual(one, base) ? only.pack(one[alone], base) : whole.pack(one, base));
  const readOne = (one: unknown, base: number): T => whole.read(typeof one === "object" ? one : { [only.key]: one }, base);
  return {
    key,
    pack: (value, base) => (value.length === 0 ? undefined : value.map((one) => packOne(one, base))),
    read: (stored = [], base) => sound<unknown[]>(Array.isArray(stored), stored).map((one) => readOne(one, base)),
  };
};

/** Stored unchanged. */
const object = <T extends object>(key: string): Field<T> => ({ key, pack: (value) => value, read: (stored) => sound(isObject(stored), stored) });

const sendFields: Table<Send> = {
  attempt: count("n", 1),
  digest: text("d"),
  state: oneOf("s", ["undecided", "accepted", "unknown"] as const),
  at: time("t"),
  route: maybe(text("r")),
  channel: maybe(oneOf("c", channels)),
  fallback: mark("f"),
  moved: mark("m"),
  messageId: maybe(text("i")),
  delivery: maybe(oneOf("y", deliveryStatuses)),
};

/** The fields in the text. Customer, id and end are stored outside it, and an encrypted number replaces `number`. */
type Kept = Omit<Authentication, "customer" | "id" | "keepUntil" | "sealed">;

/** Every field, its key in the text, and how it is packed and read. A later one is absent in older records. */
const fields: Table<Kept> = {
  createdAt: { key: "c", pack: (value) => base36(value), read: (_stored, base) => base },
  number: text("p"),
  country: maybe(text("l")),
  expiresAt: time("x"),
  endsAt: maybe(time("e")),
  status: oneOf("s", authenticationStatuses),
  attempts: count("a", 1),
  sent: count("n", 1),
  retries: count("r"),
  lastSendAt: time("t"),
  wrongChecks: count("w"),
  validated: flag("v"),
  sends: list<Send>("d", sendFields, "digest"),
  firstChannel: maybe(oneOf("D", channels)),
  otherRoutes: array<string>("O", isText),
  decisions: array<Decision>("i", isObject),
  deviceType: maybe(oneOf("o", deviceTypes)),
  appRealm: maybe(text("h")),
  callbackUrl: maybe(text("u")),
  settleBy: maybe(time("b")),
  outbox: array<OutboxEvent>("q", isObject),
  events: count("m"),
  origin: maybe(object<Origin>("g")),
  uncounted: count("j"),
  unlocked: mark("J"),
  request: maybe(text("f")),
  checks: array<KeyedCheck>("k", isObject),
  keptIds: array<string>("z", isText),
  starts: array<KeyedStart>("S", isObject),
  canceled: mark("C"),
  spent: mark("U"),
  locale: maybe(text("L")),
  codeLength: maybe(count("N", 0)),
  callbackForm: maybe(oneOf("F", callbackForms)),
  correlationId: maybe(text("R")),
  purpose: maybe(text("P")),
  byCall: maybe(oneOf("H", ["wished", "fixed line"] as const)),
  fallbackAt: maybe(time("B")),
  fallbacks: count("A"),
  kept: maybe(object<KeptMessage>("K")),
  earlier: maybe(text("E")),
};

/** The key of the last digits of an id that is not the record's. */
const lastDigits = "y";

const record = packing<Kept>(fields);

/** Packs an authentication into the text that a store keeps: JSON without empty fields. */
export function encodeRecord(auth: Authentication): string {
  const packed = record.pack(auth, auth.createdAt);
  if (auth.sealed !== undefined) packed[fields.number.key] = auth.sealed;
  if (isInSlot(auth.id)) packed[lastDigits] = digitsInSlot(auth.id);
  return JSON.stringify(packed);
}

/** Reads what `encodeRecord` wrote. A number that cannot be decrypted is read masked, and stays stored. Throws `CorruptRecord`. */
export function decodeRecord({ customer, id: at, keepUntil, data }: StoredRecord, decryptNumber: Keyring["decryptNumber"]): Authentication {
  try {
    const stored: unknown = JSON.parse(data);
    const { [fields.createdAt.key]: created, [lastDigits]: last } = propertiesOf(stored);
    const createdAt = Number.parseInt(sound<string>(isText(created), created), 36);
    sound(isCount(createdAt) && isTime(createdAt), createdAt);
    const kept = record.read(stored, createdAt);
    const id = last === undefined ? at : idInSlot(at, sound<string>(isText(last), last));
    const number = decryptNumber(id, kept.number);
    return number === undefined ? { customer, id, keepUntil, ...kept } : { sealed: kept.number, customer, id, keepUntil, ...kept, number };
  } catch (cause) {
    throw new CorruptRecord(`the record of authentication ${at} is not in a form this version can read`, { cause });
  }
}

/** A field with its name. */
type Row<T> = { readonly [K in keyof T]: Field<T[K]> & { readonly name: K } }[keyof T];

/** Packs values into objects and reads them back. */
function packing<T extends object>(table: Table<T>) {
  const rows = Object.entries<object>(table).map(([name, field]) => ({ name, ...field })) as unknown as readonly Row<T>[];
  /** Every key in the table's order. Filling a copy uses half the memory of an object that grows. */
  const blank: Readonly<Record<string, unknown>> = Object.fromEntries(rows.map(({ key }) => [key, undefined]));
  const packed = ({ name, pack }: Row<T>, value: T, base: number): unknown => {
    const held = value[name];
    return held === undefined ? undefined : pack(held, base);
  };
  return {
    pack(value: T, base: number): Record<string, unknown> {
      const all = { ...blank };
      for (const row of rows) {
        const one = packed(row, value, base);
        if (one !== undefined) all[row.key] = one;
      }
      return all;
    },
    read(stored: unknown, base: number): T {
      const values = sound<Record<string, unknown>>(isObject(stored) && !Array.isArray(stored), stored);
      const read: Partial<T> = {};
      for (const { name, key, read: readOne } of rows) {
        const one = readOne(values[key], base);
        if (one !== undefined) read[name] = one;
      }
      return read as T;
    },
    /** Whether nothing would be written. */
    isUsual: (value: T, base: number): boolean => rows.every((row) => packed(row, value, base) === undefined),
  };
}
