import type { AuthenticationAnswer, CheckAnswer, RetryAnswer } from "../contract/direct.js";
import type { LookupResponse } from "../contract/lookup.js";
import { VerifierError } from "../errors.js";
import type { Settings } from "../options.js";
import { checkAuthentication } from "./check.js";
import { createAuthentication } from "./create.js";
import type { Account, Accounts } from "./door/account.js";
import { refuseMisspelt } from "./door/misspelt.js";
import { parseCheck, parseCreate, parseHistory, parseLookup, parseNumber, parseRetry, parseStats } from "./door/parse.js";
import { type Explanation, explainAuthentication } from "./explain.js";
import type { Operation } from "./eyes/eyes.js";
import { lookupNumber } from "./lookup.js";
import type { Parts } from "./parts.js";
import { type Erasure, eraseNumber } from "./privacy/erase.js";
import { type HistoryEntry, historyOf } from "./privacy/history.js";
import { type Unlocking, unlockNumber } from "./privacy/unlock.js";
import { retryAuthentication } from "./retry.js";
import type { Soon } from "./soon.js";
import type { Stats } from "./statistics.js";

export interface CallOptions {
  /** 1 to 255 printable ASCII characters: "the same key and body answer the same result without a second message or a second count" (docs/contract.md#idempotency). Read by create and check. */
  readonly idempotencyKey?: string | undefined;
}

/** The operations, for input that nobody has looked at yet. `caller`: the account of the request's API key; absent in direct calls, where `customer_uuid` alone tells who calls. */
export interface Operations {
  createAuthentication(input: unknown, options: CallOptions, caller?: Account): Promise<AuthenticationAnswer>;
  retry(input: unknown, options: CallOptions, caller?: Account): Promise<RetryAnswer>;
  check(input: unknown, options: CallOptions, caller?: Account): Promise<CheckAnswer>;
  lookup(input: unknown, options: CallOptions, caller?: Account): Promise<LookupResponse>;
  explain(input: unknown): Promise<Explanation>;
  history(input: unknown): Promise<readonly HistoryEntry[]>;
  erase(input: unknown): Promise<Erasure>;
  unlock(input: unknown): Promise<Unlocking>;
  stats(input: unknown): Promise<Stats>;
}

/** What operators ask in direct calls alone: it has no route. */
export type OperatorsOwn = "explain" | "history" | "erase" | "unlock" | "stats";

export function createOperations(parts: Parts, accounts: Accounts): Operations {
  /** "one that is not the key's customer `account_invalid`" (docs/contract.md#foreign-customer). */
  const admit = (customerUuid: string, caller: Account | undefined): Soon<Account> => {
    if (caller === undefined) return accounts.byUuid(customerUuid);
    if (caller.customer !== customerUuid) throw new VerifierError("account_invalid", "customer_uuid is not the customer that the API key belongs to.");
    return caller;
  };

  /** What a direct call says, its customer named. */
  const named = (input: unknown): unknown => {
    if (typeof input !== "object" || input === null) return input;
    refuseMisspelt(input);
    return (input as { customer_uuid?: unknown }).customer_uuid === undefined ? { ...input, customer_uuid: accounts.unnamed() } : input;
  };

  /** The request, whoever calls, and the operation, which begins at once where the caller is known. It counts its own faults under `name`; those before it are counted here. */
  const run = <Request extends { readonly customer_uuid: string }, R>(
    name: Operation | undefined,
    input: unknown,
    read: (input: unknown, settings: Settings) => Request,
    caller: Account | undefined,
    operation: (parts: Parts, account: Account, request: Request, idempotencyKey?: string) => Promise<R>,
    options: CallOptions = none,
  ): Promise<R> => {
    const failed = name === undefined ? rethrow : parts.eyes.failed[name];
    try {
      const request = read(caller === undefined ? named(input) : input, parts.settings);
      const account = admit(request.customer_uuid, caller);
      const key = keyIn(options);
      return account instanceof Promise ? later(account, operation, request, key, failed) : operation(parts, account, request, key);
    } catch (fault) {
      return rejected(failed, fault);
    }
  };

  /** Apart from `run`, as is `rejected`: functions in there would cost every request what they hold. */
  const later = <Request, R>(
    account: Promise<Account>,
    operation: (parts: Parts, account: Account, request: Request, idempotencyKey?: string) => Promise<R>,
    request: Request,
    key: string | undefined,
    failed: (fault: unknown) => never,
  ): Promise<R> => account.then((one) => operation(parts, one, request, key), failed);

  return {
    createAuthentication: (input, options, caller) => run("create", input, parseCreate, caller, createAuthentication, options),
    retry: (input, _options, caller) => run("retry", input, parseRetry, caller, retryAuthentication),
    check: (input, options, caller) => run("check", input, parseCheck, caller, checkAuthentication, options),
    lookup: (input, _options, caller) => run("lookup", input, parseLookup, caller, lookupNumber),
    explain: (input) => run(undefined, input, parseRetry, undefined, explainAuthentication),
    history: (input) => run(undefined, input, parseHistory, undefined, historyOf),
    erase: (input) => run(undefined, input, parseNumber, undefined, eraseNumber),
    unlock: (input) => run(undefined, input, parseNumber, undefined, unlockNumber),
    stats: (input) => run(undefined, input, parseStats, undefined, ({ statistics }, account, request) => statistics.read(account, request)),
  };
}

async function rejected(failed: (fault: unknown) => never, fault: unknown): Promise<never> {
  return failed(fault);
}

function rethrow(fault: unknown): never {
  throw fault;
}

const none: CallOptions = {};

function keyIn(options: CallOptions): string | undefined {
  for (const name in options) if (name !== "idempotencyKey") throw new VerifierError("bad_request", `${name} is not an option of a call: say idempotencyKey.`);
  const key = options.idempotencyKey;
  if (key === undefined || (typeof key === "string" && /^[\x20-\x7e]{1,255}$/.test(key))) return key;
  throw new VerifierError("bad_request", "The Idempotency-Key must be 1 to 255 printable ASCII characters.");
}
