import * as z from "zod";
import { keyFormFault } from "./domain/api-key.js";
import { isHttp } from "./domain/callback-url.js";
import { type CountryCode, countryCodes, countryFault } from "./domain/countries.js";
import { type ListIndex, type ListQuestion, type ListSource, readList } from "./domain/lists.js";
import { languageFaults, type MessageTemplate, type MessageText, markFault, type Recipient, type RegisteredText, templateFault } from "./domain/message.js";
import { optionFaults, plainWords, told } from "./domain/option-faults.js";
import { canonicalNumber, type NumberRules } from "./domain/phone-number.js";
import {
  cooldownFault,
  defaultPolicy,
  defined,
  guessBudgetFault,
  lifetimeFault,
  milliseconds,
  type Policy,
  type PolicyOverride,
  withOverride,
} from "./domain/policy.js";
import { isGuessable, isPublished } from "./domain/secret.js";
import type { IpInfo } from "./domain/signals.js";
import { isCellRule, type SpamRule } from "./domain/spam.js";
import type { OwnCell } from "./domain/spam-rules.js";
import { soundPrice } from "./domain/spend.js";
import { isWebhookSecret, webhookSecretForm } from "./domain/webhook-secret.js";
import { VerifierError } from "./errors.js";
import type { CallbackSender } from "./ports/callback-sender.js";
import type { Challenge } from "./ports/challenge.js";
import type { Clock } from "./ports/clock.js";
import type { Customer, Customers } from "./ports/customers.js";
import type { VerifierEvent } from "./ports/events.js";
import type { Logger } from "./ports/logger.js";
import type { LookupProvider } from "./ports/lookup-provider.js";
import type { ReceiptSource } from "./ports/receipts.js";
import type { SmsSender } from "./ports/sms-sender.js";
import type { Store } from "./ports/store.js";
import type { Telemetry } from "./ports/telemetry.js";

/** A customer in the configuration. */
export interface CustomerConfig extends Customer {
  /** API keys, or their SHA-256 digests as `sha256:` and 64 hexadecimal digits. Several at once, so that one can be replaced without a gap. `generateApiKey()` makes one. */
  readonly keys: readonly string[];
}

/**
 * A number that no message is ever sent to. As nothing is sent, no cap and none of our spam rules hold it, and it counts for nobody's; your own rules that judge, lists, cool-downs and the checks of each authentication do.
 * Guesses stay limited as they are for any other number: within a day no more wrong codes are judged for it, over all its authentications, than sends per day × checks of the policy (50); then its checks answer `rate_limited`.
 */
export interface TestNumber {
  /** E.164 form. */
  readonly number: string;
  /** 4 to 10 digits. Default: drawn as always, and told to nobody. */
  readonly code?: string | undefined;
  /** What becomes of its messages; `undeliverable`: accepted, and then reported so; `slow`: no answer within `sendTimeout`. Default `accepted`. */
  readonly outcome?: "accepted" | "rejected" | "undeliverable" | "slow" | undefined;
}

/** What `createVerifier` takes. All durations are seconds. An option that is `undefined` counts as left out, on every level. */
export interface VerifierOptions {
  /** Where authentications are kept: `memoryStore()`, `redisStore({ client })`, `postgresStore({ pool })`, `mongoStore({ db })`, or your own. */
  readonly store: Store;
  /** Who takes the messages to a carrier. */
  readonly sender: SmsSender;
  /** At least 32 characters, the same in every process: `openssl rand -base64 32` makes one; with `NODE_ENV` `production` one that can be guessed is refused. Codes are stored only as digests under it. While you rotate: `[current, previous]`. */
  readonly secret: string | readonly [current: string, previous: string];
  /** At least 32 characters, the same in every process: the key under which windows are named after numbers, devices and addresses. Default: the current `secret`, and then a rotation starts the windows anew. */
  readonly pepper?: string | undefined;
  /** ISO 3166-1 alpha-2 codes of the countries that may get messages, or `"all"`. Mandatory: open countries are what SMS fraud lives on. */
  readonly countries: "all" | readonly CountryCode[];
  /**
   * Who may call over HTTP: a list, an object of yours that finds them, or `"store"`: those that `verifier.customers` and the command `phoneproof customers` keep in the store.
   * Left out: there is one customer, `00000000-0000-0000-0000-000000000000`, which direct calls need not name. It has no API key, so that `/v1` cannot be mounted; `policy` is its policy.
   */
  readonly customers?: readonly CustomerConfig[] | Customers | "store" | undefined;
  /** An online source for lookup, or `lookupChain([…])` of several; default: the numbering plan alone. */
  readonly lookup?: LookupProvider | undefined;
  /** What differs from the default policy. */
  readonly policy?: PolicyOverride | undefined;
  readonly message?:
    | {
        /** Text with `{code}` in it; or one for each language, `{ default: "…", fr: "…" }`, by BCP 47 tag in any case; or a function that answers the whole text. Default `"Your verification code is {code}"`. */
        readonly text?: MessageText | undefined;
        /** Which of the languages, as a BCP 47 tag. Default: the one most spoken in the number's country. */
        readonly locale?: ((recipient: Recipient) => string | undefined) | undefined;
        /** SMS segments that a message may cost. Default 1. */
        readonly maxSegments?: number | undefined;
        /** Domain of your web app for the last line `@domain #code` on WEB and IOS. Default: none. */
        readonly domain?: string | undefined;
        /** Texts that are registered with the operators of a country, for example India's DLT: `{ IN: { text, ids: { entity, template } } }`. Sent to the byte, whatever `text` says. Default: none. */
        readonly registered?: { readonly [country in CountryCode]?: RegisteredText | undefined } | undefined;
      }
    | undefined;
  /** How long create and retry wait for the carrier. Default 5, at most 600. */
  readonly sendTimeout?: number | undefined;
  /** How long all store calls of one request may take together. Default 2, at most 600. */
  readonly storeTimeout?: number | undefined;
  /** How long lookup waits for its provider. Default 2, at most 600. */
  readonly lookupTimeout?: number | undefined;
  /**
   * Whether create looks a number up before it sends: a kind of line that cannot receive codes is then `invalid_line` also where the numbering plan does not tell, and a router with `network: "lookup"` knows the network.
   * Waits for at most `lookupTimeout`; where nothing is known by then the message goes as without. Default false.
   */
  readonly lookupBeforeSend?: boolean | undefined;
  /** How far the clocks of the processes that share a store may be off; limits reach back twice that further. Default 5. */
  readonly clockSkew?: number | undefined;
  /** `"possible"` accepts numbers of a length that the country has, for ranges newer than the metadata. Default `"valid"`. */
  readonly phoneValidation?: "valid" | "possible" | undefined;
  /**
   * Numbers that are exempt from validity and from `countries`. One given as an object is never sent to, and exempt from caps and spam rules, for app review and end-to-end tests: whoever knows its code passes for its owner.
   * One given as a string, in E.164 form, gets real messages, which cost money: caps and spam rules hold it as any other. Default none.
   */
  readonly testNumbers?: readonly (string | TestNumber)[] | undefined;
  /** Numbers in E.164 form, or prefixes that end in `*`, that never get a message. Default none. */
  readonly blockedNumbers?: readonly string[] | undefined;
  /** What lookup answers for numbers of plans that do not tell fixed from mobile (NANP, Mexico). Default `"Unknown"`. */
  readonly ambiguousLineType?: "Unknown" | "Mobile" | undefined;
  /** Your own rules for `spam_detected`. Default none. */
  readonly spamRules?: readonly SpamRule[] | undefined;
  /** What you know of an address, for the rule `signals`: `{ country, kind }`. Asked on create with an `ip`, for at most 1 s. Default: nothing. */
  readonly ipInfo?: ((ip: string) => IpInfo | undefined | Promise<IpInfo | undefined>) | undefined;
  /** Told what happens, in this process: see `VerifierEvent`. Nobody waits for it, and what it throws or rejects with is logged, once for each outage; but while it works at a stretch, nothing else does. Default: nobody. */
  readonly onEvent?: ((event: VerifierEvent) => void | Promise<void>) | undefined;
  /** Where spans and metrics go: `openTelemetry()` of `phoneproof/otel`. Default: nowhere; `verifier.metrics()` tells the metrics all the same. */
  readonly telemetry?: Telemetry | undefined;
  /** Whom to refuse, and whom to let past the spam rules. A list that is given is read once; a function is asked when it is first needed, then beside requests. Default: nobody. */
  readonly lists?:
    | {
        /** A number on it is answered `blocked_number`, on retry `rate_limited`; an address or a device `spam_detected`. */
        readonly block?: ListSource | undefined;
        /** Past every spam rule, never past a cap; whoever is on both lists is blocked. */
        readonly safe?: ListSource | undefined;
        /** Seconds after which a function is asked anew, a day at most. Default 30. */
        readonly refresh?: number | undefined;
      }
    | undefined;
  /** Who checks the `proof` of a create, for example `turnstileChallenge({ secret })`: one that holds lets the request past the spam rules, but not past a cap, nor past the crowd rule. Default: nobody, and a proof changes nothing. */
  readonly challenge?: Challenge | undefined;
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
        /** Seconds between two looks for callbacks that are due, a day at most. Default 5. */
        readonly pollInterval?: number | undefined;
        /** How many callbacks this process posts at a time. */
        readonly concurrency?:
          | {
              /** In all. Default 128. */
              readonly total?: number | undefined;
              /** To one host; at most `total`. Default 16, or `total` where that is less. */
              readonly perHost?: number | undefined;
            }
          | undefined;
        /** Called with the work that goes on after an answer, for platforms that stop a process then: `(work) => context.waitUntil(work)`, in Next.js `(work) => after(() => work)`. */
        readonly waitUntil?: ((work: Promise<unknown>) => void) | undefined;
        /** Who posts to webhooks. Default: our own, which connects to addresses on the public internet only. */
        readonly sender?: CallbackSender | undefined;
      }
    | undefined;
  /** What `stats` tells is counted beside the requests, in batches; false: nothing is. */
  readonly statistics?:
    | false
    | {
        /** Seconds for which `stats` can be asked, a year at most. Default 7,776,000: 90 days. */
        readonly keep?: number | undefined;
      }
    | undefined;
  /** The page that `doc_url` points at, without an anchor: `#` and the fault's code are added. Default: the package's own `docs/errors.md`, by its version, on unpkg.com. */
  readonly docUrl?: string | undefined;
  /** Where the verifier reports to. Default `console`, without `info`. */
  readonly logger?: Logger | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
}

/** What `docUrl` is unless set: the page of this very version. */
export const defaultDocUrl = "https://unpkg.com/phoneproof@0.1.0/docs/errors.md";

/** What `message.text` is unless set, and what is sent when a function in its place fails. */
export const defaultText = "Your verification code is {code}";

/** What `sendTimeout` is unless set, in seconds. */
export const defaultSendTimeout = 5;

/** How long a key still works after another one took its place, unless said otherwise, in seconds. */
export const defaultKeyOverlap = 86_400;

/** The options as the engine uses them: checked, defaults filled in, durations (but those of `policy`) in whole milliseconds. */
export interface Settings {
  /** The current one first. */
  readonly secrets: readonly string[];
  /** `undefined`: the current secret. */
  readonly pepper: string | undefined;
  readonly countries: "all" | ReadonlySet<string>;
  readonly policy: Policy;
  readonly message: MessageTemplate;
  readonly sendTimeout: number;
  readonly storeTimeout: number;
  readonly lookupTimeout: number;
  readonly lookupBeforeSend: boolean;
  readonly clockSkew: number;
  readonly numberRules: NumberRules;
  /** By number; with `undefined` for those that are sent to. */
  readonly testNumbers: ReadonlyMap<string, TestNumber | undefined>;
  readonly blocked: (number: string) => boolean;
  readonly spamRules: readonly SpamRule[];
  /** Those of the rules that are cells as ours are. */
  readonly ownCells: readonly OwnCell[];
  readonly ipInfo: VerifierOptions["ipInfo"];
  readonly onEvent: VerifierOptions["onEvent"];
  /** `refresh` in milliseconds. */
  readonly lists: { readonly block: ListIndex | ListQuestion | undefined; readonly safe: ListIndex | ListQuestion | undefined; readonly refresh: number };
  readonly challenge: Challenge | undefined;
  /** Public address for receipts, without a slash at its end; `undefined`: none are taken. */
  readonly receiptBase: string | undefined;
  readonly receiptSources: readonly ReceiptSource[];
  readonly allowOrigins: readonly string[];
  readonly fullNumber: boolean;
  /** Whether this process delivers callbacks. */
  readonly deliver: boolean;
  readonly pollInterval: number;
  readonly callbackConcurrency: { readonly total: number; readonly perHost: number };
  readonly waitUntil: ((work: Promise<unknown>) => void) | undefined;
  /** Milliseconds; `undefined`: none are kept. */
  readonly statisticsKept: number | undefined;
  readonly docUrl: string;
}

/** The schemas, made when the first verifier is built: importing the library costs nothing for them. */
function makeSchemas() {
  const object = <Shape extends z.core.$ZodLooseShape>(shape: Shape, error = "must be an object") => z.strictObject(shape, error);
  const text = z.string("must be a string");
  const whole = z.int("must be a whole number");
  const flag = z.boolean("must be true or false");
  const callable = <F>() => z.custom<F>((value) => typeof value === "function", "must be a function");
  const e164 = text.regex(/^\+[1-9]\d{1,14}$/, "must be in E.164 form, for example +447700900123");

  const time = z.number("must be a number of seconds");
  const [year, tooLong] = [31_536_000, "must be at most a year, in seconds"];
  const some = time.min(0.001, "must be more than 0, by a millisecond at least");
  const seconds = some.max(year, tooLong);
  const secondsOrNone = time.min(0, "must be 0 or more").max(year, tooLong);
  const upTo = (most: number, words = String(most)) =>
    some.max(most, { error: ({ input }) => `is in seconds, and must be at most ${words}; say ${Number(input) / 1000} if you meant milliseconds` });
  const patience = upTo(600);
  const capWindow = upTo(31_622_400, "31622400, which are a year").superRefine(told(windowFault));
  const interval = some.max(86_400, "must be at most a day, in seconds").superRefine(told(intervalFault));
  /** Seconds in, milliseconds out. */
  const duration = (byDefault: number, schema = seconds) => schema.default(byDefault).transform(milliseconds);

  const orUnready = (mend: string) => ({ error: ({ input }: { readonly input?: unknown }) => mend + unreadyWords(input) });
  /** An object of the user's, passed on as it is. */
  const methods = <T extends object>(what: string, names: readonly (keyof T & string)[]) =>
    z.custom<T>(
      (value) => typeof value === "object" && value !== null && names.every((name) => typeof (value as T)[name] === "function"),
      orUnready(`must be ${what}: an object with the methods ${names.join(", ")}`),
    );

  const cap = (most: number, why: string) => ({
    limit: whole.min(1, "must be 1 or more; switch a rule off with an empty list").max(most, why),
    window: capWindow,
  });
  /** Two caps of one length would be counted in one place, twice. */
  const oncePerWindow = [
    (list: readonly { readonly window: number }[]) => new Set(list.map(({ window }) => window)).size === list.length,
    "must hold at most one cap for each window: keep the smaller limit",
  ] as const;
  const capsUpTo = (most: number, why: string) =>
    z.array(object(cap(most, why), "must be { limit, window }"), "must be a list of { limit, window } with the window in seconds").refine(...oncePerWindow);
  const most = "must be at most a thousand million";
  const caps = capsUpTo(1e9, most);
  const capsOnNumbers = capsUpTo(1000, "must be at most 1000: distinct numbers are counted member by member");
  const earned = whole.min(0, "must be 0 or more").max(1e6, "must be at most a million");
  const growingCaps = z
    .array(object({ ...cap(1e9, most), perVerified: earned.optional() }), "must be a list of { limit, window, perVerified? } with the window in seconds")
    .refine(...oncePerWindow);
  const spend = z
    .array(
      object({
        amount: z.number("must be a number").positive("must be more than 0").max(1e9, "must be at most a thousand million"),
        per: z.enum(["hour", "day"], 'must be "hour" or "day"'),
      }),
      'must be a list of { amount, per }, with per "hour" or "day"',
    )
    .refine((list) => new Set(list.map(({ per }) => per)).size === list.length, 'must hold at most one ceiling per "hour" and one per "day"');

  const mode = z.enum(["enforce", "shadow", "off"], 'must be "enforce", "shadow" or "off"');
  const allowance = z.number("must be a number").min(0, "must be 0 or more").max(1e9, most);
  const credit = { mode, seed: allowance, perVerified: earned };

  const PolicyChange = object({
    codeLength: whole.min(4, "must be 4 to 10").max(10, "must be 4 to 10"),
    lifetime: seconds,
    longLifetime: flag,
    tombstone: seconds,
    checks: whole.min(1, "must be 1 or more: the check budget cannot be switched off"),
    retryCooldowns: z.array(secondsOrNone, "must be a list of seconds").max(20, "must have at most 20 entries"),
    acceptPreviousCode: flag,
    maxGuessOdds: z.number("must be a number").positive("must be more than 0").max(1, "must be at most 1"),
    limits: object({
      perNumber: caps.min(1, "must hold at least one cap: limits per number cannot be switched off"),
      perDevice: caps,
      numbersPerDevice: capsOnNumbers,
      perIp: caps,
      numbersPerIp: capsOnNumbers,
      perCustomer: growingCaps,
      lookups: caps,
      spend,
    }).partial(),
    spam: object({
      range: object({
        mode,
        seeds: z.tuple([allowance, allowance, allowance], "must be three numbers: for ranges of 10,000, 100,000 and a million"),
        perVerified: earned,
        provenAt: allowance,
      }).partial(),
      crowd: object({ mode, messages: allowance, share: z.number("must be a number").min(0, "must be 0 to 1").max(1, "must be 0 to 1") }).partial(),
      country: object({ ...credit, provenAt: allowance }).partial(),
      newCountries: object({ ...credit, provenAt: allowance }).partial(),
      address: object(credit).partial(),
      strangeNetwork: object({ mode, base: allowance, factor: allowance }).partial(),
      signals: object({ mode }).partial(),
      trust: object({ open: allowance }).partial(),
    }).partial(),
  }).partial() satisfies z.ZodType<PolicyOverride>;

  const webhookSecrets = (faultOf: (secret: string) => string | undefined) =>
    z
      .array(text.trim().superRefine(told(faultOf)), "must be a list")
      .min(1, "must hold at least one secret; leave it out for those made of the verifier's own")
      .max(10, "must hold at most 10 secrets: each adds a signature to one header")
      .nullish();
  const customer = { customer_uuid: z.guid("must be a UUID").toLowerCase(), webhookSecrets: webhookSecrets(webhookSecretFault), suspended: flag.nullish() };
  /** What a source may answer; its policy is read apart, and once. A poor secret is no reason to keep its customer out. */
  const SourcedCustomer = z.object(
    { ...customer, webhookSecrets: webhookSecrets(webhookSecretFormFault), policy: z.unknown().optional() },
    "must be { customer_uuid, policy?, webhookSecrets? }",
  );

  const key = text.superRefine(told(keyFault));
  const ConfiguredCustomer = object({
    ...customer,
    keys: z.array(key, "must be a list of API keys").min(1, "must hold at least one API key"),
    policy: PolicyChange.nullish(),
  });

  const { customer_uuid } = customer;
  /** The last of the 64 KiB that a record has are for its keys. */
  const storedPolicy = PolicyChange.refine((policy) => JSON.stringify(policy).length <= 16_384, "must be at most 16 KiB as JSON");
  const name = text.regex(/^[^\p{C}]{1,128}$/u, "must be 1 to 128 printable characters").nullish();
  const key_id = text.regex(/^[0-9a-f]{16}$/, "must be 16 hexadecimal digits (see keys list)");
  const stored = { name, policy: storedPolicy.nullish(), webhookSecrets: customer.webhookSecrets };
  /** What calls of `verifier.customers` take. */
  const CustomerCalls = {
    create: object({
      ...stored,
      customer_uuid: customer_uuid.optional(),
      suspended: customer.suspended,
      keys: z.array(key, "must be a list of API keys").default([]),
    }),
    update: object({ ...stored, customer_uuid }),
    named: object({ customer_uuid }),
    list: object({ limit: whole.min(1, "must be 1 to 1000").max(1_000, "must be 1 to 1000").default(100), after: customer_uuid.optional() }),
    issue: object({ customer_uuid, name }),
    rotate: object({ customer_uuid, name, key_id: key_id.optional(), overlap: duration(defaultKeyOverlap, secondsOrNone) }),
    revoke: object({ customer_uuid, key_id }),
  };

  const country = text.superRefine(told(countryFault));
  const registeredText = object({
    text: text.superRefine(told((one) => markFault(one) ?? (one.includes("{code}") ? undefined : "must contain {code}"))),
    ids: object({ entity: text.min(1).optional(), template: text.min(1).optional() })
      .transform(defined)
      .default({}),
    autofill: flag.default(false),
  });
  const texts = z.record(z.string(), text.optional()).transform((byLanguage) => defined(byLanguage) as Record<string, string>);
  const testNumber = object({
    number: e164,
    code: text.regex(/^\d{4,10}$/, "must be 4 to 10 digits").optional(),
    outcome: z.enum(["accepted", "rejected", "undeliverable", "slow"], 'must be "accepted", "rejected", "undeliverable" or "slow"').optional(),
  });
  const spamRule = z.custom<SpamRule>(
    (value) => typeof value === "object" && value !== null && ("judge" in value || "cell" in value),
    "must be a spam rule: { name, judge } or { name, cell, seed }",
  );
  /** `depth`: of the path of a fault, what the option's own does not have. */
  const indexOf = (source: unknown, context: z.RefinementCtx, depth = 0): ListIndex => {
    const { index, faults, faulty } = readList(source);
    for (const { path, message } of faults) context.addIssue({ code: "custom", path: path.slice(depth), message });
    if (faulty > faults.length) context.addIssue({ code: "custom", message: `has ${faulty - faults.length} more entries at fault` });
    return index ?? z.NEVER;
  };
  const list = z.unknown().transform((source, context): ListIndex | ListQuestion => {
    if (typeof source === "function") return source as ListQuestion;
    return indexOf(source, context);
  });
  const receiptSource = methods<ReceiptSource>("a receipt source", ["read"]).refine(
    ({ provider }) => typeof provider === "string" && /^[a-z0-9-]+$/.test(provider),
    "must name its provider in lower-case letters",
  );
  const origin = text.refine(
    (one) => URL.canParse(one) && new URL(one).origin === one && isHttp(new URL(one).protocol),
    "must be an origin, for example http://localhost:3000",
  );

  const Options = object({
    store: methods<Store>("a store, for example memoryStore()", ["find", "commit", "members", "tally", "lease", "get", "put", "delete"]),
    sender: methods<SmsSender>("an SMS sender", ["send"]),
    secret: z
      .union([text, z.tuple([text, text])], "must be a string of at least 32 characters, or [current, previous]; make one with: openssl rand -base64 32")
      .superRefine((given, { addIssue }) => {
        for (const [at, one] of [given].flat().entries()) {
          const message = secretFault(one);
          if (message !== undefined) addIssue({ code: "custom", path: typeof given === "string" ? [] : [at], message });
        }
      })
      .transform((given) => [given].flat()),
    pepper: text.superRefine(told(secretFault)).optional(),
    countries: z.union(
      [z.literal("all"), z.array(country).min(1, "must name at least one country")],
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
    lookup: methods<LookupProvider>("a lookup provider", ["lookup"]).optional(),
    policy: PolicyChange.prefault({}).transform((change) => withOverride(defaultPolicy, change)),
    message: object({
      text: z
        .union([text, texts, callable<Extract<MessageText, (...of: never) => unknown>>()], "must be a string, a map from language to string, or a function")
        .superRefine((given, { addIssue }) => {
          const written = typeof given === "string" ? [{ path: [], one: given }] : Object.entries(given).map(([language, one]) => ({ path: [language], one }));
          for (const { path, one } of written) {
            const message = markFault(one);
            if (message !== undefined) addIssue({ code: "custom", path, message });
          }
        })
        .default(defaultText),
      locale: callable<NonNullable<MessageTemplate["locale"]>>().optional(),
      maxSegments: whole.min(1, "must be 1 to 10").max(10, "must be 1 to 10").default(1),
      domain: text.regex(/^[a-z0-9.-]+$/, "must be a domain, for example example.com").optional(),
      registered: z.record(country, registeredText).default({}),
    }).prefault({}),
    sendTimeout: duration(defaultSendTimeout, patience),
    storeTimeout: duration(2, patience),
    lookupTimeout: duration(2, patience),
    lookupBeforeSend: flag.default(false),
    clockSkew: duration(5, secondsOrNone.max(60, "must be at most 60")),
    phoneValidation: z.enum(["valid", "possible"], 'must be "valid" or "possible"').default("valid"),
    testNumbers: z
      .array(z.union([e164, testNumber], "must be a number in E.164 form, or { number, code?, outcome? }"), "must be a list of numbers")
      .default([]),
    blockedNumbers: z
      .array(z.unknown(), "must be a list of numbers")
      .default([])
      .transform((numbers, context) => indexOf({ numbers }, context, 1)),
    ambiguousLineType: z.enum(["Unknown", "Mobile"], 'must be "Unknown" or "Mobile"').default("Unknown"),
    spamRules: z
      .array(spamRule, "must be a list")
      .default([])
      .superRefine((rules, { addIssue }) => {
        for (const [at, rule] of rules.entries())
          for (const message of spamRuleFaults(rule, rules.slice(0, at))) addIssue({ code: "custom", path: [at], message });
      }),
    ipInfo: callable<NonNullable<VerifierOptions["ipInfo"]>>().optional(),
    onEvent: callable<NonNullable<VerifierOptions["onEvent"]>>().optional(),
    lists: object({
      block: list.optional(),
      safe: list.optional(),
      refresh: duration(30, interval),
    }).prefault({}),
    challenge: methods<Challenge>("a challenge, for example turnstileChallenge({ secret })", ["verify"]).optional(),
    receipts: object({
      baseUrl: z
        .url({ protocol: /^https?$/, error: "must be the public address of this app, for example https://api.example.com", abort: true })
        .superRefine(told(baseUrlFault)),
      sources: z.array(receiptSource, "must be a list"),
    }).optional(),
    callbacks: object({
      allowOrigins: z.array(origin, "must be a list of origins").default([]),
      fullNumber: flag.default(false),
      worker: flag.default(true),
      pollInterval: duration(5, interval),
      concurrency: object({ total: whole.min(1, "must be 1 or more").default(128), perHost: whole.min(1, "must be 1 or more").optional() })
        .refine(({ total, perHost = 1 }) => perHost <= total, {
          path: ["perHost"],
          error: ({ input }) => `must be at most total, ${(input as { total: number }).total}`,
        })
        .transform(({ total, perHost = Math.min(16, total) }) => ({ total, perHost }))
        .prefault({}),
      waitUntil: callable<(work: Promise<unknown>) => void>().optional(),
      sender: methods<CallbackSender>("a callback sender", ["post"]).optional(),
    }).prefault({}),
    statistics: z.union([z.literal(false), object({ keep: duration(90 * 86_400) })], "must be false, or { keep } in seconds").prefault({}),
    docUrl: text.superRefine(told(docUrlFault)).default(defaultDocUrl),
    telemetry: methods<Telemetry>("telemetry, for example openTelemetry()", ["step", "metrics"]).optional(),
    logger: methods<Logger>("a logger", ["info", "warn", "error"]).optional(),
    clock: methods<Clock>("a clock", ["now", "after"]).optional(),
  });

  return { Options, PolicyChange, SourcedCustomer, CustomerCalls };
}

/** Thousands of seconds that are no half-hours are nobody's interval. */
function intervalFault(seconds: number): string | undefined {
  if (seconds % 1000 !== 0 || seconds % 1800 === 0) return undefined;
  return `is in seconds: ${seconds} of them are ${Math.round(seconds / 60)} minutes; say ${seconds / 1000} if you meant milliseconds`;
}

/** Above a month, windows are whole days. */
function windowFault(seconds: number): string | undefined {
  if (seconds <= 31 * 86_400 || seconds % 86_400 === 0) return undefined;
  return `is in seconds: ${seconds} of them are ${(seconds / 86_400).toFixed(1)} days; say ${seconds / 1000} if you meant milliseconds, or whole days`;
}

/** What a value is that would have to be called or awaited first. */
function unreadyWords(value: unknown): string {
  if (typeof value === "function") return "; it is a function: pass what that answers";
  return typeof value === "object" && value !== null && "then" in value ? "; it is a promise: await it" : "";
}

function secretFault(secret: string): string | undefined {
  const mend = "make one with: openssl rand -base64 32";
  return secret.length < 32 ? `must have at least 32 characters; ${mend}` : knownFault(secret, mend);
}

/** What is wrong with a secret that strangers know, or may guess. */
function knownFault(secret: string, mend: string): string | undefined {
  if (isPublished(secret)) return `stands in the documentation, where everybody reads it; ${mend}`;
  return isProduction() && isGuessable(secret) ? `can be guessed, and NODE_ENV is production; ${mend}` : undefined;
}

const webhookSecretMend = 'make one with: echo "whsec_$(openssl rand -base64 32)"';

function webhookSecretFormFault(secret: string): string | undefined {
  return isWebhookSecret(secret) ? undefined : `must be ${webhookSecretForm}; ${webhookSecretMend}`;
}

function webhookSecretFault(secret: string): string | undefined {
  return webhookSecretFormFault(secret) ?? knownFault(secret, webhookSecretMend);
}

function keyFault(key: string): string | undefined {
  if (isPublished(key)) return "stands in the documentation, where everybody reads it: generateApiKey() makes one";
  const fault = keyFormFault(key);
  if (fault !== undefined || key.startsWith("sha256:")) return fault;
  return isProduction() && isGuessable(key) ? "can be guessed, and NODE_ENV is production: generateApiKey() makes one that cannot" : undefined;
}

/** Carriers are told `baseUrl`, then a path and a query of ours, and sign these to the letter. */
function baseUrlFault(baseUrl: string): string | undefined {
  const part = /[?#]/.exec(baseUrl)?.[0];
  if (part !== undefined)
    return `must end with what stands before /receipts: it has a ${part === "?" ? "query" : "fragment"}, and carriers would post elsewhere`;
  return /\/receipts(?:\/[a-z0-9-]+)?\/?$/.test(new URL(baseUrl).pathname)
    ? "must end with what stands before /receipts, which is added: leave /receipts out"
    : undefined;
}

function docUrlFault(url: string): string | undefined {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    return "must be an absolute URL, for example https://docs.example.com/errors: callers open it from elsewhere";
  return url.includes("#") ? "must have no #: the fault's code is added" : undefined;
}

function isProduction(): boolean {
  return globalThis.process?.env.NODE_ENV === "production";
}

/** What is wrong with a rule of the caller's. */
function spamRuleFaults(rule: SpamRule, earlier: readonly SpamRule[]): string[] {
  const { name, mode } = rule as { name?: unknown; mode?: unknown };
  const faults: string[] = [];
  if (typeof name !== "string" || name === "") faults.push("must have a name");
  if (mode !== undefined && mode !== "enforce" && mode !== "shadow" && mode !== "off") faults.push('must have the mode "enforce", "shadow" or "off"');
  if (!isCellRule(rule)) return typeof rule.judge === "function" ? faults : [...faults, "must have a method judge or cell"];
  if (typeof rule.cell !== "function") faults.push("must have a method cell");
  if (!/^[\w-]{1,32}$/.test(String(name))) faults.push("must have a name of 1 to 32 letters, digits, _ or -: it stands in the names of sums");
  if (earlier.some((other) => other.name === name)) faults.push("has the name of another rule");
  for (const number of ["seed", "perVerified"] as const) {
    const value = rule[number];
    if (number === "perVerified" && value === undefined) continue;
    const isRight = typeof value === "number" && value >= 0 && (number === "seed" || Number.isInteger(value));
    if (!isRight) faults.push(`must have ${number}, a ${number === "seed" ? "number" : "whole number"} of 0 or more`);
  }
  return faults;
}

let made: ReturnType<typeof makeSchemas> | undefined;

function schemas(): ReturnType<typeof makeSchemas> {
  made ??= makeSchemas();
  return made;
}

/** Checks the options and fills in the defaults. Throws `VerifierError` `invalid_options`, which names each option's path and the mend. */
export function readOptions(options: VerifierOptions): Settings {
  if (options instanceof Promise) throw invalidOptions(["the options are a promise: await it, and make what they need before them"]);
  if (typeof options === "function") throw invalidOptions(["createVerifier takes the options themselves; lazyVerifier takes a function that answers them"]);
  const read = parse(schemas().Options, options);
  const { policy, message, customers, receipts, callbacks } = read;
  const policies: (readonly [path: string, policy: Policy])[] = [["policy", policy]];
  for (const [index, customer] of Array.isArray(customers) ? customers.entries() : [])
    if (customer.policy) policies.push([`customers.${index}.policy`, withOverride(policy, customer.policy)]);
  const faults = [
    ...policies.flatMap(([path, one]) => [
      ...policyFaults(path, one, message),
      ...spendFaults(path, one, read.sender),
      ...lookupPriceFaults(path, one, read.lookup),
    ]),
    ...languageFaults(message).map((fault) => `message.${fault}`),
    ...beforeSendFaults(read.lookupBeforeSend, read),
    ...reachFaults(read.countries, read.sender),
    ...sourceFaults(receipts?.sources, read.sender),
  ];
  if (faults.length > 0) throw invalidOptions(faults);

  const testNumbers = new Map(
    read.testNumbers.map((entry) => (typeof entry === "string" ? [canonicalNumber(entry), undefined] : [canonicalNumber(entry.number), entry])),
  );
  return {
    secrets: read.secret,
    pepper: read.pepper,
    countries: read.countries === "all" ? "all" : new Set(read.countries),
    policy,
    message,
    sendTimeout: read.sendTimeout,
    storeTimeout: read.storeTimeout,
    lookupTimeout: read.lookupTimeout,
    lookupBeforeSend: read.lookupBeforeSend,
    clockSkew: read.clockSkew,
    numberRules: { validation: read.phoneValidation, testNumbers, ambiguousLineType: read.ambiguousLineType },
    testNumbers,
    blocked: (number) => read.blockedNumbers.find({ number }) !== undefined,
    spamRules: read.spamRules,
    ownCells: read.spamRules.filter(isCellRule).map(({ name, seed, mode = "enforce", perVerified = 2 }) => ({ name, seed, mode, perVerified })),
    ipInfo: read.ipInfo,
    onEvent: read.onEvent,
    lists: { block: read.lists.block, safe: read.lists.safe, refresh: read.lists.refresh },
    challenge: read.challenge,
    receiptBase: receipts?.baseUrl.replace(/\/$/, ""),
    receiptSources: receipts?.sources ?? [],
    allowOrigins: callbacks.allowOrigins,
    fullNumber: callbacks.fullNumber,
    deliver: callbacks.worker,
    pollInterval: callbacks.pollInterval,
    callbackConcurrency: callbacks.concurrency,
    waitUntil: callbacks.waitUntil,
    statisticsKept: read.statistics === false ? undefined : read.statistics.keep,
    docUrl: read.docUrl,
  };
}

/** What a source answered for a customer, its UUID in lower case. Throws `VerifierError` `invalid_options` when it is no customer. */
export function readCustomer(answer: unknown): Customer {
  return parse(schemas().SourcedCustomer, answer, "customer") as Customer;
}

/** A customer's policy, held to the rules of the configuration. Throws `VerifierError` `invalid_options`. */
export function readCustomerPolicy(settings: Settings, change: unknown): Policy {
  const policy = withOverride(settings.policy, parse(schemas().PolicyChange, change, "policy"));
  const faults = policyFaults("policy", policy, settings.message);
  if (faults.length > 0) throw invalidOptions(faults);
  return policy;
}

type CustomerCalls = ReturnType<typeof makeSchemas>["CustomerCalls"];

/** What a call of `verifier.customers` was given, its policy held to the rules of the configuration. Throws `VerifierError` `bad_request`, whose message names every field at fault and the mend. */
export function readCustomerCall<Call extends keyof CustomerCalls>(
  settings: Settings,
  sender: SmsSender,
  call: Call,
  given: unknown,
): z.output<CustomerCalls[Call]> {
  const parsed = schemas().CustomerCalls[call].safeParse(given, { error: plainWords });
  if (!parsed.success) throw new VerifierError("bad_request", optionFaults(parsed.error, [], "the argument").join("; "));
  const { policy: change } = parsed.data as { readonly policy?: PolicyOverride | null };
  const policy = withOverride(settings.policy, change ?? {});
  const faults = change ? [...policyFaults("policy", policy, settings.message), ...spendFaults("policy", policy, sender)] : [];
  if (faults.length > 0) throw new VerifierError("bad_request", faults.join("; "));
  return parsed.data as z.output<CustomerCalls[Call]>;
}

function policyFaults(path: string, policy: Policy, message: MessageTemplate): string[] {
  const guess = guessBudgetFault(policy);
  const lifetime = lifetimeFault(policy);
  const cooldown = cooldownFault(policy);
  const template = templateFault(message, policy.codeLength);
  return [
    ...(guess === undefined ? [] : [`${path}: ${guess}`]),
    ...(lifetime === undefined ? [] : [`${path}.${lifetime}`]),
    ...(cooldown === undefined ? [] : [`${path}.${cooldown}`]),
    ...(template === undefined ? [] : [`message.${template}`]),
  ];
}

/** Countries that are allowed, and that the sender has nobody to send from in. */
function reachFaults(allowed: "all" | readonly string[], sender: SmsSender): string[] {
  const unreached = (allowed === "all" ? countryCodes : allowed).filter((country) => sender.reaches?.(country) === false);
  if (unreached.length === 0) return [];
  const named = `${unreached.slice(0, 5).join(", ")}${unreached.length > 5 ? ` and ${unreached.length - 5} more` : ""}`;
  return [
    `sender has nobody to send from in ${named}, which countries allows: add them, or a default, to the sender's option from; or take them out of countries`,
  ];
}

/** Senders whose receipts nobody would read, and providers that two sources claim. */
function sourceFaults(sources: readonly ReceiptSource[] | undefined, { receiptProviders = [] }: SmsSender): string[] {
  if (sources === undefined) return [];
  const providers = sources.map(({ provider }) => provider);
  const twice = providers.filter((provider, at) => providers.indexOf(provider) !== at);
  const unread = receiptProviders.filter((provider) => !providers.includes(provider));
  return [
    ...[...new Set(twice)].map((provider) => `receipts.sources has more than one source of ${provider}: give one of them all its secrets`),
    ...unread.map(
      (provider) =>
        `receipts.sources has none of ${provider}, whose receipts the sender asks for: add it (phoneproof/senders/${provider}), or give the sender receipts: false`,
    ),
  ];
}

/** Why a spend ceiling cannot be kept with this sender, if it cannot. */
function spendFaults(path: string, policy: Policy, { plan, unpriced = [] }: SmsSender): string[] {
  if (policy.limits.spend.length === 0 || (plan !== undefined && unpriced.length === 0)) return [];
  const mend =
    plan === undefined
      ? "needs to know what a message costs: send through router({ routes: [{ name, sender, price }] }), or give the sender a method plan"
      : `needs a price for every message: set price of the router's ${unpriced.map((name) => `"${name}"`).join(", ")}`;
  return [`${path}.limits.spend ${mend}`];
}

/** Without a price nothing can be held to a ceiling (docs/contract.md#lookup-ceiling): a lookup's, which counts towards it. */
function lookupPriceFaults(path: string, policy: Policy, lookup: LookupProvider | undefined): string[] {
  if (policy.limits.spend.length === 0 || lookup === undefined || soundPrice(lookup.price) !== undefined) return [];
  return [`${path}.limits.spend needs to know what a lookup costs: give lookup, or each provider of its chain, a price; 0 where it costs nothing`];
}

/** What looking up before the send needs, and who needs that. */
function beforeSendFaults(looks: boolean, { lookup, sender }: { readonly lookup?: LookupProvider | undefined; readonly sender: SmsSender }): string[] {
  if (looks) return lookup === undefined ? ["lookupBeforeSend needs the option lookup, for example twilioLookup({ accountSid, authToken })"] : [];
  if (sender.readsNetwork !== true) return [];
  return ['sender chooses routes by what a lookup knows (network: "lookup"): set lookupBeforeSend to true'];
}

function parse<S extends z.ZodType>(schema: S, value: unknown, ...root: readonly string[]): z.output<S> {
  const parsed = schema.safeParse(value, { error: plainWords });
  if (parsed.success) return parsed.data;
  throw invalidOptions(optionFaults(parsed.error, root, "options"));
}

function invalidOptions(faults: readonly string[]): VerifierError {
  return new VerifierError("invalid_options", `phoneproof: ${faults.join("; ")}`);
}
