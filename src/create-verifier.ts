import { noApiKeys } from "./access/accounts.js";
import type { CustomersOfStore } from "./access/customers/customers.js";
import { parseDeadLetters, parseWebhookSecrets, requireObject } from "./access/parse.js";
import { type DeadLetter, readDeadLetters } from "./callbacks/dead-letters.js";
import type { FlushReport } from "./callbacks/outbox.js";
import { compose } from "./composition.js";
import type { Channel } from "./contract/channel.js";
import type { Conversion } from "./contract/conversion.js";
import type { ConfirmResult, DeliverResult } from "./contract/delivery.js";
import type {
  AuthenticationResult,
  CheckRequest,
  CheckResult,
  ConfirmRequest,
  CreateAuthenticationRequest,
  DeliverRequest,
  ExplainRequest,
  HistoryRequest,
  LookupRequest,
  NumberRequest,
  RetryRequest,
  RetryResult,
  StatsRequest,
} from "./contract/direct.js";
import type { LookupResponse } from "./contract/lookup.js";
import type { Verifications } from "./contract/verification.js";
import type { HttpHandler } from "./http/message.js";
import { settleForeign } from "./messages/receipts.js";
import type { Stats } from "./observability/statistics.js";
import type { DiagnoseOptions, Finding } from "./operations/diagnose.js";
import type { Erasure } from "./operations/erase.js";
import type { Explanation, HistoryEntry } from "./operations/explain.js";
import type { CallOptions } from "./operations/operations.js";
import { type Ping, type PingOptions, ping } from "./operations/ping.js";
import type { RefusedRequests } from "./operations/refusals.js";
import type { Unlocking } from "./operations/unlock.js";
import type { VerifierOptions } from "./options/types.js";
import type { Receipt } from "./ports/receipts.js";

/**
 * Phone-number verification by one-time SMS code. Outcomes are the `status` of a result; errors reject with
 * `VerifierError`.
 *
 * Without the option `customers`, only direct calls work, and they need no `customer_uuid`. With it, every call must
 * name its customer, or it rejects with `bad_request`.
 */
export interface Verifier {
  /**
   * Starts a verification and sends a code. Returns `pending`, `rate_limited` or `spam_detected`. Rejects with a
   * `VerifierError` of status 400 (nothing was sent) or 503 `unavailable`.
   */
  createAuthentication(request: CreateAuthenticationRequest, options?: CallOptions): Promise<AuthenticationResult>;
  /** Sends a new code. Returns `approved`, or the reason why not. */
  retry(request: RetryRequest): Promise<RetryResult>;
  /** Checks the code that the user entered. **Only `valid` is success**: never treat `already_validated` as success. */
  check(request: CheckRequest, options?: CallOptions): Promise<CheckResult>;
  /** Verification by number instead of by id: starts, sends again, checks, cancels. */
  readonly verifications: Verifications;
  /**
   * Sends a code that another server, such as an identity server, made and will check: with lists, caps, spam rules,
   * routing, receipts and callbacks, but without a check here. Every outcome is a `status`. Rejects with `VerifierError`
   * `bad_request` for a malformed request, `account_invalid`, or `invalid_options` if conversion is unknown and there is
   * no spend ceiling.
   */
  deliver(request: DeliverRequest): Promise<DeliverResult>;
  /**
   * Reports that the user entered the delivered code, so that spam rules, conversion and route health count it. One
   * confirmation of a delivery counts, up to 24 hours after its last message. Only a server that you trust may call it.
   * Rejects with `VerifierError` `bad_request`, `invalid_phone_number`, `account_invalid` or `unavailable`.
   */
  confirm(request: ConfirmRequest): Promise<ConfirmResult>;
  /**
   * Returns why `deliver` would reject every message with this conversion, or `undefined`: for programs that want to know
   * before the first one. Default: the option `conversion`. Absent if the verifier has `customers` or is lazy.
   */
  deliveryError?(conversion?: Conversion): string | undefined;
  /** Returns what the numbering plan and the lookup provider, if any, know about a number. */
  lookup(request: LookupRequest): Promise<LookupResponse>;
  /**
   * Returns the authentications of a number, rejected ones included, newest first, each with its `explain`. For
   * operators, never for end users. Expired records are omitted. `limit`: 1 to 1,000; default 50. Rejects with
   * `VerifierError` `bad_request`, `invalid_phone_number`, `account_invalid` or `unavailable`.
   */
  history(request: HistoryRequest): Promise<readonly HistoryEntry[]>;
  /**
   * Returns how many requests to a number were rejected because of its country, its line type or the block list, by
   * code and hour, newest first: they made no authentication. Of a number up to 20 an hour are counted, for 24 hours.
   * Rejects as `history` does.
   */
  refusals(request: NumberRequest): Promise<readonly RefusedRequests[]>;
  /**
   * Returns the rules that fired for an authentication, its failed sends, and its remaining tries. For operators, never
   * for end users.
   */
  explain(request: ExplainRequest): Promise<Explanation>;
  /**
   * Erases a number of a customer. Afterwards no stored data reveals the number or its authentications, even if
   * requests are in progress. Repeat the call if it rejects with `unavailable`. Only what caps have counted remains, as
   * times under a keyed hash, until `counts_until`: erasing a number does not reset its caps.
   */
  erase(request: NumberRequest): Promise<Erasure>;
  /**
   * Resets the caps of a number, for a user who is locked out; takes effect once in 24 hours per number. On that day
   * the number can get twice the sends, and the odds of guessing one of its codes are at most twice `maxGuessOdds`.
   * Wrong codes and retries of existing authentications stay counted: the user starts with a new create.
   */
  unlock(request: NumberRequest): Promise<Unlocking>;
  /**
   * Returns messages sent, codes entered, cost and rejections of a customer, by hour, country, route and rule. `from`,
   * `to`: Dates or ISO 8601 timestamps, widened to whole hours. Counted in batches: a crash loses up to the last two
   * seconds.
   */
  stats(request: StatsRequest): Promise<Stats>;
  /** Manages the customers and API keys in the store. Requires `customers: "store"`. */
  readonly customers: CustomersOfStore;
  /**
   * Handler for carriers' delivery receipts. Mount it with the verifier, before body parsers that do not set
   * `req.rawBody`: `app.use(expressHandlers([verifier, verifier.receipts]))` also serves `/receipts/{provider}`.
   */
  readonly receipts: HttpHandler;
  /**
   * Takes receipts that do not arrive over HTTP: `smppSender({ onReceipt: (receipt) =>
   * verifier.settleReceipts([receipt]) })`.
   */
  settleReceipts(receipts: readonly Receipt[]): Promise<void>;
  /**
   * Returns the secrets that sign a customer's callbacks, as `whsec_<base64>`, for the customer to verify them with;
   * several during rotation.
   */
  webhookSecrets(customerUuid?: string): Promise<readonly string[]>;
  /** Delivers all callbacks that are due. For cron jobs and serverless functions, where no worker runs. */
  flush(): Promise<FlushReport>;
  /** Returns callbacks that were given up, newest first. `limit`: 1 to 10,000; default 1,000. */
  deadLetters(options?: { readonly limit?: number }): Promise<readonly DeadLetter[]>;
  /** Queues a given-up callback again, under the same webhook-id. Returns false if there is no such callback. */
  redeliver(letter: Pick<DeadLetter, "authentication_uuid" | "sequence"> & Partial<Pick<DeadLetter, "customer_uuid">>): Promise<boolean>;
  /**
   * Returns the state of the store and the number of waiting callbacks, for health pages. Writes nothing and never
   * rejects.
   */
  ping(options?: PingOptions): Promise<Ping>;
  /**
   * Finds what will not work or is not safe, and how to fix it; `npx phoneproof doctor ./verifier.js` prints it. Calls
   * the store, and carriers that offer a check that sends nothing. Never rejects.
   */
  diagnose(options?: DiagnoseOptions): Promise<readonly Finding[]>;
  /**
   * Returns this process's counters since it started, in Prometheus text format. Verifiers in one process count
   * separately. `docs/watching.md` lists them.
   */
  metrics(): string;
  /**
   * Handler for the same metrics, mounted like the verifier, where Prometheus can reach it and strangers cannot:
   * `app.use(expressHandlers(verifier.metricsHandler))` serves `GET /metrics`.
   */
  readonly metricsHandler: HttpHandler;
  /**
   * Waits up to `sendTimeout` for calls in progress, whose clients may be gone, and up to 5 s for callbacks. Then closes
   * the store and the sender if they need closing. Clients that you passed in stay open. Call it after the last request:
   * it does not reject later ones.
   */
  close(): Promise<void>;
  /** Returns the channels that requests may wish for: those of the sender. */
  channels(): Promise<readonly Channel[]>;
  /** Returns the customer that an API key belongs to, for a wire of your own. Rejects with `VerifierError` `forbidden`. */
  customerOf(apiKey: string | undefined): Promise<string>;
  /**
   * Handler for `/v1`, which adapters mount when they are given the verifier. A wire of your own starts from it:
   * `{ ...verifier.http, root: "/otp", handle }`.
   */
  readonly http: HttpHandler;
}

/**
 * Creates a verifier. Does no I/O. Throws `VerifierError` `invalid_options`; its message lists each invalid option and
 * its fix.
 */
export function createVerifier(options: VerifierOptions): Verifier {
  const { context, accounts, operations, customers, handle, handleReceipt, handleMetrics, diagnose, finish, settle, deliveryError } = compose(options);
  const { clock, logger, monitor, outbox, settings } = context;
  const handler = (root: string, answer: HttpHandler["handle"]): HttpHandler => ({
    root,
    handle: answer,
    clock,
    warn: (message) => logger.warn({}, message),
  });
  const http: HttpHandler = { ...handler("/v1", handle), ...(options.customers === undefined && { unmountable: noApiKeys }) };
  return {
    // Programs that mount by hand may take the handler's fields from the verifier.
    ...http,
    ...operations.direct,
    createAuthentication: (request, call) => operations.createAuthentication(request, call),
    retry: (request) => operations.retry(request),
    check: (request, call) => operations.check(request, call),
    ...(options.customers === undefined && { deliveryError }),
    lookup: (request) => operations.lookup(request),
    flush: () => outbox.flush(),
    async deadLetters(asked = {}) {
      requireObject(asked, "The options of deadLetters");
      return readDeadLetters(context, parseDeadLetters(asked).limit);
    },
    async redeliver(letter) {
      requireObject(letter, "What redeliver takes");
      const { customer_uuid = accounts.unnamed(), authentication_uuid, sequence } = letter;
      return outbox.redeliver(String(customer_uuid).toLowerCase(), String(authentication_uuid).toLowerCase(), sequence);
    },
    async webhookSecrets(customerUuid = accounts.unnamed()) {
      return accounts.webhookSecrets(parseWebhookSecrets({ customer_uuid: customerUuid }).customer_uuid);
    },
    verifications: operations.verifications,
    channels: async () => settings.channels,
    customerOf: async (apiKey) => (await accounts.byKey(apiKey)).customer,
    customers,
    http,
    receipts: handler("/receipts", handleReceipt),
    settleReceipts: (receipts) => settleForeign(context, receipts),
    ping: (asked) => ping(context, asked),
    diagnose,
    metrics: () => monitor.metrics.text(),
    metricsHandler: handler("/metrics", handleMetrics),
    async close() {
      await Promise.all([outbox.stop(), finish()]);
      await settle();
      // A router shares its last counts through the store.
      try {
        await options.sender.close?.();
      } finally {
        await options.store.close?.();
      }
    },
  };
}
