import type { SendResult } from "../domain/send.js";
import type { SendContext } from "../ports/sms-sender.js";

/** What a route accepts. All criteria that are present must match; an absent one matches everything. */
export interface RouteScope {
  /** ISO 3166-1 alpha-2 codes. A number without a country matches none. */
  readonly countries?: ReadonlySet<string> | undefined;
  /** Beginnings of numbers in E.164 form, for example `+3361`. */
  readonly prefixes?: readonly string[] | undefined;
  /** `MCC` or `MCC-MNC`, for example `208` or `208-01`. A number of unknown network matches none. */
  readonly networks?: readonly string[] | undefined;
}

/** What the application's own source knows about a number's network. */
export interface Network {
  /** Mobile country code, three digits. */
  readonly mcc?: string | undefined;
  /** Mobile network code, two or three digits; `01` and `001` are different codes. */
  readonly mnc?: string | undefined;
}

/** The destination of a message. */
export interface Target {
  readonly to: string;
  readonly country: string | undefined;
  readonly network: Network | undefined;
}

/** Whether a route accepts messages to this target. */
export function routeMatches(scope: RouteScope, { to, country, network }: Target): boolean {
  if (scope.countries !== undefined && (country === undefined || !scope.countries.has(country))) return false;
  if (scope.prefixes !== undefined && !scope.prefixes.some((prefix) => to.startsWith(prefix))) return false;
  return scope.networks === undefined || scope.networks.some((wanted) => isNetwork(wanted, network));
}

function isNetwork(wanted: string, network: Network | undefined): boolean {
  if (network?.mcc === undefined) return false;
  return wanted === network.mcc || (network.mnc !== undefined && wanted === `${network.mcc}-${network.mnc}`);
}

/** A route that matches, in its current state. */
export interface Candidate {
  readonly name: string;
  /** Lower goes first. */
  readonly priority: number;
  /** Lower goes first within a priority; 0 if cost does not matter. */
  readonly cost: number;
  /** Share of the traffic among routes of the same priority, above 0. */
  readonly weight: number;
  /** The part of the weight that its health leaves: above 0, at most 1. */
  readonly health: number;
  readonly breaker: "closed" | "open" | "half-open";
  /** Whether the breaker has a probe left. */
  readonly mayProbe: boolean;
  /** Whether the breaker has waited for a probe for a whole `window`. */
  readonly overdue: boolean;
  /** How good an open route is, to choose among open ones. */
  readonly quality: number;
  /** Whether an earlier send of the authentication used it. */
  readonly tried: boolean;
  /** Whether the request wishes for its channel. */
  readonly wished: boolean;
  /** Whether the number is known not to be on its channel. */
  readonly unreachable: boolean;
}

/** A ranked route, with the reason to choose it if it is the first. */
export interface RankedRoute {
  readonly name: string;
  readonly reason: string;
}

/** Random numbers, passed in: from 0 up to, not including, 1. */
export interface Draws {
  /** One for each candidate. */
  readonly order: readonly number[];
  /** Decides whether a half-open route gets this message. */
  readonly probe: number;
  /** Share of the messages that go to half-open routes; 0 for a message that must not be a probe. */
  readonly probeShare: number;
}

/**
 * The candidates in the order in which to try them: first those of the channel that the request wishes for, last those of
 * a channel that the number is not on. Of the others, closed breakers go first: unused routes before used ones, then by
 * priority, cost, and chance in proportion to weight times health. Other routes come last, the best one first, in case
 * nothing else can carry. A probe goes to a half-open route first, unless a closed one is preferred; if one is overdue,
 * to its route in any case.
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

/**
 * The earliest arrival wins with a probability in proportion to its weight, and so does each later place among the rest
 * (a race of exponential clocks).
 */
function raceTime({ weight, health }: Candidate, draw: number): number {
  return -Math.log(1 - draw) / (weight * health);
}

function byStanding(a: Candidate, b: Candidate): number {
  if (a.wished !== b.wished) return a.wished ? -1 : 1;
  if (a.unreachable !== b.unreachable) return a.unreachable ? 1 : -1;
  const closed = Number(b.breaker === "closed") - Number(a.breaker === "closed");
  if (closed !== 0) return closed;
  if (a.tried !== b.tried) return a.tried ? 1 : -1;
  return a.breaker === "closed" ? byPreference(a, b) : b.quality - a.quality || byPreference(a, b);
}

function byPreference(a: Candidate, b: Candidate): number {
  return a.priority - b.priority || a.cost - b.cost;
}

/** Share of the messages that are probes while one is overdue: not all, as these few would go to a route that may fail. */
const overdueShare = 0.5;

function probeOf(candidates: readonly Candidate[], { probe, probeShare }: Draws): Candidate | undefined {
  if (probeShare === 0 || candidates.some(({ wished }) => wished)) return undefined;
  const able = candidates.filter((one) => one.breaker === "half-open" && one.mayProbe && !one.unreachable);
  const overdue = able.filter((one) => one.overdue);
  const closed = candidates.filter(({ breaker }) => breaker === "closed");
  const probes = overdue.length > 0 ? overdue : able.filter((one) => closed.every((other) => byPreference(one, other) <= 0));
  const share = overdue.length > 0 ? Math.max(probeShare, overdueShare) : probeShare;
  return probe < share ? probes[Math.floor((probe / share) * probes.length)] : undefined;
}

function reasonFor(candidate: Candidate, all: readonly Candidate[]): string {
  if (candidate.wished) return "the request asked for its channel";
  if (candidate.unreachable) return "the number is not on its channel";
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
 * The time of a try; `undefined` if too little is left to start one. If an unknown outcome ends the search, a try that
 * has sent something gets all the time left. Otherwise, and before anything was sent, it shares the time evenly with the
 * tries that may follow. `answerMargin` is kept free, so that the router returns before the deadline.
 */
export function timeForTry(left: number, triesLeft: number, afterUnknown: boolean): Pick<SendContext, "timeLeft" | "rejectAfter"> | undefined {
  const usable = left - answerMargin;
  if (usable < shortestTry) return undefined;
  const share = Math.max(shortestTry, Math.floor(usable / triesLeft));
  return { timeLeft: afterUnknown ? share : usable, ...(triesLeft > 1 && { rejectAfter: share }) };
}

/** Milliseconds. */
export const answerMargin = 50;

/** Milliseconds. A shorter try would most likely end unknown; without it the send is known to be rejected. */
export const shortestTry = 100;

/**
 * Whether to continue with the next route: always after a rejection, after an unknown outcome only with `afterUnknown`.
 */
export function mayFailOver(outcome: SendResult, afterUnknown: boolean): boolean {
  return outcome === "rejected" || (outcome === "unknown" && afterUnknown);
}
