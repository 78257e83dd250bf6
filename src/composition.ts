import "reflect-metadata/lite";
import { container, type DependencyContainer, instanceCachingFactory } from "tsyringe";
import { type Accounts, configuredCustomers, createAccounts } from "./access/accounts.js";
import { type CustomersOfStore, createCustomers } from "./access/customers/customers.js";
import { createCustomerRecords } from "./access/customers/records.js";
import { type StoredCustomers, type StoredCustomersParts, storedCustomers } from "./access/customers/source.js";
import { createLists } from "./access/lists.js";
import { createNumberFacts } from "./access/number-facts.js";
import { guardedSender } from "./callbacks/guarded-sender.js";
import { createOutbox, type Outbox } from "./callbacks/outbox.js";
import type { Conversion } from "./contract/conversion.js";
import { checkedStore } from "./core/checked-store.js";
import { checkedClock, systemClock } from "./core/clocks.js";
import { agedCache } from "./core/collections.js";
import type { Core } from "./core/core.js";
import { storeDeadline, withTimeout } from "./core/deadline.js";
import { createKeyring } from "./core/keyring.js";
import { consoleLogger, safeLogger } from "./core/loggers.js";
import { createRecords } from "./core/records/records.js";
import { createSeals } from "./core/seal.js";
import { testOverridesOf } from "./core/test-overrides.js";
import { throttledLogger } from "./core/throttled-logger.js";
import { hour, minute } from "./domain/time.js";
import { createHandler } from "./http/handle.js";
import { createMetricsHandler } from "./http/metrics.js";
import { createReceiptHandler } from "./http/receipts.js";
import { createCountries } from "./messages/countries.js";
import { createPast } from "./messages/past.js";
import { createAlarms } from "./observability/alarms.js";
import { createMonitor, type Monitor } from "./observability/monitor.js";
import type { Observed } from "./observability/observed.js";
import { createStatistics } from "./observability/statistics.js";
import { safeTelemetry, tracedSender, tracedStore } from "./observability/tracing.js";
import type { Context } from "./operations/context.js";
import { neededCeiling } from "./operations/deliver.js";
import { type DiagnoseOptions, diagnose } from "./operations/diagnose.js";
import { fallBack } from "./operations/fall-back.js";
import { createOperations } from "./operations/operations.js";
import { readOptions } from "./options/options.js";
import type { CustomerConfig, VerifierOptions } from "./options/types.js";
import type { Customers } from "./ports/customers.js";

/** Tokens are private symbols, so no string or class that a host registered globally can replace one. */
const tokens = {
  monitor: Symbol("monitor"),
  observed: Symbol("observed"),
  storedCustomers: Symbol("stored customers"),
  source: Symbol("source"),
  customers: Symbol("customers"),
  accounts: Symbol("accounts"),
  outbox: Symbol("outbox"),
  context: Symbol("context"),
};

/**
 * The only place that knows how the parts fit together. One child container per verifier, resolved once. Throws
 * `VerifierError` `invalid_options`.
 */
export function compose(options: VerifierOptions) {
  const settings = readOptions(options);
  const logger = safeLogger(options.logger ?? consoleLogger);
  const clock = options.clock === undefined ? systemClock() : checkedClock(options.clock);
  const throttledLog = throttledLogger(clock, logger);
  const telemetry = options.telemetry && safeTelemetry(options.telemetry, throttledLog);
  const keyring = createKeyring(settings.secrets, settings.pepper);
  const overrides = testOverridesOf(options);
  const checked = checkedStore(options.store);
  const store = telemetry === undefined ? checked : tracedStore(checked, telemetry);
  const sender = telemetry === undefined ? options.sender : tracedSender(options.sender, telemetry);
  const inBackground = (work: Promise<unknown>) => {
    const keepAlive = async () => settings.waitUntil?.(work);
    keepAlive().catch((err) => throttledLog.warn({ err }, "callbacks.waitUntil failed; the work continues without it"));
  };
  const scope = container.createChildContainer();
  const register = <T>(token: symbol, make: (inner: DependencyContainer) => T) => scope.register<T>(token, { useFactory: instanceCachingFactory(make) });

  register<Monitor>(tokens.monitor, (inner) =>
    createMonitor({ clock, logger, onEvent: settings.onEvent, waiting: () => inner.resolve<Outbox>(tokens.outbox).waiting() }),
  );
  register<Observed>(tokens.observed, (inner) => {
    const monitor = inner.resolve<Monitor>(tokens.monitor);
    const newDeadline = (within = settings.storeTimeout) => storeDeadline(clock, monitor.outages.store, Math.min(within, settings.storeTimeout));
    const parts = { settings, store, clock, logger, keyring, newDeadline, inBackground };
    const core: Core = { ...parts, overrides, records: createRecords(parts) };
    return { ...core, monitor, alarms: createAlarms({ ...core, monitor }), statistics: createStatistics(core) };
  });
  register<StoredCustomersParts>(tokens.storedCustomers, (inner) => {
    const observed = inner.resolve<Observed>(tokens.observed);
    return { ...observed, records: createCustomerRecords(observed), seals: createSeals(settings.secrets, "phoneproof: secrets of customers") };
  });
  register<StoredCustomers>(tokens.source, (inner) => storedCustomers(inner.resolve(tokens.storedCustomers)));
  register<CustomersOfStore>(tokens.customers, (inner) => {
    const { invalidate } = inner.resolve<StoredCustomers>(tokens.source);
    const parts = inner.resolve<StoredCustomersParts>(tokens.storedCustomers);
    return createCustomers({ ...parts, invalidate, inUse: options.customers === "store" });
  });
  register<Accounts>(tokens.accounts, (inner) =>
    createAccounts(
      customersOf(options.customers, () => inner.resolve(tokens.source)),
      settings,
      clock,
      inner.resolve<Monitor>(tokens.monitor).outages.customers,
      overrides.unnamed,
    ),
  );
  register<Outbox>(tokens.outbox, (inner) => {
    const accounts = inner.resolve<Accounts>(tokens.accounts);
    return createOutbox({
      ...inner.resolve<Observed>(tokens.observed),
      webhookSecrets: accounts.webhookSecrets,
      // All parts are made by the time that the worker has work.
      fallBack: (auth) => fallBack(inner.resolve<Context>(tokens.context), accounts, auth),
      callbackSender: options.callbacks?.sender ?? guardedSender(),
    });
  });
  register<Context>(tokens.context, (inner) => {
    const observed = inner.resolve<Observed>(tokens.observed);
    return {
      ...observed,
      lists: createLists(observed),
      facts: createNumberFacts(observed, options.lookup),
      proofs: agedCache(clock, 20_000, 5 * minute),
      sender,
      outbox: inner.resolve(tokens.outbox),
      countries: createCountries(observed),
      past: createPast(observed),
      learned: agedCache(clock, 20_000, 5 * minute),
      failedReceipts: agedCache(clock, 10_000, hour),
      underWay: new Map(),
      keptCodes: createSeals(settings.secrets, "phoneproof: codes of deliveries"),
    };
  });
  const context = scope.resolve<Context>(tokens.context);
  const { countries, outbox, past, records, statistics, monitor } = context;
  const accounts = scope.resolve<Accounts>(tokens.accounts);
  const operations = createOperations(context, accounts, telemetry);
  let closed = false;
  // Requests after `close` still count, but a gauge would stay at its last value.
  telemetry?.metrics(() => monitor.metrics.readings().filter(({ kind }) => kind === "counter" || !closed));
  if (settings.deliver) outbox.start();
  const { receiptProviders = [] } = options.sender;
  if (settings.receiptBase === undefined && receiptProviders.length > 0)
    logger.warn(
      { providers: receiptProviders },
      "the carriers support delivery receipts, but none are configured: set receipts: { baseUrl, sources } and mount verifier.receipts, or give the sender receipts: false",
    );
  return {
    context,
    accounts,
    operations,
    customers: scope.resolve<CustomersOfStore>(tokens.customers),
    handle: createHandler(context, accounts, operations),
    handleReceipt: createReceiptHandler(context),
    handleMetrics: createMetricsHandler(monitor.metrics, settings.docUrl),
    diagnose: (asked?: DiagnoseOptions) => diagnose({ context, accounts, sender: options.sender, customers: listedCustomers(options.customers) }, asked),
    /** Waits for operations in progress and messages that are being handed over, up to `sendTimeout`. */
    async finish() {
      const finished = async () => {
        await operations.finished();
        // Of deliveries that have returned.
        await Promise.all(context.underWay.values());
      };
      await withTimeout(clock, settings.sendTimeout, finished).catch(() => undefined);
    },
    /** Writes what only this process has counted to the store. */
    async settle() {
      closed = true;
      await records.written();
      await Promise.all([countries.close(), past.close(), statistics.close()]);
    },
    /** Why deliveries of this conversion would be rejected, under the policy of the options. */
    deliveryError: (conversion: Conversion = settings.conversion ?? "unknown") => neededCeiling(settings.policy, conversion),
  };
}

function customersOf(customers: VerifierOptions["customers"], kept: () => Customers): Customers | undefined {
  if (customers === undefined) return undefined;
  if (customers === "store") return kept();
  return Array.isArray(customers) ? configuredCustomers(customers as readonly CustomerConfig[]) : (customers as Customers);
}

/** The customers in the options; `undefined` if a source provides them. */
function listedCustomers(customers: VerifierOptions["customers"] = []): readonly CustomerConfig[] | undefined {
  return Array.isArray(customers) ? (customers as readonly CustomerConfig[]) : undefined;
}
