import { randomBytes } from "node:crypto";
import type { Change, Claim, CommitResult, MemberClaim, SumParts } from "../../../src/ports/store.js";
import { look, maxTries, type Opened, type Statement, send, sendAll } from "./driver.js";
import type { Adding, Entry, Giving, Placed, Refusal } from "./entry.js";
import { listEntry, newerThan, outEntry, type Window, windowEntry } from "./members.js";
import { parseRecord, recordKey, writeRecord } from "./record.js";
import { heldIn, type Sum, sumEntry } from "./sums.js";

const local = { readConcern: { level: "local" } };

type Refused = Extract<CommitResult, { done: false }>;

/** A statement of a commit, and what it adds. */
type Step = readonly [statement: Statement, adds?: Adding | undefined];

/**
 * `commit` without transactions: one ordered bulk write of additions, the record, and removals and refunds. A statement
 * that is not granted fails and ends the write. Then everything is read, and the rest is sent again or the additions
 * are undone.
 */
export async function commit({ state, endOf }: Opened, change: Change): Promise<CommitResult> {
  const { claims = [], asks = [], record, expected = null, revoke, counts } = change;
  const token = record?.tokens[0] ?? randomBytes(9).toString("base64url");
  const { adding, giving } = entriesOf(claims, token, endOf);
  const key = record && recordKey(record);
  const write = record === undefined ? [] : [writeRecord(record, expected, endOf(record))];
  const added: Adding[] = [];

  const undone = () => added.map((entry) => entry.undo());
  const undo = () => sendAll(state, undone());

  async function judge(): Promise<readonly Step[] | Refused | { readonly done: true }> {
    const ids = adding.map(({ _id }) => _id).concat(key ?? []);
    // Conflicting writes may not have reached the majority yet.
    const found = await look(state, ids, local);
    const document = key && found(key);
    const current = document === undefined ? undefined : parseRecord(document);
    if (current?.tokens.includes(token)) return { done: true };
    const lost = { done: false, ...(current && { current }) } as const;
    if (record !== undefined && (current?.tokens[0] ?? null) !== expected) return lost;
    const steps: Step[] = [];
    const refusals: Refusal[] = [];
    for (const entry of adding) {
      const judged = added.includes(entry) ? {} : entry.judge(found(entry._id));
      if ("isRevoked" in judged) return lost;
      if ("refusedBy" in judged) refusals.push(judged);
      else if (judged.send !== undefined) steps.push([judged.send, judged.adds && entry]);
    }
    const [first] = refusals.sort((a, b) => a.refusedBy - b.refusedBy);
    return first ?? steps;
  }

  /** Whether this very call made the commit. */
  async function carryOut(): Promise<boolean | Refused> {
    const blind = adding.flatMap((entry): Step[] => (entry.blind === undefined ? [] : [[entry.blind, entry]]));
    let steps: readonly Step[] | undefined = blind.length < adding.length ? undefined : blind;
    for (let tries = 0; ; tries++) {
      if (steps !== undefined) {
        const before = steps.map(([statement]) => statement).concat(write);
        const [failed] = await send(state, [...before, ...giving.map((entry) => entry.blind ?? entry.sure())], true);
        added.push(...steps.slice(0, failed?.index).flatMap(([, adds]) => adds ?? []));
        if (failed === undefined) return true;
        const left = giving.slice(Math.max(0, failed.index - before.length)).map((entry) => entry.sure());
        if (failed.index >= before.length) return sendAll(state, left).then(() => true);
        if (tries === maxTries) return undo().then(() => Promise.reject(failed.error));
      }
      const verdict = await judge().catch((error) => undo().then(() => Promise.reject(error)));
      if ("done" in verdict) {
        await undo();
        if (!verdict.done) return verdict;
        const ids = giving.map(({ _id }) => _id);
        const found = await look(state, ids, local);
        const missing = giving.flatMap((entry) => (entry.isMissing(found(entry._id)) ? entry.sure() : []));
        await sendAll(state, missing);
        return false;
      }
      steps = verdict;
    }
  }

  async function count(): Promise<{ readonly counts: (number | undefined)[]; readonly asked: number[] }> {
    const wanted = claims.map((claim, place) => (counts === undefined || counts.includes(place) ? claim : undefined));
    const named = [...wanted, ...asks].filter((one) => one !== undefined);
    const ids = named.flatMap((one) => ("sum" in one ? { sum: one.sum } : one.limit === undefined ? [] : { window: one.window }));
    const reading = look(state, ids);
    const sumOf = async (asked: SumParts) => heldIn((await reading)({ sum: asked.sum }) as Sum | undefined, asked);
    const windowOf = async ({ window, since, limit }: MemberClaim) => {
      if (limit !== undefined) return ((await reading)({ window }) as Window | undefined)?.m?.filter(({ at }) => at > since).length ?? 0;
      const [found] = await state.aggregate([{ $match: newerThan(window, since) }, { $count: "members" }], {}).toArray();
      return (found as { readonly members: number } | undefined)?.members ?? 0;
    };
    const counted = wanted.map((claim) => claim && ("sum" in claim ? sumOf(claim) : windowOf(claim)));
    return { counts: await Promise.all(counted), asked: await Promise.all(asks.map(sumOf)) };
  }

  const outcome = await carryOut();
  if (typeof outcome === "object") return outcome;
  if (revoke !== undefined) {
    const landed = outcome ? expected === revoke.token || record?.tokens.includes(revoke.token) === true : undefined;
    const revoked = entriesOf(revoke.claims, revoke.token, endOf);
    const statements = [...revoked.adding, ...revoked.giving].flatMap((entry: Entry) => entry.revoke?.(landed) ?? []);
    await sendAll(state, statements);
  }
  return { done: true, ...(await count()) };
}

/** What claims do, per document: claims of one member are combined. */
function entriesOf(claims: readonly Claim[], token: string, endOf: Opened["endOf"]): { readonly adding: Adding[]; readonly giving: Giving[] } {
  const adding: Adding[] = [];
  const giving: Giving[] = [];
  const windows = new Map<string, readonly [Placed<MemberClaim>, ...Placed<MemberClaim>[]]>();
  for (const [place, claim] of claims.entries()) {
    if ("sum" in claim) {
      const entry = sumEntry({ ...claim, place }, token, endOf(claim));
      if (claim.weight < 0) giving.push(entry);
      else if (claim.weight > 0 || claim.limit !== undefined || claim.floor !== undefined) adding.push(entry);
    } else if (claim.out) giving.push(outEntry(claim));
    else if (claim.limit === undefined) adding.push(listEntry(claim, token, endOf(claim)));
    else {
      const member = JSON.stringify([claim.window, claim.member]);
      windows.set(member, [...(windows.get(member) ?? []), { ...claim, place }] as [Placed<MemberClaim>]);
    }
  }
  for (const claims of windows.values()) adding.push(windowEntry(claims, token, endOf(claims[0])));
  const inOrder = (a: Entry, b: Entry) => (a.key < b.key ? -1 : 1);
  return { adding: adding.sort(inOrder), giving: giving.sort(inOrder) };
}
