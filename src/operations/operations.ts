import type { Accounts } from "../access/accounts.js";
import { parseCheck, parseCreate, parseHistory, parseLookup, parseNumber, parseRetry, parseStats } from "../access/parse.js";
import { refuseMisspelt } from "../access/spelling.js";
import type { AuthenticationAnswer, CheckAnswer, RetryAnswer } from "../contract/direct.js";
import type { LookupResponse } from "../contract/lookup.js";
import type { Account } from "../domain/account.js";
import { VerifierError } from "../errors.js";
import type { Operation } from "../observability/monitor.js";
import type { Stats } from "../observability/statistics.js";
import type { Settings } from "../options/options.js";
import { check } from "./check.js";
import type { Context } from "./context.js";
import { create } from "./create.js";
import { type Erasure, eraseNumber } from "./erase.js";
import { type Explanation, explain } from "./explain.js";
import { type HistoryEntry, historyOf } from "./history.js";
import { lookup } from "./lookup.js";
import { retry } from "./retry.js";
import { type Unlocking, unlockNumber } from "./unlock.js";

export interface CallOptions {
  /**
   * 1 to 255 printable ASCII characters: "the same key and body answer the same result without a second message or a
   * second count" (docs/contract.md#idempotency). Read by create and check.
   */
  readonly idempotencyKey?: string | undefined;
}

/**
 * The operations, for unchecked input. `caller`: the account of the request's API key; absent in direct calls, which
 * are identified by `customer_uuid` alone.
 */
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

/** Operations for direct calls only; they have no route. */
export type OperatorsOwn = "explain" | "history" | "erase" | "unlock" | "stats";

export function createOperations(context: Context, accounts: Accounts): Operations {
  /** "one that is not the key's customer `account_invalid`" (docs/contract.md#foreign-customer). */
  const admit = async (customerUuid: string, caller: Account | undefined): Promise<Account> => {
    if (caller === undefined) return accounts.byUuid(customerUuid);
    if (caller.customer !== customerUuid) throw new VerifierError("account_invalid", "customer_uuid is not the customer that the API key belongs to.");
    return caller;
  };

  /** The input of a direct call, with its customer filled in. */
  const named = (input: unknown): unknown => {
    if (typeof input !== "object" || input === null) return input;
    refuseMisspelt(input);
    return (input as { customer_uuid?: unknown }).customer_uuid === undefined ? { ...input, customer_uuid: accounts.unnamed() } : input;
  };

  /** Parses the request, finds the account and runs the operation. With a `name`, the result is counted. */
  const run = async <Request extends { readonly customer_uuid: string }, R>(
    name: Operation | undefined,
    input: unknown,
    parse: (input: unknown, settings: Settings) => Request,
    caller: Account | undefined,
    operation: (context: Context, account: Account, request: Request, idempotencyKey?: string) => Promise<R>,
    options: CallOptions = none,
  ): Promise<R> => {
    const { clock, monitor, settings } = context;
    try {
      const request = parse(caller === undefined ? named(input) : input, settings);
      const account = await admit(request.customer_uuid, caller);
      const key = keyIn(options);
      const began = clock.now();
      const answer = await operation(context, account, request, key);
      if (name !== undefined) monitor.answered(name, statusOf(answer), began);
      return answer;
    } catch (fault) {
      if (name !== undefined) monitor.failed(name, fault);
      throw fault;
    }
  };

  return {
    createAuthentication: (input, options, caller) => run("create", input, parseCreate, caller, create, options),
    retry: (input, _options, caller) => run("retry", input, parseRetry, caller, retry),
    check: (input, options, caller) => run("check", input, parseCheck, caller, check, options),
    lookup: (input, _options, caller) => run("lookup", input, parseLookup, caller, lookup),
    explain: (input) => run(undefined, input, parseRetry, undefined, explain),
    history: (input) => run(undefined, input, parseHistory, undefined, historyOf),
    erase: (input) => run(undefined, input, parseNumber, undefined, eraseNumber),
    unlock: (input) => run(undefined, input, parseNumber, undefined, unlockNumber),
    stats: (input) => run(undefined, input, parseStats, undefined, ({ statistics }, account, request) => statistics.read(account, request)),
  };
}

/** The label that an operation is counted under: its status, if any. */
function statusOf(answer: unknown): string {
  return (answer as { readonly status?: string }).status ?? "answered";
}

const none: CallOptions = {};

function keyIn(options: CallOptions): string | undefined {
  for (const name in options) if (name !== "idempotencyKey") throw new VerifierError("bad_request", `${name} is not an option of a call: say idempotencyKey.`);
  const key = options.idempotencyKey;
  if (key === undefined || (typeof key === "string" && /^[\x20-\x7e]{1,255}$/.test(key))) return key;
  throw new VerifierError("bad_request", "The Idempotency-Key must be 1 to 255 printable ASCII characters.");
}
