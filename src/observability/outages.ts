import { withoutNumbers } from "../core/loggers.js";
import { minute, second } from "../domain/time.js";
import type { Clock } from "../ports/clock.js";
import type { OutageEvent, OutsidePart } from "../ports/events.js";
import type { Logger } from "../ports/logger.js";

/** The health of one external part, reported by its callers. */
export interface Outage {
  /** Whether it is failing; only then must a success be reported. */
  readonly on: boolean;
  /** Failures since the process started. */
  readonly failures: number;
  /** `fields`: for the log, if this failure is logged. */
  failed(fields: Readonly<Record<string, unknown>>): void;
  worked(): void;
}

export type Outages = Readonly<Record<OutsidePart, Outage>>;

/** The log message when an outage begins, and the name for the messages that follow. */
const words: Readonly<Record<OutsidePart, readonly [began: string, name: string]>> = {
  store: ["the store failed", "the store"],
  sender: ["the sender failed", "the sender"],
  customers: ["the customer source failed", "the customer source"],
  lookup: ["the lookup provider failed; only the numbering plan is used", "the lookup provider"],
  events: ["onEvent failed", "onEvent"],
};

/** The names of all external parts. */
export const outsideParts = Object.keys(words) as readonly OutsidePart[];

/** "once a minute while it lasts" (docs/contract.md#outages). Milliseconds. */
const toldEvery = minute;

/** Milliseconds without a failure until an outage is over: alternating failures are one outage. */
const calmAfter = 10 * second;

/**
 * "An outage is logged when it begins, once a minute while it lasts, and when it is over, with counts"
 * (docs/contract.md#outages). No timer runs: the next call notices that a minute has passed.
 */
export function createOutages(clock: Clock, logger: Logger, tell: (event: OutageEvent) => void): Outages {
  const outage = (part: OutsidePart): Outage => {
    const [began, name] = words[part];
    let since: number | undefined;
    let failures = 0;
    let before = 0;
    let failedAt = 0;
    let toldAt = 0;
    const phase = (one: OutageEvent["phase"], at: number, from: number) =>
      tell({ type: "outage", part, phase: one, at, since: from, failures: failures - before });
    return {
      get on() {
        return since !== undefined;
      },
      get failures() {
        return failures;
      },
      failed(fields) {
        const now = clock.now();
        failures++;
        failedAt = now;
        if (since === undefined) {
          since = toldAt = now;
          before = failures - 1;
          logger.error(fields, began);
          phase("began", now, since);
        } else if (Math.abs(now - toldAt) >= toldEvery) {
          toldAt = now;
          logger.error({ failures: failures - before, since: new Date(since).toISOString(), reason: reasonOf(fields) }, `${name} still fails`);
          phase("lasts", now, since);
        }
      },
      worked() {
        const now = clock.now();
        if (since === undefined || Math.abs(now - failedAt) < calmAfter) return;
        const from = since;
        since = undefined;
        logger.warn({ failures: failures - before, since: new Date(from).toISOString() }, `${name} works again`);
        phase("ended", now, from);
      },
    };
  };
  return Object.fromEntries(outsideParts.map((part) => [part, outage(part)])) as unknown as Outages;
}

/** The reason of a failure, without a stack and without numbers. */
function reasonOf({ err, reason }: Readonly<Record<string, unknown>>): string {
  const said = reason ?? (err instanceof Error ? withoutNumbers(err.message) : undefined);
  return typeof said === "string" ? said.slice(0, 500) : "no error was thrown, but something else";
}
