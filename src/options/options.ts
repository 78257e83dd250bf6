import type * as z from "zod";
import { canonicalNumber } from "../domain/phone-number.js";
import { type Policy, type PolicyOverride, withOverride } from "../domain/policy.js";
import { ignoreRejection, isPromise, synchronous } from "../domain/promises.js";
import { isCellRule } from "../domain/spam.js";
import { VerifierError } from "../errors.js";
import type { Customer } from "../ports/customers.js";
import { isVerifier } from "./fields.js";
import { invalidOptions, optionErrors, parse, plainWords } from "./option-errors.js";
import { policyErrors, ruleErrors, spendError } from "./rules.js";
import { schemas, type ValidOptions } from "./schema.js";
import type { CallbackOptions, VerifierOptions } from "./types.js";

/** The options, checked and with defaults. Durations, except those of `policy`, are milliseconds. */
export type Settings = Readonly<ReturnType<typeof settingsOf>>;

/** Fills in the defaults. Throws `invalid_options`, which names each option's path and the fix. */
export function readOptions(options: VerifierOptions): Settings {
  if (isPromise(options)) {
    ignoreRejection(options);
    throw invalidOptions(["the options are a promise: await it first; the function of lazyVerifier must return the options themselves"]);
  }
  if (typeof options === "function") throw invalidOptions(["createVerifier takes the options themselves; lazyVerifier takes a function that returns them"]);
  if (isVerifier(options))
    throw invalidOptions(["the options are a verifier: pass what it was made of; lazyVerifier takes a function that returns its options"]);
  const read = parse(schemas().Options, options);
  const problems = ruleErrors(read);
  if (problems.length > 0) throw invalidOptions(problems);
  return settingsOf(read);
}

/** The schema's output, without what `composition.ts` takes from the options as given. */
function settingsOf({ store, sender, customers, lookup, telemetry, logger, clock, ...read }: ValidOptions) {
  const { secret, phoneValidation: validation, ambiguousLineType, blockedNumbers, receipts, callbacks, statistics, ...same } = read;
  const { sender: post, worker: deliver, concurrency: callbackConcurrency, waitUntil = waitUntilOfWorkers(), ...delivery } = callbacks;
  const testNumbers = new Map(
    same.testNumbers.map((entry) => (typeof entry === "string" ? [canonicalNumber(entry), undefined] : [canonicalNumber(entry.number), entry])),
  );
  return {
    ...same,
    ...delivery,
    deliver,
    ...(waitUntil && { waitUntil }),
    callbackConcurrency,
    /** The current one first. */
    secrets: secret,
    countries: read.countries === "all" ? ("all" as const) : new Set<string>(read.countries),
    numberRules: { validation, testNumbers, ambiguousLineType },
    /** By number; `undefined` for those that get real messages. */
    testNumbers,
    blocked: (number: string) => blockedNumbers.find({ number }) !== undefined,
    /** Your own rules that are cells. */
    ownCells: same.spamRules.filter(isCellRule).map(({ name, seed, mode = "enforce", perVerified = 2 }) => ({ name, seed, mode, perVerified })),
    /** Of the sender. */
    channels: sender.channels ?? [sender.channel ?? ("sms" as const)],
    /** Why it can keep no spend ceiling; `undefined`: it can. */
    noCeiling: spendError(sender),
    callsFixedLines:
      sender.callsFixedLines && ((country: string | undefined) => synchronous("sender.callsFixedLines", sender.callsFixedLines?.(country)) === true),
    /** Without a slash at its end; `undefined`: receipts are not accepted. */
    receiptBase: receipts?.baseUrl.replace(/\/$/, ""),
    receiptSources: receipts?.sources ?? [],
    /** `undefined`: nothing is counted. */
    statisticsKept: statistics === false ? undefined : statistics.keep,
  };
}

/** A customer as a source returned it, its UUID in lower case. Throws `invalid_options` if it is invalid. */
export function readCustomer(answer: unknown): Customer {
  return parse(schemas().SourcedCustomer, answer, "customer") as Customer;
}

/** A customer's policy, under the rules of the configuration. Throws `invalid_options`. */
export function readCustomerPolicy(settings: Settings, change: unknown): Policy {
  const policy = withOverride(settings.policy, parse(schemas().PolicyChange, change, "policy"));
  const problems = policyErrors("policy", policy, settings.message, settings.noCeiling);
  if (problems.length > 0) throw invalidOptions(problems);
  return policy;
}

type CustomerCalls = ReturnType<typeof schemas>["CustomerCalls"];

/** The argument of a call of `verifier.customers`. Throws `bad_request`, which names each field and the fix. */
export function readCustomerCall<Call extends keyof CustomerCalls>(settings: Settings, call: Call, given: unknown): z.output<CustomerCalls[Call]> {
  const schema = schemas().CustomerCalls[call];
  const parsed = schema.safeParse(given, { error: plainWords });
  if (!parsed.success) throw new VerifierError("bad_request", optionErrors(parsed.error, schema, "the argument").join("; "));
  const { policy: change } = parsed.data as { readonly policy?: PolicyOverride | null };
  const problems = change ? policyErrors("policy", withOverride(settings.policy, change), settings.message, settings.noCeiling) : [];
  if (problems.length > 0) throw new VerifierError("bad_request", problems.join("; "));
  return parsed.data as z.output<CustomerCalls[Call]>;
}

/** Whether nothing is ever sent to a number: it costs nothing, and no cap or built-in spam rule applies. */
export function isTestNumber({ testNumbers }: Settings, number: string): boolean {
  return testNumbers.get(number) !== undefined;
}

/** Of Cloudflare Workers; elsewhere `undefined`. An import of its module would fail in every bundle for another platform. */
function waitUntilOfWorkers(): CallbackOptions["waitUntil"] {
  const module = globalThis.process?.getBuiltinModule?.("cloudflare:workers") as Pick<CallbackOptions, "waitUntil"> | undefined;
  return module?.waitUntil;
}
