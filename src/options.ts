import * as z from "zod";
import { type MessageTemplate, type MessageText, type Recipient, templateFault } from "./domain/message.js";
import type { NumberRules } from "./domain/phone-number.js";
import { defaultPolicy, guessBudgetFault, type Policy, type PolicyOverride, withOverride } from "./domain/policy.js";
import type { SpamRule } from "./domain/spam.js";
import { VerifierError } from "./errors.js";
import type { CallbackSender } from "./ports/callback-sender.js";
import type { Clock } from "./ports/clock.js";
import type { Customer, Customers } from "./ports/customers.js";
import type { Logger } from "./ports/logger.js";
import type { LookupProvider } from "./ports/lookup-provider.js";
import type { ReceiptSource } from "./ports/receipts.js";
import type { SmsSender } from "./ports/sms-sender.js";
import type { Store } from "./ports/store.js";

/** A customer in the configuration. */
export interface CustomerConfig extends Customer {
  /** API keys, or their SHA-256 digests as `sha256:` and 64 hexadecimal digits. Several at once, so that one can be replaced without a gap. `generateApiKey()` makes one. */
  readonly keys: readonly string[];
}

/** A number that no message is ever sent to. */
export interface TestNumber {
  /** E.164 form. */
  readonly number: string;
  /** 4 to 10 digits. Default: drawn as always, and told to nobody. */
  readonly code?: string | undefined;
  /** What becomes of its messages; `undeliverable`: accepted, and then reported so; `slow`: no answer within `sendTimeout`. Default `accepted`. */
  readonly outcome?: "accepted" | "rejected" | "undeliverable" | "slow" | undefined;
}

/** What `createVerifier` takes. All durations are seconds. */
export interface VerifierOptions {
  /** Where authentications are kept: `memoryStore()`, `redisStore({ client })`, `mongoStore({ db })`, or your own. */
  readonly store: Store;
  /** Who takes the messages to a carrier. */
  readonly sender: SmsSender;
  /** At least 32 characters, the same in every process; codes are stored only as digests under it. While you rotate: `[current, previous]`. */
  readonly secret: string | readonly [current: string, previous: string];
  /** ISO 3166-1 alpha-2 codes of the countries that may get messages, or `"all"`. Mandatory: open countries are what SMS fraud lives on. */
  readonly countries: "all" | readonly string[];
  /** Who may call. */
  readonly customers: readonly CustomerConfig[] | Customers;
  /** An online source for lookup; default: the numbering plan alone. */
  readonly lookup?: LookupProvider | undefined;
  /** What differs from the default policy. */
  readonly policy?: PolicyOverride | undefined;
  readonly message?:
    | {
        /** Text with `{code}` in it; or one for each language, `{ default: "…", fr: "…" }`; or a function that answers the whole text. Default `"Your verification code is {code}"`. */
        readonly text?: MessageText | undefined;
        /** Which of the languages, as a BCP 47 tag. Default: the one most spoken in the number's country. */
        readonly locale?: ((recipient: Recipient) => string | undefined) | undefined;
        /** SMS segments that a message may cost. Default 1. */
        readonly maxSegments?: number | undefined;
        /** Domain of your web app for the last line `@domain #code` on WEB and IOS. Default: none. */
        readonly domain?: string | undefined;
      }
    | undefined;
  /** How long create and retry wait for the carrier. Default 5. */
  readonly sendTimeout?: number | undefined;
  /** How long all store calls of one request may take together. Default 2. */
  readonly storeTimeout?: number | undefined;
  /** How long lookup waits for its provider. Default 2. */
  readonly lookupTimeout?: number | undefined;
  /** How far the clocks of the processes that share a store may be off; limits reach back twice that further. Default 5. */
  readonly clockSkew?: number | undefined;
  /** `"possible"` accepts numbers of a length that the country has, for ranges newer than the metadata. Default `"valid"`. */
  readonly phoneValidation?: "valid" | "possible" | undefined;
  /**
   * Numbers in E.164 form that are exempt from validity and from `countries`. One with a fixed `code` or `outcome` is never sent to, for app review and end-to-end tests: whoever knows the code passes for its owner. Default none.
   */
  readonly testNumbers?: readonly (string | TestNumber)[] | undefined;
  /** Numbers in E.164 form, or prefixes that end in `*`, that never get a message. Default none. */
  readonly blockedNumbers?: readonly string[] | undefined;
  /** What lookup answers for numbers of plans that do not tell fixed from mobile (NANP, Mexico). Default `"Unknown"`. */
  readonly ambiguousLineType?: "Unknown" | "Mobile" | undefined;
  /** Your own rules for `spam_detected`. Default none. */
  readonly spamRules?: readonly SpamRule[] | undefined;
  /** Where carriers post delivery receipts. Default: nowhere. */
  readonly receipts?:
    | {
        /** Public address of this app up to the mount prefix, for example `https://api.example.com`; signatures are over the exact URL. */
        readonly baseUrl: string;
        /** One for each carrier, for example `twilioReceipts({ authToken })`. */
        readonly sources: readonly ReceiptSource[];
      }
    | undefined;
  readonly callbacks?:
    | {
        /** Origins that a `callback_url` may name although they are not https on the public internet, for development. Default none. */
        readonly allowOrigins?: readonly string[] | undefined;
        /** Whether callbacks carry the whole phone number. Default false: masked. */
        readonly fullNumber?: boolean | undefined;
        /** Whether this process delivers callbacks. Default true; false where another process or `flush()` does. */
        readonly worker?: boolean | undefined;
        /** Seconds between two looks for callbacks that are due. Default 5. */
        readonly pollInterval?: number | undefined;
        /** Called with the work that goes on after an answer, for platforms that stop a process then: `(work) => context.waitUntil(work)`, in Next.js `(work) => after(() => work)`. */
        readonly waitUntil?: ((work: Promise<unknown>) => void) | undefined;
        /** Who posts to webhooks. Default: our own, which connects to addresses on the public internet only. */
        readonly sender?: CallbackSender | undefined;
      }
    | undefined;
  /** Page whose error table `doc_url` points at. Default: the README. */
  readonly docUrl?: string | undefined;
  /** Where the verifier reports to. Default `console`, without `info`. */
  readonly logger?: Logger | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
}

/** Default of every option that is not part of the policy. */
export const defaultOptions = {
  message: { text: "Your verification code is {code}", maxSegments: 1 },
  sendTimeout: 5,
  storeTimeout: 2,
  lookupTimeout: 2,
  clockSkew: 5,
  callbacks: { fullNumber: false, worker: true, pollInterval: 5 },
  phoneValidation: "valid",
  ambiguousLineType: "Unknown",
  docUrl: "https://www.npmjs.com/package/phoneproof#errors",
} as const;

/** The options as the engine uses them: checked, defaults filled in, durations in milliseconds. */
export interface Settings {
  readonly secrets: readonly string[];
  readonly countries: "all" | ReadonlySet<string>;
  readonly policy: Policy;
  readonly message: MessageTemplate;
  readonly sendTimeout: number;
  readonly storeTimeout: number;
  readonly lookupTimeout: number;
  readonly clockSkew: number;
  readonly numberRules: NumberRules;
  /** By number; with `undefined` for those that are sent to. */
  readonly testNumbers: ReadonlyMap<string, TestNumber | undefined>;
  readonly blocked: (number: string) => boolean;
  readonly spamRules: readonly SpamRule[];
  /** Public address for receipts, without a slash at its end; `undefined`: none are taken. */
  readonly receiptBase: string | undefined;
  readonly receiptSources: readonly ReceiptSource[];
  readonly allowOrigins: readonly string[];
  readonly fullNumber: boolean;
  /** Whether this process delivers callbacks. */
  readonly deliver: boolean;
  readonly pollInterval: number;
  readonly waitUntil: ((work: Promise<unknown>) => void) | undefined;
  readonly docUrl: string;
}

/** The schemas, made when the first verifier is built: importing the library costs nothing for them. */
function makeSchemas() {
  const seconds = z.number("must be a number of seconds").positive("must be more than 0").max(31_536_000, "must be at most a year, in seconds");
  const secret = z.string("must be a string").min(32, "must have at least 32 characters; make one with: openssl rand -base64 32");
  const e164 = z.string("must be a string").regex(/^\+[1-9]\d{1,14}$/, "must be in E.164 form, for example +447700900123");

  const methods = (what: string, names: readonly string[]) =>
    z.custom<object>(
      (value) => typeof value === "object" && value !== null && names.every((name) => typeof (value as Record<string, unknown>)[name] === "function"),
      `must be ${what}: an object with the methods ${names.join(", ")}`,
    );

  const caps = z.array(
    z.strictObject({
      limit: z.int("must be a whole number").min(1, "must be 1 or more; switch a rule off with an empty list"),
      window: seconds,
    }),
    "must be a list of { limit, window } with the window in seconds",
  );

  const policyFields = z.strictObject({
    codeLength: z.int("must be a whole number").min(4, "must be 4 to 10").max(10, "must be 4 to 10"),
    lifetime: seconds,
    tombstone: seconds,
    checks: z.int("must be a whole number").min(1, "must be 1 or more: the check budget cannot be switched off"),
    retryCooldowns: z.array(z.number().min(0, "must be 0 or more seconds"), "must be a list of seconds").max(20, "must have at most 20 entries"),
    acceptPreviousCode: z.boolean("must be true or false"),
    maxGuessOdds: z.number("must be a number").positive("must be more than 0").max(1, "must be at most 1"),
    limits: z
      .strictObject({
        perNumber: caps.min(1, "must hold at least one cap: limits per number cannot be switched off"),
        perDevice: caps,
        numbersPerDevice: caps,
        perIp: caps,
        numbersPerIp: caps,
        perCustomer: caps,
        lookups: caps,
        spend: z.array(
          z.strictObject({
            amount: z.number("must be a number").positive("must be more than 0").max(1e9, "must be at most a thousand million"),
            per: z.enum(["hour", "day"], 'must be "hour" or "day"'),
          }),
          'must be a list of { amount, per }, with per "hour" or "day"',
        ),
      })
      .partial(),
  });

  /** What a customer or the options may change of the policy. */
  const PolicyOverrideSchema = policyFields.partial();

  const sha256 = /^sha256:[0-9a-f]{64}$/i;

  const CustomerConfigSchema = z.strictObject({
    customer_uuid: z.guid("must be a UUID"),
    keys: z
      .array(
        z
          .string("must be a string")
          .refine(
            (key) => sha256.test(key) || (key.length >= 32 && !key.startsWith("sha256:")),
            "must be an API key of at least 32 characters (generateApiKey() makes one), or sha256: and 64 hexadecimal digits",
          ),
      )
      .min(1, "must hold at least one API key"),
    policy: PolicyOverrideSchema.optional(),
    webhookSecrets: z
      .array(z.string("must be a string").regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, "must be whsec_ and 24 to 64 bytes in base64"), "must be a list")
      .min(1, "must hold at least one secret")
      .optional(),
  });

  const OptionsSchema = z.strictObject({
    store: methods("a store, for example memoryStore()", ["find", "compareAndSwap", "reserve", "count", "due", "get", "put"]),
    sender: methods("an SMS sender", ["send"]),
    secret: z.union(
      [secret, z.tuple([secret, secret])],
      "must be a string of at least 32 characters, or [current, previous]; make one with: openssl rand -base64 32",
    ),
    countries: z.union(
      [
        z.literal("all"),
        z
          .array(z.string("must be a string").regex(/^[A-Z]{2}$/, 'must be an ISO 3166-1 alpha-2 code in capitals, for example "FR"'))
          .min(1, "must name at least one country"),
      ],
      'must be "all" or a list of ISO 3166-1 alpha-2 codes, for example ["FR", "US"]: the countries that may get messages',
    ),
    customers: z.union(
      [z.array(CustomerConfigSchema).min(1, "must hold at least one customer"), methods("a customer source", ["findByKeyDigest", "find"])],
      "must be a list of { customer_uuid, keys, policy? }, or an object with the methods findByKeyDigest and find",
    ),
    lookup: methods("a lookup provider", ["lookup"]).optional(),
    policy: PolicyOverrideSchema.optional(),
    message: z
      .strictObject({
        text: z
          .union(
            [z.string(), z.record(z.string(), z.string("must be a string")), z.custom<MessageText>((value) => typeof value === "function")],
            "must be a string, a map from language to string, or a function",
          )
          .optional(),
        locale: z.custom<object>((value) => typeof value === "function", "must be a function").optional(),
        maxSegments: z.int("must be a whole number").min(1, "must be 1 to 10").max(10, "must be 1 to 10").optional(),
        domain: z
          .string()
          .regex(/^[a-z0-9.-]+$/, "must be a domain, for example example.com")
          .optional(),
      })
      .optional(),
    sendTimeout: seconds.optional(),
    storeTimeout: seconds.optional(),
    lookupTimeout: seconds.optional(),
    clockSkew: z.number("must be a number of seconds").min(0, "must be 0 or more").max(60, "must be at most 60").optional(),
    phoneValidation: z.enum(["valid", "possible"], 'must be "valid" or "possible"').optional(),
    testNumbers: z
      .array(
        z.union([
          e164,
          z.strictObject({
            number: e164,
            code: z
              .string("must be a string")
              .regex(/^\d{4,10}$/, "must be 4 to 10 digits")
              .optional(),
            outcome: z.enum(["accepted", "rejected", "undeliverable", "slow"], 'must be "accepted", "rejected", "undeliverable" or "slow"').optional(),
          }),
        ]),
        "must be a list of numbers",
      )
      .optional(),
    blockedNumbers: z
      .array(z.string("must be a string").regex(/^\+[1-9]\d{0,14}\*?$/, "must be in E.164 form, or a prefix that ends in *"), "must be a list of numbers")
      .optional(),
    ambiguousLineType: z.enum(["Unknown", "Mobile"], 'must be "Unknown" or "Mobile"').optional(),
    spamRules: z
      .array(
        methods("a spam rule", ["judge"]).refine((rule) => "name" in rule && typeof rule.name === "string", "must have a name"),
        "must be a list",
      )
      .optional(),
    receipts: z
      .strictObject({
        baseUrl: z.url({ protocol: /^https?$/, error: "must be the public address of this app, for example https://api.example.com" }),
        sources: z.array(
          methods("a receipt source", ["read"]).refine(
            (source) => "provider" in source && typeof source.provider === "string" && /^[a-z0-9-]+$/.test(source.provider),
            "must name its provider in lower-case letters",
          ),
          "must be a list",
        ),
      })
      .optional(),
    callbacks: z
      .strictObject({
        allowOrigins: z.array(
          z
            .string("must be a string")
            .refine((origin) => URL.canParse(origin) && new URL(origin).origin === origin, "must be an origin, for example http://localhost:3000"),
        ),
        fullNumber: z.boolean("must be true or false"),
        worker: z.boolean("must be true or false"),
        pollInterval: seconds,
        waitUntil: z.custom<object>((value) => typeof value === "function", "must be a function"),
        sender: methods("a callback sender", ["post"]),
      })
      .partial()
      .optional(),
    docUrl: z.string("must be a string").optional(),
    logger: methods("a logger", ["info", "warn", "error"]).optional(),
    clock: methods("a clock", ["now", "after"]).optional(),
  });

  return { OptionsSchema, PolicyOverrideSchema };
}

let made: ReturnType<typeof makeSchemas> | undefined;

function schemas(): ReturnType<typeof makeSchemas> {
  made ??= makeSchemas();
  return made;
}

/** Checks the options and fills in the defaults. Throws `VerifierError` `invalid_options`, which names each option's path and the mend. */
export function readOptions(options: VerifierOptions): Settings {
  const parsed = schemas().OptionsSchema.safeParse(options);
  if (!parsed.success) throw invalidOptions(parsed.error.issues.flatMap(leaves).map(({ path, message }) => `${path.join(".") || "options"} ${message}`));

  const policy = withOverride(defaultPolicy, options.policy);
  const message: MessageTemplate = { ...defaultOptions.message, ...withoutUndefined(options.message ?? {}) };
  const faults: string[] = [];
  const judgeOne = (path: string, one: Policy) => {
    judge(path, one, message, faults);
    const unpriced = one.limits.spend.length > 0 ? priceFault(options.sender) : undefined;
    if (unpriced !== undefined) faults.push(`${path}.limits.spend ${unpriced}`);
  };
  judgeOne("policy", policy);
  if (Array.isArray(options.customers)) {
    for (const [index, customer] of (options.customers as readonly CustomerConfig[]).entries()) {
      if (customer.policy !== undefined) judgeOne(`customers.${index}.policy`, withOverride(policy, customer.policy));
    }
  }
  if (faults.length > 0) throw invalidOptions(faults);

  const testNumbers = new Map<string, TestNumber | undefined>(
    (options.testNumbers ?? []).map((entry) => (typeof entry === "string" ? [entry, undefined] : [entry.number, entry])),
  );
  return {
    secrets: typeof options.secret === "string" ? [options.secret] : [...options.secret],
    countries: options.countries === "all" ? "all" : new Set(options.countries),
    policy,
    message,
    sendTimeout: (options.sendTimeout ?? defaultOptions.sendTimeout) * 1000,
    storeTimeout: (options.storeTimeout ?? defaultOptions.storeTimeout) * 1000,
    lookupTimeout: (options.lookupTimeout ?? defaultOptions.lookupTimeout) * 1000,
    clockSkew: (options.clockSkew ?? defaultOptions.clockSkew) * 1000,
    numberRules: {
      validation: options.phoneValidation ?? defaultOptions.phoneValidation,
      testNumbers,
      ambiguousLineType: options.ambiguousLineType ?? defaultOptions.ambiguousLineType,
    },
    testNumbers,
    blocked: blockList(options.blockedNumbers ?? []),
    spamRules: options.spamRules ?? [],
    receiptBase: options.receipts?.baseUrl.replace(/\/$/, ""),
    receiptSources: options.receipts?.sources ?? [],
    allowOrigins: options.callbacks?.allowOrigins ?? [],
    fullNumber: options.callbacks?.fullNumber ?? defaultOptions.callbacks.fullNumber,
    deliver: options.callbacks?.worker ?? defaultOptions.callbacks.worker,
    pollInterval: (options.callbacks?.pollInterval ?? defaultOptions.callbacks.pollInterval) * 1000,
    waitUntil: options.callbacks?.waitUntil,
    docUrl: options.docUrl ?? defaultOptions.docUrl,
  };
}

/** A customer's policy from a source that is asked at run time, held to the same rules as the configuration. Throws `VerifierError` `invalid_options`. */
export function readCustomerPolicy(settings: Settings, override: PolicyOverride): Policy {
  const parsed = schemas().PolicyOverrideSchema.safeParse(override);
  if (!parsed.success) throw invalidOptions(parsed.error.issues.map((issue) => `policy.${issue.path.join(".")} ${issue.message}`));
  const policy = withOverride(settings.policy, override);
  const faults: string[] = [];
  judge("policy", policy, settings.message, faults);
  if (faults.length > 0) throw invalidOptions(faults);
  return policy;
}

function judge(path: string, policy: Policy, message: MessageTemplate, faults: string[]): void {
  const guess = guessBudgetFault(policy);
  if (guess !== undefined) faults.push(`${path}: ${guess}`);
  const template = templateFault(message, policy.codeLength);
  if (template !== undefined) faults.push(`message.${template}`);
}

/** Why a spend ceiling cannot be kept with this sender, if it cannot. */
function priceFault({ plan, unpriced = [] }: SmsSender): string | undefined {
  if (plan === undefined)
    return "needs to know what a message costs: send through router({ routes: [{ name, sender, price }] }), or give the sender a method plan";
  return unpriced.length === 0 ? undefined : `needs a price for every message: set price of the router's ${unpriced.map((name) => `"${name}"`).join(", ")}`;
}

function withoutUndefined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

function invalidOptions(faults: readonly string[]): VerifierError {
  return new VerifierError("invalid_options", `phoneproof: ${faults.join("; ")}`);
}

interface Leaf {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** A union says which of its branches failed for the right reason: the one whose faults lie deeper than the union itself. */
function leaves(issue: z.core.$ZodIssue): Leaf[] {
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => ({ path: [...issue.path, key], message: "is not an option" }));
  if (issue.code !== "invalid_union") return [issue];
  const deeper = issue.errors.flat().filter((inner) => inner.path.length > 0 || inner.code === "too_small");
  if (deeper.length === 0) return [issue];
  return deeper.flatMap((inner) => leaves({ ...inner, path: [...issue.path, ...inner.path] } as z.core.$ZodIssue));
}

function blockList(entries: readonly string[]): (number: string) => boolean {
  const prefixes = entries.filter((entry) => entry.endsWith("*")).map((entry) => entry.slice(0, -1));
  const whole = new Set(entries);
  return (number) => whole.has(number) || prefixes.some((prefix) => number.startsWith(prefix));
}
