/** What a route takes. A criterion that is absent takes everything; of those present each must hold. */
export interface RouteScope {
  /** ISO 3166-1 alpha-2 codes. A number without a country is in none. */
  readonly countries?: ReadonlySet<string> | undefined;
  /** Beginnings of numbers in E.164 form, for example `+3361`. */
  readonly prefixes?: readonly string[] | undefined;
  /** `MCC` or `MCC-MNC`, for example `208` or `208-01`. A number whose network is not known is in none. */
  readonly networks?: readonly string[] | undefined;
}

/** What a host's own source knows of a number's network. */
export interface Network {
  /** Mobile country code, three digits. */
  readonly mcc?: string | undefined;
  /** Mobile network code, two or three digits; `01` and `001` are two codes. */
  readonly mnc?: string | undefined;
}

/** Where a message goes. */
export interface Target {
  readonly to: string;
  readonly country: string | undefined;
  readonly network: Network | undefined;
}

/** Whether a route takes messages to this target. */
export function routeMatches(scope: RouteScope, { to, country, network }: Target): boolean {
  if (scope.countries !== undefined && (country === undefined || !scope.countries.has(country))) return false;
  if (scope.prefixes !== undefined && !scope.prefixes.some((prefix) => to.startsWith(prefix))) return false;
  return scope.networks === undefined || scope.networks.some((wanted) => isNetwork(wanted, network));
}

function isNetwork(wanted: string, network: Network | undefined): boolean {
  if (network?.mcc === undefined) return false;
  return wanted === network.mcc || (network.mnc !== undefined && wanted === `${network.mcc}-${network.mnc}`);
}

/** A route that matches, as it stands now. */
export interface Candidate {
  readonly name: string;
  /** Lower goes first. */
  readonly priority: number;
  /** Lower goes first among those of one priority; 0 where cost does not matter. */
  readonly cost: number;
  /** Share of the traffic among routes of the same priority, above 0. */
  readonly weight: number;
  /** What its health leaves of the weight: above 0, at most 1. */
  readonly health: number;
  readonly breaker: "closed" | "open" | "half-open";
  /** Whether the breaker has a probe to give. */
  readonly mayProbe: boolean;
  /** How good an open route is, for the choice among open ones. */
  readonly quality: number;
  /** Whether an earlier send of the authentication took it. */
  readonly tried: boolean;
}

/** A route at its place, with the reason why it would be the one to go first. */
export interface RankedRoute {
  readonly name: string;
  readonly reason: string;
}

/** Chance, from outside: numbers from 0 up to, not including, 1. */
export interface Draws {
  /** One for each candidate. */
  readonly order: readonly number[];
  /** Decides whether a half-open route gets this message. */
  readonly probe: number;
  /** Share of the messages that go to half-open routes; 0 for a message that must not be a probe. */
  readonly probeShare: number;
}

/**
 * The candidates in the order in which to try them. First those whose breaker is closed, of these first those that the authentication has not used yet, then by priority, then by cost, then by chance, each in proportion to its weight times its health.
 * A route whose breaker is not closed comes last, the best one first, so that one of them still carries when there is no other; but for the share of messages that are probes: there a half-open route goes first, unless a closed one is preferred.
 */
export function rankRoutes(candidates: readonly Candidate[], draws: Draws): readonly RankedRoute[] {
  const order = candidates
    .map((candidate, index) => ({ candidate, key: raceTime(candidate, draws.order[index] ?? 0) }))
    .sort((a, b) => byStanding(a.candidate, b.candidate) || a.key - b.key)
    .map(({ candidate }) => candidate);
  const probe = probeOf(candidates, draws);
  const ordered = probe === undefined ? order : [probe, ...order.filter((other) => other !== probe)];
  return ordered.map((candidate) => ({ name: candidate.name, reason: reasonFor(candidate, candidates) }));
}

/** Who arrives first wins with a probability in proportion to its weight, and so does each later place among the rest (a race of exponential clocks). */
function raceTime({ weight, health }: Candidate, draw: number): number {
  return -Math.log(1 - draw) / (weight * health);
}

function byStanding(a: Candidate, b: Candidate): number {
  const closed = Number(b.breaker === "closed") - Number(a.breaker === "closed");
  if (closed !== 0) return closed;
  if (a.tried !== b.tried) return a.tried ? 1 : -1;
  return a.breaker === "closed" ? byPreference(a, b) : b.quality - a.quality || byPreference(a, b);
}

function byPreference(a: Candidate, b: Candidate): number {
  return a.priority - b.priority || a.cost - b.cost;
}

function probeOf(candidates: readonly Candidate[], { probe, probeShare }: Draws): Candidate | undefined {
  if (!(probe < probeShare)) return undefined;
  const closed = candidates.filter(({ breaker }) => breaker === "closed");
  const probes = candidates.filter((one) => one.breaker === "half-open" && one.mayProbe && closed.every((other) => byPreference(one, other) <= 0));
  return probes[Math.floor((probe / probeShare) * probes.length)];
}

function reasonFor(candidate: Candidate, all: readonly Candidate[]): string {
  const closed = all.filter(({ breaker }) => breaker === "closed");
  if (candidate.breaker !== "closed") {
    if (closed.length === 0) return all.length === 1 ? "the only route, though its breaker is open" : `the breakers of all ${all.length} routes are open`;
    return candidate.breaker === "half-open" ? "probe" : "its breaker is open";
  }
  const fresh = closed.some(({ tried }) => tried) && !candidate.tried ? "not used yet, " : "";
  const equals = closed.filter(({ tried, priority }) => tried === candidate.tried && priority === candidate.priority);
  const group = equals.filter(({ cost }) => cost === candidate.cost);
  if (group.length === 1) {
    if (all.length === 1) return "the only route";
    return equals.length > 1
      ? `${fresh}${equals.some(({ cost }) => cost < candidate.cost) ? "cost" : "lowest cost"}`
      : `${fresh}priority ${candidate.priority}`;
  }
  const whole = group.reduce((sum, { weight, health }) => sum + weight * health, 0);
  return `${fresh}weight ${short(candidate.weight * candidate.health)} of ${short(whole)}`;
}

function short(value: number): number {
  return Number(value.toPrecision(3));
}

/**
 * Milliseconds that a try may take; `undefined` when there is too little time left to start one.
 * Where an unknown outcome ends the search, a try gets all that is left: to give up on it earlier would gain nothing. Where the search goes on after one, the time left is shared evenly among the tries that may still follow.
 * The router answers `answerMargin` before the deadline, so that its answer is still heard.
 */
export function timeForTry(left: number, triesLeft: number, afterUnknown: boolean): number | undefined {
  const usable = left - answerMargin;
  return usable < shortestTry ? undefined : afterUnknown ? Math.max(shortestTry, Math.floor(usable / triesLeft)) : usable;
}

/** Milliseconds. */
export const answerMargin = 50;

/** Milliseconds. A try with less would most likely end unknown, where the send is surely rejected without it. */
export const shortestTry = 100;

/** Whether to go on to the next route: after a sure rejection always, after an unknown outcome only where it was told to. */
export function mayFailOver(outcome: "accepted" | "rejected" | "unknown", afterUnknown: boolean): boolean {
  return outcome === "rejected" || (outcome === "unknown" && afterUnknown);
}
