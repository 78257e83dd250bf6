import type {
  Ask,
  Change,
  Claim,
  CommitResult,
  Forgotten,
  Life,
  MemberClaim,
  RecordWrite,
  Store,
  StoredRecord,
  SumClaim,
  Tally,
} from "../../src/ports/store.js";

type Kept = StoredRecord & { readonly wakeAt: number | undefined };

/** The smallest right store: every method is one tick over five maps. The wrong stores of the tests each change one thing about it. */
export class PlainStore implements Store {
  readonly records = new Map<string, Kept>();
  /** The members of each window, and when each was claimed last. */
  readonly windows = new Map<string, Map<string, number>>();
  /** What each sum was given at which time. */
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

  /** What a sum holds that is newer than `since`. */
  total({ sum, since }: Ask): number {
    let total = 0;
    for (const [at, weight] of this.sum(sum)) if (this.isNewer(at, since, Number.POSITIVE_INFINITY)) total += weight;
    return total;
  }

  /** What a claim's window or sum holds without this claim's own member. */
  others(claim: Claim): number {
    if ("sum" in claim) return this.total(claim);
    let others = 0;
    for (const [member, at] of this.window(claim.window)) if (member !== claim.member && this.isNewer(at, claim.since, claim.now)) others++;
    return others;
  }

  /** What a claim's window or sum holds, whoever claimed it. */
  held(claim: Claim): number {
    if ("sum" in claim) return this.total(claim);
    const at = this.window(claim.window).get(claim.member);
    return this.others(claim) + (at !== undefined && this.isNewer(at, claim.since, claim.now) ? 1 : 0);
  }

  isFull(claim: Claim): boolean {
    const weight = "sum" in claim ? claim.weight : claim.out ? -1 : 1;
    return claim.limit !== undefined && weight >= 0 && this.others(claim) + weight > claim.limit;
  }

  take(claim: Claim): void {
    if ("sum" in claim) this.weigh(claim);
    else if (!claim.out) this.windows.set(claim.window, this.window(claim.window).set(claim.member, claim.now));
    else if (this.window(claim.window).get(claim.member) === claim.now) this.leave(claim);
  }

  leave({ window, member }: MemberClaim): void {
    this.windows.get(window)?.delete(member);
  }

  weigh({ sum, now, weight }: SumClaim): void {
    const parts = this.sum(sum);
    this.sums.set(sum, parts.set(now, Math.max(0, (parts.get(now) ?? 0) + weight)));
  }

  write({ now: _, wakeAt, ...record }: RecordWrite): void {
    this.records.set(this.key(record), structuredClone({ ...record, wakeAt: wakeAt === "unchanged" ? this.records.get(this.key(record))?.wakeAt : wakeAt }));
  }

  read(current: Kept | undefined): StoredRecord | undefined {
    if (!current) return undefined;
    const { wakeAt: _, ...record } = structuredClone(current);
    return record;
  }

  /** The answer of a commit that needs none of the claims: it landed before, or its record is refused. */
  answer({ record, expected = null, claims = [], asks = [] }: Change): CommitResult | undefined {
    if (!record) return undefined;
    const current = this.records.get(this.key(record));
    if (current && this.landed(current, record.tokens[0] as string)) {
      return { done: true, counts: claims.map((claim) => this.held(claim)), asked: asks.map((ask) => this.total(ask)) };
    }
    if (this.isExpected(current, expected)) return undefined;
    return current ? { done: false, current: this.read(current) as StoredRecord } : { done: false };
  }

  /** The earliest `since` under which a refused claim is granted. */
  roomSince(claim: Claim): number | undefined {
    const times = "sum" in claim ? this.sum(claim.sum).keys() : this.window(claim.window).values();
    return [...times].sort((a, b) => a - b).find((since) => since > claim.since && !this.isFull({ ...claim, since }));
  }

  /** The answer of a commit of which a claim is refused. */
  refusal(claims: readonly Claim[]): CommitResult | undefined {
    const refusedBy = claims.findIndex((claim) => this.isFull(claim));
    if (refusedBy < 0) return undefined;
    const claim = claims[refusedBy] as Claim;
    const roomSince = this.roomSince(claim);
    return { done: false, refusedBy, count: this.others(claim), ...(roomSince !== undefined && { roomSince }) };
  }

  /** Does it. */
  apply({ record, claims = [], asks = [] }: Change): CommitResult {
    for (const claim of claims) this.take(claim);
    if (record) this.write(record);
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

  async put(key: string, value: string, _life: Life): Promise<void> {
    this.check(value);
    this.values.set(key, value);
  }

  async forget({ records = [], windows = [], sums = [], values = [] }: Forgotten): Promise<void> {
    for (const record of records) this.records.delete(this.key(record));
    for (const window of windows) this.windows.delete(window);
    for (const sum of sums) this.sums.delete(sum);
    for (const key of values) this.values.delete(key);
  }
}

/** A right store that keeps no more than it must: of a window the newest members that a limit can need, of a sum the newest parts, a twelfth of its length each. */
export class BoundedStore extends PlainStore {
  override weigh({ sum, since, now, weight }: SumClaim): void {
    const width = Math.max(1, Math.floor((now - since) / 12));
    const end = (Math.floor(now / width) + 1) * width;
    const parts = new Map(this.sum(sum));
    parts.set(end, Math.max(0, (parts.get(end) ?? 0) + weight));
    this.sums.set(sum, new Map([...parts].sort(([a], [b]) => b - a).slice(0, 32)));
  }

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

/** Lets every other caller that is ready go first, as a round trip does. */
export const roundTrip = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A right store in steps that are a round trip apart: claims that add, then the record, then what is taken out and given back. */
export class TwoStepStore extends PlainStore {
  /** Which claim put a member where it stands. */
  readonly tickets = new Map<string, Claim>();

  adds(claim: Claim): boolean {
    return "sum" in claim ? claim.weight >= 0 : !claim.out;
  }

  /** Claims, and answers how to undo that: weights, and members that were not there before and that no other has claimed since. */
  claim(claims: readonly Claim[]): (landed: boolean) => void {
    const undos = claims.map((claim) => {
      if ("sum" in claim) {
        this.take(claim);
        return () => this.take({ ...claim, weight: -claim.weight });
      }
      const place = `${claim.window} ${claim.member}`;
      const before = this.window(claim.window).get(claim.member);
      this.take({ ...claim, now: Math.max(claim.now, before ?? claim.now) }); // what is sent again late must not move a member back
      this.tickets.set(place, claim);
      return (landed: boolean) => {
        if (before === undefined && !landed && this.tickets.get(place) === claim) this.leave(claim);
      };
    });
    return (landed) => {
      for (const undo of undos) undo(landed);
    };
  }

  override async commit(change: Change): Promise<CommitResult> {
    const { record, claims = [], asks = [] } = change;
    if (record) this.check(record.data);
    await roundTrip();
    const refusal = this.refusal(claims);
    if (refusal) return refusal;
    const adding = claims.filter((claim) => this.adds(claim));
    const undo = this.claim(adding);
    const counts = adding.map((claim) => this.held(claim));
    await roundTrip();
    const answer = this.answer(change);
    if (answer) {
      undo(answer.done);
      return this.answer(change) as CommitResult;
    }
    if (record) this.write(record);
    await roundTrip();
    for (const claim of claims) if (!this.adds(claim)) this.take(claim);
    const told = claims.map((claim) => (this.adds(claim) ? (counts[adding.indexOf(claim)] as number) : this.held(claim)));
    return { done: true, counts: told, asked: asks.map((ask) => this.total(ask)) };
  }
}
