import { consoleLogger } from "./core/console-logger.js";
import { systemClock } from "./core/system-clock.js";
import { createVerifier, type Verifier } from "./create-verifier.js";
import { VerifierError } from "./errors.js";
import { toFault } from "./http/answer.js";
import type { HttpHandler } from "./http/message.js";
import { defaultDocUrl } from "./options/schema.js";
import type { VerifierOptions } from "./options/types.js";

/** The calls that can wait for the verifier, and reject where it cannot be built. */
type Calls = Omit<Verifier, keyof HttpHandler | "receipts" | "metricsHandler" | "metrics" | "customers" | "close">;

/**
 * A verifier that is built when it is first used, for modules that are imported where nothing can work yet: `next build` imports every route, with no secret set and with `NODE_ENV` `production`.
 *
 * `options` is called once. What it throws, and the fault of options that cannot work, rejects the call that needed the verifier (a request is answered 500, and the log says why); the next one tries anew.
 * `close()` before any use does nothing. Throws `VerifierError` `invalid_options` for what is no function.
 */
export function lazyVerifier(options: () => VerifierOptions): Verifier {
  if (typeof options !== "function")
    throw new VerifierError(
      "invalid_options",
      "phoneproof: lazyVerifier takes a function that answers the options: lazyVerifier(() => ({ store, sender, … }))",
    );
  let built: Verifier | undefined;
  const verifier = (): Verifier => {
    built ??= createVerifier(options());
    return built;
  };

  const call =
    <Name extends keyof Calls>(name: Name) =>
    async (...given: unknown[]) =>
      (verifier()[name] as (...given: unknown[]) => unknown)(...given);
  // A connection may have to be closed after a request for which no verifier could be built.
  const clock = () => built?.clock ?? systemClock();
  const handler = (root: string, part: (whole: Verifier) => HttpHandler): HttpHandler => ({
    root,
    async handle(request) {
      let answers: HttpHandler;
      try {
        answers = part(verifier());
        if (answers.unmountable !== undefined) throw new TypeError(answers.unmountable);
      } catch (error) {
        return toFault(consoleLogger, defaultDocUrl, error);
      }
      return answers.handle(request);
    },
    clock: { now: () => clock().now(), after: (ms, run) => clock().after(ms, run) },
    warn: (message) => (built ?? { warn: (text: string) => consoleLogger.warn({}, text) }).warn(message),
  });

  return {
    ...handler("/v1", (whole) => whole),
    receipts: handler("/receipts", (whole) => whole.receipts),
    metricsHandler: handler("/metrics", (whole) => whole.metricsHandler),
    ...({
      createAuthentication: call("createAuthentication"),
      retry: call("retry"),
      check: call("check"),
      lookup: call("lookup"),
      explain: call("explain"),
      history: call("history"),
      erase: call("erase"),
      unlock: call("unlock"),
      stats: call("stats"),
      settleReceipts: call("settleReceipts"),
      ping: call("ping"),
      diagnose: call("diagnose"),
      flush: call("flush"),
      deadLetters: call("deadLetters"),
      redeliver: call("redeliver"),
      webhookSecrets: call("webhookSecrets"),
    } satisfies Record<keyof Calls, unknown> as Calls),
    metrics: () => verifier().metrics(),
    get customers() {
      return verifier().customers;
    },
    close: async () => built?.close(),
  };
}
