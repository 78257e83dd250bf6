/**
 * A route's breaker in one country. Times are milliseconds since the epoch.
 * - `closed`: the route carries its share.
 * - `open`: it carries nothing while another route can, until `until`.
 * - `half-open`: it carries a small share, as probes, until a round of them is judged.
 */
export type Breaker =
  | { readonly state: "closed" }
  | { readonly state: "open"; readonly since: number; readonly until: number; readonly failures: number }
  | { readonly state: "half-open"; readonly since: number; readonly failures: number; readonly probes: number; readonly lastProbeAt: number };

export interface BreakerRules {
  /** Messages of one round of probes. */
  readonly probes: number;
  /** Milliseconds from opening to the first round; doubles after each round that fails, up to `window`. */
  readonly probeAfter: number;
  /** Milliseconds that a message waits for its code to be typed. */
  readonly settle: number;
  /** Milliseconds after which what is known is too old to count. */
  readonly window: number;
}

export const closed: Breaker = { state: "closed" };

/** Opens a closed breaker when the route is strained to the full. */
export function trip(breaker: Breaker, strained: number, now: number, { probeAfter }: BreakerRules): Breaker {
  return breaker.state === "closed" && strained >= 1 ? { state: "open", since: now, until: now + probeAfter, failures: 0 } : breaker;
}

/** Half-opens an open breaker when its time has come. */
export function expire(breaker: Breaker, now: number): Breaker {
  if (breaker.state !== "open" || now < breaker.until) return breaker;
  return { state: "half-open", since: now, failures: breaker.failures, probes: 0, lastProbeAt: now };
}

/** Whether a half-open breaker lets one more probe go. */
export function mayProbe(breaker: Breaker, { probes }: BreakerRules): boolean {
  return breaker.state === "half-open" && breaker.probes < probes;
}

/** Counts a message that a half-open route got first, until the round is full. */
export function withProbe(breaker: Breaker, now: number, rules: BreakerRules): Breaker {
  return breaker.state === "half-open" && mayProbe(breaker, rules) ? { ...breaker, probes: breaker.probes + 1, lastProbeAt: now } : breaker;
}

/** Counts probes of other processes, whose time is over already. */
export function withForeignProbes(breaker: Breaker, probes: number): Breaker {
  return breaker.state === "half-open" ? { ...breaker, probes: breaker.probes + probes } : breaker;
}

/**
 * Judges a round of probes, once each has had its time. "Breaker with half-open probes that close it again when it heals". A round that does not fill within `window` is judged by what there is;
 * without any probe the breaker closes, for what opened it is then too old to count.
 */
export function settleProbes(breaker: Breaker, pass: () => boolean, now: number, rules: BreakerRules): Breaker {
  if (breaker.state !== "half-open") return breaker;
  const full = breaker.probes >= rules.probes;
  const ripe = now >= breaker.lastProbeAt + rules.settle;
  if (!ripe || !(full || now >= breaker.since + rules.window)) return breaker;
  if (breaker.probes === 0 || pass()) return closed;
  const failures = breaker.failures + 1;
  const wait = Math.min(rules.probeAfter * 2 ** failures, Math.max(rules.probeAfter, rules.window));
  return { state: "open", since: now, until: now + wait, failures };
}
