import { hour, minute, random, type Site, site, turns } from "./fraud-traffic-kit.js";

const second = 1_000;

/** How honest people come. */
interface Habits {
  readonly number: (next: () => number) => string;
  readonly ip?: (next: () => number) => string;
  /** The share of the visits that enter their code. Default: 0.7. */
  readonly entering?: number;
  /** How often who is rejected tries again, some 20 seconds later. Default: 2. */
  readonly triesAgain?: number;
}

/** Visits of a part of the day, and what came of them. */
interface Group {
  visits: number;
  /** Visits with a rejected create. */
  rejected: number;
  verified: number;
  /** The rules that rejected them, by visit. */
  readonly by: Record<string, number>;
}

export const group = (): Group => ({ visits: 0, rejected: 0, verified: 0, by: {} });

/** Percent of the visits, rounded to tenths. */
export const rejectedPercent = (...groups: readonly Group[]): number => {
  const sum = (field: "visits" | "rejected") => groups.reduce((all, one) => all + one[field], 0);
  return Math.round((1_000 * sum("rejected")) / sum("visits")) / 10;
};

/** One installation with the default options, and people whose visits overlap in virtual time. */
interface Town {
  readonly site: Site;
  readonly next: () => number;
  /** `count` visits at random times from `from` to `from + span` (milliseconds after the start), in the order of their times once `play` runs. */
  come(into: Group, count: number, from: number, span: number, habits: Habits): void;
  /** Something else at a time. */
  at(time: number, run: () => Promise<unknown>): void;
  play(): Promise<void>;
}

/** Each visit: a create; 15 to 60 s later the code, or never; some ask for a second message before that. Rejected visitors try again. */
export function town(seed = 3, options: Parameters<typeof site>[0] = {}, onRefused: (rules: readonly string[]) => void = () => {}): Town {
  const refusals = new Map<string, string>();
  const one = site({
    ...options,
    clockSkew: undefined,
    onEvent: (event) => {
      if (event.type !== "refused") return;
      const rules = event.rules.filter(({ mode }) => mode === "enforce").map(({ rule }) => rule);
      refusals.set(event.authentication_uuid, rules.join(", "));
      onRefused(rules);
    },
  });
  const next = random(seed);
  const start = one.clock.now();
  const due: { readonly time: number; readonly run: () => Promise<unknown> }[] = [];
  /** Kept sorted, the earliest last. */
  const at = (time: number, run: () => Promise<unknown>): void => {
    let [low, high] = [0, due.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (due[middle]!.time > time) low = middle + 1;
      else high = middle;
    }
    due.splice(low, 0, { time, run });
  };
  const visit = (into: Group, habits: Habits): (() => Promise<void>) => {
    const { ip, entering = 0.7, triesAgain = 2 } = habits;
    const user = { phone_number: habits.number(next), ip: ip?.(next) };
    const enters = next() < entering;
    let tries = 0;
    const create = async (): Promise<void> => {
      const { authentication_uuid, status } = await one.verifier.createAuthentication(user);
      if (tries === 0) into.visits++;
      if (status !== "pending") {
        if (tries === 0) {
          into.rejected++;
          const rule = refusals.get(authentication_uuid) ?? status;
          into.by[rule] = (into.by[rule] ?? 0) + 1;
        }
        if (tries++ < triesAgain) at(one.clock.now() + (10 + 20 * next()) * second, create);
        return;
      }
      tries = Math.max(tries, 1);
      let isVerified = false;
      const again = async (): Promise<void> => {
        if (!isVerified) await one.verifier.retry({ authentication_uuid });
      };
      const enter = async (): Promise<void> => {
        await one.enter(authentication_uuid);
        isVerified = true;
        into.verified++;
      };
      if (next() < 0.2) at(one.clock.now() + (30 + 20 * next()) * second, again);
      if (enters) at(one.clock.now() + (15 + 45 * next()) * second, enter);
    };
    return create;
  };
  return {
    site: one,
    next,
    come(into, count, from, span, habits) {
      for (let i = 0; i < count; i++) at(start + from + next() * span, visit(into, habits));
    },
    at: (time, run) => at(start + time, run),
    async play() {
      for (let first = due.pop(); first; first = due.pop()) {
        if (first.time > one.clock.now()) one.clock.set(first.time);
        await first.run();
      }
      await turns();
    },
  };
}

const digits = (next: () => number, count: number): string => String(Math.floor(next() * 10 ** count)).padStart(count, "0");

/** Mobile numbers from all over France. */
export const anywhereInFrance = (next: () => number): string => {
  const million = Math.floor(next() * 80);
  return `+336${String(million === 39 ? 88 : million).padStart(2, "0")}${digits(next, 6)}`;
};

/** Addresses of 300 networks (/16) of providers. */
export const manyNetworks = (next: () => number): string => {
  const network = Math.floor(next() * 300);
  return `${80 + (network % 3)}.${Math.floor(network / 3)}.${Math.floor(next() * 250)}.${1 + Math.floor(next() * 250)}`;
};

/** Faroese mobiles have six digits: 21 to 28 belong to the larger operator, 71 to 79 to the other one. */
export const faroese = (next: () => number): string => `+298${next() < 0.8 ? 21 + Math.floor(next() * 8) : 71 + Math.floor(next() * 9)}${digits(next, 4)}`;

export const day = 24 * hour;
export { hour, minute };
