import { authenticationStatuses } from "../contract/authentication.js";
import type { DeliveryStatus } from "../contract/callback.js";
import type { Authentication, KeyedCheck, Lease, OutboxEvent, Send, SendState } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import type { StoredRecord } from "../ports/store.js";

/** First element of the text; a later form gets a later number, and this one stays readable for as long as records live. */
const version = 1;

const sendStates: readonly SendState[] = ["undecided", "accepted", "unknown"];

/** The parts that most authentications do not have. */
interface Extras {
  readonly d?: readonly Decision[];
  readonly t?: Authentication["deviceType"];
  readonly a?: string;
  readonly u?: string;
  readonly r?: string;
  readonly k?: readonly KeyedCheck[];
  readonly s?: number;
  readonly n?: number;
  readonly o?: readonly OutboxEvent[];
  readonly l?: Lease;
  readonly e?: number;
}

/** A stored record whose text the engine cannot read. It is left as it is. */
export class CorruptRecord extends Error {
  override readonly name = "CorruptRecord";
}

/** Packs an authentication into the text that a store keeps: a JSON array by position, about 80 characters for a pending one. */
export function encodeRecord(auth: Authentication): string {
  const fields: unknown[] = [
    version,
    auth.number,
    auth.createdAt,
    auth.expiresAt - auth.createdAt,
    auth.lastSendAt - auth.createdAt,
    authenticationStatuses.indexOf(auth.status),
    (auth.planned ? 1 : 0) + (auth.validated ? 2 : 0),
    auth.attempts,
    auth.sent,
    auth.retries,
    auth.wrongChecks,
    auth.sends.map(packSend),
  ];
  const extras = extrasOf(auth);
  if (extras !== undefined) fields.push(extras);
  return JSON.stringify(fields);
}

function extrasOf(auth: Authentication): Extras | undefined {
  const { decisions, deviceType, appRealm, callbackUrl, request, checks, settleBy, events, outbox, lease, endsAt } = auth;
  const plain = deviceType === undefined && callbackUrl === undefined && request === undefined && lease === undefined;
  if (plain && decisions.length === 0 && checks.length === 0 && outbox.length === 0) return undefined;
  return {
    ...(decisions.length > 0 && { d: decisions }),
    ...(deviceType !== undefined && { t: deviceType }),
    ...(appRealm !== undefined && { a: appRealm }),
    ...(callbackUrl !== undefined && { u: callbackUrl }),
    ...(request !== undefined && { r: request }),
    ...(checks.length > 0 && { k: checks }),
    ...(settleBy !== undefined && { s: settleBy }),
    ...(events > 0 && { n: events }),
    ...(outbox.length > 0 && { o: outbox }),
    ...(lease !== undefined && { l: lease }),
    ...(endsAt !== undefined && { e: endsAt }),
  };
}

/** Reads what `encodeRecord` wrote. Throws `CorruptRecord`. */
export function decodeRecord(record: StoredRecord): Authentication {
  const fields = readArray(record);
  const [, number, createdAt, lifetime, lastSend, status, flags, attempts, sent, retries, wrongChecks, sends, extras = {}] = fields as [
    number,
    string,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    PackedSend[],
    Extras?,
  ];
  return {
    customer: record.customer,
    id: record.id,
    number,
    createdAt,
    expiresAt: createdAt + lifetime,
    keepUntil: record.keepUntil,
    status: authenticationStatuses[status] as Authentication["status"],
    planned: (flags & 1) !== 0,
    attempts,
    sent,
    retries,
    lastSendAt: createdAt + lastSend,
    wrongChecks,
    validated: (flags & 2) !== 0,
    sends: sends.map(unpackSend),
    decisions: extras.d ?? [],
    checks: extras.k ?? [],
    events: extras.n ?? 0,
    outbox: extras.o ?? [],
    ...(extras.t !== undefined && { deviceType: extras.t }),
    ...(extras.a !== undefined && { appRealm: extras.a }),
    ...(extras.u !== undefined && { callbackUrl: extras.u }),
    ...(extras.r !== undefined && { request: extras.r }),
    ...(extras.s !== undefined && { settleBy: extras.s }),
    ...(extras.l !== undefined && { lease: extras.l }),
    ...(extras.e !== undefined && { endsAt: extras.e }),
  };
}

/** The one field that may be negative: the clocks of the processes that wrote the creation and the send may differ. */
const lastSendField = 4;

/** The last time that a Date can hold. */
const latestTime = 8.64e15;

function areSoundExtras(extras: unknown): boolean {
  if (extras === undefined) return true;
  if (typeof extras !== "object" || extras === null || Array.isArray(extras)) return false;
  const { d = [], k = [], o = [], u = "", n = 0 } = extras as Record<string, unknown>;
  return [d, k, o].every(Array.isArray) && typeof u === "string" && Number.isSafeInteger(n);
}

/** Kinds of the elements by position: n a number, s a string, a an array. */
const shape = "nsnnnnnnnnna";

function readArray(record: StoredRecord): unknown[] {
  const fields = parseJson(record);
  const sound =
    Array.isArray(fields) &&
    fields[0] === version &&
    fields.length >= shape.length &&
    fields.length <= shape.length + 1 &&
    [...shape].every((kind, at) => (kind === "a" ? Array.isArray(fields[at]) : typeof fields[at] === (kind === "n" ? "number" : "string"))) &&
    fields.every((field, at) => typeof field !== "number" || (Number.isSafeInteger(field) && (field >= 0 || at === lastSendField))) &&
    fields[2] + fields[3] <= latestTime &&
    authenticationStatuses[fields[5]] !== undefined &&
    (fields[11] as unknown[]).every(
      (send) => Array.isArray(send) && typeof send[0] === "number" && typeof send[1] === "string" && sendStates[send[2]] !== undefined,
    );
  if (!sound || !areSoundExtras(fields[shape.length]))
    throw new CorruptRecord(`the record of authentication ${record.id} is not in a form this version can read`);
  return fields;
}

function parseJson(record: StoredRecord): unknown {
  try {
    return JSON.parse(record.data);
  } catch (cause) {
    throw new CorruptRecord(`the record of authentication ${record.id} is not JSON`, { cause });
  }
}

/** Attempt, digest, state, and where known the route and the delivery. */
type PackedSend = readonly [number, string, number, (string | 0)?, DeliveryStatus?];

function packSend({ attempt, digest, state, route, delivery }: Send): PackedSend {
  const at = sendStates.indexOf(state);
  if (delivery !== undefined) return [attempt, digest, at, route ?? 0, delivery];
  return route === undefined ? [attempt, digest, at] : [attempt, digest, at, route];
}

function unpackSend([attempt, digest, state, route, delivery]: PackedSend): Send {
  return {
    attempt,
    digest,
    state: sendStates[state] as SendState,
    ...(typeof route === "string" && { route }),
    ...(delivery !== undefined && { delivery }),
  };
}
