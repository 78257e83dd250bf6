import { randomBytes } from "node:crypto";
import type { Ask, Change, Claim, CommitResult } from "../../../src/ports/store.js";
import type { Counter, Held, Some } from "./counter.js";
import type { Collections } from "./driver.js";
import { createLists } from "./lists.js";
import { CorruptRecord, writeRecord } from "./record.js";
import { createSums } from "./sums.js";
import { createWindows } from "./windows.js";

type Kind = "window" | "list" | "sum";

/** What a commit wants of one window, list or sum. `places`: where in the answer each claim stands; asks stand after all claims. */
interface Part<C = Claim> {
  readonly kind: Kind;
  readonly claims: Some<C>;
  readonly places: readonly number[];
}

/** What is held at each place of the answer. */
type Places = readonly (readonly [place: number, held: number])[];

/** What became of a part that adds. */
type Taken = { readonly part: Part; readonly held: Places } | { readonly refusedBy: number; readonly count: number; readonly roomSince?: number };

/**
 * `commit` without transactions: first all that adds, each document in one conditional update, and the asks beside; then the record; then what takes out and gives back. What was added is undone when
 * something else that adds is refused or fails, and when this call does not write the record.
 */
export function createCommit({ authentications, windows, lists }: Collections): (change: Change) => Promise<CommitResult> {
  const counters: Readonly<Record<Kind, Counter<Claim, Claim | Ask>>> = { window: createWindows(windows), list: createLists(lists), sum: createSums(windows) };

  async function take(part: Part, ticket: string): Promise<Taken> {
    const held = await counters[part.kind].take(part.claims, ticket);
    const refused = held.findIndex(({ count }, at) => count > (part.claims[at]?.limit ?? Number.POSITIVE_INFINITY));
    if (refused >= 0) {
      const { others, roomSince } = held[refused] as Held;
      return { refusedBy: part.places[refused] as number, count: others, ...(roomSince !== undefined && { roomSince }) };
    }
    return { part, held: held.map(({ count }, at) => [part.places[at] as number, count]) };
  }

  async function release({ kind, claims, places }: Part): Promise<Places> {
    const held = await counters[kind].release(claims);
    return held.map((count, at) => [places[at] as number, count]);
  }

  async function read(parts: readonly Part<Claim | Ask>[]): Promise<Places> {
    const readKind = async (kind: Kind): Promise<Places> => {
      const own = parts.filter((part) => part.kind === kind);
      const places = own.flatMap((part) => part.places);
      const held = own.length === 0 ? [] : await counters[kind].read(own.flatMap(({ claims }) => claims));
      return held.map((count, at) => [places[at] as number, count]);
    };
    return (await Promise.all([readKind("window"), readKind("list"), readKind("sum")])).flat();
  }

  return async ({ claims = [], asks = [], record, expected = null }) => {
    const ticket = randomBytes(9).toString("base64url");
    const { adding, giving, asking } = partsOf(claims, asks);
    const done = (...held: Places[]): CommitResult => {
      const answer = new Map(held.flat());
      const at = (from: number, length: number) => Array.from({ length }, (_, i) => answer.get(from + i) ?? 0);
      return { done: true, counts: at(0, claims.length), asked: at(claims.length, asks.length) };
    };

    const [told, ...settled] = await Promise.allSettled([read(asking), ...adding.map((part) => take(part, ticket))]);
    const taken = settled.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    const granted = taken.flatMap((one) => ("held" in one ? one : []));
    const undo = () => Promise.all(granted.map(({ part: { kind, claims } }) => counters[kind].undo(claims, ticket)));

    const failed = [told, ...settled].find((one) => one.status === "rejected");
    if (failed !== undefined) {
      await undo().catch(() => {});
      throw failed.reason;
    }
    const [refused] = taken.flatMap((one) => ("held" in one ? [] : one)).sort((a, b) => a.refusedBy - b.refusedBy);
    if (refused !== undefined) {
      await undo();
      return { done: false, ...refused };
    }
    if (record !== undefined) {
      const lost = await writeRecord(authentications, record, expected).catch(async (error) => {
        if (error instanceof CorruptRecord) await undo();
        throw error;
      });
      if (lost !== undefined) {
        await undo();
        return lost.current?.tokens.includes(record.tokens[0] as string) ? done(await read([...adding, ...giving, ...asking])) : lost;
      }
    }
    return done((told as PromiseFulfilledResult<Places>).value, ...granted.map(({ held }) => held), ...(await Promise.all(giving.map(release))));
  };
}

/** The parts of a commit. Claims that are one addition stand together; an ask stands with the claim on its sum, whose document then tells both. */
function partsOf(claims: readonly Claim[], asks: readonly Ask[]): { adding: readonly Part[]; giving: readonly Part[]; asking: readonly Part<Ask>[] } {
  const parts = new Map<string, Part>();
  const join = (key: string, kind: Kind, claim: Claim, place: number) => {
    const part = parts.get(key);
    if (part === undefined) parts.set(key, { kind, claims: [claim], places: [place] });
    else parts.set(key, { kind: kind === "window" ? kind : part.kind, claims: [...part.claims, claim], places: [...part.places, place] });
  };
  for (const [place, claim] of claims.entries()) {
    if ("sum" in claim) join(`${place}`, "sum", claim, place);
    else join(JSON.stringify([claim.window, claim.member, claim.out]), claim.limit === undefined ? "list" : "window", claim, place);
  }
  const asking: Part<Ask>[] = [];
  for (const [at, ask] of asks.entries()) {
    const place = claims.length + at;
    const own = claims.findIndex((claim) => "sum" in claim && claim.sum === ask.sum);
    if (own < 0) asking.push({ kind: "sum", claims: [ask], places: [place] });
    else {
      const { limit, ...claim } = claims[own] as Claim;
      join(`${own}`, "sum", { ...claim, since: ask.since }, place);
    }
  }
  const isGiven = ({ claims: [claim] }: Part) => ("sum" in claim ? claim.weight < 0 : claim.out === true);
  return { adding: [...parts.values()].filter((part) => !isGiven(part)), giving: [...parts.values()].filter(isGiven), asking };
}
