/** How many of `all` turned out well. */
export interface Tally {
  readonly good: number;
  readonly all: number;
}

/** What is counted for a route in a country. "Health per route and country from send errors, latency, receipts and above all check conversion". */
export type Signal = "conversion" | "handOver" | "receipts" | "latency";

/** All signals, the weightiest first. */
export const signals: readonly Signal[] = ["conversion", "handOver", "receipts", "latency"];

export type Tallies = Readonly<Record<Signal, Tally>>;

/** What was counted in a stretch of time, by route. */
export type Period = ReadonlyMap<string, Tallies>;

/** When a route counts as worse. */
export interface HealthRules {
  /** For each signal, the part of what is expected that a route may fall short by for good. */
  readonly tolerance: Readonly<Record<Signal, number>>;
  /** A signal with fewer events says nothing. */
  readonly minSample: number;
}

/** Standard deviations of the confidence intervals. Far more than the usual 1.96: routes are looked at over and over again, and chance gets as many tries. */
const deviations = Number(process.env["Z"] ?? 3.3);

/** The part of those deviations at which weight begins to move. */
const onset = Number(process.env["ONSET"] ?? 0.7);

/** What a route is held against where there is nothing else: hand-overs are expected to work and to be quick. */
const faultless: Tally = { good: 1e6, all: 1e6 };

/** How far a share falls short of another, as a part of the other. */
export interface Shortfall {
  /** As counted. Negative where the sample is the better one. */
  readonly counted: number;
  /** How much of `counted` may be chance: the shortfall is surely not below `counted - chance`. */
  readonly chance: number;
  /** Surely not above. */
  readonly most: number;
}

/** Newcombe's interval for the difference of two shares (his method 10, made of two Wilson intervals), divided by the expected share. It is wide where samples are small. */
export function shortfall(sample: Tally, expected: Tally): Shortfall {
  const [a, b] = [wilson(expected), wilson(sample)];
  if (a.share === 0) return { counted: 0, chance: 0, most: 0 };
  const difference = a.share - b.share;
  const chance = Math.hypot(a.share - a.low, b.high - b.share);
  const most = difference + Math.hypot(a.high - a.share, b.share - b.low);
  return { counted: difference / a.share, chance: chance / a.share, most: most / a.share };
}

/** Wilson's score interval. */
function wilson({ good, all }: Tally): { readonly share: number; readonly low: number; readonly high: number } {
  const share = good / all;
  const square = deviations * deviations;
  const middle = (share + square / (2 * all)) / (1 + square / all);
  const half = (deviations / (1 + square / all)) * Math.sqrt((share * (1 - share)) / all + square / (4 * all * all));
  return { share, low: middle - half, high: middle + half };
}

/**
 * How strained a route is, by its worst signal: how much of its shortfall is beyond tolerance, measured by what chance may do. 1 or more: it is surely worse than tolerated, and its breaker opens.
 *
 * `periods`, oldest first, are those of one country. The route is compared with the other routes of the country over the newest period, the newest two, and so on: a sudden fall shows in the newest ones, a slow one in all together,
 * and what happens to the whole country (users who rarely finish, a night, an attack) happens to the others too. `others` that had too few events in that time are replaced by the route's own earlier ones, or, for hand-overs and their
 * latency, by faultlessness. Receipts can be missing or made up: those of a route that conversion proves sound count for nothing.
 */
export function strain(periods: readonly Period[], route: string, others: readonly string[], rules: HealthRules): number {
  const whole = signals.map((signal) => total(periods, [route], signal));
  const own = signals.map(() => ({ good: 0, all: 0 }));
  const theirs = signals.map(() => ({ good: 0, all: 0 }));
  let worst = 0;
  for (let newest = periods.length - 1; newest >= 0; newest--) {
    const period = periods[newest]!;
    addTo(own, period.get(route));
    for (const other of others) addTo(theirs, period.get(other));
    let sound = false;
    for (const [i, signal] of signals.entries()) {
      const sample = own[i]!;
      if (sample.all < rules.minSample || (signal === "receipts" && sound)) continue;
      const expected = expectation(signal, sample, whole[i]!, theirs[i]!, rules.minSample);
      if (expected === undefined || expected.good === 0) continue;
      const tolerance = rules.tolerance[signal];
      if (signal !== "conversion" && sample.good / sample.all >= (1 - tolerance) * (expected.good / expected.all)) continue;
      const { counted, chance, most } = shortfall(sample, expected);
      if (signal === "conversion") sound = most < rules.tolerance.receipts;
      worst = Math.max(worst, (counted - tolerance) / chance);
    }
  }
  return worst;
}

function addTo(sums: { good: number; all: number }[], tallies: Tallies | undefined): void {
  if (tallies === undefined) return;
  for (const [i, signal] of signals.entries()) {
    sums[i]!.good += tallies[signal].good;
    sums[i]!.all += tallies[signal].all;
  }
}

function expectation(signal: Signal, sample: Tally, whole: Tally, theirs: Tally, minSample: number): Tally | undefined {
  if (theirs.all >= minSample) return theirs;
  if (signal === "handOver" || signal === "latency") return faultless;
  const before = { good: whole.good - sample.good, all: whole.all - sample.all };
  return before.all >= minSample ? before : undefined;
}

/** What health leaves of a route's weight: all of it while chance may well explain the strain, then less and less, but never below `floor`, without which nothing more would be learnt of the route. */
export function healthFactor(strained: number, floor: number): number {
  return Math.min(1, Math.max(floor, (1 - strained) / (1 - onset)));
}

/**
 * Whether the probes of a half-open route speak for it: no signal falls short by more than its tolerance. No interval here: the route has been found worse, so it is up to the probes to show that it no longer is.
 * Where the others had nothing in that time, hand-overs must be as good as `faultless` allows, and conversion is not judged.
 */
export function probesPass(periods: readonly Period[], route: string, others: readonly string[], rules: HealthRules): boolean {
  return signals.every((signal) => {
    const sample = total(periods, [route], signal);
    if (sample.all === 0) return true;
    const theirs = total(periods, others, signal);
    const expected = theirs.all >= rules.minSample ? theirs : signal === "handOver" || signal === "latency" ? faultless : sample;
    return sample.good / sample.all >= (1 - rules.tolerance[signal]) * (expected.good / expected.all);
  });
}

/** How good a route has been, for the choice among open ones: the share of messages taken, times the share of codes typed. A signal without events counts as one good of two. */
export function quality(periods: readonly Period[], route: string): number {
  const share = (signal: Signal) => {
    const { good, all } = total(periods, [route], signal);
    return (good + 1) / (all + 2);
  };
  return share("handOver") * share("conversion");
}

/** Everything that some routes had in some periods. */
export function total(periods: readonly Period[], routes: readonly string[], signal: Signal): Tally {
  let good = 0;
  let all = 0;
  for (const period of periods) {
    for (const route of routes) {
      const tally = period.get(route)?.[signal];
      good += tally?.good ?? 0;
      all += tally?.all ?? 0;
    }
  }
  return { good, all };
}
