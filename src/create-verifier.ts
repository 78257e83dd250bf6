import { noApiKeys } from "./access/accounts.js";
import type { CustomersOfStore } from "./access/customers/customers.js";
import type { DeadLetter, FlushReport } from "./callbacks/outbox.js";
import { compose } from "./composition.js";
import type {
  AuthenticationAnswer,
  CheckAnswer,
  CheckRequest,
  CreateAuthenticationRequest,
  HistoryRequest,
  LookupRequest,
  NumberRequest,
  RetryAnswer,
  RetryRequest,
  StatsRequest,
} from "./contract/direct.js";
import type { LookupResponse } from "./contract/lookup.js";
import type { HttpHandler } from "./http/message.js";
import type { Stats } from "./observability/statistics.js";
import type { DiagnoseOptions, Finding } from "./operations/diagnose.js";
import type { Erasure } from "./operations/erase.js";
import type { Explanation } from "./operations/explain.js";
import type { HistoryEntry } from "./operations/history.js";
import type { CallOptions } from "./operations/operations.js";
import type { Ping, PingOptions } from "./operations/ping.js";
import type { Unlocking } from "./operations/unlock.js";
import type { VerifierOptions } from "./options/types.js";
import type { Receipt } from "./ports/receipts.js";

/**
 * Phone-number verification by one-time SMS code. Outcomes are the `status` of a result; faults reject with `VerifierError`.
 *
 * Built without `customers`, it takes direct calls alone, and none needs a `customer_uuid`. Built with them, every call names the one that it is for, or rejects with `bad_request`.
 */
export interface Verifier extends HttpHandler {
  /** Starts a verification and sends a code: `pending`, `rate_limited` or `spam_detected`. Rejects with a `VerifierError` of status 400 (nothing was sent) or 503 `unavailable`. */
  createAuthentication(request: CreateAuthenticationRequest, options?: CallOptions): Promise<AuthenticationAnswer>;
  /** Sends a new code: `approved`, or why not. */
  retry(request: RetryRequest): Promise<RetryAnswer>;
  /** Judges the code that the user typed. **Only `valid` is success**: `already_validated` must never be taken for it. */
  check(request: CheckRequest, options?: CallOptions): Promise<CheckAnswer>;
  /** What is known of a number: from its numbering plan, and from the lookup provider if there is one. */
  lookup(request: LookupRequest): Promise<LookupResponse>;
  /** Which rules fired for an authentication, which sends failed, and what it has left: for operators, never for end users. */
  explain(request: RetryRequest): Promise<Explanation>;
  /** The authentications of a number, refused ones too, the newest first, each with its `explain`: for operators, never for end users. Those whose record has ended are left out. `limit`: 1 to 1,000; default 50. Rejects with `VerifierError` `bad_request`, `invalid_phone_number`, `account_invalid` or `unavailable`. */
  history(request: HistoryRequest): Promise<readonly HistoryEntry[]>;
  /**
   * Erases a number of a customer: afterwards nothing that is stored tells the number or one of its authentications, whatever is under way. Repeat it where it rejects with `unavailable`. Only what caps have counted stays, as times alone
   * under a keyed hash, until `counts_until`: an erasure is no way around a cap.
   */
  erase(request: NumberRequest): Promise<Erasure>;
  /**
   * Lifts what the caps per number have counted, for a user who is locked out; once in 24 hours for one number, however often it is asked. On such a day the number can get twice the sends, and the odds to guess one of its codes are at most
   * twice `maxGuessOdds`. Wrong codes and retries of its authentications stay counted: the user begins with a new create.
   */
  unlock(request: NumberRequest): Promise<Unlocking>;
  /** Messages sent, codes typed, cost and refusals of a customer, by hour, country, route and rule. `from`, `to`: Dates or ISO 8601 timestamps, widened to whole hours. Counted in batches: a process that dies loses the last two seconds. */
  stats(request: StatsRequest): Promise<Stats>;
  /** Carriers' delivery receipts, to be mounted with the verifier, before body parsers that keep no `req.rawBody`: `app.use(expressHandlers([verifier, verifier.receipts]))` answers `/receipts/{provider}` too. */
  readonly receipts: HttpHandler;
  /** Takes receipts that come on another way than HTTP: `smppSender({ onReceipt: (receipt) => verifier.settleReceipts([receipt]) })`. */
  settleReceipts(receipts: readonly Receipt[]): Promise<void>;
  /** How the store stands, and how many callbacks wait: for health pages. Writes nothing and never rejects. */
  ping(options?: PingOptions): Promise<Ping>;
  /** Looks for what will not work, or not safely, and says how to mend it; `npx phoneproof doctor ./verifier.js` prints it. Asks the store, and the carriers that have a call which sends nothing. Never rejects. */
  diagnose(options?: DiagnoseOptions): Promise<readonly Finding[]>;
  /** What this process has counted since it began, in Prometheus' text format; two verifiers in one process count apart. The table of them is in `docs/watching.md`. */
  metrics(): string;
  /** The same, to be mounted as the verifier itself is, where Prometheus may reach it and strangers may not: `app.use(expressHandlers(verifier.metricsHandler))` answers `GET /metrics`. */
  readonly metricsHandler: HttpHandler;
  /** Delivers all callbacks that are due now: for cron jobs and serverless functions, where no worker runs. */
  flush(): Promise<FlushReport>;
  /** Callbacks that were given up, the newest first. `limit`: 1 to 10,000; default 1,000. */
  deadLetters(options?: { readonly limit?: number }): Promise<readonly DeadLetter[]>;
  /** Puts a given-up callback back on its way, under the same webhook-id; false when there is none. */
  redeliver(letter: Pick<DeadLetter, "authentication_uuid" | "sequence"> & Partial<Pick<DeadLetter, "customer_uuid">>): Promise<boolean>;
  /** Secrets that sign a customer's callbacks, as `whsec_<base64>`, for the customer to verify them with; several while rotating. */
  webhookSecrets(customerUuid?: string): Promise<readonly string[]>;
  /** The customers that the store keeps, and their API keys; for a verifier with `customers: "store"`. */
  readonly customers: CustomersOfStore;
  /** Stops delivering callbacks, and closes the store and the sender, where they have something to close. Clients that you passed to them stay yours. */
  close(): Promise<void>;
}

const noOptions: CallOptions = {};

/** Builds a verifier. Does no I/O. Throws `VerifierError` `invalid_options`, whose message names every faulty option and the mend. */
export function createVerifier(options: VerifierOptions): Verifier {
  const { operations, accounts, customers, handle, handleReceipt, handleMetrics, metrics, ping, diagnose, settleReceipts, outbox, settle, logger, clock } =
    compose(options);
  const warn = (message: string) => logger.warn({}, message);
  return {
    createAuthentication: (request, call = noOptions) => operations.createAuthentication(request, call),
    retry: (request) => operations.retry(request, {}),
    check: (request, call = noOptions) => operations.check(request, call),
    lookup: (request) => operations.lookup(request, {}),
    explain: (request) => operations.explain(request),
    history: (request) => operations.history(request),
    erase: (request) => operations.erase(request),
    unlock: (request) => operations.unlock(request),
    stats: (request) => operations.stats(request),
    flush: () => outbox.flush(),
    deadLetters: ({ limit = 1000 } = {}) => outbox.deadLetters(Math.min(10_000, Math.max(1, Math.floor(limit) || 1))),
    redeliver: async ({ customer_uuid = accounts.unnamed(), authentication_uuid, sequence }) =>
      outbox.redeliver(String(customer_uuid).toLowerCase(), String(authentication_uuid).toLowerCase(), sequence),
    webhookSecrets: async (customerUuid = accounts.unnamed()) => accounts.webhookSecrets(customerUuid.toLowerCase()),
    customers,
    root: "/v1",
    ...(options.customers === undefined && { unmountable: noApiKeys }),
    handle,
    warn,
    clock,
    receipts: { root: "/receipts", handle: handleReceipt, warn, clock },
    settleReceipts,
    ping,
    diagnose: (asked = {}) => diagnose(asked),
    metrics,
    metricsHandler: { root: "/metrics", handle: handleMetrics, warn, clock },
    async close() {
      await outbox.stop();
      await settle();
      await Promise.all([options.store.close?.(), options.sender.close?.()]);
    },
  };
}
