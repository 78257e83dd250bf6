import "reflect-metadata/lite";
import { container, type DependencyContainer, instanceCachingFactory } from "tsyringe";
import { guardedSender } from "./callbacks/guarded-sender.js";
import { leaseTime } from "./domain/delivery.js";
import { milliseconds } from "./domain/policy.js";
import { minute } from "./domain/time.js";
import { createAlarms } from "./observability/alarms.js";
import { createOutbox, type Outbox } from "./callbacks/outbox.js";
import { systemClock } from "./core/system-clock.js";
import { wholeMilliseconds } from "./core/whole-milliseconds.js";
import { createCodes } from "./core/keyring.js";
import { consoleLogger } from "./core/console-logger.js";
import { type CustomersOfStore, createCustomers } from "./access/customers/customers.js";
import { createCustomerRecords } from "./access/customers/records.js";
import { createSeals } from "./access/customers/seal.js";
import { type StoredCustomers, type StoredCustomersParts, storedCustomers } from "./access/customers/source.js";
import { type Accounts, configuredCustomers, createAccounts } from "./access/accounts.js";
import { createNumberFacts } from "./access/number-facts.js";
import { createLists } from "./access/lists.js";
import { type DiagnoseOptions, diagnose, type Finding } from "./operations/diagnose.js";
import { createEyes, type Eyes } from "./observability/monitor.js";
import { type Ping, type PingOptions, ping } from "./operations/ping.js";
import { tracedOperations, tracedSender, tracedStore } from "./observability/tracing.js";
import { createOperations, type Operations } from "./operations/operations.js";
import type { Parts } from "./core/parts.js";
import { agedCache } from "./core/aged-cache.js";
import { createRecords } from "./core/records/records.js";
import { createCountries } from "./messages/countries.js";
import { settleForeign } from "./messages/receipts.js";
import { soundLogger } from "./core/safe-logger.js";
import { createStatistics } from "./observability/statistics.js";
import { testOverridesOf } from "./core/test-overrides.js";
import { createHandler } from "./http/handle.js";
import type { HttpRequest, HttpResponse } from "./http/message.js";
import { createMetricsHandler } from "./http/metrics.js";
import { createReceiptHandler } from "./http/receipts.js";
import { type CustomerConfig, readOptions, type VerifierOptions } from "./options/options.js";
import type { Clock } from "./ports/clock.js";
import type { Customers } from "./ports/customers.js";
import type { Logger } from "./ports/logger.js";
import type { Receipt } from "./ports/receipts.js";

type Handle = (request: HttpRequest) => Promise<HttpResponse>;

/** The parts that a verifier shows. */
export interface Composed {
  readonly operations: Operations;
  readonly accounts: Accounts;
  readonly customers: CustomersOfStore;
  readonly outbox: Outbox;
  /** Tells the store what is counted in this process alone. */
  readonly settle: () => Promise<void>;
  readonly handle: Handle;
  readonly handleReceipt: Handle;
  readonly handleMetrics: Handle;
  readonly metrics: () => string;
  readonly ping: (options?: PingOptions) => Promise<Ping>;
  readonly diagnose: (options: DiagnoseOptions) => Promise<readonly Finding[]>;
  readonly settleReceipts: (receipts: readonly Receipt[]) => Promise<void>;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Tokens are private symbols: a string or class that a host registered globally can never stand in for one. */
const tokens = {
  kept: Symbol("kept"),
  source: Symbol("source"),
  customers: Symbol("customers"),
  accounts: Symbol("accounts"),
  eyes: Symbol("eyes"),
  parts: Symbol("parts"),
  operations: Symbol("operations"),
  handle: Symbol("handle"),
};

/** The only place that knows how the parts fit. One child container per verifier, resolved once. Throws `VerifierError` `invalid_options`. */
export function compose(options: VerifierOptions): Composed {
  const settings = readOptions(options);
  const logger = soundLogger(options.logger ?? consoleLogger);
  const clock = wholeMilliseconds(options.clock ?? systemClock());
  const overrides = testOverridesOf(options);
  const codes = createCodes(settings.secrets, settings.pepper);
  const inBackground = (work: Promise<unknown>) => {
    try {
      settings.waitUntil?.(work);
    } catch (err) {
      logger.warn({ err }, "callbacks.waitUntil failed; the work goes on without it");
    }
  };
  const scope = container.createChildContainer();
  const register = <T>(token: symbol, make: (inner: DependencyContainer) => T) => scope.register<T>(token, { useFactory: instanceCachingFactory(make) });

  const { telemetry } = options;
  const store = telemetry === undefined ? options.store : tracedStore(options.store, telemetry);
  const sender = telemetry === undefined ? options.sender : tracedSender(options.sender, telemetry);
  let waiting = () => 0;

  register<Eyes>(tokens.eyes, () => createEyes({ clock, logger, onEvent: settings.onEvent, waiting: () => waiting() }));
  register<StoredCustomersParts>(tokens.kept, (inner) => {
    return {
      settings,
      store,
      clock,
      logger,
      outage: inner.resolve<Eyes>(tokens.eyes).outages.store,
      inBackground,
      records: createCustomerRecords({ store, codes, clock }),
      seals: createSeals(settings.secrets),
    };
  });
  register<StoredCustomers>(tokens.source, (inner) => storedCustomers(inner.resolve(tokens.kept)));
  register<CustomersOfStore>(tokens.customers, (inner) => {
    const { forget } = inner.resolve<StoredCustomers>(tokens.source);
    const base = inner.resolve<StoredCustomersParts>(tokens.kept);
    return createCustomers({ ...base, codes, sender: options.sender, changed: forget, inUse: options.customers === "store" });
  });
  register<Accounts>(tokens.accounts, (inner) =>
    createAccounts(
      customersOf(options.customers, () => inner.resolve(tokens.source)),
      settings,
      clock,
      inner.resolve<Eyes>(tokens.eyes).outages.customers,
      overrides.unnamed,
    ),
  );
  register<Parts>(tokens.parts, (inner) => {
    const records = createRecords({
      store,
      codes,
      clock,
      logger,
      holdsEvents: settings.deliver ? leaseTime : undefined,
      lifetime: milliseconds(settings.policy.lifetime),
      fullNumber: settings.fullNumber,
    });
    const base = { settings, overrides, store, sender, lookup: options.lookup, clock, logger, codes, records, eyes: inner.resolve<Eyes>(tokens.eyes) };
    const alarms = createAlarms({ ...base, inBackground });
    const { webhookSecrets } = inner.resolve<Accounts>(tokens.accounts);
    return {
      ...base,
      inBackground,
      lists: createLists(base, inBackground),
      facts: createNumberFacts(base, inBackground),
      countries: createCountries({ ...base, alarms, inBackground, storeTimeout: settings.storeTimeout }),
      proven: agedCache(clock, 20_000, 5 * minute),
      statistics: createStatistics({ ...base, outage: base.eyes.outages.store, keptFor: settings.statisticsKept, storeTimeout: settings.storeTimeout }),
      alarms,
      outbox: createOutbox({ ...base, webhookSecrets, callbackSender: options.callbacks?.sender ?? guardedSender() }),
    };
  });
  register<Operations>(tokens.operations, (inner) => {
    const operations = createOperations(inner.resolve(tokens.parts), inner.resolve(tokens.accounts));
    return telemetry === undefined ? operations : tracedOperations(operations, telemetry);
  });
  register<Handle>(tokens.handle, (inner) =>
    createHandler({
      operations: inner.resolve(tokens.operations),
      accounts: inner.resolve(tokens.accounts),
      eyes: inner.resolve(tokens.eyes),
      clock,
      logger,
      docUrl: settings.docUrl,
    }),
  );
  const parts = scope.resolve<Parts>(tokens.parts);
  const { countries, outbox, records, statistics, eyes } = parts;
  const accounts = scope.resolve<Accounts>(tokens.accounts);
  waiting = () => outbox.waiting();
  telemetry?.metrics(() => eyes.metrics.readings());
  if (settings.deliver) outbox.start();
  const { receiptProviders = [] } = options.sender;
  if (settings.receiptBase === undefined && receiptProviders.length > 0)
    logger.warn(
      { providers: receiptProviders },
      "the carriers support delivery receipts, but none are configured: set receipts: { baseUrl, sources } and mount verifier.receipts, or give the sender receipts: false",
    );
  return {
    operations: scope.resolve(tokens.operations),
    accounts,
    customers: scope.resolve(tokens.customers),
    handle: scope.resolve(tokens.handle),
    handleReceipt: createReceiptHandler({ parts, sources: settings.receiptSources, base: settings.receiptBase ?? "" }),
    handleMetrics: createMetricsHandler(eyes.metrics, settings.docUrl),
    metrics: () => eyes.metrics.text(),
    ping: (asked) => ping(parts, asked),
    diagnose: (asked) => diagnose({ parts, accounts, sender: options.sender, customers: listedCustomers(options.customers) }, asked),
    settleReceipts: (receipts) => settleForeign(parts, receipts),
    outbox,
    async settle() {
      await records.written();
      await Promise.all([countries.close(), statistics.close()]);
    },
    logger,
    clock,
  };
}

function customersOf(customers: VerifierOptions["customers"], kept: () => Customers): Customers | undefined {
  if (customers === undefined) return undefined;
  if (customers === "store") return kept();
  return Array.isArray(customers) ? configuredCustomers(customers as readonly CustomerConfig[]) : (customers as Customers);
}

/** Those of the options; `undefined`: a source tells them. */
function listedCustomers(customers: VerifierOptions["customers"] = []): readonly CustomerConfig[] | undefined {
  return Array.isArray(customers) ? (customers as readonly CustomerConfig[]) : undefined;
}
