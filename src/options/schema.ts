import * as z from "zod";
import { conversions } from "../contract/conversion.js";
import { isHttp } from "../domain/callback-url.js";
import { countryError } from "../domain/countries.js";
import { defined } from "../domain/defined.js";
import { type ListIndex, type ListQuestion, readList } from "../domain/lists.js";
import { type MessageTemplate, type MessageText, markError } from "../domain/message.js";
import { canonicalNumber, destinationErrors } from "../domain/phone-number.js";
import { defaultPolicy, withOverride } from "../domain/policy.js";
import { isCellRule, type SpamRule } from "../domain/spam.js";
import { defaultSpamPolicy } from "../domain/spam-policy.js";
import { parsePrice } from "../domain/spend.js";
import type { Customers } from "../ports/customers.js";
import { customerSchemas } from "./customers.js";
import { callable, checkedText, duration, flag, interval, methods, object, orUnready, secondsOrNone, secondsUpTo, text, whole, wholeIn } from "./fields.js";
import { checkedBy, checkedByEach } from "./option-errors.js";
import { policySchema } from "./policy.js";
import { privateKeyOf, rsaKeyError, secretProblem } from "./secret.js";
import type { CallbackOptions, ReceiptOptions, VerifierOptions } from "./types.js";

/** In seconds. */
export const defaultSendTimeout = 5;

/** The page of this version. */
export const defaultDocUrl = "https://unpkg.com/phoneproof@0.1.0/docs/errors.md";

/** Also sent when a function as `message.text` fails. */
export const defaultText = "Your verification code is {code}";

let made: ReturnType<typeof makeSchemas> | undefined;

/** The schemas, made when the first verifier is built: importing the library costs nothing for them. */
export function schemas() {
  made ??= makeSchemas();
  return made;
}

function makeSchemas() {
  const PolicyChange = policySchema();
  const { ConfiguredCustomer, ...customers } = customerSchemas(PolicyChange);
  return { Options: optionsSchema(PolicyChange, ConfiguredCustomer), PolicyChange, ...customers };
}

export type ValidOptions = z.output<ReturnType<typeof makeSchemas>["Options"]>;

function optionsSchema<Customer extends z.ZodType>(PolicyChange: ReturnType<typeof policySchema>, ConfiguredCustomer: Customer) {
  return object({
    store: methods<VerifierOptions["store"]>("a store, for example memoryStore()", ["find", "commit", "members", "tally", "lease", "get", "put", "delete"]),
    sender: methods<VerifierOptions["sender"]>("an SMS sender", ["send"]),
    secret: z
      .union(
        [text(), z.tuple([text(), text()], "must be [current, previous], or one secret without the list")],
        "must be a string of at least 32 characters, or [current, previous]; make one with: openssl rand -base64 32",
      )
      .superRefine(checkedByEach(secretProblem))
      .transform((given) => [given].flat()),
    pepper: checkedText(secretProblem).optional(),
    countries: z.union(
      [z.literal("all"), z.array(country()).min(1, "must name at least one country")],
      'must be "all" or a list of ISO 3166-1 alpha-2 codes, for example ["FR", "US"]: the countries that may get messages',
    ),
    customers: z
      .union(
        [
          z.array(ConfiguredCustomer).min(1, "must hold at least one customer; leave it out where only direct calls are made"),
          z.literal("store"),
          methods<Customers>("a customer source", ["findByKeyDigest", "find"]),
        ],
        orUnready('must be a list of { customer_uuid, keys, policy? }, or "store", or an object with the methods findByKeyDigest and find'),
      )
      .optional(),
    lookup: methods<VerifierOptions["lookup"]>("a lookup provider", ["lookup"])
      .refine(({ price }) => price === undefined || parsePrice(price) !== undefined, {
        path: ["price"],
        error: "must be a number from 0 to a thousand million: what one lookup costs, in the unit of policy.limits.spend",
      })
      .optional(),
    keepCode: flag().default(false),
    conversion: z.enum(conversions, 'must be "reported", "late" or "unknown"').optional(),
    policy: PolicyChange.prefault({}).transform((change) => withOverride(defaultPolicy, change)),
    message: messageSchema(),
    sendTimeout: duration(defaultSendTimeout, secondsUpTo(600)),
    storeTimeout: duration(2, secondsUpTo(600)),
    lookupTimeout: duration(2, secondsUpTo(600)),
    lookupBeforeSend: flag().default(false),
    clockSkew: duration(5, secondsOrNone().max(60, "must be at most 60")),
    phoneValidation: z.enum(["valid", "possible"], 'must be "valid" or "possible"').default("valid"),
    testNumbers: testNumbersSchema(),
    blockedNumbers: z
      .array(z.unknown(), "must be a list of numbers")
      .default([])
      .transform((numbers, context) => indexOf({ numbers }, context, 1)),
    ambiguousLineType: z.enum(["Unknown", "Mobile"], 'must be "Unknown" or "Mobile"').default("Unknown"),
    spamRules: spamRulesSchema(),
    ipInfo: callable<VerifierOptions["ipInfo"]>().optional(),
    onEvent: callable<VerifierOptions["onEvent"]>().optional(),
    lists: object({ block: list().optional(), safe: list().optional(), refresh: duration(30, interval()) }).prefault({}),
    challenge: methods<VerifierOptions["challenge"]>("a challenge, for example turnstileChallenge({ secret })", ["verify"]).optional(),
    receipts: receiptsSchema().optional(),
    callbacks: callbacksSchema().prefault({}),
    statistics: z.union([z.literal(false), object({ keep: duration(90 * 86_400) })], "must be false, or { keep } in seconds").prefault({}),
    docUrl: checkedText(docUrlError).default(defaultDocUrl),
    telemetry: methods<VerifierOptions["telemetry"]>("telemetry, for example openTelemetry()", ["step", "metrics"]).optional(),
    logger: methods<VerifierOptions["logger"]>("a logger", ["info", "warn", "error"]).optional(),
    clock: methods<VerifierOptions["clock"]>("a clock", ["now", "after"]).optional(),
  } satisfies Readonly<Record<keyof VerifierOptions, z.ZodType>>);
}

function docUrlError(url: string): string | undefined {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    return "must be an absolute URL, for example https://docs.example.com/errors: callers open it from elsewhere";
  return url.includes("#") ? "must not contain #: the error's code is added" : undefined;
}

const country = () => checkedText(countryError);

function messageSchema() {
  const texts = z.record(z.string(), text().optional()).transform((byLanguage) => defined(byLanguage) as Record<string, string>);
  const written = callable<Extract<MessageText, (...of: never) => unknown>>();
  const ids = object({ entity: text().min(1).optional(), template: text().min(1).optional() });
  const registered = object({
    text: checkedText((one) => markError(one) ?? (one.includes("{code}") ? undefined : "must contain {code}")),
    ids: ids.transform((byLanguage) => defined(byLanguage)).default({}),
    autofill: flag().default(false),
  });
  return object({
    text: z
      .union([text(), texts, written], "must be a string, a map from language to string, or a function")
      .superRefine(checkedByEach(markError))
      .default(defaultText),
    locale: callable<MessageTemplate["locale"]>().optional(),
    maxSegments: wholeIn(1, 10).default(1),
    domain: text()
      .regex(/^[a-z0-9.-]+$/, "must be a domain, for example example.com")
      .optional(),
    registered: z.record(country(), registered).default({}),
  }).prefault({});
}

function testNumbersSchema() {
  const e164 = text().regex(/^\+[1-9]\d{1,14}$/, "must be in E.164 form, for example +447700900123");
  const code = text().regex(/^\d{4,10}$/, "must be 4 to 10 digits");
  const outcome = z.enum(["accepted", "rejected", "undeliverable", "slow"], 'must be "accepted", "rejected", "undeliverable" or "slow"');
  const unsent = object({ number: e164, code: code.optional(), outcome: outcome.optional() });
  return z
    .array(z.union([e164, unsent], "must be a number in E.164 form, or { number, code?, outcome? }"), "must be a list of numbers")
    .default([])
    .superRefine((entries, { addIssue }) => {
      const seen = new Map<string, { readonly at: number; readonly treatment: string }>();
      for (const [at, entry] of entries.entries()) {
        const { number, code, outcome = "accepted" } = typeof entry === "string" ? { number: entry, outcome: "sent" } : entry;
        const [canonical, treatment] = [canonicalNumber(number), `${code} ${outcome}`];
        const first = seen.get(canonical) ?? { at, treatment };
        seen.set(canonical, first);
        const message = `is the number of testNumbers.${first.at} with another code or outcome: remove one of them`;
        if (first.treatment !== treatment) addIssue({ code: "custom", path: [at], message });
      }
    });
}

/** `depth`: how much of an entry's path the option itself does not have. */
function indexOf(source: unknown, context: z.RefinementCtx, depth = 0): ListIndex {
  const { index, problems, faulty } = readList(source);
  for (const { path, message } of problems) context.addIssue({ code: "custom", path: path.slice(depth), message });
  if (faulty > problems.length) context.addIssue({ code: "custom", message: `has ${faulty - problems.length} more invalid entries` });
  return index ?? z.NEVER;
}

const list = () => z.unknown().transform((source, context) => (typeof source === "function" ? (source as ListQuestion) : indexOf(source, context)));

function spamRulesSchema() {
  const rule = z.custom<SpamRule>(
    (value) => typeof value === "object" && value !== null && ("judge" in value || "cell" in value),
    "must be a spam rule: { name, judge } or { name, cell, seed }",
  );
  return z
    .array(rule, "must be a list")
    .default([])
    .superRefine((rules, { addIssue }) => {
      for (const [at, one] of rules.entries()) for (const message of spamRuleErrors(one, rules.slice(0, at))) addIssue({ code: "custom", path: [at], message });
    });
}

/** Names that `explain`, `phoneproof why` and the metrics show for built-in rules, caps, lists and errors. */
const builtInNames = new Set([
  ...Object.keys({ ...defaultPolicy.limits, ...defaultSpamPolicy }),
  ...destinationErrors,
  ...["guesses", "fallback", "blockList"],
]);

/** Caps and ranges are shown with a number: `perNumber 5/600s`. */
const isBuiltIn = (name: string) => builtInNames.has(name.replace(/ \d.*$/, ""));

function spamRuleErrors(rule: SpamRule, earlier: readonly SpamRule[]): string[] {
  const { name, mode } = rule as { name?: unknown; mode?: unknown };
  const problems: string[] = [];
  if (typeof name !== "string" || name === "") problems.push("must have a name");
  else if (isBuiltIn(name)) problems.push("has the name of a built-in rule: choose another name");
  if (mode !== undefined && mode !== "enforce" && mode !== "shadow" && mode !== "off") problems.push('must have the mode "enforce", "shadow" or "off"');
  if ("judge" in rule && "cell" in rule) return [...problems, "has both judge and cell: give either `judge` or `cell`"];
  if (!isCellRule(rule)) return typeof rule.judge === "function" ? problems : [...problems, "must have a method judge or cell"];
  const { cell, seed, perVerified = 0 } = rule;
  if (typeof cell !== "function") problems.push("must have a method cell");
  if (!/^[\w-]{1,32}$/.test(String(name))) problems.push("must have a name of 1 to 32 letters, digits, _ or -: it is part of the names of sums");
  if (earlier.some((other) => other.name === name)) problems.push("has the name of another rule");
  if (typeof seed !== "number" || !(seed >= 0)) problems.push("must have seed, a number of 0 or more");
  if (!Number.isInteger(perVerified) || perVerified < 0) problems.push("must have perVerified, a whole number of 0 or more");
  return problems;
}

function receiptsSchema() {
  const source = methods<ReceiptOptions["sources"][number]>("a receipt source", ["read"]).refine(
    ({ provider }) => typeof provider === "string" && /^[a-z0-9-]+$/.test(provider),
    "must name its provider in lower-case letters",
  );
  return object({
    baseUrl: z
      .url({ protocol: /^https?$/, error: "must be the public address of this app, for example https://api.example.com", abort: true })
      .superRefine(checkedBy(baseUrlError)),
    sources: z.array(source, "must be a list"),
  });
}

/** Carriers get `baseUrl` with a path and a query appended, and sign the exact URL. */
function baseUrlError(baseUrl: string): string | undefined {
  const part = /[?#]/.exec(baseUrl)?.[0];
  const wanted = "must end with the part before /receipts";
  if (part !== undefined) return `${wanted}: it has a ${part === "?" ? "query" : "fragment"}, and carriers would post elsewhere`;
  return /\/receipts(?:\/[a-z0-9-]+)?\/?$/.test(new URL(baseUrl).pathname) ? `${wanted}, which is added: leave /receipts out` : undefined;
}

function callbacksSchema() {
  const origin = text().refine(
    (one) => URL.canParse(one) && new URL(one).origin === one && isHttp(new URL(one).protocol),
    "must be an origin, for example http://localhost:3000",
  );
  const concurrency = object({ total: whole(1).default(128), perHost: whole(1).optional() })
    .refine(({ total, perHost = 1 }) => perHost <= total, {
      path: ["perHost"],
      error: ({ input }) => `must be at most total, ${(input as { total: number }).total}`,
    })
    .transform(({ total, perHost = Math.min(16, total) }) => ({ total, perHost }));
  return object({
    allowOrigins: z.array(origin, "must be a list of origins").default([]),
    fullNumber: flag().default(false),
    rsaPrivateKey: checkedText(rsaKeyError).transform(privateKeyOf).optional(),
    worker: flag().default(true),
    pollInterval: duration(5, interval()),
    concurrency: concurrency.prefault({}),
    waitUntil: callable<CallbackOptions["waitUntil"]>().optional(),
    sender: methods<CallbackOptions["sender"]>("a callback sender", ["post"]).optional(),
  });
}
