import type {
  Change,
  Claim,
  CommitResult,
  Deletion,
  Expiry,
  MemberClaim,
  RecordWrite,
  Revocation,
  Store,
  StoredRecord,
  SumClaim,
  SumParts,
  Tally,
} from "../../src/ports/store.js";

type Kept = StoredRecord & { readonly wakeAt: number | undefined };

/**
 * The smallest correct store: every method is one tick over five maps. The wrong stores of the tests each change one
 * thing about it.
 */
export class PlainStore implements Store {
  readonly records = new Map<string, Kept>();
  /** The members of each window, and when each was last claimed. */
  readonly windows = new Map<string, Map<string, number>>();
  /** The token of the commit that added a member, unless another commit has claimed it since. */
  readonly adders = new Map<string, string | undefined>();
  /** The value of each part of a sum. */
  readonly sums = new Map<string, Map<number, number>>();
  readonly counters = new Map<string, number>();
  readonly values = new Map<string, string>();

  key({ customer, id }: { readonly customer: string; readonly id: string }): string {
    return `${customer}/${id}`;
  }

  landed(current: StoredRecord, token: string): boolean {
    return current.tokens.includes(token);
  }

  isExpected(current: StoredRecord | undefined, expected: string | null): boolean {
    return (current?.tokens[0] ?? null) === expected;
  }

  check(text: string): void {
    if (Buffer.byteLength(text) > 65_536) throw new Error("too large");
  }

  window(name: string): Map<string, number> {
    return this.windows.get(name) ?? new Map();
  }

  sum(name: string): Map<number, number> {
    return this.sums.get(name) ?? new Map();
  }

  isNewer(at: number, since: number, _now: number): boolean {
    return at > since;
  }

  /** Whether a part of a sum counts. */
  counts(at: number, { part, parts, ahead }: SumParts): boolean {
    return at > part - parts && at <= (ahead ? part + 1 : part);
  }

  /** The sum of the parts that count. */
  total(parts: SumParts): number {
    let total = 0;
    for (const [at, weight] of this.sum(parts.sum)) if (this.counts(at, parts)) total += weight;
    return total;
  }

  /** The value of a sum after a claim. */
  raised(claim: SumClaim): number {
    const { floor = Number.NEGATIVE_INFINITY, weight } = claim;
    return Math.max(floor, Math.max(floor, this.total(claim)) + weight);
  }

  /** What a claim's window or sum holds without this claim's own member. */
  others(claim: Claim): number {
    if ("sum" in claim) return this.total(claim);
    let others = 0;
    for (const [member, at] of this.window(claim.window)) if (member !== claim.member && this.isNewer(at, claim.since, claim.now)) others++;
    return others;
  }

  /** What a claim's window or sum holds, this claim included. */
  held(claim: Claim): number {
    if ("sum" in claim) return this.total(claim);
    const at = this.window(claim.window).get(claim.member);
    return this.others(claim) + (at !== undefined && this.isNewer(at, claim.since, claim.now) ? 1 : 0);
  }

  isFull(claim: Claim): boolean {
    if (claim.limit === undefined) return false;
    if ("sum" in claim) return claim.weight >= 0 && this.raised(claim) > claim.limit;
    return !claim.out && this.others(claim) + 1 > claim.limit;
  }

  place({ window, member }: MemberClaim): string {
    return JSON.stringify([window, member]);
  }

  take(claim: Claim, token?: string): void {
    if ("sum" in claim) this.weigh(claim);
    else if (!claim.out) this.enter(claim, token);
    else if (this.window(claim.window).get(claim.member) === claim.now) this.leave(claim);
  }

  enter(claim: MemberClaim, token?: string): void {
    const members = this.window(claim.window);
    const before = members.get(claim.member);
    const place = this.place(claim);
    if (before === undefined || this.adders.get(place) !== token) this.adders.set(place, before === undefined ? token : undefined);
    this.windows.set(claim.window, members.set(claim.member, Math.max(claim.now, before ?? claim.now)));
  }

  leave(claim: MemberClaim): void {
    this.windows.get(claim.window)?.delete(claim.member);
  }

  weigh(claim: SumClaim): void {
    this.add(claim, this.raised(claim) - this.total(claim));
  }

  add({ sum, part }: SumParts, by: number): void {
    const parts = this.sum(sum);
    this.sums.set(sum, parts.set(part, (parts.get(part) ?? 0) + by));
  }

  /** Takes back the claims of the commit with this token. */
  takeBack(claims: readonly Claim[], token: string): void {
    for (const claim of claims) {
      if ("sum" in claim) this.add(claim, -claim.weight);
      else if (this.adders.get(this.place(claim)) === token) this.leave(claim);
    }
  }

  write({ now: _, wakeAt, ...record }: RecordWrite): void {
    this.records.set(this.key(record), structuredClone({ ...record, wakeAt: wakeAt === "unchanged" ? this.records.get(this.key(record))?.wakeAt : wakeAt }));
  }

  read(current: Kept | undefined): StoredRecord | undefined {
    if (!current) return undefined;
    const { wakeAt: _, ...record } = structuredClone(current);
    return record;
  }

  /** The result of a commit that does not depend on its claims: it has already landed, or its record is rejected. */
  answer({ record, expected = null, claims = [], asks = [] }: Change): CommitResult | undefined {
    if (!record) return undefined;
    const current = this.records.get(this.key(record));
    if (current && this.landed(current, record.tokens[0] as string)) {
      return { done: true, counts: claims.map((claim) => this.held(claim)), asked: asks.map((ask) => this.total(ask)) };
    }
    if (this.isExpected(current, expected)) return undefined;
    return current ? { done: false, current: this.read(current) as StoredRecord } : { done: false };
  }

  /** The earliest `since` at which a rejected claim would be granted. */
  roomSince(claim: MemberClaim): number | undefined {
    const times = this.window(claim.window).values();
    return [...times].sort((a, b) => a - b).find((since) => since > claim.since && !this.isFull({ ...claim, since }));
  }

  /** The earliest part in which a rejected claim would be granted. */
  roomPart({ ahead: _, ...claim }: SumClaim): number | undefined {
    const later = Array.from({ length: claim.parts + 1 }, (_, i) => claim.part + 1 + i);
    return later.find((part) => !this.isFull({ ...claim, part }));
  }

  /** The result of a commit one of whose claims is rejected. */
  refusal(claims: readonly Claim[]): CommitResult | undefined {
    const refusedBy = claims.findIndex((claim) => this.isFull(claim));
    const claim = claims[refusedBy];
    if (!claim) return undefined;
    const room = "sum" in claim ? { roomPart: this.roomPart(claim) } : { roomSince: this.roomSince(claim) };
    return { done: false, refusedBy, count: this.others(claim), ...(Object.values(room)[0] !== undefined && (room as object)) };
  }

  /** Applies the change. */
  apply({ record, claims = [], asks = [], revoke }: Change): CommitResult {
    const current = record && this.records.get(this.key(record));
    for (const claim of claims) this.take(claim, record?.tokens[0]);
    if (record) this.write(record);
    if (revoke && current && this.landed(current, revoke.token)) this.takeBack(revoke.claims, revoke.token);
    return { done: true, counts: claims.map((claim) => this.held(claim)), asked: asks.map((ask) => this.total(ask)) };
  }

  async find(customer: string, id: string): Promise<StoredRecord | undefined> {
    return this.read(this.records.get(this.key({ customer, id })));
  }

  async commit(change: Change): Promise<CommitResult> {
    if (change.record) this.check(change.record.data);
    return this.answer(change) ?? this.refusal(change.claims ?? []) ?? this.apply(change);
  }

  async members(window: string, limit: number): Promise<string[]> {
    const newestFirst = [...this.window(window)].sort(([, a], [, b]) => b - a);
    return newestFirst.slice(0, limit).map(([member]) => member);
  }

  async tally(adds: readonly Tally[], reads: readonly string[]): Promise<number[]> {
    for (const { counter, by } of adds) this.counters.set(counter, (this.counters.get(counter) ?? 0) + by);
    return reads.map((counter) => this.counters.get(counter) ?? 0);
  }

  /** The records that `lease` hands out. */
  due(until: number, limit: number): Kept[] {
    const woken = [...this.records.values()].filter(({ wakeAt }) => wakeAt !== undefined && wakeAt <= until);
    return woken.sort((a, b) => (a.wakeAt as number) - (b.wakeAt as number)).slice(0, limit);
  }

  async lease(until: number, limit: number, leaseUntil: number): Promise<StoredRecord[]> {
    const due = this.due(until, limit);
    for (const record of due) this.records.set(this.key(record), { ...record, wakeAt: leaseUntil });
    return due.map((record) => this.read(record) as StoredRecord);
  }

  async get(key: string): Promise<string | undefined> {
    return this.values.get(key);
  }

  async put(key: string, value: string, _life: Expiry): Promise<void> {
    this.check(value);
    this.values.set(key, value);
  }

  async delete({ records = [], windows = [], sums = [], values = [] }: Deletion): Promise<void> {
    for (const record of records) this.records.delete(this.key(record));
    for (const window of windows) this.windows.delete(window);
    for (const parts of sums) {
      const left = [...this.sum(parts.sum)].filter(([at]) => !this.counts(at, { ...parts, ahead: true }));
      if (left.length > 0) this.sums.set(parts.sum, new Map(left));
      else this.sums.delete(parts.sum);
    }
    for (const key of values) this.values.delete(key);
  }
}

/** A correct store that stores no more of a window than it must: the newest members that a limit can need. */
export class BoundedStore extends PlainStore {
  override apply(change: Change): CommitResult {
    const result = super.apply(change);
    for (const claim of change.claims ?? []) {
      if ("sum" in claim) continue;
      const limits = (change.claims ?? []).map((other) => ("window" in other && other.window === claim.window ? (other.limit ?? 10_000) : 0));
      const newestFirst = [...this.window(claim.window)].sort(([, a], [, b]) => b - a);
      this.windows.set(claim.window, new Map(newestFirst.slice(0, Math.max(...limits) + 8)));
    }
    return result;
  }
}

/** Lets every other ready caller go first, as a round trip does. */
export const roundTrip = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * A correct store whose steps are a round trip apart: claims that add, then the record, then what is taken out, given
 * back and revoked.
 */
export class TwoStepStore extends PlainStore {
  /** Tokens of commits whose claims were made, and of those whose claims may no longer be made. */
  readonly tickets = new Map<string, "made" | "revoked">();
  /** Tokens of commits that have taken out, given back and revoked. */
  readonly completed = new Set<string>();

  adds(claim: Claim): boolean {
    return "sum" in claim ? claim.weight >= 0 : !claim.out;
  }

  /** Makes the claims that add, once for each token. */
  make(claims: readonly Claim[], token: string | undefined): CommitResult | undefined {
    if (token !== undefined && this.tickets.has(token)) return undefined;
    const refusal = this.refusal(claims);
    if (refusal) return refusal;
    for (const claim of claims) if (this.adds(claim)) this.take(claim, token);
    if (token !== undefined) this.tickets.set(token, "made");
    return undefined;
  }

  /** Takes back the claims of a record that was rejected. */
  unmake(claims: readonly Claim[], token: string): void {
    if (this.tickets.get(token) !== "made") return;
    this.takeBack(
      claims.filter((claim) => this.adds(claim)),
      token,
    );
    this.tickets.delete(token);
  }

  /** Takes out, gives back and revokes, once for each token. */
  complete({ claims = [], revoke }: Change, token: string | undefined): void {
    if (token !== undefined && this.completed.has(token)) return;
    if (token !== undefined) this.completed.add(token);
    for (const claim of claims) if (!this.adds(claim)) this.take(claim);
    if (revoke) this.revoke(revoke);
  }

  revoke({ token, claims }: Revocation): void {
    this.unmake(claims, token);
    this.tickets.set(token, "revoked");
    if (this.completed.has(token))
      this.takeBack(
        claims.filter((claim) => !this.adds(claim)),
        token,
      );
    this.completed.add(token);
  }

  override async commit(change: Change): Promise<CommitResult> {
    const { record, claims = [], asks = [] } = change;
    const token = record?.tokens[0];
    if (record) this.check(record.data);
    await roundTrip();
    const refusal = this.make(claims, token);
    if (refusal) return refusal;
    const made = claims.map((claim) => this.held(claim));
    await roundTrip();
    const answer = this.answer(change);
    if (answer && !answer.done) {
      this.unmake(claims, token as string);
      return answer;
    }
    if (!answer && record) this.write(record);
    await roundTrip();
    this.complete(change, token);
    const counts = claims.map((claim, i) => (this.adds(claim) ? (made[i] as number) : this.held(claim)));
    return { done: true, counts, asked: asks.map((ask) => this.total(ask)) };
  }
}
