import type { Accounts } from "../access/accounts.js";
import {
  parseCheck,
  parseConfirm,
  parseCreate,
  parseDeliver,
  parseHistory,
  parseLookup,
  parseNumber,
  parseRetry,
  parseStart,
  parseStats,
  parseTarget,
  parseVerificationCheck,
  refuseMisspelt,
  requireObject,
} from "../access/parse.js";
import type { VerificationOptions, Verifications } from "../contract/verification.js";
import { isSlot } from "../domain/ids.js";
import type { Account } from "../domain/policy.js";
import { unknownAuthentication, VerifierError } from "../errors.js";
import type { Operation } from "../observability/monitor.js";
import type { Settings } from "../options/options.js";
import type { Telemetry } from "../ports/telemetry.js";
import { check } from "./check.js";
import type { Context } from "./context.js";
import { create } from "./create.js";
import { confirm, deliver, unavailableDelivery } from "./deliver.js";
import { eraseNumber } from "./erase.js";
import { explain, historyOf } from "./explain.js";
import { lookup } from "./lookup.js";
import { countingRefusals, refusalsOf } from "./refusals.js";
import { retry } from "./retry.js";
import { unlockNumber } from "./unlock.js";
import { cancel, checkVerification, get, start } from "./verifications.js";

export interface CallOptions {
  /**
   * 1 to 255 printable ASCII characters: "the same key and body return the same result without a second message or a
   * second count" (docs/contract.md#idempotency). Read by create and check.
   */
  readonly idempotencyKey?: string | undefined;
}

const countedCreate = countingRefusals(create);
const countedStart = countingRefusals(start);

export type Operations = ReturnType<typeof createOperations>;

/**
 * The operations, for unchecked input. `caller`: the account of the request's API key; absent in direct calls, which
 * are identified by `customer_uuid` alone. What requests ask for is traced as steps, if there is `telemetry`.
 */
export function createOperations(context: Context, accounts: Accounts, telemetry?: Telemetry) {
  /** The input of a direct call, with its customer filled in. */
  const named = (input: unknown, hasKey: boolean): unknown => {
    if (typeof input !== "object" || input === null) return input;
    refuseMisspelt(input, hasKey);
    return (input as { customer_uuid?: unknown }).customer_uuid === undefined ? { ...input, customer_uuid: accounts.unnamed() } : input;
  };

  /** Parses the request, finds the account and runs the operation. With a `name`, the result is counted. */
  const perform = async <Request extends { readonly customer_uuid: string }, R>(
    name: Operation | undefined,
    input: unknown,
    parse: (input: unknown, settings: Settings) => Request,
    caller: Account | undefined,
    operation: (context: Context, account: Account, request: Request, idempotencyKey?: string) => Promise<R>,
    options: CallOptions = none,
    orSuspended = false,
  ): Promise<R> => {
    const { clock, monitor, settings } = context;
    try {
      const request = parse(caller === undefined ? named(input, name === "deliver") : input, settings);
      if ("authentication_uuid" in request && isSlot(String(request.authentication_uuid))) throw unknownAuthentication();
      // "one that is not the key's customer `account_invalid`" (docs/contract.md#foreign-customer).
      if (caller !== undefined && caller.customer !== request.customer_uuid)
        throw new VerifierError("account_invalid", "customer_uuid is not the customer that the API key belongs to.");
      const account = caller ?? (await accounts.byUuid(request.customer_uuid, orSuspended));
      const key = keyIn(options);
      const began = clock.now();
      const answer = await operation(context, account, request, key);
      if (name !== undefined) monitor.answered(name, statusOf(answer), began);
      return answer;
    } catch (error) {
      if (name !== undefined) monitor.failed(name, error);
      throw error;
    }
  };

  const underWay = new Set<Promise<unknown>>();

  const run: typeof perform = (...call) => {
    const [name] = call;
    const work = () => perform(...call);
    const result = telemetry === undefined || name === undefined ? work() : telemetry.step({ kind: "operation", name, facts: {} }, work, statusOf);
    underWay.add(result);
    const done = () => underWay.delete(result);
    result.then(done, done);
    return result;
  };

  const byNumber = <Request extends { readonly customer_uuid: string }, R>(
    name: Operation | undefined,
    input: unknown,
    parse: (input: unknown, settings: Settings) => Request,
    operation: (context: Context, account: Account, request: Request, options: VerificationOptions) => Promise<R>,
    options: VerificationOptions,
  ): Promise<R> => {
    const withOptions = (parts: Context, account: Account, request: Request) => operation(parts, account, request, optionsIn(options, request));
    return run(name, input, parse, undefined, withOptions, { idempotencyKey: options?.idempotencyKey });
  };

  /** What privacy law demands of an operator does not end when a customer is suspended. */
  const ofAnyCustomer = <Request extends { readonly customer_uuid: string }, R>(
    input: unknown,
    parse: (input: unknown, settings: Settings) => Request,
    operation: (context: Context, account: Account, request: Request) => Promise<R>,
  ): Promise<R> => run(undefined, input, parse, undefined, operation, none, true);

  const verifications: Verifications = {
    start: (input, options = {}) => byNumber("start", input, parseStart, countedStart, options),
    check: (input, options = {}) => byNumber("check", input, parseVerificationCheck, checkVerification, options),
    cancel: (input, options = {}) => byNumber(undefined, input, parseTarget, cancel, options),
    get: (input, options = {}) => byNumber(undefined, input, parseTarget, get, options),
  };

  return {
    verifications,
    /** Waits for the operations in progress; their callers may be gone. Never rejects. */
    finished: () => Promise.allSettled(underWay),
    createAuthentication: (input: unknown, options?: CallOptions, caller?: Account) => run("create", input, parseCreate, caller, countedCreate, options),
    retry: (input: unknown, _options?: CallOptions, caller?: Account) => run("retry", input, parseRetry, caller, retry),
    check: (input: unknown, options?: CallOptions, caller?: Account) => run("check", input, parseCheck, caller, check, options),
    lookup: (input: unknown, _options?: CallOptions, caller?: Account) => run("lookup", input, parseLookup, caller, lookup),
    /** Operations for direct calls only; they have no route. */
    direct: {
      deliver: (input: unknown) =>
        run("deliver", input, parseDeliver, undefined, deliver).catch((error: unknown) => {
          // The source of customers may fail too.
          if (error instanceof VerifierError && error.code === "unavailable") return unavailableDelivery();
          throw error;
        }),
      confirm: (input: unknown) => run("confirm", input, parseConfirm, undefined, confirm),
      explain: (input: unknown) => ofAnyCustomer(input, parseRetry, explain),
      history: (input: unknown) => ofAnyCustomer(input, parseHistory, historyOf),
      refusals: (input: unknown) => ofAnyCustomer(input, parseNumber, refusalsOf),
      erase: (input: unknown) => ofAnyCustomer(input, parseNumber, eraseNumber),
      unlock: (input: unknown) => run(undefined, input, parseNumber, undefined, unlockNumber),
      stats: (input: unknown) => run(undefined, input, parseStats, undefined, ({ statistics }, account, request) => statistics.read(account, request)),
    },
  };
}

/** What an operation is counted and traced under: its status, if any. */
function statusOf(answer: unknown): string {
  return (answer as { readonly status?: string }).status ?? "answered";
}

const none: CallOptions = {};

const verificationOptions: Readonly<Record<keyof VerificationOptions, true>> = { idempotencyKey: true, scope: true, usedUp: true, repeat: true };

function optionsIn(options: VerificationOptions, request: object): VerificationOptions {
  requireObject(options, "The options of a call");
  const { scope = "default", usedUp = "anew", repeat } = options;
  for (const name in options)
    if (!Object.hasOwn(verificationOptions, name))
      throw new VerifierError("bad_request", `${name} is not an option of this call; the options are ${Object.keys(verificationOptions).join(", ")}.`);
  if (typeof scope !== "string" || !/^[a-z0-9-]{1,32}$/.test(scope))
    throw new VerifierError("bad_request", "scope must be 1 to 32 characters of a-z, 0-9 and -.");
  if (usedUp !== "anew" && usedUp !== "wait") throw new VerifierError("bad_request", 'usedUp must be "anew" or "wait".');
  if (repeat !== undefined && (typeof repeat?.request !== "string" || typeof repeat.isRepeat !== "boolean"))
    throw new VerifierError("bad_request", "repeat must be { request: a string, isRepeat: true or false }.");
  // An id names one verification, in any scope: its `valid` could be mistaken for one of the given scope.
  const isById = "authentication_uuid" in request && request.authentication_uuid !== undefined;
  const unread = isById && (["scope", "usedUp"] as const).find((name) => options[name] !== undefined);
  if (unread) throw new VerifierError("bad_request", `${unread} has no effect on a call with authentication_uuid; leave one of them out.`);
  return options;
}

function keyIn(options: CallOptions): string | undefined {
  requireObject(options, "The options of a call");
  for (const name in options) if (name !== "idempotencyKey") throw new VerifierError("bad_request", `${name} is not an option of a call: use idempotencyKey.`);
  const key = options.idempotencyKey;
  if (key === undefined || (typeof key === "string" && /^[\x20-\x7e]{1,255}$/.test(key))) return key;
  throw new VerifierError("bad_request", "The Idempotency-Key must be 1 to 255 printable ASCII characters.");
}
