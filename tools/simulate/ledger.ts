/** Who requested a message. */
export type Party = "honest" | "attack";

/** How often each rule rejected a request. Rules have their names in `explain`; errors have their code. */
export type ByRule = Readonly<Record<string, number>>;

/** Honest people, in the hours that are counted. */
export interface HonestFigures {
  /** Visits, including repeated ones of the same person. */
  readonly visits: number;
  /** Visits with at least one request rejected by a rule or a cap, whatever their outcome. */
  readonly refused: number;
  /** Those visits by the first rule that rejected them. */
  readonly refusedBy: ByRule;
  /** Visits that ended with the right code. */
  readonly verified: number;
  /** Messages sent to them. */
  readonly messages: number;
  /** Cost of these messages, in US dollars. */
  readonly cost: number;
}

/** The attack. */
export interface AttackFigures {
  /** Creates and retries. */
  readonly tried: number;
  /** Messages sent. */
  readonly out: number;
  /** Cost of these messages, in US dollars. */
  readonly cost: number;
  /** Right codes that the attacker entered. */
  readonly verified: number;
  /** Rejected requests. */
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
  /** Visits of honest people, counted at their start; requests of an attack. */
  readonly refusedBy: Readonly<Record<string, readonly number[]>>;
}

/** A scenario over time, for drawing. Times are milliseconds since the epoch, by the simulation's clock. */
export interface Series {
  readonly start: number;
  /** Length of a step in milliseconds. */
  readonly step: number;
  /** When the counting begins, and with it the attack or strain. */
  readonly from: number;
  /** When the attack or strain ended; `from` if there is none. */
  readonly until: number;
  readonly honest: PartySeries;
  readonly attack?: PartySeries;
}

/** A visit in progress. */
export interface Visit {
  refused(rule: string): void;
  verified(): void;
}

/** Records what happens. */
export interface Ledger {
  /** Records a visit. */
  visit(country: string): Visit;
  /** Records that the attacker requested a message. */
  tried(): void;
  sent(party: Party, price: number): void;
  refused(rule: string): void;
  typed(): void;
  figures(): {
    readonly honest: HonestFigures;
    /** Visits, and rejected ones, of the countries that the attack or strain affects. */
    readonly target: { readonly visits: number; readonly refused: number };
    readonly attack: AttackFigures;
    readonly series: Series;
    readonly secondsToHold: number | undefined;
    readonly secondsToRecover: number;
  };
}

const minute = 60_000;
const hour = 60 * minute;

/** Number of tries for "time to hold (from the attack's start until the attack's success rate is below 5 %)". */
const tries = 100;
const held = 5;

/** Below this share of rejected visits in an hour, honest traffic counts as recovered. */
const recovered = 0.01;

export interface LedgerSpan {
  /** Earliest time of a visit. */
  readonly start: number;
  /** When the counting begins. */
  readonly from: number;
  /** When the attack or strain ends. */
  readonly until: number;
  readonly end: number;
  /** Countries that the attack or strain affects. */
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
  /** Visits of the affected countries, or of all if these have none, by the hour since `until`. */
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

/** Counts by name; reported with the largest count first. */
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
