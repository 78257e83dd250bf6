import type { Core } from "../core/core.js";
import { guessedOdds, isSpray, near, shadowed, sprayed } from "../domain/alarms.js";
import type { Decision } from "../domain/decision.js";
import { type Charge, measured } from "../domain/quota.js";
import { day, hour } from "../domain/time.js";
import type { Alarm } from "../ports/events.js";
import type { Monitor } from "./monitor.js";

interface AlarmParts extends Pick<Core, "store" | "clock" | "inBackground"> {
  /** Receives the alarms; without listeners, nothing is checked. */
  readonly monitor: Pick<Monitor, "watched" | "alarm" | "throttledLog">;
}

/** Milliseconds between reads of the counts of all processes. */
const lookEvery = 10_000;

/** Customers, alarms and rules remembered; beyond that, all are forgotten. */
const most = 10_000;

/** The alarm for a cap or ceiling that is nearly used up, if there is one. */
function alarmOf({ rule, counts }: Charge): "customer_cap" | "spend" | undefined {
  return rule.startsWith("perCustomer") ? "customer_cap" : counts === "money" ? "spend" : undefined;
}

export type Alarms = ReturnType<typeof createAlarms>;

/** Alarms for the operator. Nothing here delays a request or makes it fail. */
export function createAlarms({ store, clock, monitor, inBackground }: AlarmParts) {
  /** When each alarm was last raised. */
  const alertedAt = new Map<string, number>();
  const watching = new Map<string, { since: number; messages: number; flagged: Map<string, number> }>();
  const judged = new Map<string, { lookedAt: number; wrong: number; right: number }>();

  const bounded = <T>(map: Map<string, T>): Map<string, T> => {
    if (map.size >= most) map.clear();
    return map;
  };

  const raise = (customer: string, alarm: Alarm, value: number, threshold: number): void => {
    if (!monitor.watched()) return;
    const now = clock.now();
    const { alarm: kind, ...rest } = alarm;
    const subject = "country" in rest ? rest.country : "range" in rest ? rest.range : "rule" in rest ? rest.rule : "";
    const key = `${customer} ${kind} ${subject}`;
    if (now - (alertedAt.get(key) ?? Number.NEGATIVE_INFINITY) < hour) return;
    bounded(alertedAt).set(key, now);
    monitor.alarm({ type: "alarm", ...alarm, customer_uuid: customer, at: now, value, threshold });
  };

  /** Adds this process's counts to today's total, and reads the total. */
  const look = async (customer: string, wrong: number, right: number, codeLength: number): Promise<void> => {
    const now = clock.now();
    const today = Math.floor(now / day);
    const [wrongs, rights] = ["w", "r"].map((what) => `${customer}:${what}:${today}`) as [string, string];
    const expiry = { now, keepUntil: now + 2 * day };
    const adds = [
      { counter: wrongs, by: wrong, ...expiry },
      { counter: rights, by: right, ...expiry },
    ].filter(({ by }) => by > 0);
    const [allWrong = 0, allRight = 0] = await store.tally(adds, [wrongs, rights]);
    if (isSpray(allWrong, allRight, codeLength)) {
      raise(customer, { alarm: "wrong_codes", wrong: allWrong, right: allRight }, guessedOdds(allWrong, codeLength), sprayed.odds);
    }
  };

  return {
    raise,

    /** Whether `granted` needs the charge's count. */
    reads: (charge: Charge): boolean => monitor.watched() && alarmOf(charge) !== undefined,

    /** A cap of the customer, or a ceiling, granted a charge: from 80 % of its limit on, the alarm is raised. */
    granted(customer: string, charge: Charge, count: number | undefined): void {
      const { rule, counts, claim } = charge;
      const alarm = alarmOf(charge);
      if (alarm === undefined || count === undefined) return;
      const { value, threshold } = measured(charge, counts === "money" && "weight" in claim ? count - claim.weight : count);
      if (value >= near * threshold) raise(customer, { alarm, rule }, value, threshold);
    },

    /**
     * A message was sent, and exceeded these rules in shadow mode. The period is an hour; with too few messages, it lasts
     * until there are enough, for up to a day.
     */
    watched(customer: string, shadow: readonly Decision[]): void {
      if (!monitor.watched()) return;
      const now = clock.now();
      let seen = watching.get(customer);
      if (seen === undefined || now - seen.since >= (seen.messages < shadowed.messages ? day : hour))
        bounded(watching).set(customer, (seen = { since: now, messages: 0, flagged: new Map() }));
      seen.messages++;
      for (const { rule } of shadow) seen.flagged.set(rule, (seen.flagged.get(rule) ?? 0) + 1);
      if (seen.messages < shadowed.messages) return;
      for (const [rule, flagged] of seen.flagged) {
        const share = flagged / seen.messages;
        if (share > shadowed.share) raise(customer, { alarm: "shadow", rule }, share, shadowed.share);
      }
    },

    /** A code was checked. */
    judged(customer: string, right: boolean, codeLength: number): void {
      if (!monitor.watched()) return;
      const now = clock.now();
      let seen = judged.get(customer);
      if (seen === undefined) bounded(judged).set(customer, (seen = { lookedAt: now, wrong: 0, right: 0 }));
      seen[right ? "right" : "wrong"]++;
      if (now - seen.lookedAt < lookEvery) return;
      const { wrong, right: rights } = seen;
      Object.assign(seen, { lookedAt: now, wrong: 0, right: 0 });
      inBackground(
        look(customer, wrong, rights, codeLength).catch((err) => monitor.throttledLog.warn({ err }, "the codes checked today could not be counted")),
      );
    },
  };
}
