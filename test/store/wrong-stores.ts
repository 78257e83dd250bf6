import type { Claim, ReserveResult, Store, StoredRecord, SwapResult } from "../../src/ports/store.js";
import { PlainStore } from "./plain-store.js";

/** Lets every other caller that is ready go first, as a round trip does. */
const roundTrip = () => new Promise<void>((resolve) => setImmediate(resolve));

/** What a client makes of a reply that it takes for JSON. */
function decoded(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? text : (value as string);
  } catch {
    return text;
  }
}

/** One mistake, and the sentence of the contract that must find it. More may. */
export interface WrongStore {
  readonly mistake: string;
  readonly foundBy: string;
  make(): { readonly store: Store; readonly peer?: Store };
}

function wrong(mistake: string, foundBy: string, Type: new () => Store): WrongStore {
  return { mistake, foundBy, make: () => ({ store: new Type() }) };
}

export const wrongStores: readonly WrongStore[] = [
  wrong(
    "reads, then writes after a round trip",
    "compareAndSwap: of 50 racing swaps from one token exactly one is swapped, and the others get its record",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        this.check(next.data);
        const current = await this.find(next.customer, next.id);
        await roundTrip();
        if (current && this.landed(current, next.tokens[0] as string)) return { swapped: true };
        if (!this.isExpected(current, expected)) return current ? { swapped: false, current } : { swapped: false };
        this.records.set(this.key(next.customer, next.id), structuredClone(next));
        return { swapped: true };
      }
    },
  ),
  wrong(
    "compares the count, then adds after a round trip",
    "reserve: of 50 racers never more than `limit` are granted, and one after another exactly `limit`",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        const full = claims.findIndex((claim) => this.isFull(claim));
        await roundTrip();
        if (full >= 0) return { granted: false, refusedBy: full };
        for (const claim of claims) this.take(claim);
        return { granted: true };
      }
    },
  ),
  wrong(
    "reserves windows one by one, and undoes by taking the member away",
    "reserve: a refusal neither moves nor removes a member that is already in another window of the claim",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        for (const [i, claim] of claims.entries()) {
          if (this.isFull(claim)) {
            for (const { window, member } of claims.slice(0, i)) this.members(window).delete(member);
            return { granted: false, refusedBy: i };
          }
          this.take(claim);
        }
        return { granted: true };
      }
    },
  ),
  wrong(
    "grants a member that is there, however old",
    "reserve: a member that left the window long ago has to fit in again",
    class extends PlainStore {
      override isFull(claim: Claim): boolean {
        return !this.members(claim.window).has(claim.member) && super.isFull(claim);
      }
    },
  ),
  wrong(
    "knows only the newest token",
    "compareAndSwap: a write sent again after up to fifteen later writes is swapped, and nothing is written",
    class extends PlainStore {
      override landed(current: StoredRecord, token: string): boolean {
        return current.tokens[0] === token;
      }
    },
  ),
  wrong(
    "does not know a repeated write",
    "compareAndSwap: a create sent twice is swapped both times and written once",
    class extends PlainStore {
      override landed(): boolean {
        return false;
      }
    },
  ),
  wrong(
    "knows every token it has ever seen",
    "compareAndSwap: a write whose token has left the list is refused like any other",
    class extends PlainStore {
      readonly seen = new Set<string>();
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        if (this.seen.has(next.tokens[0] as string)) return { swapped: true };
        const result = await super.compareAndSwap(next, expected);
        if (result.swapped) this.seen.add(next.tokens[0] as string);
        return result;
      }
    },
  ),
  wrong(
    "remembers the token of a write that it refused",
    "compareAndSwap: a write that was refused has not landed, and is refused when it is sent again",
    class extends PlainStore {
      readonly seen = new Set<string>();
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const token = next.tokens[0] as string;
        if (this.seen.has(token)) return { swapped: true };
        this.seen.add(token);
        return super.compareAndSwap(next, expected);
      }
    },
  ),
  wrong(
    "knows a write by any token it carries",
    "compareAndSwap: a write is known by its newest token alone, not by the older ones it carries",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const current = this.records.get(this.key(next.customer, next.id));
        if (current && current.tokens[0] !== expected && next.tokens.some((token) => current.tokens.includes(token))) return { swapped: true };
        return super.compareAndSwap(next, expected);
      }
    },
  ),
  wrong(
    "writes a repeated write again",
    "compareAndSwap: a write sent again after up to fifteen later writes is swapped, and nothing is written",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const result = await super.compareAndSwap(next, expected);
        if (result.swapped) this.records.set(this.key(next.customer, next.id), structuredClone(next));
        return result;
      }
    },
  ),
  wrong(
    "knows a write by its content",
    "compareAndSwap: a twin with a token of its own is refused and gets what is stored",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const current = this.records.get(this.key(next.customer, next.id));
        return current?.data === next.data ? { swapped: true } : super.compareAndSwap(next, expected);
      }
    },
  ),
  wrong(
    "charges the windows before the full one",
    "reserve: a refusal charges nothing, neither before nor after the full window",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        for (const [i, claim] of claims.entries()) {
          if (this.isFull(claim)) return { granted: false, refusedBy: i };
          this.take(claim);
        }
        return { granted: true };
      }
    },
  ),
  wrong(
    "charges large windows before it has looked at the others",
    "reserve: a refusal by a window with a limit above 1,000 charges nothing, nor does it when another refuses",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        for (const claim of claims) if (claim.limit > 1_000 && !this.isFull(claim)) this.take(claim);
        return super.reserve(claims);
      }
    },
  ),
  wrong(
    "deletes the record, then creates it anew",
    "compareAndSwap: of 50 racing swaps from one token exactly one is swapped, and the others get its record",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const key = this.key(next.customer, next.id);
        if (expected !== null && this.isExpected(this.records.get(key), expected)) {
          this.check(next.data);
          this.records.delete(key);
          await roundTrip();
          this.records.set(key, structuredClone(next));
          return { swapped: true };
        }
        return super.compareAndSwap(next, expected);
      }
    },
  ),
  wrong(
    "creates by a look, then a write",
    "compareAndSwap: of 50 racing creates exactly one is swapped, and the others get its record",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const key = this.key(next.customer, next.id);
        if (expected === null && !this.records.has(key)) {
          await roundTrip();
          this.records.delete(key);
        }
        return super.compareAndSwap(next, expected);
      }
    },
  ),
  wrong(
    "lets the last write win",
    "compareAndSwap: a swap from any token but the newest is refused, brings the current record back and changes nothing",
    class extends PlainStore {
      override isExpected(): boolean {
        return true;
      }
    },
  ),
  wrong(
    "lets a create replace what is there",
    "compareAndSwap: a create refused by a record that is there brings it back and changes nothing",
    class extends PlainStore {
      override isExpected(current: StoredRecord | undefined, expected: string | null): boolean {
        return expected === null || super.isExpected(current, expected);
      }
    },
  ),
  wrong(
    "takes a swap of a missing record for a create",
    "compareAndSwap: a swap of a record that is not there is refused, brings nothing back and writes nothing",
    class extends PlainStore {
      override isExpected(current: StoredRecord | undefined, expected: string | null): boolean {
        return current === undefined || super.isExpected(current, expected);
      }
    },
  ),
  wrong(
    "compares tokens without regard to case",
    "compareAndSwap: a swap from any token but the newest is refused, brings the current record back and changes nothing",
    class extends PlainStore {
      override isExpected(current: StoredRecord | undefined, expected: string | null): boolean {
        return current?.tokens[0]?.toLowerCase() === expected?.toLowerCase();
      }
    },
  ),
  wrong(
    "compares tokens as a loosely typed language does",
    "compareAndSwap: tokens that look like one number are different tokens",
    class extends PlainStore {
      override isExpected(current: StoredRecord | undefined, expected: string | null): boolean {
        const token = current?.tokens[0] ?? null;
        return token === expected || (token !== null && expected !== null && Number(token) === Number(expected));
      }
    },
  ),
  wrong(
    "accepts any of the last tokens as the newest",
    "compareAndSwap: a swap from any token but the newest is refused, brings the current record back and changes nothing",
    class extends PlainStore {
      override isExpected(current: StoredRecord | undefined, expected: string | null): boolean {
        return expected === null ? current === undefined : current?.tokens.includes(expected) === true;
      }
    },
  ),
  wrong(
    "brings nothing back with a refusal",
    "compareAndSwap: a create refused by a record that is there brings it back and changes nothing",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const { swapped } = await super.compareAndSwap(next, expected);
        return swapped ? { swapped } : { swapped };
      }
    },
  ),
  wrong(
    "keeps no customers apart",
    "compareAndSwap: the same id under two customers is two records",
    class extends PlainStore {
      override key(_customer: string, id: string): string {
        return id;
      }
    },
  ),
  wrong(
    "finds anything for an unknown id",
    "find: a record that was never written is undefined",
    class extends PlainStore {
      override async find(customer: string, id: string): Promise<StoredRecord | undefined> {
        return (await super.find(customer, id)) ?? [...this.records.values()].find((record) => record.customer === customer);
      }
    },
  ),
  wrong(
    "keeps and hands out the caller's objects",
    "compareAndSwap: what is stored is not touched by changing what was passed in or handed out",
    class extends PlainStore {
      override async find(customer: string, id: string): Promise<StoredRecord | undefined> {
        return this.records.get(this.key(customer, id));
      }
    },
  ),
  wrong(
    "keeps fields that the next write leaves out",
    "compareAndSwap: wakeAt is set, changed and removed with the record",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        return super.compareAndSwap({ ...this.records.get(this.key(next.customer, next.id)), ...next }, expected);
      }
    },
  ),
  wrong(
    "keeps its ends in whole seconds",
    "compareAndSwap: a create (expected null) writes the record, and find returns every field exactly",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        return super.compareAndSwap({ ...next, keepUntil: Math.floor(next.keepUntil / 1000) * 1000 }, expected);
      }
    },
  ),
  wrong(
    "keeps the end that the record was created with",
    "compareAndSwap: a swap from the newest token replaces every field",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const keepUntil = this.records.get(this.key(next.customer, next.id))?.keepUntil ?? next.keepUntil;
        return super.compareAndSwap({ ...next, keepUntil }, expected);
      }
    },
  ),
  wrong(
    "does not write what has ended already",
    "compareAndSwap: a record whose keepUntil has passed is there whole or not at all, never as it was before",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        return next.keepUntil < Date.now() ? { swapped: true } : super.compareAndSwap(next, expected);
      }
      override async put(key: string, value: string, keepUntil: number): Promise<void> {
        if (keepUntil >= Date.now()) await super.put(key, value, keepUntil);
      }
    },
  ),
  wrong(
    "reads data as JSON",
    "compareAndSwap: data comes back byte for byte, whatever it looks like",
    class extends PlainStore {
      override async find(customer: string, id: string): Promise<StoredRecord | undefined> {
        const record = await super.find(customer, id);
        return record && { ...record, data: decoded(record.data) };
      }
      override async get(key: string): Promise<string | undefined> {
        const value = await super.get(key);
        return value === undefined ? undefined : decoded(value);
      }
    },
  ),
  wrong(
    "takes an empty value for none",
    "put: values come back byte for byte, whatever they look like",
    class extends PlainStore {
      override async get(key: string): Promise<string | undefined> {
        return this.values.get(key) || undefined;
      }
    },
  ),
  wrong(
    "keeps anything, however large",
    "compareAndSwap: a megabyte of data is rejected, and nothing is written",
    class extends PlainStore {
      override check(): void {}
    },
  ),
  wrong(
    "writes what is too large, then complains",
    "put: 64 KiB are kept, a megabyte is rejected and leaves the value as it was",
    class extends PlainStore {
      override async put(key: string, value: string, keepUntil: number): Promise<void> {
        this.values.set(key, value);
        await super.put(key, value, keepUntil);
      }
    },
  ),
  wrong(
    "refuses 64 KiB",
    "compareAndSwap: 64 KiB of data are kept",
    class extends PlainStore {
      override check(text: string): void {
        if (Buffer.byteLength(JSON.stringify(text)) > 65_536) throw new Error("too large");
      }
    },
  ),
  wrong(
    "counts a repeated member each time",
    "reserve: a member that is already there is counted once",
    class extends PlainStore {
      override take({ window, member, now }: Claim): void {
        const members = this.members(window);
        this.windows.set(window, members.set(members.has(member) ? `${member} ${members.size}` : member, now));
      }
    },
  ),
  wrong(
    "leaves a repeated member where it is",
    "reserve: a member that is already there moves to `now`",
    class extends PlainStore {
      override take(claim: Claim): void {
        if (!this.members(claim.window).has(claim.member)) super.take(claim);
      }
    },
  ),
  wrong(
    "refuses a member that is already in the full window",
    "reserve: a member that is already in a full window is granted",
    class extends PlainStore {
      override isFull({ window, limit, since, now }: Claim): boolean {
        return [...this.members(window).values()].filter((at) => this.counts(at, since, now)).length >= limit;
      }
    },
  ),
  wrong(
    "grants whatever member is there already",
    "reserve: a member that is already in a full window is granted",
    class extends PlainStore {
      override isFull(claim: Claim): boolean {
        return !this.members(claim.window).has(claim.member) && super.isFull(claim);
      }
    },
  ),
  wrong(
    "counts members at `since`",
    "reserve: members at `since` or before do not count",
    class extends PlainStore {
      override counts(at: number, since: number): boolean {
        return at >= since;
      }
    },
  ),
  wrong(
    "does not count members ahead of the caller's clock",
    "reserve: members ahead of the caller's clock count",
    class extends PlainStore {
      override counts(at: number, since: number, now: number): boolean {
        return at > since && at <= now;
      }
    },
  ),
  wrong(
    "grants one member too many",
    "reserve: one after another exactly `limit` members are granted",
    class extends PlainStore {
      override isFull(claim: Claim): boolean {
        return super.isFull({ ...claim, limit: claim.limit + 1 });
      }
    },
  ),
  wrong(
    "grants one member too few when there are many",
    "reserve: a limit of 1,000 is exact",
    class extends PlainStore {
      override isFull(claim: Claim): boolean {
        return super.isFull({ ...claim, limit: claim.limit > 500 ? claim.limit - 1 : claim.limit });
      }
    },
  ),
  wrong(
    "does not hold limits above 1,000",
    "reserve: a limit above 1,000 is exact while all members are new, and free again a twelfth of the length late at most",
    class extends PlainStore {
      override isFull(claim: Claim): boolean {
        return claim.limit <= 1_000 && super.isFull(claim);
      }
    },
  ),
  wrong(
    "races for the last places of a large window",
    "reserve: of 50 racers for the last places under a limit above 1,000 never more are granted",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        const full = claims.findIndex((claim) => this.isFull(claim));
        if (claims.some(({ limit }) => limit > 1_000)) await roundTrip();
        if (full >= 0) return { granted: false, refusedBy: full };
        for (const claim of claims) this.take(claim);
        return { granted: true };
      }
    },
  ),
  wrong(
    "counts a member of a large window once in each sub-window",
    "reserve: a limit above 1,000 counts a member once that comes again in a later twelfth, and moves it",
    class extends PlainStore {
      override take(claim: Claim): void {
        const twelfth = Math.floor(claim.now / ((claim.now - claim.since) / 12));
        super.take(claim.limit > 1_000 ? { ...claim, member: `${twelfth}:${claim.member}` } : claim);
      }
    },
  ),
  wrong(
    "keeps large windows apart from small ones of the same name",
    "reserve: members count alike when a window's limit crosses 1,000 either way",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        return super.reserve(claims.map((claim) => (claim.limit > 1_000 ? { ...claim, window: `${claim.window} large` } : claim)));
      }
    },
  ),
  wrong(
    "holds the first claim on a window only",
    "reserve: two claims on one window hold it over two lengths, and charge it once",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        return super.reserve(claims.filter((claim, i) => claims.findIndex(({ window }) => window === claim.window) === i));
      }
    },
  ),
  wrong(
    "holds the last claim on a window only, for short limits and large ones alike",
    "reserve: one window holds a short length with a small limit and a long one with a limit above 1,000",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        return super.reserve(claims.filter((claim, i) => claims.findLastIndex(({ window }) => window === claim.window) === i));
      }
    },
  ),
  wrong(
    "names the last full window",
    "reserve: the first claim whose window is full is named, in the order given",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        const result = await super.reserve(claims);
        return result.granted ? result : { granted: false, refusedBy: claims.findLastIndex((claim) => this.isFull(claim)) };
      }
    },
  ),
  wrong(
    "refuses when nothing is claimed",
    "reserve: no claims are granted, and count of no windows is empty",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        return claims.length === 0 ? { granted: false, refusedBy: 0 } : super.reserve(claims);
      }
    },
  ),
  wrong(
    "charges the first window only",
    "reserve: every window takes its member when all are granted",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        const full = claims.findIndex((claim) => this.isFull(claim));
        if (full >= 0) return { granted: false, refusedBy: full };
        for (const claim of claims.slice(0, 1)) this.take(claim);
        return { granted: true };
      }
    },
  ),
  wrong(
    "empties a window as a whole when its length has passed",
    "reserve: room comes back one by one as the window moves on",
    class extends PlainStore {
      readonly started = new Map<string, number>();
      override isFull(claim: Claim): boolean {
        const start = this.started.get(claim.window);
        if (start === undefined || start <= claim.since) {
          this.windows.delete(claim.window);
          this.started.set(claim.window, claim.now);
        }
        return super.isFull(claim);
      }
    },
  ),
  wrong(
    "locks windows one by one, so that callers in two orders block each other",
    "reserve: of 50 racers for two windows in both orders never more than `limit` are granted, and refusals charge nothing",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        for (const [i, claim] of claims.entries()) {
          if (this.isFull(claim)) return { granted: false, refusedBy: i };
          this.take(claim);
          await roundTrip();
        }
        return { granted: true };
      }
    },
  ),
  wrong(
    "counts members that race as many",
    "reserve: one member claimed by 50 racers is granted to all and counted once",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        const known = claims.every(({ window, member }) => this.members(window).has(member));
        await roundTrip();
        if (known) return super.reserve(claims);
        const full = claims.findIndex(
          ({ window, limit, since, now }) => [...this.members(window).values()].filter((at) => this.counts(at, since, now)).length >= limit,
        );
        if (full >= 0) return { granted: false, refusedBy: full };
        for (const claim of claims) this.take(claim);
        return { granted: true };
      }
    },
  ),
  wrong(
    "trims members",
    "reserve: members are told apart whatever they look like",
    class extends PlainStore {
      override async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
        return super.reserve(claims.map((claim) => ({ ...claim, member: claim.member.trim() })));
      }
    },
  ),
  wrong(
    "cuts window names at the second colon",
    "reserve: windows are told apart whatever their names look like",
    class extends PlainStore {
      override members(window: string): Map<string, number> {
        return super.members(window.split(":").slice(0, 2).join(":"));
      }
      override take(claim: Claim): void {
        super.take({ ...claim, window: claim.window.split(":").slice(0, 2).join(":") });
      }
    },
  ),
  wrong(
    "leaves the customer out of window names",
    "reserve: windows of different customers do not touch",
    class extends PlainStore {
      override members(window: string): Map<string, number> {
        return super.members(window.slice(window.indexOf(":")));
      }
      override take(claim: Claim): void {
        super.take({ ...claim, window: claim.window.slice(claim.window.indexOf(":")) });
      }
    },
  ),
  wrong(
    "holds the limit that a window was created with",
    "reserve: each claim's own limit holds, lowered or raised since the last",
    class extends PlainStore {
      readonly limits = new Map<string, number>();
      override isFull(claim: Claim): boolean {
        const limit = this.limits.get(claim.window) ?? claim.limit;
        this.limits.set(claim.window, limit);
        return super.isFull({ ...claim, limit });
      }
    },
  ),
  wrong(
    "leaves absent windows out of the counts",
    "count: distinct members newer than `since`, in the order asked, absent windows as 0",
    class extends PlainStore {
      override async count(windows: readonly { readonly window: string; readonly since: number }[]): Promise<number[]> {
        return super.count(windows.filter(({ window }) => this.windows.has(window)));
      }
    },
  ),
  wrong(
    "wakes a millisecond late",
    "due: returns the records whose wakeAt is `now` or earlier, whole, and no others",
    class extends PlainStore {
      override async due(now: number, limit: number): Promise<StoredRecord[]> {
        return super.due(now - 1, limit);
      }
    },
  ),
  wrong(
    "returns what is due as it was written, not the earliest first",
    "due: the earliest come first, and at most `limit`",
    class extends PlainStore {
      override async due(now: number, limit: number): Promise<StoredRecord[]> {
        return structuredClone([...this.records.values()].filter(({ wakeAt }) => wakeAt !== undefined && wakeAt <= now).slice(0, limit));
      }
    },
  ),
  wrong(
    "returns one record of each id",
    "due: records of all customers come back",
    class extends PlainStore {
      override async due(now: number, limit: number): Promise<StoredRecord[]> {
        return [...new Map((await super.due(now, limit)).map((record) => [record.id, record])).values()];
      }
    },
  ),
  wrong(
    "keeps the first wake time of a record",
    "due: a swap that moves wakeAt moves the record, and one that leaves it out takes the record away",
    class extends PlainStore {
      readonly wakes = new Map<StoredRecord["id"], number>();
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const result = await super.compareAndSwap(next, expected);
        if (result.swapped && next.wakeAt !== undefined && !this.wakes.has(next.id)) this.wakes.set(next.id, next.wakeAt);
        return result;
      }
      override async due(now: number, limit: number): Promise<StoredRecord[]> {
        const woken = [...this.records.values()].filter(({ id }) => (this.wakes.get(id) ?? Number.POSITIVE_INFINITY) <= now);
        return structuredClone(woken.sort((a, b) => (this.wakes.get(a.id) as number) - (this.wakes.get(b.id) as number)).slice(0, limit));
      }
    },
  ),
  wrong(
    "writes the wake index before it compares",
    "due: a write that was refused, or sent again, changes nothing",
    class extends PlainStore {
      readonly wakes = new Map<string, number | undefined>();
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        this.wakes.set(this.key(next.customer, next.id), next.wakeAt);
        return super.compareAndSwap(next, expected);
      }
      override async due(now: number, limit: number): Promise<StoredRecord[]> {
        const at = ({ customer, id }: StoredRecord) => this.wakes.get(this.key(customer, id)) ?? Number.POSITIVE_INFINITY;
        return structuredClone(
          [...this.records.values()]
            .filter((record) => at(record) <= now)
            .sort((a, b) => at(a) - at(b))
            .slice(0, limit),
        );
      }
    },
  ),
  wrong(
    "lets two workers lease one record",
    "due: several workers that claim by compareAndSwap take each record once",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const current = await this.find(next.customer, next.id);
        if (!this.isExpected(current, expected)) return super.compareAndSwap(next, expected);
        await roundTrip();
        this.records.set(this.key(next.customer, next.id), structuredClone(next));
        return { swapped: true };
      }
    },
  ),
  wrong(
    "answers null for an unknown key",
    "get: a key that was never put is undefined",
    class extends PlainStore {
      override async get(key: string): Promise<string | undefined> {
        return (await super.get(key)) ?? (null as unknown as undefined);
      }
    },
  ),
  wrong(
    "keeps the first value of a key",
    "put: the value is there until its end, and a later put replaces it",
    class extends PlainStore {
      override async put(key: string, value: string, keepUntil: number): Promise<void> {
        if (!this.values.has(key)) await super.put(key, value, keepUntil);
      }
    },
  ),
  wrong(
    "keeps an old value when the new one has ended",
    "put: a value whose end has passed may be gone, and what it replaced is",
    class extends PlainStore {
      override async put(key: string, value: string, keepUntil: number): Promise<void> {
        if (keepUntil > Date.now()) await super.put(key, value, keepUntil);
      }
    },
  ),
  wrong(
    "lowers and trims keys",
    "put: keys are told apart whatever they look like",
    class extends PlainStore {
      override async get(key: string): Promise<string | undefined> {
        return super.get(key.trim().toLowerCase());
      }
      override async put(key: string, value: string, keepUntil: number): Promise<void> {
        return super.put(key.trim().toLowerCase(), value, keepUntil);
      }
    },
  ),
  wrong(
    "keeps values among the windows",
    "put: values, windows and records of one name do not touch",
    class extends PlainStore {
      override async put(key: string, value: string, keepUntil: number): Promise<void> {
        await super.put(key, value, keepUntil);
        this.windows.set(key, new Map([[value, keepUntil]]));
      }
    },
  ),
  wrong(
    "appends a value piece by piece",
    "put: of 50 racing puts one stays whole",
    class extends PlainStore {
      override async put(key: string, value: string): Promise<void> {
        this.check(value);
        this.values.set(key, value.slice(0, 20));
        await roundTrip();
        this.values.set(key, this.values.get(key) + value.slice(20));
      }
    },
  ),
  wrong(
    "repeats a write that is sent many times at once",
    "compareAndSwap: one write sent 50 times at once is swapped every time and written once",
    class extends PlainStore {
      readonly busy = new Set<string>();
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const key = this.key(next.customer, next.id);
        if (this.busy.has(key)) return { swapped: false };
        this.busy.add(key);
        await roundTrip();
        this.busy.delete(key);
        return super.compareAndSwap(next, expected);
      }
    },
  ),
  wrong(
    "loses an update among callers that try again",
    "compareAndSwap: no update is lost among callers that swap until they land",
    class extends PlainStore {
      override async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
        const current = await this.find(next.customer, next.id);
        const result = await super.compareAndSwap(next, expected);
        // A reply that came too late is tried again, and overwrites.
        if (!result.swapped && current && this.isExpected(current, expected)) this.records.set(this.key(next.customer, next.id), structuredClone(next));
        return result.swapped || (current !== undefined && this.isExpected(current, expected)) ? { swapped: true } : result;
      }
    },
  ),
  wrong(
    "knows a swap that was sent twice by its token only if it was a create",
    "compareAndSwap: a swap sent twice is swapped both times and written once",
    class extends PlainStore {
      override landed(current: StoredRecord, token: string): boolean {
        return current.tokens.length === 1 && current.tokens[0] === token;
      }
    },
  ),
  {
    mistake: "reads from a copy that is a round trip behind",
    foundBy: "compareAndSwap: a create (expected null) writes the record, and find returns every field exactly",
    make() {
      const store = new PlainStore();
      const peer = new PlainStore();
      peer.compareAndSwap = (next, expected) => store.compareAndSwap(next, expected);
      return { store, peer };
    },
  },
];
