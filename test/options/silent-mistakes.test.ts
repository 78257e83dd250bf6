import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { plivoReceipts } from "../../adapters/sms/plivo.js";
import { twilioReceipts, twilioSender } from "../../adapters/sms/twilio.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { countryCodes } from "../../src/domain/countries.js";
import { createVerifier, VerifierError } from "../../src/index.js";
import { apiKeyOf } from "../../src/options/api-key.js";
import { readOptions } from "../../src/options/options.js";
import { router } from "../../src/routing/router.js";
import { errorOf, neededOptions, optionsError } from "../support/options.js";
import { logger, setUp } from "../support/verifier.js";

/** Mistakes that are easy to overlook: each is an error that names the path and the fix. */

const customer = (...keys: string[]) => ({ customers: [{ customer_uuid: "11111111-2222-3333-4444-555555555555", keys }] });
const digest = "0123456789abcdef".repeat(4);
const dollar = ["$", "{code}"].join("");
const [key, otherKey] = [7, 11].map((step) => apiKeyOf(Uint8Array.from({ length: 32 }, (_, at) => at * step))) as [string, string];
const twilio = (more: object = {}) => twilioSender({ accountSid: `AC${"0".repeat(32)}`, authToken: "token", from: "ACME", ...more });
const receipts = (more: object = {}) => ({ receipts: { baseUrl: "https://otp.example", sources: [twilioReceipts({ authToken: "token" })], ...more } });

describe("options that look right but are not", () => {
  it.each<[object, string]>([
    [{ failover: Promise.resolve({}) }, "router: failover is a promise: await it first"],
    [{ health: new Map() }, "router: health is a Map: make it a plain object"],
    [{ health: { tolerance: Promise.resolve({}) } }, "router: health.tolerance is a promise"],
    [{ routes: [Promise.resolve({})] }, "router: routes.0 is a promise"],
  ])("of the router: %o", (more, message) => {
    const sender = { send: async () => ({ outcome: "accepted" as const }) };
    expect(() => router({ routes: [{ name: "a", sender }], ...more })).toThrow(message);
  });

  it.each<[object, string]>([
    [{ countries: ["FR", "UK"] }, 'countries.1 must be an ISO 3166-1 alpha-2 code in capitals, for example "FR": for "UK" say "GB"'],
    [{ countries: ["EN"] }, 'for "EN" say "GB"'],
    [{ policy: Promise.resolve({ codeLength: 8 }) }, "policy is a promise: await it first"],
    [{ policy: { limits: new Map() } }, "policy.limits is a Map: make it a plain object"],
    [{ lists: Promise.resolve({}) }, "lists is a promise: await it first"],
    [{ callbacks: new Set() }, "callbacks is a Set"],
    [{ countries: ["EL"] }, 'for "EL" say "GR"'],
    [{ countries: ["USA"] }, 'for "USA" say "US"'],
    [{ countries: ["FRA"] }, 'for "FRA" say "FR"'],
    [{ countries: ["fr"] }, 'for "fr" say "FR"'],
    [
      { countries: ["XX"] },
      'countries.0 must be an ISO 3166-1 alpha-2 code in capitals, for example "FR", and of a country with numbers of its own, which "XX" is not',
    ],
    [
      { message: { registered: { UK: { text: "{code}" } } } },
      'message.registered.UK must be an ISO 3166-1 alpha-2 code in capitals, for example "FR": for "UK" say "GB"',
    ],
    [
      { policy: { lifetime: 600_000 } },
      "policy.lifetime is in seconds: 600000 of them are 6.9 days; say 600 if you meant milliseconds, or also set longLifetime: true",
    ],
    [
      { customers: [{ ...customer("k".repeat(40)).customers[0], policy: { lifetime: 300_000 } }] },
      "customers.0.policy.lifetime is in seconds: 300000 of them are 3.5 days; say 300",
    ],
    [{ sendTimeout: 5_000 }, "sendTimeout is in seconds, and must be at most 600; say 5 if you meant milliseconds"],
    [{ storeTimeout: 2_000 }, "storeTimeout is in seconds, and must be at most 600; say 2 if you meant milliseconds"],
    [{ lookupTimeout: 2_000 }, "lookupTimeout is in seconds, and must be at most 600; say 2 if you meant milliseconds"],
    [
      { callbacks: { pollInterval: 100_000 } },
      "callbacks.pollInterval must be at most a day, and is in seconds: 100000 of them are 28 hours; say 100 if you meant milliseconds",
    ],
    [{ callbacks: { pollInterval: 5_000 } }, "callbacks.pollInterval is in seconds: 5000 of them are 83 minutes; say 5 if you meant milliseconds"],
    [{ lists: { refresh: 30_000 } }, "lists.refresh is in seconds: 30000 of them are 500 minutes; say 30 if you meant milliseconds"],
    [
      { policy: { limits: { perDevice: [{ limit: 5, window: 3_600_000 }] } } },
      "policy.limits.perDevice.0.window is in seconds: 3600000 of them are 41.7 days; say 3600 if you meant milliseconds, or whole days",
    ],
    [
      { policy: { limits: { perCustomer: [{ limit: 5, window: 86_400_000, perVerified: 1 }] } } },
      "policy.limits.perCustomer.0.window is in seconds, and must be",
    ],
    [
      { policy: { retryCooldowns: [30_000, 60_000] } },
      "policy.retryCooldowns.0 is in seconds: after 30000 of them no retry is possible, since codes end after 600 (lifetime); say 30 if you meant milliseconds",
    ],
    [
      { policy: { retryCooldowns: [1000] }, customers: [{ ...customer("k".repeat(40)).customers[0], policy: { lifetime: 100 } }] },
      "customers.0.policy.retryCooldowns.0 is in seconds: after 1000 of them no retry is possible, since codes end after 100 (lifetime); say 1 if",
    ],
    [{ message: { text: "Your code is {{code}}" } }, "message.text has {{code}}, and phones would show the inner braces: say {code}"],
    [{ message: { text: `Code ${dollar}` } }, `message.text has ${dollar}, and phones would show the $: say {code}`],
    [{ message: { text: "Code %{code}" } }, "message.text has %{code}, and phones would show the %: say {code}"],
    [{ message: { text: "Code #{code}" } }, "message.text has #{code}, and phones would show the #: say {code}"],
    ...["1{code}", "{code}0", "{code}{code}"].map((text): [object, string] => [
      { message: { text } },
      "message.text must not have digits next to {code}, which would show another code",
    ]),
    [{ message: { text: "Code {code}\0" } }, "message.text must not contain the character U+0000"],
    [{ message: { text: "Code {code}}" } }, "message.text has {code}}, and phones would show the }: say {code}"],
    [{ message: { text: "{code} or { Code }" } }, "message.text has { Code }, which phones would show unchanged: say {code}"],
    [{ message: { text: "Code {otp}" } }, "message.text has {otp}, which phones would show unchanged: {code} is the only placeholder"],
    [{ message: { text: "{code}, for {{ minutes }} minutes" } }, "message.text has {{ minutes }}, which phones would show unchanged"],
    [{ message: { text: { default: "{code}", fr: "{code} pour {app.name}" } } }, "message.text.fr has {app.name}, which phones would show unchanged"],
    [
      { message: { registered: { IN: { text: "{code} or {#var#} is your OTP" } } } },
      "message.registered.IN.text has {#var#}, which phones would show unchanged",
    ],
    [{ message: { text: { default: "{code}", fr: "Code : {{code}}" } } }, "message.text.fr has {{code}}"],
    ...(
      [
        ["fra", "for French say fr"],
        ["French", "for French say fr"],
        ["tl", "for Filipino say fil"],
        ["iw", "for Hebrew say he"],
        ["GB", "for English say en"],
        ["jp", "for Japanese say ja"],
        ["BR", "for Portuguese say pt"],
        ["xq", "leave it out, or choose it by message.locale"],
        ["fr_FR", "for French say fr"],
        ["UK ", "for English say en"],
        ["français", "leave it out, or choose it by message.locale"],
      ] as const
    ).map(([key, fix]): [object, string] => [
      { message: { text: { default: "{code}", [key]: "{code}" } } },
      `message.text.${key} is not the BCP 47 tag of a language: ${fix}`,
    ]),
    [{ message: { text: { default: "{code}", fr: "{code}", FR: "{code}" } } }, "message.text.FR is for the same language as message.text.fr: leave one out"],
    [
      { message: { locale: () => "fr-FR", text: { default: "{code}", fr_FR: "{code}", "fr-fr": "{code}" } } },
      "text.fr-fr is for the same language as message.text.fr_FR",
    ],
    [{ message: { registered: { IN: { text: "{{code}} is your OTP" } } } }, "message.registered.IN.text has {{code}}"],
    ...["\n", "\r\n", " ", "\t", "\ufeff"].map((end): [object, string] => [
      customer(key + end),
      "customers.0.keys.0 has white space around it, which headers do not keep",
    ]),
    [customer(` ${key}`), "customers.0.keys.0 has white space around it, which headers do not keep: remove it, for example with .trim()"],
    [customer(`${key}\n${key}`), "customers.0.keys.0 must be of printable ASCII characters: it is sent in a header"],
    [customer(`${key}\0`), "customers.0.keys.0 must be of printable ASCII characters"],
    [customer(`clé ${"k".repeat(40)}`), "customers.0.keys.0 must be of printable ASCII characters"],
    ...['"', "'", "`"].map((quote): [object, string] => [customer(quote + key + quote), "customers.0.keys.0 has quotes around it"]),
    [customer(`Bearer ${key}`), "customers.0.keys.0 begins with Bearer: the header x-api-key contains only the key, so leave that out"],
    ...[`${key},${otherKey}`, `${key}, ${otherKey}`, `${key};${otherKey}`, `${key} ${otherKey}`, `${key},`, `sha256:${digest},sha256:${digest}`].map(
      (list): [object, string] => [customer(list), "customers.0.keys.0 is several keys in one string: give each key its own entry"],
    ),
    [customer("k".repeat(513)), "customers.0.keys.0 must be at most 512 characters"],
    ...[`SHA256:${digest}`, `Sha256:${digest}`, `sha-256:${digest}`, `sha256=${digest}`, `sha256:${digest}0`, `SHA2-256(stdin)= ${digest}`, `${digest}  -`].map(
      (form): [object, string] => [
        customer(form),
        "customers.0.keys.0 looks like a digest but would be used as a key: write sha256:, in small letters, and 64 hexadecimal digits",
      ],
    ),
    [customer(otherKey, key.slice(0, -1) + (key.endsWith("a") ? "b" : "a")), "customers.0.keys.1 is mistyped: its last six characters are a checksum"],
    [customer(digest), "customers.0.keys.0 is 64 hexadecimal digits: the digest of a key is written sha256: and these"],
    [
      { sender: twilio({ from: { FR: "ACME" } }), countries: ["FR", "GB"] },
      "sender has no source address for GB, which countries allows: add them, or a default",
    ],
    [
      { sender: twilio(), ...receipts({ sources: [] }) },
      "receipts.sources has none of twilio, whose receipts the sender asks for: add it (phoneproof/senders/twilio)",
    ],
    [
      receipts({ sources: ["a", "b"].map((authToken) => twilioReceipts({ authToken })) }),
      "receipts.sources has more than one source of twilio: give one of them all its secrets",
    ],
    [
      { customers: async () => [] },
      'customers must be a list of { customer_uuid, keys, policy? }, or "store", or an object with the methods findByKeyDigest and find; it is a function: pass what it returns',
    ],
    [{ store: memoryStore }, "store must be a store, for example memoryStore(): an object with the methods"],
    [{ sender: twilioSender }, "the method send; it is a function: pass what it returns"],
    [{ store: Promise.resolve(memoryStore()) }, "store must be a store, for example memoryStore(): an object with the methods"],
    [{ store: Promise.resolve(memoryStore()) }, "put, delete; it is a promise: await it"],
    [{ sender: Promise.resolve(twilio()) }, "sender must be an SMS sender: an object with the method send; it is a promise: await it"],
    [{ customers: Promise.resolve([]) }, "an object with the methods findByKeyDigest and find; it is a promise: await it"],
    ...[-1, Number.NaN, Number.POSITIVE_INFINITY, 2e9, "0.1", null].map((price): [object, string] => [
      { lookup: { lookup: async () => undefined, price } },
      "lookup.price must be a number from 0 to a thousand million: what one lookup costs, in the unit of policy.limits.spend",
    ]),
    [{ lookup: Promise.resolve({}) }, "lookup must be a lookup provider: an object with the method lookup; it is a promise: await it"],
    [
      receipts({ baseUrl: "https://otp.example/?tenant=1" }),
      "receipts.baseUrl must end with the part before /receipts: it has a query, and carriers would post elsewhere",
    ],
    [receipts({ baseUrl: "https://otp.example/#x" }), "receipts.baseUrl must end with the part before /receipts: it has a fragment"],
    [receipts({ baseUrl: "https://otp.example?" }), "it has a query"],
    ...["/receipts", "/receipts/", "/api/receipts", "/receipts/twilio", "/api/receipts/twilio/"].map((path): [object, string] => [
      receipts({ baseUrl: `https://otp.example${path}` }),
      "receipts.baseUrl must end with the part before /receipts, which is added: leave /receipts out",
    ]),
    ...["", "/errors", "docs.example.com/errors", "//docs.example.com/errors", "ftp://docs.example.com", "mailto:a@example.com", "https:docs", "https://"].map(
      (docUrl): [object, string] => [{ docUrl }, "docUrl must be an absolute URL, for example https://docs.example.com/errors: callers open it from elsewhere"],
    ),
    [receipts({ baseUrl: "otp.example" }), "receipts.baseUrl must be the public address of this app, for example https://api.example.com"],
  ])("%j", (options, words) => {
    expect(optionsError(options)).toContain(words);
  });

  it("a text that is too long is reported once for each length of code, also if customers have their own", () => {
    const customers = [key, otherKey].map((one, at) => ({ customer_uuid: `${at}1111111-2222-3333-4444-555555555555`, keys: [one], policy: { codeLength: 8 } }));
    const errorWith = (letters: number) => optionsError({ message: { text: `{code}${"a".repeat(letters)}` }, customers });
    const costs = (digits: number) => `message.text costs 2 SMS segments with a code of ${digits} digits`;
    expect(errorWith(140)).toContain(costs(8));
    expect(errorWith(140).split("message.text")).toHaveLength(2);
    expect(errorWith(155)).toContain(costs(6));
    expect(errorWith(155).split("message.text")).toHaveLength(3);
  });

  it("similar options that are valid are accepted", () => {
    expect(optionsError({ countries: countryCodes })).toBe("no error");
    expect(optionsError({ policy: { lifetime: 86_400 } })).toBe("no error");
    for (const lifetime of [1, 30, 60, 120]) expect(optionsError({ policy: { lifetime } })).toBe("no error");
    expect(optionsError({ policy: { lifetime: 60, retryCooldowns: [30, 60, 900] } })).toBe("no error");
    expect(optionsError({ policy: { limits: { perDevice: [{ limit: 5, window: 365 * 86_400 }] } } })).toBe("no error");
    for (const every of [0.2, 600, 900, 1_800, 3_600, 9_000, 36_000, 43_200, 86_400])
      expect(optionsError({ callbacks: { pollInterval: every }, lists: { refresh: every } })).toBe("no error");
    expect(optionsError({ policy: { lifetime: 600_000, longLifetime: true } })).toBe("no error");
    expect(optionsError({ policy: { longLifetime: true }, customers: [{ ...customer("k".repeat(40)).customers[0], policy: { lifetime: 600_000 } }] })).toBe(
      "no error",
    );
    const own = [
      key,
      `sha256:${digest}`,
      `sha256:${digest.toUpperCase()}`,
      `pp_${digest}`,
      "words of my own, which a header may well carry",
      `"${"k".repeat(40)}`,
    ];
    for (const one of own) expect(optionsError(customer(one))).toBe("no error");
    expect(optionsError(receipts({ baseUrl: "https://otp.example/api/" }))).toBe("no error");
    for (const baseUrl of ["https://receipts.example/sms-receipts", "http://receipts/"]) expect(optionsError(receipts({ baseUrl }))).toBe("no error");
    const everyone = Object.fromEntries(["default", "en", "FR", "fr-fr", "PT-br", "zh", "zh-Hant", "nb", "fil", "pap"].map((language) => [language, "{code}"]));
    expect(optionsError({ message: { text: everyone } })).toBe("no error");
    // Chosen by the locale of a request.
    const asked = Object.fromEntries(["default", "cy", "eu", "br", "fr-CA", "en-IN", "zh-Hans-CN"].map((language) => [language, "{code}"]));
    expect(optionsError({ message: { text: asked } })).toBe("no error");
    expect(optionsError({ message: { text: { ...everyone, nb: undefined, NO: "{code}" } } })).toBe("no error");
    expect(optionsError({ message: { text: { ...everyone, "es-ES": "{code}", eu: "{code}", klingon: "{code}" }, locale: () => "eu" } })).toBe("no error");
    for (const text of ["{code} {code}", "1{code}: {code}", "$ {code} (EUR)", "{code}\n\n@example.com #{code}", "{code} :-} {-:"])
      expect(optionsError({ message: { text } })).toBe("no error");
    for (const docUrl of ["https://docs.example.com/errors", "http://localhost:3000", "HTTPS://Docs.Example/?page=errors"])
      expect(optionsError({ docUrl })).toBe("no error");
    expect(optionsError(receipts({ sources: [twilioReceipts({ authToken: "a" }), plivoReceipts({ authToken: "b" })] }))).toBe("no error");
  });

  it.each<[() => unknown, string]>([
    [
      () => twilio({ from: { UK: "ACME" } }),
      'twilioSender: option from.UK must be an ISO 3166-1 alpha-2 code in capitals, for example "FR": for "UK" say "GB"; or "default"',
    ],
    [() => twilio({ extra: { UK: { a: "b" } } }), 'option extra.UK must be an ISO 3166-1 alpha-2 code in capitals, for example "FR": for "UK" say "GB"'],
    [
      () => router({ routes: [{ name: "a", sender: twilio(), countries: ["UK"] as never }] }),
      'router: routes.0.countries.0 must be an ISO 3166-1 alpha-2 code in capitals, for example "FR": for "UK" say "GB"',
    ],
    [
      () => router({ routes: [{ name: "a", sender: twilio(), price: { default: 1, USA: 2 } as never }] }),
      'router: routes.0.price.USA must be an ISO 3166-1 alpha-2 code in capitals, for example "FR": for "USA" say "US"; or "default"',
    ],
    [() => postgresStore(undefined as never), "postgresStore: the options are missing"],
    [() => postgresStore({}), "postgresStore: pass either `pool` or `query`, as in postgresStore({ pool: new Pool() })"],
    [() => postgresStore({ pool: Promise.resolve({}) as never }), "it is a promise: await it first"],
    [() => postgresStore({ pool: {} as never }), "postgresStore: option `pool` is not a pool of pg, postgres.js, PGlite, Neon or Vercel"],
    [() => postgresStore({ query: "select" as never }), "postgresStore: option `query` must be a function"],
    [() => postgresStore({ query: async () => [], schema: "No-Name" }), "postgresStore: option `schema` must be a lower-case letter"],
    [() => mongoStore(undefined as never), "mongoStore: option `db` is missing: pass `client.db()`, as in mongoStore({ db: client.db() })"],
    [() => mongoStore({ db: Promise.resolve({}) as never }), "mongoStore: option `db` is a promise: await it first"],
    [() => mongoStore({ db: {} as never }), "mongoStore: option `db` is not a Db of the mongodb driver; pass `client.db()`"],
    [
      () => readOptions((() => neededOptions) as never),
      "phoneproof: createVerifier takes the options themselves; lazyVerifier takes a function that returns them",
    ],
    [() => redisStore(undefined as never), "redisStore: option `client` is missing: call redisStore({ client })"],
    [() => redisStore({} as never), "redisStore: option `client`"],
    [
      () => redisStore({ client: async () => "", perfix: "a" } as never),
      "redisStore: option perfix is not an option. Remove it or fix its spelling; there are: client, prefix, cluster, shards.",
    ],
    [() => memoryStore({ nmae: "a" } as never), "memoryStore: option nmae is not an option"],
    [() => memoryStore("a" as never), "memoryStore: its options must be an object"],
  ])("%s", (make, words) => {
    expect(errorOf(make)).toContain(words);
  });
});

describe("a sender whose receipts are not configured", () => {
  const told = (options: object) => {
    const log = logger();
    createVerifier({ ...neededOptions, store: memoryStore(), callbacks: { worker: false }, statistics: false, logger: log, ...options });
    return log.lines.map(({ level, fields, message }) => [level, fields, message]);
  };

  it("is logged once with the fix when the verifier is created", () => {
    const words = expect.stringContaining("set receipts: { baseUrl, sources } and mount verifier.receipts, or give the sender receipts: false");
    expect(told({ sender: twilio() })).toEqual([["warn", { providers: ["twilio"] }, words]]);
    expect(told({ sender: router({ routes: [{ name: "a", sender: twilio() }] }) })).toEqual([["warn", { providers: ["twilio"] }, words]]);
  });

  it("is not logged if it asks for no receipts, or if they are configured", () => {
    expect(told({ sender: twilio({ receipts: false }) })).toEqual([]);
    expect(told({ sender: twilio(), ...receipts() })).toEqual([]);
    expect(told({})).toEqual([]);
  });
});

/** Words of zod's own messages, which ours never have. */
const raw = /Invalid|Unrecognized|Too (small|big)|expected|received|>=|<=|ZodError|undefined \(|Cannot |is not a function|is not iterable/;
const odd: readonly unknown[] = [
  null,
  0,
  -1,
  1.5,
  Number.NaN,
  Infinity,
  1e300,
  "",
  "x",
  true,
  [],
  [null],
  [[]],
  {},
  { x: {} },
  { default: 5 },
  () => 1,
  new Date(),
  5n,
  Symbol("s"),
];

describe("none of zod's own messages reaches a user", () => {
  const full = {
    ...neededOptions,
    pepper: "p".repeat(32),
    lookup: { lookup: async () => ({}), price: 0 },
    lookupBeforeSend: true,
    policy: {
      codeLength: 6,
      lifetime: 600,
      longLifetime: false,
      tombstone: 600,
      checks: 5,
      retryCooldowns: [30],
      acceptPreviousCode: true,
      maxGuessOdds: 0.001,
      limits: {
        perNumber: [{ limit: 1, window: 600 }],
        perDevice: [{ limit: 1, window: 600 }],
        numbersPerDevice: [{ limit: 1, window: 600 }],
        perIp: [],
        numbersPerIp: [],
        perCustomer: [{ limit: 1, window: 600, perVerified: 1 }],
        lookups: [],
        spend: [],
      },
      spam: { range: { mode: "shadow", seeds: [1, 2, 3], perVerified: 2, provenAt: 1 }, crowd: { mode: "off", messages: 1, share: 0.1 } },
    },
    message: {
      text: { default: "{code}" },
      locale: () => "fr",
      maxSegments: 1,
      domain: "a.example",
      registered: { IN: { text: "{code}", ids: { entity: "1", template: "2" }, autofill: true } },
    },
    testNumbers: [{ number: "+447700900123", code: "1234", outcome: "accepted" }],
    blockedNumbers: ["+447700900*"],
    spamRules: [{ name: "a", cell: () => "a", seed: 1, perVerified: 1, mode: "shadow" }],
    lists: { block: { numbers: ["+447700900123"] }, safe: () => ({}), refresh: 30 },
    receipts: receipts().receipts,
    callbacks: {
      allowOrigins: ["http://localhost:3000"],
      fullNumber: true,
      worker: false,
      pollInterval: 5,
      concurrency: { total: 2, perHost: 1 },
      waitUntil: () => undefined,
      sender: { post: async () => ({ status: 200 }) },
    },
    statistics: { keep: 600 },
    docUrl: "https://otp.example/errors",
  };

  /** Every path into a value, parents first. */
  function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
    const isTree = typeof value === "object" && value !== null && [Object.prototype, Array.prototype].includes(Object.getPrototypeOf(value));
    return [path, ...(isTree ? Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key])) : [])];
  }
  function put(value: unknown, [first, ...rest]: readonly string[], change: unknown): unknown {
    if (first === undefined) return change;
    const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...(value as object) };
    copy[first] = put(copy[first], rest, change);
    return copy;
  }

  it("the options of this test are valid", () => {
    expect(errorOf(() => readOptions(full as never))).toBe("no error");
  });

  it.each(pathsOf(full).map((path) => [path.join(".") || "the options", path] as const))("%s", (_name, path) => {
    for (const value of [...odd, undefined]) {
      try {
        readOptions(put(full, path, value) as never);
      } catch (error) {
        expect(error).toBeInstanceOf(VerifierError);
        expect((error as Error).message, String(value?.toString)).not.toMatch(raw);
        expect((error as Error).message).toMatch(/^phoneproof: \S/);
      }
    }
  });

  const routes = [
    {
      name: "a",
      sender: neededOptions.sender,
      countries: ["FR"],
      prefixes: ["+3361"],
      networks: ["208-01"],
      priority: 1,
      weight: 1,
      price: { default: 1, FR: 2 },
    },
  ];
  const routed = {
    routes,
    network: () => ({}),
    cheapestFirst: true,
    failover: { afterUnknown: true, maxRoutes: 2 },
    health: { window: 3600, settle: 60, tolerance: { latency: 0.5 } },
  };
  it.each(pathsOf(routed).map((path) => [path.join(".") || "the options", path] as const))("of the router: %s", (_name, path) => {
    for (const value of [...odd, undefined])
      expect(errorOf(() => router(put(routed, path, value) as never))).toMatch(/^(no error|router: )(?!.*(Invalid|expected|received|Too ))/);
  });

  it.each(["createAuthentication", "retry", "check", "lookup", "explain", "history", "erase", "unlock", "stats"] as const)("of %s", async (operation) => {
    const { verifier, customer } = setUp();
    const sound = {
      customer_uuid: customer,
      phone_number: "+33612345678",
      authentication_uuid: customer,
      check_code: "123456",
      ...(operation === "createAuthentication" && {
        device_type: "WEB",
        device_id: "a",
        ip: "203.0.113.1",
        is_returning_user: true,
        callback_url: "https://a.example",
      }),
      ...(operation === "history" && { limit: 5 }),
      ...(operation === "stats" && { from: new Date(0), to: new Date(1) }),
    };
    for (const path of pathsOf(sound))
      for (const value of odd) {
        const message = await (verifier[operation] as (request: unknown) => Promise<unknown>)(put(sound, path, value)).then(
          () => "",
          (error: Error) => error.message,
        );
        expect(message).not.toMatch(raw);
      }
  });
});

describe("a function called without options fails with a readable error", () => {
  const folders = ["adapters/sms", "adapters/lookup", "adapters/challenge", "adapters/http"];
  const files = folders.flatMap((folder) =>
    readdirSync(new URL(`../../${folder}`, import.meta.url))
      .filter((name) => name.endsWith(".ts"))
      .map((name) => `${folder}/${name}`),
  );
  it.each([...files, "adapters/sms/smpp/index.ts"])("%s", async (file) => {
    const exported = Object.entries((await import(`../../${file}`)) as Record<string, unknown>);
    for (const [name, make] of exported) {
      if (typeof make !== "function" || !/(Sender|Receipts|Lookup|Challenge|Chain|Handlers?|Plugin)$/.test(name)) continue;
      for (const given of make.length === 0 ? [[], [{}]] : [[], [{}], [null]]) {
        const message = errorOf(() => make(...given));
        expect(`${name}(${JSON.stringify(given[0])}): ${message}`).not.toMatch(
          /Cannot (read|destructure|convert)|is not (a function|iterable)|undefined \(reading/,
        );
      }
    }
  });
});
