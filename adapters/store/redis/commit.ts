import { randomBytes } from "node:crypto";
import type { Change, Claim, CommitResult, Expiry, MemberClaim, RecordWrite, Store } from "../../../src/ports/store.js";
import { customerOf, firstName, largestLimit, refuseLarge } from "../../kit/store.js";
import commitScript from "./commit.lua";
import { type Keys, listName, packMember, packRecord, packToken, parseRecord, partName, windowName } from "./keys.js";

/** Runs a script. Its reply begins with its kind, which keeps clients from parsing it as a number or JSON. */
export type Ask = (script: string, keys: string[], args: string[]) => Promise<string>;

/** How much longer than requested Redis keeps data, in milliseconds: callers' clocks may be corrected meanwhile. */
const grace = 10 * 60 * 1000;

/**
 * How long a ticket is kept, in milliseconds: clients and the engine retry for less than a minute. A change without a
 * record, which only clients retry, uses a tenth of it.
 */
const ticketLife = 10 * 60 * 1000;

/** Milliseconds for which Redis must keep an entry with this life. */
export const ttl = ({ now, keepUntil }: Expiry) => Math.max(keepUntil - now, 0) + grace;

/** Returns "=" and the stored text of a record or a value, or "-" if there is none. */
export const readScript = `local stored = redis.call("GET", KEYS[1]) return stored and "=" .. stored or "-"`;

/** A result, or a record other than the expected one, as stored. */
type Outcome = CommitResult | { readonly done: false; readonly refusedBy?: undefined; readonly stored: string };

/**
 * Runs one script if all keys are on one server. On a cluster the claims of a customer are in one slot and the record
 * is in another. The order is: claims that add, all or none; the record; then revocation and claims that give back.
 * A ticket in the claims' slot, named after the record's newest token, stores which steps are done: a retry completes
 * the rest.
 */
export function commitOn(ask: Ask, keys: Keys, cluster: boolean): Store["commit"] {
  /**
   * The names of a customer's keys are sent as one text: separate keys would cost clients a tenth of a create and its
   * check. A cluster must see them, also while it migrates slots.
   */
  async function run(head: string, own: string[], change: Change, record = ""): Promise<Outcome> {
    const { customer, names, work } = workOf(keys, own.length, change);
    if (cluster) own.push(...names.map((name) => customer + name));
    else if (names.length > 0) own.push(customer);
    const { claims = [], counts = claims.map((_, at) => at) } = change;
    const reply = await ask(commitScript, own, [head, record, JSON.stringify([...work, cluster ? [] : names, counts])]);
    return outcomeOf(reply, claims, counts);
  }

  function runUnder(ticket: string, action: string, state: string, change: Change, life = ticketLife): Promise<Outcome> {
    return run(`${action} ${state} ${life}  `, [`${keys.customer(firstName(change))}!${ticket}`], change);
  }

  async function takeBack(revoke: Change["revoke"]): Promise<void> {
    if (revoke !== undefined && revoke.claims.length > 0) await runUnder(packToken(revoke.token), "revoke", "x", { revoke });
  }

  function writeRecord(change: Change, record: RecordWrite): Promise<Outcome> {
    const { record: key, wake } = keys.record(record.customer, record.id);
    const head = `record ${packToken(change.expected)} ${ttl(record)} ${record.wakeAt ?? ""} ${packToken(change.revoke?.token)}`;
    return run(head, [key, wake], change, packRecord(record));
  }

  /** `true` also if the record cannot be read: its claims then stay. */
  async function hasLanded({ customer, id, tokens }: RecordWrite): Promise<boolean> {
    const reply = await ask(readScript, [keys.record(customer, id).record], []).catch(() => undefined);
    return reply === undefined || (reply !== "-" && parseRecord({ customer, id }, reply.slice(1)).tokens.includes(tokens[0] ?? ""));
  }

  async function steps({ claims = [], asks = [], expected = null, revoke, counts = claims.map((_, at) => at) }: Change, record: RecordWrite): Promise<Outcome> {
    const [token, call] = [packToken(record.tokens[0]), newCall()];
    const adding = claims.filter((claim) => !givesBack(claim));
    const giving = claims.filter(givesBack);
    const asksLast = giving.length > 0 || adding.length === 0;
    const countsOf = (some: readonly Claim[]) => some.flatMap((claim, at) => (counts.includes(claims.indexOf(claim)) ? at : []));

    let added: Outcome = { done: true, counts: [], asked: [] };
    if (adding.length > 0) added = await runUnder(token, "make", `a${call}`, { claims: adding, counts: countsOf(adding), asks: asksLast ? [] : asks });
    if (!added.done && added.refusedBy !== undefined) return { ...added, refusedBy: claims.indexOf(adding[added.refusedBy] as Claim) };
    // If the claims were revoked, this change landed before or must no longer land: its own token is the newest of no
    // other record.
    const undo = async () => void (adding.length > 0 && (await runUnder(token, "undo", `a${call}`, { revoke: { token, claims: adding } })));
    const stored = await writeRecord({ expected: added.done ? expected : (record.tokens[0] ?? "") }, record).catch(async (error) => {
      // The claims' slot may still be writable. The client may have sent the record twice, and the first may have landed.
      if (isRejection(error) && !(await hasLanded(record))) await undo().catch(() => undefined);
      throw error;
    });
    if (!stored.done) {
      await undo();
      return stored;
    }
    await takeBack(revoke);
    if (!added.done) return runUnder(token, "give", "b", { claims, counts, asks });
    if (!asksLast || claims.length + asks.length === 0) return added;
    const given = await runUnder(token, "give", "b", { claims: giving, counts: countsOf(giving), asks });
    if (!given.done) return given;
    const [first, last] = [added.counts.values(), given.counts.values()];
    return { ...given, counts: claims.map((claim) => (givesBack(claim) ? last : first).next().value ?? 0) };
  }

  return async (change): Promise<CommitResult> => {
    const { claims = [], asks = [], record, revoke, counts = claims.map((_, at) => at) } = change;
    if (record === undefined) {
      if (cluster) await takeBack(revoke);
      if (claims.length + asks.length === 0) return { done: true, counts: [], asked: [] };
      if (!claims.some((claim) => "sum" in claim)) return run("plain    ", [], { claims, asks });
      // A separate ticket keeps a retry by the client from counting twice; members count once anyway.
      return runUnder(newCall(), "make", "a", { claims, counts, asks }, ticketLife / 10);
    }
    refuseLarge("redisStore", "a record's data", record.data);
    const outcome = await (cluster ? steps(change, record) : writeRecord(change, record));
    return "stored" in outcome ? { done: false, current: parseRecord(record, outcome.stored) } : outcome;
  };
}

/** Whether the server rejected the write, the last time that it was sent. */
const isRejection = (error: unknown) => /\b(TRYAGAIN|CLUSTERDOWN|OOM|NOREPLICAS|MISCONF|READONLY|NOPERM)\b/.test(String(error));
const newCall = () => randomBytes(6).toString("base64url");
const givesBack = (claim: Claim) => ("sum" in claim ? claim.weight < 0 : claim.out === true);

/**
 * The claims, asks, and claims to take back as `commit.lua` reads them, and the names of their keys; `places` keys come
 * before them.
 */
function workOf(keys: Keys, places: number, change: Change) {
  const { claims = [], asks = [], revoke, counts } = change;
  const named = firstName(change);
  const [customer, owner] = [keys.customer(named), customerOf(named)];
  const windows = new Map<string, number>();
  /** The numbers of a sum's parts, and the place of the oldest. */
  const sums = new Map<string, { readonly oldest: number; readonly newest: number; readonly place: number }>();
  const names: string[] = [];

  /** The place of a key that is not there yet. `of`: its window or sum. */
  function addKey(of: string, name: string): number {
    if (customerOf(of) !== owner) throw new TypeError("redisStore: windows and sums of one commit must belong to one customer");
    return places + names.push(name);
  }
  function placeOf({ window, limit }: MemberClaim): number {
    const place = windows.get(window) ?? addKey(window, limit === undefined ? listName(window) : windowName(window));
    windows.set(window, place);
    return place;
  }
  function rangeOf(sum: string, oldest: number, newest: number) {
    const known = sums.get(sum);
    if (known?.oldest === oldest && known.newest === newest) return known;
    const name = partName(sum);
    const range = { oldest, newest, place: addKey(sum, name + oldest) };
    for (let part = oldest + 1; part <= newest; part++) names.push(name + part);
    if (known === undefined) sums.set(sum, range);
    return range;
  }

  const added = new Set<string>();
  const made = claims.map((claim, at) => {
    if ("sum" in claim) {
      const { sum, part, parts, ahead, weight, limit = false, floor = false } = claim;
      // The result does not depend on the other parts, whatever they hold.
      const isAlone = limit === false && floor === false && counts?.includes(at) === false;
      const { oldest, newest, place } = isAlone ? rangeOf(sum, part, part) : rangeOf(sum, part - parts + 1, ahead ? part + 1 : part);
      return ["sum", place, place + newest - oldest, place + part - oldest, String(weight), limit, floor, String(ttl(claim))];
    }
    const { window, limit = false, since, now, out } = claim;
    const [place, packed] = [placeOf(claim), packMember(claim.member)];
    // Several limits may cover one member in one window: it is added once.
    const isAgain = !out && added.has(`${place} ${packed}`);
    if (!out) added.add(`${place} ${packed}`);
    return [out ? "out" : isAgain ? "again" : "in", place, packed, stamp(since + 1), stamp(now), limit, largestLimit(claims, window), String(ttl(claim))];
  });
  const back = (revoke?.claims ?? []).flatMap((claim) => {
    if ("sum" in claim) {
      const { sum, part, weight } = claim;
      const known = sums.get(sum);
      const { place, oldest } = known !== undefined && known.oldest <= part && part <= known.newest ? known : rangeOf(sum, part, part);
      return [["sum", place + part - oldest, String(-weight)]];
    }
    return claim.out ? [] : [[claim.limit === undefined ? "list" : "window", placeOf(claim), packMember(claim.member), stamp(claim.now)]];
  });
  const asked = asks.map(({ sum, part, parts, ahead }) => {
    const range = rangeOf(sum, part - parts + 1, ahead ? part + 1 : part);
    return [range.place, range.place + range.newest - range.oldest, range !== sums.get(sum)];
  });
  return { customer, names, work: [made, asked, back] };
}

/** A time that sorts as text: 13 digits, from 1970 to 2286. */
const stamp = (time: number) => String(Math.min(Math.max(time, 0), 9_999_999_999_999)).padStart(13, "0");

/** `wanted`: the indexes of the claims whose counts were asked for, in that order. */
function outcomeOf(reply: string, claims: readonly Claim[], wanted: readonly number[]): Outcome {
  const text = reply.slice(1);
  if (reply.startsWith("-")) return { done: false };
  if (reply.startsWith("=")) return { done: false, stored: text };
  const [numbers = [], asked = []] = text.split(";").map((list) => (list === "" ? [] : list.split(",").map(Number)));
  if (reply.startsWith("+")) return { done: true, counts: claims.map((_, at) => numbers[wanted.indexOf(at)]), asked };
  const [refusedBy = 0, count = 0, room] = numbers;
  if (room === undefined) return { done: false, refusedBy, count };
  const claim = claims[refusedBy] as Claim;
  return "sum" in claim ? { done: false, refusedBy, count, roomPart: claim.part + room } : { done: false, refusedBy, count, roomSince: room };
}
