/** How many of `all` turned out well. */
export interface Tally {
  readonly good: number;
  readonly all: number;
}

/** What is counted for a route in a country. */
export type Signal = "conversion" | "handOver" | "receipts" | "latency";

/** All signals, the weightiest first. */
export const signals: readonly Signal[] = ["conversion", "handOver", "receipts", "latency"];

export type Tallies = Readonly<Record<Signal, Tally>>;

/** Tallies that grow. */
export type Counts = Record<Signal, { good: number; all: number }>;

export function noCounts(): Counts {
  return { conversion: { good: 0, all: 0 }, handOver: { good: 0, all: 0 }, receipts: { good: 0, all: 0 }, latency: { good: 0, all: 0 } };
}

export function addTo(into: Counts, tallies: Tallies | undefined): void {
  if (tallies === undefined) return;
  for (const signal of signals) {
    into[signal].good += tallies[signal].good;
    into[signal].all += tallies[signal].all;
  }
}

/** What was counted in a stretch of time, by route. */
export type Period = ReadonlyMap<string, Tallies>;

/** When a route counts as worse. */
export interface HealthRules {
  /** For each signal, by how much the share of good events may lie below what is expected for good; 0.05 is five percentage points. */
  readonly tolerance: Readonly<Record<Signal, number>>;
  /** A signal with fewer events says nothing. */
  readonly minSample: number;
}

/** Standard deviations of the confidence intervals. Far more than the usual 1.96: routes are looked at over and over again, and chance gets as many tries. */
const standardDeviations = 3.2;

/** The part of those deviations at which weight begins to move. */
const onset = 0.4;

/** What a route is held against where there is nothing else: hand-overs are expected to work and to be quick. */
const faultless: Tally = { good: 1e6, all: 1e6 };

/** How far one share lies below another. */
export interface Shortfall {
  /** As counted. Negative where the sample is the better one. */
  readonly counted: number;
  /** How much of `counted` may be chance: the shortfall is surely not below `counted - chance`. */
  readonly chance: number;
  /** Surely not above. */
  readonly most: number;
}

/** Newcombe's interval for the difference of two shares (his method 10, made of two Wilson intervals). It is wide where samples are small. */
export function shortfall(sample: Tally, expected: Tally, deviations = standardDeviations): Shortfall {
  const [a, b] = [wilson(expected, deviations), wilson(sample, deviations)];
  const counted = a.share - b.share;
  return { counted, chance: Math.hypot(a.share - a.low, b.high - b.share), most: counted + Math.hypot(a.high - a.share, b.share - b.low) };
}

/** Wilson's score interval. There may be more good ones than all: a code is counted in the slice in which its send was written down, the message where it was handed over. */
function wilson({ good, all }: Tally, deviations: number): { readonly share: number; readonly low: number; readonly high: number } {
  const share = Math.min(1, good / all);
  const square = deviations * deviations;
  const middle = (share + square / (2 * all)) / (1 + square / all);
  const half = (deviations / (1 + square / all)) * Math.sqrt((share * (1 - share)) / all + square / (4 * all * all));
  return { share, low: middle - half, high: middle + half };
}

/**
 * How strained a route is, by its worst signal: how much of its shortfall is beyond tolerance, measured by what chance may do. 1 or more: it is surely worse than tolerated, and its breaker opens.
 *
 * `periods`, oldest first, are those of one country. The route is compared with the other routes of the country over the newest periods, then over more and more of them, each time with 1.4 times the messages of the time before: a sudden fall shows in the newest ones, a slow one in all
 * together, and what happens to the whole country (users who rarely finish, a night, an attack) happens to the others too. `others` that had too few events in that time are replaced by the route's own earlier ones, or, for hand-overs and their
 * latency, by faultlessness. Receipts can be missing or made up: those of a route count for nothing where conversion proves that it loses less than their tolerance of what the others convert.
 */
export function strain(periods: readonly Period[], route: string, others: readonly string[], rules: HealthRules): number {
  const whole = noCounts();
  for (const period of periods) addTo(whole, period.get(route));
  const own = noCounts();
  const theirs = noCounts();
  let worst = 0;
  // Conversion is known later than hand-overs, so each has messages of its own to look at.
  const next = { handOver: 1, conversion: 1 };
  for (let at = periods.length - 1; at >= 0; at--) {
    const period = periods[at]!;
    addTo(own, period.get(route));
    for (const other of others) addTo(theirs, period.get(other));
    const handOver = own.handOver.all + theirs.handOver.all;
    const conversion = own.conversion.all + theirs.conversion.all;
    if (at > 0 && handOver < next.handOver && conversion < next.conversion) continue;
    if (handOver >= next.handOver) next.handOver = handOver * 1.4;
    if (conversion >= next.conversion) next.conversion = conversion * 1.4;
    let sound = false;
    for (const signal of signals) {
      const sample = own[signal];
      if (sample.all < rules.minSample || (signal === "receipts" && sound)) continue;
      const expected = expectation(signal, sample, whole[signal], theirs[signal], rules.minSample);
      if (expected === undefined) continue;
      const tolerance = rules.tolerance[signal];
      const { counted, chance, most } = shortfall(sample, expected);
      if (signal === "conversion") sound = most < (rules.tolerance.receipts * expected.good) / expected.all;
      worst = Math.max(worst, (counted - tolerance) / chance);
    }
  }
  return worst;
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
 * Whether the probes of a half-open route speak for it: no signal falls short by more than its tolerance and one standard deviation. That is a narrow gate: the route has been found worse, so it is up to the probes to show that it no longer is.
 * Where the others had nothing in that time, hand-overs must be as good as `faultless` allows, and conversion is not judged.
 */
export function probesPass(periods: readonly Period[], route: string, others: readonly string[], rules: HealthRules): boolean {
  return signals.every((signal) => {
    const sample = total(periods, [route], signal);
    if (sample.all === 0) return true;
    const theirs = total(periods, others, signal);
    const expected = theirs.all >= rules.minSample ? theirs : signal === "handOver" || signal === "latency" ? faultless : sample;
    const share = expected.good / expected.all;
    const chance = Math.sqrt((share * (1 - share)) / sample.all);
    return sample.good / sample.all >= share - rules.tolerance[signal] - chance;
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

/** Everything that some routes had in some periods, never more good ones than all. */
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
  return { good: Math.min(good, all), all };
}
