import { randomBytes } from "node:crypto";
import type { Change, Claim, CommitResult, Life, RecordWrite, Store } from "../../../src/ports/store.js";
import commitScript from "./commit.lua";
import { refuseLarge } from "./faults.js";
import { type Keys, packMember } from "./keys.js";
import readScript from "./read.lua";
import { packRecord, packToken, parseRecord, wasWritten } from "./record.js";

/** Runs a script; its reply's kind is the first character, which also keeps every client from reading it as a number or as JSON. */
export type Ask = (script: string, keys: string[], args: string[]) => Promise<string>;

/** What is to become of claims: they are made, taken back, or only looked at. */
type Purpose = "make" | "back" | "look";

type Outcome =
  /** `landed`: it had before, by another call (`*`) or by one that cannot be told (`?`). */
  | { readonly done: true; readonly counts: readonly number[]; readonly asked: readonly number[]; readonly landed?: string | undefined }
  | { readonly done: false; readonly refusedBy: number; readonly count: number; readonly roomSince?: number }
  | { readonly done: false; readonly refusedBy?: undefined; readonly stored?: string };

/** How much longer than asked Redis keeps what it keeps, in milliseconds: callers' clocks may be put right meanwhile. */
const grace = 10 * 60 * 1000;

/** How much longer still the life of a window or a sum is set, so that not every claim has to set it anew. As in `commit.lua`. */
const spare = 10 * 60 * 1000;

/** The newest members that a window without a limit keeps. */
const mostListed = 10_000;

/** Milliseconds that Redis must keep what lives so long. */
export function ttl({ now, keepUntil }: Life, more = 0): string {
  return String(Math.max(keepUntil - now, 0) + grace + more);
}

/**
 * One script where all keys are on one server. On a cluster the claims of a customer are in one slot and the record is in another: claims that add come first, all or none; then the record; then claims that take out or give back.
 * What a call added before it found that it had landed before, or that the record is another's, is taken back; what is left after a crash in between refuses more, never less.
 */
export function commitOn(ask: Ask, keys: Keys, cluster: boolean): Store["commit"] {
  function step({ claims = [], asks = [], record, expected }: Change, purpose: Purpose = "make"): Outcome | Promise<Outcome> {
    if (record === undefined && claims.length + asks.length === 0) return { done: true, counts: [], asked: [] };
    const sum = purpose === "look" ? undefined : claims.find((claim) => "sum" in claim)?.sum;
    const scriptKeys: string[] = [];
    let args = ["", "", "", "", "", ""];
    if (record !== undefined) {
      const { record: key, wake } = keys.record(record.customer, record.id);
      scriptKeys.push(key, wake);
      const packed = packRecord(record, cluster ? newCall() : "");
      args = ["record", packToken(record.tokens[0]), packToken(expected), packed, ttl(record), String(record.wakeAt ?? "")];
    } else if (sum !== undefined) {
      scriptKeys.push(keys.ticket(sum, newCall()));
      args[0] = "ticket";
    }
    let claimed = "";
    for (const claim of claims) {
      scriptKeys.push("sum" in claim ? keys.sum(claim.sum) : keys.window(claim.window));
      claimed += wordsOf(claim, claims, purpose);
    }
    args.push(claimed);
    for (const { sum, since } of asks) {
      scriptKeys.push(keys.sum(sum));
      args.push(String(since + 1));
    }
    return ask(commitScript, scriptKeys, args).then(outcomeOf);
  }

  async function steps({ claims = [], asks = [], expected }: Change, record: RecordWrite): Promise<Outcome> {
    const adding = claims.filter((claim) => !givesBack(claim));
    const giving = claims.filter(givesBack);
    const askedLast = giving.length > 0 || adding.length === 0;
    const [added, stored] =
      adding.length === 0
        ? [{ done: true, counts: [], asked: [] } as const, "-"]
        : await Promise.all([step({ claims: adding, asks: askedLast ? [] : asks }), ask(readScript, [keys.record(record.customer, record.id).record], [])]);
    if (wasWritten(record, stored.slice(1))) {
      if (added.done) await step({ claims: adding }, "back");
      return step({ claims, asks }, "look");
    }
    if (!added.done) return added.refusedBy === undefined ? added : { ...added, refusedBy: claims.indexOf(adding[added.refusedBy] as Claim) };
    const written = await step({ record, expected: expected ?? null });
    if (!written.done || written.landed === "*") await step({ claims: adding }, "back");
    if (!written.done) return written;
    if (written.landed) return step({ claims, asks }, "look");
    if (!askedLast) return added;
    const given = await step({ claims: giving, asks });
    if (!given.done) return given;
    const countOf = (claim: Claim) => (givesBack(claim) ? given.counts[giving.indexOf(claim)] : added.counts[adding.indexOf(claim)]) ?? 0;
    return { done: true, counts: claims.map(countOf), asked: given.asked };
  }

  return async (change): Promise<CommitResult> => {
    const { record } = change;
    if (record !== undefined) refuseLarge("data", record.data);
    const outcome = cluster && record ? await steps(change, record) : await step(change);
    if (outcome.done) return { done: true, counts: outcome.counts, asked: outcome.asked };
    if (outcome.refusedBy !== undefined) return outcome;
    return outcome.stored === undefined || record === undefined
      ? { done: false }
      : { done: false, current: parseRecord(record.customer, record.id, outcome.stored) };
  };
}

/** Tells one call from every other. */
function newCall(): string {
  return randomBytes(6).toString("base64url");
}

function givesBack(claim: Claim): boolean {
  return "sum" in claim ? claim.weight < 0 : claim.out === true;
}

/** A claim as the script reads it: seven words, a space after each. */
function wordsOf(claim: Claim, claims: readonly Claim[], purpose: Purpose): string {
  const { since, now, limit = "-" } = claim;
  if ("sum" in claim) {
    const weight = purpose === "make" ? claim.weight : purpose === "back" ? -claim.weight : 0;
    return `sum ${weight} ${since + 1} ${partEnd(since, now).toString(36)} ${purpose === "make" ? limit : "-"} ${ttl(claim, spare)} 0 `;
  }
  const does = purpose !== "make" ? purpose : claim.out ? "out" : "in";
  return `${does} ${packMember(claim.member)} ${since + 1} ${now} ${limit} ${ttl(claim, spare)} ${does === "in" ? mostMembers(claim.window, claims) : 0} `;
}

/** The largest limit of those that add to a window. */
function mostMembers(window: string, claims: readonly Claim[]): number {
  let most = 0;
  for (const claim of claims) if ("window" in claim && claim.window === window && !claim.out) most = Math.max(most, claim.limit ?? mostListed);
  return most;
}

/** The end of the part that `now` is in, of twelve that a sum's length has. */
function partEnd(since: number, now: number): number {
  const width = Math.max(1, Math.floor((now - since) / 12));
  return (Math.floor(now / width) + 1) * width;
}

function outcomeOf(reply: string): Outcome {
  const kind = reply.charAt(0);
  const text = reply.slice(1);
  if (kind === "-") return { done: false };
  if (kind === "=") return { done: false, stored: text };
  const [counts = [], asked = []] = text.split(";").map((list) => (list === "" ? [] : list.split(",").map(Number)));
  if (kind !== "!") return { done: true, counts, asked, landed: kind === "+" ? undefined : kind };
  const [refusedBy = 0, count = 0, roomSince] = counts;
  return { done: false, refusedBy, count, ...(roomSince !== undefined && { roomSince }) };
}
