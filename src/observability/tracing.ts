import { propertiesOf } from "../core/collections.js";
import type { Logger } from "../ports/logger.js";
import type { SmsSender } from "../ports/sms-sender.js";
import type { CommitResult, Store } from "../ports/store.js";
import type { Step, Telemetry } from "../ports/telemetry.js";

/* Wrappers for the store and the sender. They are used only if there is telemetry. */

const done = () => "done";
const committed = (answer: CommitResult) => (answer.done ? "done" : answer.refusedBy === undefined ? "lost" : "refused");

/**
 * Telemetry that is never awaited and whose errors harm no request (docs/contract.md#listeners): work runs exactly once,
 * and its outcome is the step's.
 */
export function safeTelemetry(telemetry: Telemetry, logger: Logger): Telemetry {
  const failed = (err: unknown) => logger.warn({ err }, "telemetry failed; requests are not affected");
  return {
    step<T>(step: Step, work: () => Promise<T>, result: (answer: T) => string): Promise<T> {
      let running: Promise<T> | undefined;
      const run = () => (running ??= (async () => work())());
      const tracing = (async () => telemetry.step(step, run, result))();
      const worked = run();
      const ended = worked.then(
        () => undefined,
        (error: unknown) => error,
      );
      tracing.catch(async (err) => {
        if (err !== (await ended)) failed(err);
      });
      return worked;
    },
    metrics(read) {
      const register = async () => telemetry.metrics(read);
      register().catch(failed);
    },
  };
}

/** A store whose calls are traced as steps. */
export function tracedStore(store: Store, telemetry: Telemetry): Store {
  const call = <T>(name: string, work: () => Promise<T>, result: (answer: T) => string = done) =>
    telemetry.step({ kind: "store", name, facts: {} }, work, result);
  const { inspect } = store;
  return {
    find: (customer, id) => call("find", () => store.find(customer, id)),
    commit: (change) => call("commit", () => store.commit(change), committed),
    members: (window, limit) => call("members", () => store.members(window, limit)),
    tally: (adds, reads) => call("tally", () => store.tally(adds, reads)),
    lease: (until, limit, leaseUntil) => call("lease", () => store.lease(until, limit, leaseUntil)),
    get: (key) => call("get", () => store.get(key)),
    put: (key, value, expiry) => call("put", () => store.put(key, value, expiry)),
    delete: (what) => call("delete", () => store.delete(what)),
    ...(inspect !== undefined && { inspect: (until: number) => call("inspect", () => inspect.call(store, until)) }),
  };
}

/** A sender whose sends are traced as steps. It has only what the engine calls. */
export function tracedSender(sender: SmsSender, telemetry: Telemetry): SmsSender {
  return {
    send: (message, context) =>
      telemetry.step(
        { kind: "carrier", name: "send", facts: { attempt: message.attempt, ...(message.country !== undefined && { country: message.country }) } },
        async () => sender.send(message, context),
        resultOf,
      ),
    ...(sender.channel !== undefined && { channel: sender.channel }),
    ...(sender.channels !== undefined && { channels: sender.channels }),
    ...(sender.fallback !== undefined && { fallback: sender.fallback }),
    ...(sender.plan !== undefined && { plan: sender.plan.bind(sender) }),
    ...(sender.feedback !== undefined && { feedback: sender.feedback.bind(sender) }),
    ...(sender.receiptProviders !== undefined && { receiptProviders: sender.receiptProviders }),
    ...(sender.receiptProvidersOf !== undefined && { receiptProvidersOf: sender.receiptProvidersOf.bind(sender) }),
    ...(sender.readsNetwork !== undefined && { readsNetwork: sender.readsNetwork }),
  };
}

/** A custom sender may return anything. */
function resultOf(answer: unknown): string {
  const { outcome } = propertiesOf(answer);
  return outcome === "accepted" || outcome === "rejected" ? outcome : "unknown";
}
