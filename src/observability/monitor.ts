import type { DeliveryStatus } from "../contract/callback.js";
import type { CheckStatus } from "../contract/check.js";
import type { Core } from "../core/core.js";
import { throttledLogger } from "../core/throttled-logger.js";
import { type Authentication, type OutboxEvent, type Send, sendOf } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import { defined } from "../domain/defined.js";
import { maskNumber } from "../domain/phone-number.js";
import { VerifierError } from "../errors.js";
import type { AlarmEvent, FiredRule, RefusedEvent, SentEvent, VerifierEvent } from "../ports/events.js";
import { createMetrics } from "./metrics.js";
import { createOutages } from "./outages.js";

export type Operation = "create" | "start" | "retry" | "check" | "deliver" | "confirm" | "lookup";

/** The outcome of a hand-over. */
interface HandOverOutcome extends Pick<SentEvent, "attempt" | "outcome" | "took">, Pick<Send, "route" | "channel" | "fallback"> {
  readonly reason: string | undefined;
}

/** What one route made of a message. */
export type RouteTry = Pick<HandOverOutcome, "route" | "channel" | "outcome">;

interface MonitorOptions extends Pick<Core, "clock" | "logger"> {
  readonly onEvent: ((event: VerifierEvent) => void | Promise<void>) | undefined;
  /** Callbacks in this process's queue. */
  readonly waiting: () => number;
}

export type Monitor = ReturnType<typeof createMonitor>;

/** Receives what happens, counts it, and passes it to listeners. Nothing here delays a request or makes it fail. */
export function createMonitor({ clock, logger, onEvent, waiting }: MonitorOptions) {
  /**
   * Handlers that throw, reject or hang never affect a request: they are not awaited. Their errors count as a separate
   * outage, which is only logged.
   */
  const tell = (event: VerifierEvent): void => {
    if (onEvent === undefined) return;
    const { events } = outages;
    const failed = (err: unknown) => events.failed({ err });
    const worked = () => {
      if (events.on) events.worked();
    };
    try {
      const telling: unknown = onEvent(event);
      if (telling === undefined) worked();
      else Promise.resolve(telling).then(worked, failed);
    } catch (err) {
      failed(err);
    }
  };
  const outages = createOutages(clock, logger, (event) => {
    if (event.part !== "events") tell(event);
  });
  const metrics = createMetrics(outages, waiting);

  const notify = ({ customer, id, number, country }: Authentication, facts: Facts): void => {
    if (onEvent === undefined) return;
    const of = { at: clock.now(), customer_uuid: customer, authentication_uuid: id, phone_number: maskNumber(number), country };
    tell(defined({ ...facts, ...of }) as VerifierEvent);
  };

  return {
    outages,
    metrics,
    /** For errors that an outage causes in every request. */
    throttledLog: throttledLogger(clock, logger),
    /** Whether anything listens to events or reads metrics. */
    watched: () => onEvent !== undefined || metrics.isRead(),
    /** An operation returned a result. `began`: when it started. */
    answered: (operation: Operation, status: string, began: number) => metrics.operation(operation, status, Math.max(0, clock.now() - began)),
    /** An operation failed. */
    failed: (operation: Operation, error: unknown) =>
      metrics.operation(operation, error instanceof VerifierError ? error.code : "internal_server_error", undefined),

    created: (auth: Authentication): void => notify(auth, { type: "created" }),

    refused(operation: RefusedEvent["operation"], status: RefusedEvent["status"], auth: Authentication, decisions: readonly Decision[]): void {
      const rules = decisions.flatMap(({ rule, mode, value, threshold, reason }): FiredRule[] =>
        mode === "route" ? [] : [defined({ rule, mode, value, threshold, reason })],
      );
      metrics.fired(decisions);
      notify(auth, { type: "refused", operation, status, rules });
    },

    /** `tries`: by route, if the sender names those that it tried. */
    sent(auth: Authentication, outcome: HandOverOutcome, tries: readonly RouteTry[] = []): void {
      for (const one of tries.length > 0 ? tries : [outcome]) metrics.message(auth.country, one.route, one.channel, one.outcome);
      metrics.took(outcome.route, outcome.took);
      notify(auth, { type: "sent", ...outcome });
    },

    /** `attempt`: the message that carried the code; absent for a test number, which is not counted. */
    checked(auth: Authentication, status: CheckStatus, attempt: number | undefined): void {
      if (attempt !== undefined) metrics.verified(auth.country, sendOf(auth, attempt));
      notify(auth, { type: "checked", status, wrong_codes: auth.wrongChecks + (status === "invalid" ? 1 : 0) });
    },

    canceled: (auth: Authentication): void => notify(auth, { type: "canceled" }),

    /** A delivery was confirmed. `attempt`: the message that it counts for. `isTest`: of a test number, not counted. */
    confirmed(auth: Authentication, attempt: number | undefined, isTest: boolean): void {
      if (!isTest) metrics.verified(auth.country, sendOf(auth, attempt));
      notify(auth, { type: "confirmed", purpose: auth.purpose ?? "" });
    },

    receipt(auth: Authentication, attempt: number, status: DeliveryStatus, error: string | undefined): void {
      const { route, channel } = sendOf(auth, attempt) ?? {};
      metrics.receipt(route, status);
      notify(auth, { type: "receipt", attempt, status, route, channel, error });
    },

    callback(auth: Authentication, { sequence, status }: OutboxEvent, outcome: "delivered" | "failed" | "dead", reason: string | undefined): void {
      metrics.callback(outcome);
      notify(auth, { type: "callback", outcome, status, sequence, reason });
    },

    alarm(event: AlarmEvent): void {
      metrics.alarm(event.alarm);
      tell(event);
    },
  };
}

/** An event without what `notify` reads from its authentication. Fields that are undefined are left out. */
type Facts<Event = VerifierEvent> = Event extends { readonly authentication_uuid: string }
  ? Undefinable<Omit<Event, "at" | "customer_uuid" | "authentication_uuid" | "phone_number" | "country">>
  : never;
type Undefinable<T> = { readonly [Field in keyof T]: Partial<T> extends Pick<T, Field> ? T[Field] | undefined : T[Field] };
