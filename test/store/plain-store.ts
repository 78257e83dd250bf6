import type { Claim, ReserveResult, Store, StoredRecord, SwapResult } from "../../src/ports/store.js";

/** The smallest right store: every method is one tick over three maps. The wrong stores of the tests each change one thing about it. */
export class PlainStore implements Store {
  readonly records = new Map<string, StoredRecord>();
  readonly windows = new Map<string, Map<string, number>>();
  readonly values = new Map<string, string>();

  key(customer: string, id: string): string {
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

  counts(at: number, since: number, _now: number): boolean {
    return at > since;
  }

  members(window: string): Map<string, number> {
    return this.windows.get(window) ?? new Map();
  }

  isFull({ window, member, limit, since, now }: Claim): boolean {
    let others = 0;
    for (const [name, at] of this.members(window)) if (name !== member && this.counts(at, since, now)) others++;
    return others >= limit;
  }

  take({ window, member, now }: Claim): void {
    this.windows.set(window, this.members(window).set(member, now));
  }

  async find(customer: string, id: string): Promise<StoredRecord | undefined> {
    return structuredClone(this.records.get(this.key(customer, id)));
  }

  async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
    this.check(next.data);
    const key = this.key(next.customer, next.id);
    const current = this.records.get(key);
    if (current && this.landed(current, next.tokens[0] as string)) return { swapped: true };
    if (!this.isExpected(current, expected)) return current ? { swapped: false, current: structuredClone(current) } : { swapped: false };
    this.records.set(key, structuredClone(next));
    return { swapped: true };
  }

  async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
    const full = claims.findIndex((claim) => this.isFull(claim));
    if (full >= 0) return { granted: false, refusedBy: full };
    for (const claim of claims) this.take(claim);
    return { granted: true };
  }

  async count(windows: readonly { readonly window: string; readonly since: number }[]): Promise<number[]> {
    return windows.map(({ window, since }) => [...this.members(window).values()].filter((at) => this.counts(at, since, Number.POSITIVE_INFINITY)).length);
  }

  async due(now: number, limit: number): Promise<StoredRecord[]> {
    const woken = [...this.records.values()].filter(({ wakeAt }) => wakeAt !== undefined && wakeAt <= now);
    return structuredClone(woken.sort((a, b) => (a.wakeAt as number) - (b.wakeAt as number)).slice(0, limit));
  }

  async get(key: string): Promise<string | undefined> {
    return this.values.get(key);
  }

  async put(key: string, value: string, _keepUntil: number): Promise<void> {
    this.check(value);
    this.values.set(key, value);
  }
}
