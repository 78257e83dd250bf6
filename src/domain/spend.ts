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
  /** Under which twins of one request find it: they hold once, together. */
  readonly name?: string | undefined;
  readonly amount: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A hold that has a name, with the twins that share it. */
interface SharedHold extends Hold {
  readonly name: string;
  readonly sharers: number;
}

/** What a message may cost at most: a price, nothing for one that is never sent, or not known. */
export type Cost = number | "free" | undefined;

/** What a customer's messages cost, in stretches of a twelfth of each length. */
export interface Ledger extends Readonly<Record<SpendCeiling["per"], readonly Stretch[]>> {
  /** The newest holds that have names, the oldest first. */
  readonly named: readonly SharedHold[];
}

export const emptyLedger: Ledger = { hour: [], day: [], named: [] };

/** Named holds that a ledger keeps, and for how long, in milliseconds. A twin that comes later, or after too many others, is charged again. */
const keptNames = 500;
const nameLife = 60_000;

/** Milliseconds. */
const lengths: Readonly<Record<SpendCeiling["per"], number>> = { hour: 3_600_000, day: 86_400_000 };

/** How long a ledger is of use after its last change, in milliseconds. */
export const ledgerLife = 2 * lengths.day;

/** A price counts as no less than it is, and an amount as no more; the thousandth of a millionth is what a sum of floating-point numbers may be off. */
const millionths = (price: number) => Math.ceil(price * 1e6 - 1e-3);
const wholeMillionths = (amount: number) => Math.floor(amount * 1e6 + 1e-3);

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
    if (spent + millionths(price) > wholeMillionths(amount)) return { ...refusal, value: (spent + millionths(price)) / 1e6 };
  }
  return undefined;
}

/** What a hold does to a ledger: the hold and the ledger with it, or the ceiling that refuses. */
export type Held = { readonly hold: Hold; readonly next: Ledger } | { readonly refusal: Decision };

/** Holds `price`; a twin joins what was held under its name, and holds what it costs more. */
export function holdSpend(ledger: Ledger, price: number, name: string | undefined, ceilings: readonly SpendCeiling[], now: number, skew: number): Held {
  const twin = ledger.named.find((one) => one.name === name && one.at > now - nameLife);
  const more = twin === undefined ? price : Math.max(0, price - twin.amount);
  const refusal = twin !== undefined && more === 0 ? undefined : spendRefusal(ledger, more, ceilings, now, skew);
  if (refusal !== undefined) return { refusal };
  const at = twin?.at ?? now;
  const hold = { name, amount: (twin?.amount ?? 0) + more, at };
  const spent = more === 0 ? ledger : withSpent(ledger, millionths(hold.amount) - millionths(twin?.amount ?? 0), at);
  if (name === undefined) return { hold, next: spent };
  const kept = ledger.named.filter((one) => one.name !== name && one.at > now - nameLife).slice(1 - keptNames);
  return { hold, next: { ...spent, named: [...kept, { ...hold, name, sharers: (twin?.sharers ?? 0) + 1 }] } };
}

/** The ledger once it is known that `spent` was spent of a hold. */
export function settleSpend(ledger: Ledger, { name, amount, at }: Hold, spent: number): Ledger {
  const held = ledger.named.find((one) => one.name === name)?.amount ?? amount;
  return withSpent(withoutName(ledger, name), millionths(spent) - millionths(held), at);
}

/** The ledger once one of those who share a hold sends nothing: the last gives it back. A name that is gone may be shared by others still, so what it held stays. */
export function leaveSpend(ledger: Ledger, hold: Hold): Ledger {
  const { name } = hold;
  const shared = ledger.named.find((one) => one.name === name);
  if (name === undefined || shared?.sharers === 1) return settleSpend(ledger, hold, 0);
  if (shared === undefined) return ledger;
  return { ...ledger, named: ledger.named.map((one) => (one === shared ? { ...one, sharers: one.sharers - 1 } : one)) };
}

function withoutName(ledger: Ledger, name: string | undefined): Ledger {
  return { ...ledger, named: ledger.named.filter((one) => one.name !== name) };
}

/** `more`: in millionths. What is older than two lengths goes. */
function withSpent(ledger: Ledger, more: number, at: number): Ledger {
  const add = (per: SpendCeiling["per"]) => {
    const start = Math.floor(at / stretchOf(per)) * stretchOf(per);
    const spent = (ledger[per].find((stretch) => stretch.start === start)?.spent ?? 0) + more;
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
  return JSON.stringify([flat(hour), flat(day), ...named.map(({ name, amount, at, sharers }) => [name, amount, at, sharers])]);
}

/** Throws when the text is no ledger. */
export function decodeLedger(text: string): Ledger {
  const [hour, day, ...named] = JSON.parse(text) as [unknown, unknown, ...[string, number, number, number][]];
  return { hour: stretches(hour), day: stretches(day), named: named.map(([name, amount, at, sharers]) => ({ name, amount, at, sharers })) };
}

function stretches(flat: unknown): Stretch[] {
  if (!Array.isArray(flat) || flat.length % 2 !== 0 || !flat.every(Number.isSafeInteger)) throw new TypeError("a ledger is corrupt");
  return Array.from({ length: flat.length / 2 }, (_, at) => ({ start: flat[2 * at] as number, spent: flat[2 * at + 1] as number }));
}
