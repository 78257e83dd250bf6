/**
 * A route's breaker in one country. Times are milliseconds since the epoch.
 * - `closed`: the route carries its share.
 * - `open`: it carries nothing while another route can, until `until`.
 * - `half-open`: it carries a small share, as probes, until a round of them is judged.
 */
export type Breaker =
  | { readonly state: "closed" }
  | { readonly state: "open"; readonly until: number; readonly failures: number }
  | { readonly state: "half-open"; readonly since: number; readonly failures: number };

export interface BreakerRules {
  /** Messages of one round of probes. */
  readonly probes: number;
  /** Milliseconds from opening to the first round; doubles after each round that fails, up to `window`. */
  readonly probeAfter: number;
  /** Milliseconds after which what is known is too old to count. */
  readonly window: number;
  /** Milliseconds of a slice: a round begins with one, so that processes that opened at about the same time count the same probes. */
  readonly slice: number;
}

/** What the route was handed since it is half-open, by whichever process. */
export interface Round {
  readonly probes: number;
  /** Whether each of the probes that make it full, or of those there are, has had its time. */
  readonly settled: boolean;
}

export const closed: Breaker = { state: "closed" };

/** Opens a closed breaker when the route is strained to the full. */
export function trip(breaker: Breaker, strained: number, now: number, rules: BreakerRules): Breaker {
  return breaker.state === "closed" && strained >= 1 ? open(0, now, rules) : breaker;
}

/** Half-opens an open breaker when its time has come: since then, though nobody looked. */
export function expire(breaker: Breaker, now: number): Breaker {
  return breaker.state === "open" && now >= breaker.until ? { state: "half-open", since: breaker.until, failures: breaker.failures } : breaker;
}

/**
 * Judges a round of probes, once each has had its time. A round that does not fill within `window` is judged by what there is;
 * without any probe the breaker closes, for what opened it is then too old to count.
 */
export function settleProbes(breaker: Breaker, { probes, settled }: Round, pass: () => boolean, now: number, rules: BreakerRules): Breaker {
  if (breaker.state !== "half-open" || !settled || !(probes >= rules.probes || now >= breaker.since + rules.window)) return breaker;
  return probes === 0 || pass() ? closed : open(breaker.failures + 1, now, rules);
}

function open(failures: number, now: number, { probeAfter, window, slice }: BreakerRules): Breaker {
  const wait = Math.min(probeAfter * 2 ** failures, Math.max(probeAfter, window));
  return { state: "open", until: Math.ceil((now + wait) / slice) * slice, failures };
}
