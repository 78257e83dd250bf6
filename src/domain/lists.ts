import ipaddr from "ipaddr.js";
import { printableForm } from "../contract/authentication.js";
import { addressKey } from "./ip.js";
import { canonicalNumber, endsWithTrunk, isTooShort, prefixForms } from "./phone-number.js";

/** Numbers, addresses and devices for a block list or a safe list. */
export interface List {
  /** Numbers in E.164 form, or prefixes of the canonical form that end in `*`. */
  readonly numbers?: readonly string[] | undefined;
  /** IPv4 and IPv6 ranges, for example `203.0.113.0/24`; an address without a length matches only itself. */
  readonly cidrs?: readonly string[] | undefined;
  /** Values of `device_id`, matched exactly. */
  readonly devices?: readonly string[] | undefined;
}

/** A list, or a function that returns it: called when the list is first needed, later in the background. */
export type ListSource = List | ListQuestion;

/** Returns the current list. While it returns the same object, nothing is read again. */
export type ListQuestion = () => List | Promise<List>;

/** The subject to look up in a list. */
export interface ListSubject {
  /** Canonical E.164 form. */
  readonly number: string;
  readonly ip?: string | undefined;
  readonly deviceId?: string | undefined;
}

/** The entry that matches a subject. */
export interface Listed {
  readonly kind: "number" | "address" | "device";
  /** The range of addresses as listed. Absent for a single address, a device or a number, which no decision shows. */
  readonly range?: string;
}

/** The result of both lists for a subject. */
export interface ListMatch {
  readonly block?: Listed;
  /** Exempt from the spam rules, never from a cap; never set together with `block`. */
  readonly safe: boolean;
}

/** A list that has been read. A query costs one look-up per prefix length in the list, regardless of its size. */
export interface ListIndex {
  find(subject: ListSubject): Listed | undefined;
}

/** An invalid entry: its path in the list, and the fix. The entry may be someone's number, so it is left out. */
export interface ListError {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export interface ReadList {
  /** Index of all valid entries; absent if the value is not a list, or has unknown keys. */
  readonly index?: ListIndex;
  /** The first ten errors. */
  readonly problems: readonly ListError[];
  /** The number of invalid entries. */
  readonly faulty: number;
}

/** A subject on both lists is blocked. */
export function judgeLists(block: ListIndex | undefined, safe: ListIndex | undefined, subject: ListSubject): ListMatch {
  const blocked = block?.find(subject);
  return blocked === undefined ? { safe: safe?.find(subject) !== undefined } : { block: blocked, safe: false };
}

export function readList(list: unknown): ReadList {
  const reading = readingList(list);
  let step = reading.next();
  while (!step.done) step = reading.next();
  return step.value;
}

/** Reads a list in slices of a thousand entries, so that the caller can do other work in between. */
export function* readingList(list: unknown): Generator<undefined, ReadList, undefined> {
  const problems: ListError[] = [];
  let faulty = 0;
  const problem = (path: ListError["path"], message: string) => {
    faulty += 1;
    if (problems.length < 10) problems.push({ path, message });
  };
  if (!isPlainObject(list)) {
    problem([], "must be { numbers?, cidrs?, devices? }, or a function that returns it");
    return { problems, faulty };
  }
  const numbers = numberEntries();
  const addresses = addressEntries();
  const devices = new Set<string>();
  const parts: Readonly<Record<string, { readonly fix: string; add: Entries["add"] }>> = {
    numbers: { fix: "must be in E.164 form, or a prefix that ends in *", add: numbers.add },
    cidrs: { fix: "must be an address or a CIDR, for example 203.0.113.0/24 or 2001:db8::/32", add: addresses.add },
    devices: { fix: "must be 1 to 128 printable characters", add: (entry) => printableForm.test(entry) && devices.add(entry) !== undefined },
  };
  let sound = true;
  for (const [key, entries] of Object.entries(list) as [string, unknown][]) {
    const part = Object.hasOwn(parts, key) ? parts[key] : undefined;
    if (part === undefined) {
      problem([key], "is an unknown list key; allowed: numbers, cidrs, devices");
      sound = false;
    } else if (Array.isArray(entries)) {
      for (const [at, entry] of entries.entries()) {
        if (at % 1000 === 999) yield;
        const added = typeof entry === "string" && part.add(entry);
        if (added !== true) problem([key, at], added || part.fix);
      }
    } else if (entries !== undefined) {
      problem([key], "must be a list of strings");
      sound = false;
    }
  }
  if (!sound) return { problems, faulty };
  const index: ListIndex = {
    find({ number, ip, deviceId }) {
      if (numbers.find(number) !== undefined) return { kind: "number" };
      const range = ip === undefined ? undefined : addresses.find(ip);
      if (range !== undefined) return { kind: "address", ...(range !== "" && { range }) };
      return deviceId !== undefined && devices.has(deviceId) ? { kind: "device" } : undefined;
    },
  };
  return { index, problems, faulty };
}

/** A promise, a Map or a response of fetch has none of the keys of a list, and would pass for an empty one. */
function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // `Object.prototype`, also that of another realm, inherits from nothing.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Entries of one kind. */
interface Entries {
  /** Returns false if the entry is not of this kind, or the reason why it is invalid. */
  add(entry: string): boolean | string;
  /** Returns the matching entry, but an empty text if it must not be shown. */
  find(text: string): string | undefined;
}

/**
 * May have another canonical form: with a trunk prefix after its country code (0, 06 or 8; 1 in North America and the
 * Marshall Islands; a carrier's in China and Luxembourg), with 15 in Argentina, or without an area code in Madagascar
 * and on Norfolk Island. Other numbers need no parsing, the most expensive step here.
 */
const mayChange = /^\+(\d{1,3}[08]|11|54|261|3521|672|6921|861)/;

function numberEntries(): Entries {
  const whole = new Set<string>();
  const prefixes = prefixEntries();
  const short = new Map<string, boolean>();
  /** Numbers of one country code, which has up to three digits, need one parse for each length. */
  const isShort = (number: string): boolean => {
    const key = `${number.slice(0, 4)} ${number.length}`;
    const known = short.get(key) ?? isTooShort(number);
    short.set(key, known);
    return known;
  };
  return {
    add(entry) {
      if (!/^\+[1-9](\d{1,14}|\d{0,14}\*)$/.test(entry)) return false;
      if (entry.endsWith("*")) {
        const forms = prefixForms(entry.slice(0, -1));
        for (const prefix of forms) prefixes.add(prefix, "");
        if (forms.length === 0) return endsWithTrunk;
      } else {
        const number = mayChange.test(entry) ? canonicalNumber(entry) : entry;
        if (isShort(number)) return "is too short for a number of its country: end it in * for a prefix";
        whole.add(number);
      }
      return true;
    },
    find(number) {
      return whole.has(number) ? "" : prefixes.find(number);
    },
  };
}

/** `::/0` covers all of IPv6 and no IPv4. An IPv6 address that maps an IPv4 one is looked up as both. */
function addressEntries(): Entries {
  const ipv4 = prefixEntries();
  const ipv6 = prefixEntries();
  return {
    add(entry) {
      const [, text = "", digits] = /^([\d.:a-f]+)(?:\/(0|[1-9]\d{0,2}))?$/i.exec(entry) ?? [];
      const bits = text.includes(":") ? ipv6Bits(text) : ipv4Bits(text);
      const length = digits === undefined ? bits?.length : Number(digits);
      if (bits === undefined || length === undefined || length > bits.length) return false;
      const prefix = bits.slice(0, length);
      const shown = length < bits.length ? entry : "";
      if (bits.length === 32) ipv4.add(prefix, shown);
      else if (prefix.startsWith(mappedPrefix)) ipv4.add(prefix.slice(mappedPrefix.length), shown);
      else ipv6.add(prefix, shown);
      return true;
    },
    find(ip) {
      const key = addressKey(ip);
      const inner = ipv4Bits(key);
      const outer = ip.includes(":") ? ipv6Bits(ip) : undefined;
      const whole = outer === undefined || outer.startsWith(mappedPrefix) ? undefined : ipv6.find(outer);
      return whole ?? (inner === undefined ? undefined : ipv4.find(inner));
    },
  };
}

/** Prefixes by length, so that a text is looked up once for each length in use. */
function prefixEntries() {
  const byLength = new Map<number, Map<string, string>>();
  return {
    add(prefix: string, entry: string): void {
      const same = byLength.get(prefix.length) ?? new Map<string, string>();
      byLength.set(prefix.length, same.set(prefix, entry));
    },
    find(text: string): string | undefined {
      for (const [length, prefixes] of byLength) {
        const entry = prefixes.get(text.slice(0, length));
        if (entry !== undefined) return entry;
      }
      return undefined;
    },
  };
}

/** Each byte as its eight bits. */
const octets = Array.from({ length: 256 }, (_, byte) => byte.toString(2).padStart(8, "0"));

/** The 32 bits of four decimal numbers, and of nothing else: programs read `10/8` and `010.0.0.0/8` differently. */
function ipv4Bits(text: string): string | undefined {
  const parts = text.split(".");
  const bits = parts.map((part) => (/^(0|[1-9]\d{0,2})$/.test(part) ? octets[Number(part)] : undefined));
  return parts.length === 4 && !bits.includes(undefined) ? bits.join("") : undefined;
}

/** The 128 bits, without a zone. */
function ipv6Bits(text: string): string | undefined {
  try {
    return ipaddr.IPv6.parse(text)
      .toByteArray()
      .map((byte) => octets[byte])
      .join("");
  } catch {
    return undefined;
  }
}

/** `::ffff:0:0/96`: IPv4 addresses mapped to IPv6 (RFC 4291, section 2.5.5.2). */
const mappedPrefix = `${"0".repeat(80)}${"1".repeat(16)}`;
