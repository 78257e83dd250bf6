import type { Conversion } from "../contract/conversion.js";
import type { CountryCode } from "../domain/countries.js";
import type { ListSource } from "../domain/lists.js";
import type { MessageText, Recipient, RegisteredText } from "../domain/message.js";
import type { PolicyOverride } from "../domain/policy.js";
import type { IpInfo } from "../domain/signals.js";
import type { SpamRule } from "../domain/spam.js";
import type { CallbackSender } from "../ports/callback-sender.js";
import type { Challenge } from "../ports/challenge.js";
import type { Clock } from "../ports/clock.js";
import type { Customer, Customers } from "../ports/customers.js";
import type { VerifierEvent } from "../ports/events.js";
import type { Logger } from "../ports/logger.js";
import type { LookupProvider } from "../ports/lookup-provider.js";
import type { ReceiptSource } from "../ports/receipts.js";
import type { SmsSender } from "../ports/sms-sender.js";
import type { Store } from "../ports/store.js";
import type { Telemetry } from "../ports/telemetry.js";

/** A customer in the configuration. */
export interface CustomerConfig extends Customer {
  /** One or more API keys, or `sha256:` and the 64 hexadecimal digits of their digest. See `generateApiKey()`. */
  readonly keys: readonly string[];
}

/**
 * A number that no message is sent to. Caps and the built-in spam rules do not count it; your own rules, lists,
 * cool-downs and the checks per authentication do. In one day, across all its authentications, it accepts up to sends
 * per day × checks wrong codes (50 by default); after that, its checks return `rate_limited`.
 */
export interface TestNumber {
  /** E.164 form. */
  readonly number: string;
  /** 4 to 10 digits. Default: random, and not shown anywhere. */
  readonly code?: string | undefined;
  /** Default `accepted`. `undeliverable`: accepted, then reported so; `slow`: no response within `sendTimeout`. */
  readonly outcome?: "accepted" | "rejected" | "undeliverable" | "slow" | undefined;
}

export interface MessageOptions {
  /**
   * Text with `{code}`, or by BCP 47 tag `{ default, fr: "…" }`, or a function.
   * Default `"Your verification code is {code}"`.
   */
  readonly text?: MessageText | undefined;
  /**
   * Selects the language, as a BCP 47 tag. `country` may be absent. If it throws, or returns no string, the text
   * `default` is sent, and the error is logged. Default: the language most spoken in the number's country.
   */
  readonly locale?: ((recipient: Recipient) => string | undefined) | undefined;
  /** SMS segments that a message may cost, 1 to 10. Default 1. */
  readonly maxSegments?: number | undefined;
  /** Domain of your web app for the last line `@domain #code` on WEB and IOS. Default: no such line. */
  readonly domain?: string | undefined;
  /** Texts registered with a country's operators, sent unchanged: `{ IN: { text, ids } }`. Default: none. */
  readonly registered?: { readonly [country in CountryCode]?: RegisteredText | undefined } | undefined;
}

export interface ListOptions {
  /** A number gets `blocked_number`, on retry `rate_limited`; address or device `spam_detected`. Wins over `safe`. */
  readonly block?: ListSource | undefined;
  /** Exempt from every spam rule, never from a cap. */
  readonly safe?: ListSource | undefined;
  /** Seconds after which a function is called again, up to a day. Default 30. */
  readonly refresh?: number | undefined;
}

export interface ReceiptOptions {
  /** Public address of this app up to the mount prefix, for example `https://api.example.com`. Signatures cover it. */
  readonly baseUrl: string;
  /** One per carrier, for example `twilioReceipts({ authToken })`. */
  readonly sources: readonly ReceiptSource[];
}

export interface CallbackOptions {
  /** Origins allowed in a `callback_url` although not https on the public internet, for development. Default: none. */
  readonly allowOrigins?: readonly string[] | undefined;
  /** Whether callbacks carry the whole phone number. Default false: masked. */
  readonly fullNumber?: boolean | undefined;
  /**
   * RSA private key in PEM form, 2048 bits or more: also signs callbacks of the form `prelude-v2` as that API does.
   * Default: they are signed like all others only.
   */
  readonly rsaPrivateKey?: string | undefined;
  /** Whether this process delivers callbacks. Default true. Set false if another process or `flush()` does. */
  readonly worker?: boolean | undefined;
  /** Seconds between two searches for due callbacks, up to a day. Default 5. */
  readonly pollInterval?: number | undefined;
  /** Callbacks posted at a time: `total`, default 128; `perHost`, up to `total`, default 16 or, if less, `total`. */
  readonly concurrency?: { readonly total?: number | undefined; readonly perHost?: number | undefined } | undefined;
  /**
   * Receives work that continues after a response, on platforms that stop the process or the request then: in Next.js
   * `after(() => work)`. Default on Cloudflare Workers: `waitUntil` of `cloudflare:workers`; elsewhere none.
   */
  readonly waitUntil?: ((work: Promise<unknown>) => void) | undefined;
  /** Posts to webhooks. Default: the built-in sender, which connects only to addresses on the public internet. */
  readonly sender?: CallbackSender | undefined;
}

/**
 * What `createVerifier` accepts. Durations are seconds. An option that is `undefined` counts as omitted, at every
 * level.
 */
export interface VerifierOptions {
  /**
   * Where authentications are stored: `memoryStore()`, `sqliteStore({ file })`, `postgresStore({ pool })`,
   * `redisStore({ client })`, `mongoStore({ db })`, or your own.
   */
  readonly store: Store;
  /** Hands messages to a carrier. */
  readonly sender: SmsSender;
  /**
   * At least 32 characters, the same in every process: `openssl rand -base64 32` makes one. With `NODE_ENV`
   * `production`, one that can be guessed is rejected. Codes are stored only as digests under it. While you rotate:
   * `[current, previous]`.
   */
  readonly secret: string | readonly [current: string, previous: string];
  /**
   * A key like `secret`, for hashes of numbers, devices, addresses and idempotency keys. Default: `secret`, whose
   * rotation resets the windows.
   */
  readonly pepper?: string | undefined;
  /** ISO 3166-1 alpha-2 codes of the countries allowed to receive messages, or `"all"`, which invites SMS fraud. */
  readonly countries: "all" | readonly CountryCode[];
  /**
   * Who may call over HTTP: a list, your own object that finds them, or `"store"`: those created by
   * `verifier.customers` and `phoneproof customers`. Default: one customer without an API key,
   * `00000000-0000-0000-0000-000000000000`, with `policy`; direct calls need not name it, and `/v1` cannot be mounted.
   */
  readonly customers?: readonly CustomerConfig[] | Customers | "store" | undefined;
  /** An online source for lookup, or `lookupChain([…])` of several. Default: the numbering plan alone. */
  readonly lookup?: LookupProvider | undefined;
  /**
   * Whether `confirm` reports that users entered the codes that `deliver` sent: `reported` within minutes, `late` within
   * 24 hours, or `unknown`. Default `unknown`, which requires a spend ceiling, because the spam rules then know less.
   */
  readonly conversion?: Conversion | undefined;
  /**
   * Keeps the code of a delivery, encrypted under `secret`, until it is delivered, confirmed or replaced, at most for the
   * router's `fallback.after` and a minute more, so that its message can fall back later than at once. Default false: nothing
   * stores such a code.
   */
  readonly keepCode?: boolean | undefined;
  /** Changes to the default policy. */
  readonly policy?: PolicyOverride | undefined;
  readonly message?: MessageOptions | undefined;
  /** How long create and retry wait for the carrier. Default 5, at most 600. */
  readonly sendTimeout?: number | undefined;
  /** How long all store calls of one request may take together. Default 2, at most 600. */
  readonly storeTimeout?: number | undefined;
  /** How long lookup waits for its provider. Default 2, at most 600. */
  readonly lookupTimeout?: number | undefined;
  /**
   * Whether create looks a number up before it sends, for up to `lookupTimeout`: lines that cannot receive codes are
   * then `invalid_line` even if the numbering plan does not show it, and a router with `network: "lookup"` knows the
   * network. If nothing is known by then, the message is sent all the same. Default false.
   */
  readonly lookupBeforeSend?: boolean | undefined;
  /** How far clocks of processes may differ; limits reach back twice that further. Default 5, at most 60. */
  readonly clockSkew?: number | undefined;
  /**
   * `"possible"` accepts numbers of a length that the country has, for ranges newer than the metadata. Their line type
   * is unknown, so codes are sent to all of them. Default `"valid"`.
   */
  readonly phoneValidation?: "valid" | "possible" | undefined;
  /**
   * Numbers in E.164 form, exempt from validity, `countries` and line types. A string gets real messages, under all caps
   * and spam rules. An object is never sent to and is exempt from them, for app review and tests: anyone who knows its
   * code passes.
   */
  readonly testNumbers?: readonly (string | TestNumber)[] | undefined;
  /** Numbers in E.164 form, or prefixes that end in `*`, that never receive a message. Default: none. */
  readonly blockedNumbers?: readonly string[] | undefined;
  /** What lookup returns where the plan does not separate fixed from mobile (NANP, Mexico). Default `"Unknown"`. */
  readonly ambiguousLineType?: "Unknown" | "Mobile" | undefined;
  /** Your own rules for `spam_detected`. Default: none. */
  readonly spamRules?: readonly SpamRule[] | undefined;
  /** The country and kind of an address, for the rule `signals`. Called on create with an `ip`, for up to 1 s. */
  readonly ipInfo?: ((ip: string) => IpInfo | undefined | Promise<IpInfo | undefined>) | undefined;
  /** Receives this process's events. Not awaited; errors are logged once per outage; synchronous work blocks it. */
  readonly onEvent?: ((event: VerifierEvent) => void | Promise<void>) | undefined;
  /** Receives spans and metrics: `openTelemetry()` of `phoneproof/otel`. `verifier.metrics()` works without it. */
  readonly telemetry?: Telemetry | undefined;
  /** What to block, and to exempt from spam rules. A list is read once; a function is called when first needed. */
  readonly lists?: ListOptions | undefined;
  /** Checks a create's `proof`: a valid one exempts from spam rules but `crowd`, never from caps. Default: ignored. */
  readonly challenge?: Challenge | undefined;
  /** Where carriers post delivery receipts. Default: nowhere. */
  readonly receipts?: ReceiptOptions | undefined;
  readonly callbacks?: CallbackOptions | undefined;
  /** How far `stats` reaches back: `keep`, up to a year, default 7,776,000 (90 days). `false`: nothing is counted. */
  readonly statistics?: false | { readonly keep?: number | undefined } | undefined;
  /** The page that `doc_url` links to, with `#` and the code. Default: this version's `docs/errors.md` on unpkg.com. */
  readonly docUrl?: string | undefined;
  /** Where the verifier logs. Default `console`, without `info`. */
  readonly logger?: Logger | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
}
