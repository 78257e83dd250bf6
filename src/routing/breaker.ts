import type { HealthSettings } from "./router-options.js";

/**
 * A route's breaker in one country. `closed`: the route carries its share. `open`: it carries nothing while another
 * route can. `half-open`: it carries a round of probes. Times are milliseconds since the epoch.
 */
export type Breaker =
  | { readonly state: "closed" }
  | { readonly state: "open"; readonly until: number; readonly failures: number }
  | { readonly state: "half-open"; readonly since: number; readonly failures: number };

/** Rounds start with a slice, so that processes that open at about the same time count the same probes. */
type Rules = Pick<HealthSettings, "probes" | "probeAfter" | "window"> & { readonly slice: number };

export const closed: Breaker = { state: "closed" };

/** A closed breaker opens at a strain of 1. */
export function trip(strain: number, now: number, rules: Rules): Breaker {
  return strain >= 1 ? open(0, now, rules) : closed;
}

/** Opens for `probeAfter`, which doubles with each failed round, up to `window`. */
function open(failures: number, now: number, { probeAfter, window, slice }: Rules): Breaker {
  const wait = Math.min(probeAfter * 2 ** failures, Math.max(probeAfter, window));
  return { state: "open", until: Math.ceil((now + wait) / slice) * slice, failures };
}

/** Half-opens an open breaker when it is time. It counts as half-open from that time on, even if unchecked. */
export function halfOpen(breaker: Breaker, now: number): Breaker {
  return breaker.state === "open" && now >= breaker.until ? { state: "half-open", since: breaker.until, failures: breaker.failures } : breaker;
}

/**
 * Closes or reopens a half-open breaker when its round is full, or `window` is over, and has settled. Without any probe
 * it stays half-open.
 */
export function endRound(breaker: Breaker, round: { probes: number; settled: boolean }, pass: () => boolean, now: number, rules: Rules): Breaker {
  if (breaker.state !== "half-open" || !round.settled || round.probes === 0 || (round.probes < rules.probes && now < breaker.since + rules.window))
    return breaker;
  return pass() ? closed : open(breaker.failures + 1, now, rules);
}
