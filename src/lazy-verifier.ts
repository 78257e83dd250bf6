import { systemClock } from "./core/clocks.js";
import { consoleLogger, safeLogger } from "./core/loggers.js";
import { throttledLogger } from "./core/throttled-logger.js";
import { createVerifier, type Verifier } from "./create-verifier.js";
import { VerifierError } from "./errors.js";
import { toErrorResponse } from "./http/answer.js";
import type { HttpHandler } from "./http/message.js";
import { unbuilt, wordsOf } from "./operations/ping.js";
import { defaultDocUrl } from "./options/schema.js";
import type { VerifierOptions } from "./options/types.js";

/** The calls that can wait for the verifier, and reject if it cannot be created. */
type Calls = Omit<
  Verifier,
  "http" | "receipts" | "metricsHandler" | "metrics" | "customers" | "verifications" | "deliveryError" | "ping" | "diagnose" | "close"
>;

/**
 * A verifier that is created on first use, for modules that are imported without a working configuration: `next build`
 * imports every route with no secret set and `NODE_ENV` `production`. `options` is called once.
 *
 * If `options` throws or the options are invalid, the call rejects (a request gets a 500, and the log has the reason);
 * the next call tries again. `ping` and `diagnose` return the reason. `close()` before any use does nothing. Throws
 * `VerifierError` `invalid_options` if `options` is not a function.
 */
export function lazyVerifier(options: () => VerifierOptions): Verifier {
  if (typeof options !== "function")
    throw new VerifierError(
      "invalid_options",
      "phoneproof: lazyVerifier takes a function that returns the options: lazyVerifier(() => ({ store, sender, … }))",
    );
  const logger = throttledLogger(systemClock(), safeLogger(consoleLogger));
  let built: Verifier | undefined;
  const verifier = (): Verifier => {
    built ??= createVerifier(options());
    return built;
  };
  const whole = async () => verifier();

  const call =
    <Name extends keyof Calls>(name: Name) =>
    async (...given: unknown[]) =>
      (verifier()[name] as (...given: unknown[]) => unknown)(...given);
  // A connection may need closing after a request for which no verifier could be created.
  const clock = () => built?.http.clock ?? systemClock();
  const handler = (root: string, part: (whole: Verifier) => HttpHandler): HttpHandler => ({
    root,
    /** Known once it is built. */
    get unmountable() {
      return built && part(built).unmountable;
    },
    async handle(request) {
      let answers: HttpHandler;
      try {
        answers = part(verifier());
        if (answers.unmountable !== undefined) throw new TypeError(answers.unmountable);
      } catch (error) {
        return toErrorResponse(logger, defaultDocUrl, error);
      }
      return answers.handle(request);
    },
    clock: { now: () => clock().now(), after: (ms, run) => clock().after(ms, run) },
    warn: (message) => (built === undefined ? consoleLogger.warn({}, message) : built.http.warn(message)),
  });

  const http = handler("/v1", (whole) => whole.http);
  return {
    ...http,
    get unmountable() {
      return http.unmountable;
    },
    http,
    receipts: handler("/receipts", (whole) => whole.receipts),
    metricsHandler: handler("/metrics", (whole) => whole.metricsHandler),
    ...({
      createAuthentication: call("createAuthentication"),
      retry: call("retry"),
      check: call("check"),
      deliver: call("deliver"),
      confirm: call("confirm"),
      lookup: call("lookup"),
      customerOf: call("customerOf"),
      explain: call("explain"),
      history: call("history"),
      refusals: call("refusals"),
      erase: call("erase"),
      unlock: call("unlock"),
      stats: call("stats"),
      settleReceipts: call("settleReceipts"),
      flush: call("flush"),
      deadLetters: call("deadLetters"),
      redeliver: call("redeliver"),
      webhookSecrets: call("webhookSecrets"),
      channels: call("channels"),
    } satisfies Record<keyof Calls, unknown> as Calls),
    // Checks never reject (docs/contract.md#ping).
    ping: (given) => whole().then((built) => built.ping(given), unbuilt),
    diagnose: (given) =>
      whole().then(
        (built) => built.diagnose(given),
        (error) => [{ level: "fault", about: "configuration", message: wordsOf(error), fix: "correct the options of lazyVerifier" }],
      ),
    metrics: () => verifier().metrics(),
    verifications: {
      start: async (...given) => verifier().verifications.start(...given),
      check: async (...given) => verifier().verifications.check(...given),
      cancel: async (...given) => verifier().verifications.cancel(...given),
      get: async (...given) => verifier().verifications.get(...given),
    },
    customers: {
      create: async (...given) => verifier().customers.create(...given),
      get: async (...given) => verifier().customers.get(...given),
      list: async (...given) => verifier().customers.list(...given),
      update: async (...given) => verifier().customers.update(...given),
      suspend: async (...given) => verifier().customers.suspend(...given),
      resume: async (...given) => verifier().customers.resume(...given),
      keys: {
        issue: async (...given) => verifier().customers.keys.issue(...given),
        rotate: async (...given) => verifier().customers.keys.rotate(...given),
        revoke: async (...given) => verifier().customers.keys.revoke(...given),
        list: async (...given) => verifier().customers.keys.list(...given),
      },
    },
    close: async () => built?.close(),
  };
}
