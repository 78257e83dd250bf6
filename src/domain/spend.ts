import type { Decision } from "./decision.js";
import type { SpendCeiling } from "./policy.js";

/** What a customer spent in one stretch of time. */
interface Stretch {
  /** Milliseconds since the epoch. */
  readonly start: number;
  /** In millionths: sums of prices must not drift. */
  readonly spent: number;
}

/** A price that a sender told, if it is one: 0 to a thousand million. */
export function soundPrice(price: unknown): number | undefined {
  return typeof price === "number" && price >= 0 && price <= 1e9 ? price : undefined;
}

/** What was held for a message; it counts in the stretches. */
export interface Hold {
  /** Under which a twin of the request finds it, and is not charged again. */
  readonly name?: string | undefined;
  readonly amount: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** What a customer's messages cost, in stretches of a twelfth of each length. */
export interface Ledger extends Readonly<Record<SpendCeiling["per"], readonly Stretch[]>> {
  /** The newest holds that have names, the oldest first. */
  readonly named: readonly Hold[];
}

export const emptyLedger: Ledger = { hour: [], day: [], named: [] };

/** Named holds that a ledger keeps, and for how long, in milliseconds. A twin that comes later, or after too many others, is charged again. */
const keptNames = 1000;
const nameLife = 60_000;

/** Milliseconds. */
const lengths: Readonly<Record<SpendCeiling["per"], number>> = { hour: 3_600_000, day: 86_400_000 };

/** How long a ledger is of use after its last change, in milliseconds. */
export const ledgerLife = 2 * lengths.day;

const millionths = (amount: number) => Math.round(amount * 1e6);

/**
 * "spend ceiling | `{ amount, per: "hour" or "day" }` over the route's price" (contract.md, Limits). "a limit holds in every window of its length": stretches that reach into the window are summed whole, so a ceiling refuses up to a twelfth of
 * its length longer than it must. `skew` as in `quota.ts`. Without a price nothing can be held to a ceiling, and the message is refused. `undefined`: no ceiling refuses.
 */
export function spendRefusal(ledger: Ledger, price: number | undefined, ceilings: readonly SpendCeiling[], now: number, skew: number): Decision | undefined {
  for (const { amount, per } of ceilings) {
    const refusal = { at: now, rule: `spend ${amount}/${per}`, mode: "enforce", threshold: amount } as const;
    if (price === undefined) return { ...refusal, reason: "the sender told no price" };
    const since = now - lengths[per] - 2 * skew;
    const spent = ledger[per].reduce((sum, stretch) => (stretch.start + stretchOf(per) > since ? sum + stretch.spent : sum), 0);
    if (spent + millionths(price) > millionths(amount)) return { ...refusal, value: (spent + millionths(price)) / 1e6 };
  }
  return undefined;
}

/** The ledger with one hold more. */
export function withHold(ledger: Ledger, hold: Hold): Ledger {
  const spent = withSpent(ledger, hold.amount, hold.at);
  if (hold.name === undefined) return spent;
  const kept = ledger.named.filter(({ at }) => at > hold.at - nameLife).slice(1 - keptNames);
  return { ...spent, named: [...kept, hold] };
}

/** The ledger once it is known that `spent` was spent of a hold. */
export function settled(ledger: Ledger, { name, amount, at }: Hold, spent: number): Ledger {
  const next = withSpent(ledger, spent - amount, at);
  return { ...next, named: next.named.filter((hold) => hold.name !== name) };
}

/** What is older than two of its lengths goes. */
function withSpent(ledger: Ledger, amount: number, at: number): Ledger {
  const add = (per: SpendCeiling["per"]) => {
    const start = Math.floor(at / stretchOf(per)) * stretchOf(per);
    const spent = (ledger[per].find((stretch) => stretch.start === start)?.spent ?? 0) + millionths(amount);
    const others = ledger[per].filter((stretch) => stretch.start !== start && stretch.start > at - 2 * lengths[per]);
    return spent > 0 ? [...others, { start, spent }] : others;
  };
  return { ...ledger, hour: add("hour"), day: add("day") };
}

function stretchOf(per: SpendCeiling["per"]): number {
  return lengths[per] / 12;
}

/** The ledger as the store keeps it. */
export function encodeLedger({ hour, day, named }: Ledger): string {
  const flat = (stretches: readonly Stretch[]) => stretches.flatMap(({ start, spent }) => [start, spent]);
  return JSON.stringify([flat(hour), flat(day), ...named.map(({ name, amount, at }) => [name, amount, at])]);
}

/** Throws when the text is no ledger. */
export function decodeLedger(text: string): Ledger {
  const [hour, day, ...named] = JSON.parse(text) as [unknown, unknown, ...[string, number, number][]];
  return { hour: stretches(hour), day: stretches(day), named: named.map(([name, amount, at]) => ({ name, amount, at })) };
}

function stretches(flat: unknown): Stretch[] {
  if (!Array.isArray(flat) || flat.length % 2 !== 0 || !flat.every(Number.isSafeInteger)) throw new TypeError("a ledger is corrupt");
  return Array.from({ length: flat.length / 2 }, (_, at) => ({ start: flat[2 * at] as number, spent: flat[2 * at + 1] as number }));
}
