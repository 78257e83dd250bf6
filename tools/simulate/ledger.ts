/** Who a message was sent for. */
export type Party = "honest" | "attack";

/** How often each rule refused. A rule is named as `explain` names it; a fault by its code. */
export type ByRule = Readonly<Record<string, number>>;

/** The honest people of the hours that are counted. */
export interface HonestFigures {
  /** People who came, each as often as they came. */
  readonly visits: number;
  /** Visits in which at least one request was refused by a rule or a cap, whatever came of them. */
  readonly refused: number;
  /** Of those visits, by the rule that was the first to refuse. */
  readonly refusedBy: ByRule;
  /** Visits whose code was typed and found right. */
  readonly verified: number;
  /** Messages sent for them. */
  readonly messages: number;
  /** What those cost, in US dollars. */
  readonly cost: number;
}

/** The attack. */
export interface AttackFigures {
  /** Creates and retries. */
  readonly tried: number;
  /** Messages that got out. */
  readonly out: number;
  /** What those cost, in US dollars. */
  readonly cost: number;
  /** Codes that the attacker typed and that were found right. */
  readonly verified: number;
  /** Requests refused. */
  readonly refusedBy: ByRule;
}

/** A party's figures over time: one entry for each step. */
export interface PartySeries {
  /** Visits of honest people; requests of an attack. */
  readonly came: readonly number[];
  readonly sent: readonly number[];
  readonly verified: readonly number[];
  /** US dollars. */
  readonly cost: readonly number[];
  /** Visits of honest people, counted when they came; requests of an attack. */
  readonly refusedBy: Readonly<Record<string, readonly number[]>>;
}

/** The story over time, for drawing. Times in milliseconds since the epoch, of the simulation's clock. */
export interface Series {
  readonly start: number;
  /** Length of a step in milliseconds. */
  readonly step: number;
  /** When the counting began, and with it what happens in the story. */
  readonly from: number;
  /** When attack or strain ended; `from` where there is none. */
  readonly until: number;
  readonly honest: PartySeries;
  readonly attack?: PartySeries;
}

/** A visit that goes on. */
export interface Visit {
  refused(rule: string): void;
  verified(): void;
}

/** Writes down what happens. */
export interface Ledger {
  /** A person came. */
  visit(country: string): Visit;
  /** The attacker asked for a message. */
  tried(): void;
  sent(party: Party, price: number): void;
  refused(rule: string): void;
  typed(): void;
  figures(): {
    readonly honest: HonestFigures;
    /** Visits, and those refused, of the countries that attack or strain are about. */
    readonly target: { readonly visits: number; readonly refused: number };
    readonly attack: AttackFigures;
    readonly series: Series;
    readonly secondsToHold: number | undefined;
    readonly secondsToRecover: number;
  };
}

const minute = 60_000;
const hour = 60 * minute;

/** "time to hold (from the attack's start until the attack's success rate is below 5 %)": over so many tries. */
const tries = 100;
const held = 5;

/** Below this share of visits refused in an hour people count as through again. */
const recovered = 0.01;

export interface LedgerSpan {
  /** When the first person can come. */
  readonly start: number;
  /** When the counting begins. */
  readonly from: number;
  /** When attack or strain ends. */
  readonly until: number;
  readonly end: number;
  /** Countries that attack or strain are about. */
  readonly targets: ReadonlySet<string>;
}

export function ledgerOf(now: () => number, { start, from, until, end, targets }: LedgerSpan): Ledger {
  const seriesStart = Math.max(start, from - 12 * hour);
  const step = end - seriesStart > 96 * hour ? hour : 15 * minute;
  const steps = Math.ceil((end - seriesStart) / step);
  const honest = { visits: 0, refused: 0, refusedBy: tallyByName(), verified: 0, messages: 0, cost: 0 };
  const attack = { tried: 0, out: 0, cost: 0, verified: 0, refusedBy: tallyByName() };
  const target = { visits: 0, refused: 0 };
  const lines = { honest: linesOf(steps), attack: linesOf(steps) };
  /** Visits of the targets, or of all where nobody comes from there, by the hour since `until`. */
  const afterwards: { visits: number; refused: number }[] = [];
  const lastTries: boolean[] = [];
  let tryCount = 0;
  let outOfLast = 0;
  let heldAt: number | undefined;

  const stepOf = (at: number) => Math.floor((at - seriesStart) / step);

  const outcome = (out: boolean) => {
    const at = tryCount++ % tries;
    outOfLast += Number(out) - Number(lastTries[at] ?? false);
    lastTries[at] = out;
    if (heldAt === undefined && tryCount >= tries && outOfLast < held) heldAt = now();
  };

  return {
    visit(country) {
      const at = now();
      const place = stepOf(at);
      const counted = at >= from;
      const onTarget = counted && targets.has(country);
      const after = at >= until && targets.has(country) ? (afterwards[Math.floor((at - until) / hour)] ??= { visits: 0, refused: 0 }) : undefined;
      if (counted) honest.visits++;
      if (onTarget) target.visits++;
      if (after !== undefined) after.visits++;
      lines.honest.add("came", place);
      let isRefused = false;
      return {
        refused(rule) {
          if (isRefused) return;
          isRefused = true;
          lines.honest.refuse(rule, place);
          if (counted) {
            honest.refused++;
            honest.refusedBy.add(rule);
          }
          if (onTarget) target.refused++;
          if (after !== undefined) after.refused++;
        },
        verified() {
          lines.honest.add("verified", stepOf(now()));
          if (counted) honest.verified++;
        },
      };
    },
    tried() {
      attack.tried++;
      lines.attack.add("came", stepOf(now()));
    },
    sent(party, price) {
      const place = stepOf(now());
      lines[party].add("sent", place);
      lines[party].add("cost", place, price);
      if (party === "attack") {
        attack.out++;
        attack.cost += price;
        outcome(true);
      } else if (now() >= from) {
        honest.messages++;
        honest.cost += price;
      }
    },
    refused(rule) {
      attack.refusedBy.add(rule);
      lines.attack.refuse(rule, stepOf(now()));
      outcome(false);
    },
    typed() {
      attack.verified++;
      lines.attack.add("verified", stepOf(now()));
    },
    figures() {
      const last = afterwards.findLastIndex((each) => each !== undefined && each.refused > recovered * each.visits);
      return {
        honest: { ...honest, refusedBy: honest.refusedBy.all() },
        target,
        attack: { ...attack, refusedBy: attack.refusedBy.all() },
        series: {
          start: seriesStart,
          step,
          from,
          until,
          honest: lines.honest.all(),
          ...(attack.tried > 0 && { attack: lines.attack.all() }),
        },
        secondsToHold: heldAt === undefined ? undefined : Math.round((heldAt - from) / 1000),
        secondsToRecover: (last + 1) * 3600,
      };
    },
  };
}

/** Counts by name; told with the largest count first. */
function tallyByName() {
  const counts = new Map<string, number>();
  return {
    add: (name: string) => void counts.set(name, (counts.get(name) ?? 0) + 1),
    all: (): ByRule => Object.fromEntries([...counts].sort(([, a], [, b]) => b - a)),
  };
}

function linesOf(steps: number) {
  const line = () => new Array<number>(steps).fill(0);
  const lines = { came: line(), sent: line(), verified: line(), cost: line() };
  const refusedBy: Record<string, number[]> = {};
  const put = (own: number[], place: number, by: number) => {
    if (place >= 0 && place < steps) own[place] = (own[place] as number) + by;
  };
  return {
    add: (name: keyof typeof lines, place: number, by = 1) => put(lines[name], place, by),
    refuse: (rule: string, place: number) => put((refusedBy[rule] ??= line()), place, 1),
    all: (): PartySeries => ({ ...lines, refusedBy }),
  };
}
