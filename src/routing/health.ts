import { addTo, noTallies, type Period, type Signal, signals, type Tallies, type Tally } from "./counts.js";
import type { HealthSettings } from "./router-options.js";

type Rules = Pick<HealthSettings, "tolerance" | "minSample">;

/** Width of the intervals, in standard deviations. Far more than the usual 1.96, as routes are compared often. */
const usualDeviations = 3.2;

/** The strain at which a route starts to lose weight. */
const onset = 0.4;

/** What hand-overs and their latency are compared with if there is nothing else. */
const faultless: Tally = { good: 1e6, all: 1e6 };

/** What hand-overs are compared with at least while another route is untried. Invalid numbers of users fail as well. */
const passable: Tally = { good: 2e6, all: 3e6 };

/**
 * How far the share of good events lies below the expected one (negative: above), by Newcombe's interval for a
 * difference of shares (method 10). `counted - chance` and `most` are its bounds.
 */
export function shortfall(sample: Tally, expected: Tally, deviations = usualDeviations) {
  const [a, b] = [wilson(expected, deviations), wilson(sample, deviations)];
  const counted = a.share - b.share;
  return { counted, chance: Math.hypot(a.share - a.low, b.high - b.share), most: counted + Math.hypot(a.high - a.share, b.share - b.low) };
}

/** Wilson's interval for a share. A code may be counted in a slice before its message, so `good` may exceed `all`. */
function wilson({ good, all }: Tally, deviations: number) {
  const share = Math.min(1, good / all);
  const square = deviations * deviations;
  const middle = (share + square / (2 * all)) / (1 + square / all);
  const half = (deviations / (1 + square / all)) * Math.sqrt((share * (1 - share)) / all + square / (4 * all * all));
  return { share, low: middle - half, high: middle + half };
}

/**
 * How much worse than tolerated a route is, by its worst signal, in units of what may be chance. 1 opens its breaker.
 * `by`: the signals to evaluate.
 * It is compared over the newest of the periods (oldest first), then over more, each time 1.4 times the messages: a
 * sudden drop shows in the newest, a slow one in all. What affects the whole country affects the other routes too; but
 * if almost all hand-overs fail everywhere, a route that got none of them is worth a try.
 */
export function strainOf(periods: readonly Period[], route: string, others: readonly string[], rules: Rules, by: readonly Signal[] = signals): number {
  const [own, theirs, whole] = [noTallies(), noTallies(), noTallies()];
  for (const period of periods) addTo(whole, period.get(route));
  const untried = new Set(others);
  let worst = 0;
  // Conversion is known later than hand-overs, so each has its own steps.
  const next = { handOver: 1, conversion: 1 };
  for (const [index, period] of periods.toReversed().entries()) {
    addTo(own, period.get(route));
    for (const other of others) {
      addTo(theirs, period.get(other));
      if ((period.get(other)?.handOver.all ?? 0) > 0) untried.delete(other);
    }
    const due = (["handOver", "conversion"] as const).filter((signal) => own[signal].all + theirs[signal].all >= next[signal]);
    for (const signal of due) next[signal] = 1.4 * (own[signal].all + theirs[signal].all);
    if (due.length > 0 || index === periods.length - 1) worst = Math.max(worst, worstStrain(own, theirs, whole, rules, untried.size > 0, by));
  }
  return worst;
}

/** Receipts can be missing or forged: they are ignored if conversion proves a loss of less than their tolerance. */
function worstStrain(own: Tallies, theirs: Tallies, whole: Tallies, { tolerance, minSample }: Rules, untried: boolean, by: readonly Signal[]): number {
  let worst = 0;
  let proven = false;
  for (const signal of by) {
    const sample = own[signal];
    const before = { good: whole[signal].good - sample.good, all: whole[signal].all - sample.all };
    const usual = expectedOf(signal, theirs[signal], before, minSample);
    const expected = untried && signal === "handOver" && usual.good / usual.all < passable.good / passable.all ? passable : usual;
    if (sample.all < minSample || expected.all < minSample || (signal === "receipts" && proven)) continue;
    const { counted, chance, most } = shortfall(sample, expected);
    if (signal === "conversion") proven = most < (tolerance.receipts * expected.good) / expected.all;
    worst = Math.max(worst, (counted - tolerance[signal]) / chance);
  }
  return worst;
}

/** What a route is compared with: the other routes, if they had enough events; else a faultless one, or `otherwise`. */
function expectedOf(signal: Signal, theirs: Tally, otherwise: Tally, minSample: number): Tally {
  if (theirs.all >= minSample) return theirs;
  return signal === "handOver" || signal === "latency" ? faultless : otherwise;
}

/** The part of its weight that a route keeps: all while chance explains the strain, then less, but at least `floor`. */
export function healthFactor(strain: number, floor: number): number {
  return Math.min(1, Math.max(floor, (1 - strain) / (1 - onset)));
}

/**
 * Whether a half-open route has recovered: a hand-over succeeded, and no signal falls short by more than its tolerance
 * and one standard deviation. This is strict, because the route was found to be worse.
 */
export function probesPass(periods: readonly Period[], route: string, others: readonly string[], rules: Rules, by: readonly Signal[] = signals): boolean {
  const [own, theirs] = [totals(periods, [route]), totals(periods, others)];
  return by.every((signal) => {
    const sample = own[signal];
    if (sample.all === 0) return true;
    if (signal === "handOver" && sample.good === 0) return false;
    const expected = expectedOf(signal, theirs[signal], sample, rules.minSample);
    const share = expected.good / expected.all;
    return sample.good / sample.all >= share - rules.tolerance[signal] - Math.sqrt((share * (1 - share)) / sample.all);
  });
}

/** How good a route is compared to other open ones: share of messages accepted times share of codes entered. */
export function quality(periods: readonly Period[], route: string): number {
  const { handOver, conversion } = totals(periods, [route]);
  // A signal without events counts as one good event of two.
  return ((handOver.good + 1) / (handOver.all + 2)) * ((conversion.good + 1) / (conversion.all + 2));
}

/** The sums over periods and routes, from 0, with at most `all` good events. */
export function totals(periods: readonly Period[], routes: readonly string[]): Tallies {
  const sum = noTallies();
  for (const period of periods) for (const route of routes) addTo(sum, period.get(route));
  for (const signal of signals) {
    // What was taken out may be known before what it is taken from.
    const all = Math.max(0, sum[signal].all);
    sum[signal] = { good: Math.min(sum[signal].good, all), all };
  }
  return sum;
}
