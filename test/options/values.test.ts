import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createVerifier } from "../../src/create-verifier.js";
import { defaultPolicy, type PolicyOverride } from "../../src/domain/policy.js";
import { VerifierError } from "../../src/errors.js";
import { betterAuth } from "../../src/hooks/better-auth.js";
import { genericHook, hooks } from "../../src/hooks/index.js";
import { lazyVerifier } from "../../src/lazy-verifier.js";
import { readCustomerPolicy, readOptions } from "../../src/options/options.js";
import type { VerifierOptions } from "../../src/options/types.js";
import { preludeV2 } from "../../src/wires/prelude-v2/index.js";
import { twilioVerify } from "../../src/wires/twilio-verify/index.js";
import { neededOptions, optionsError } from "../support/options.js";

const read = (options: object) => readOptions({ ...neededOptions, ...options });

const limits = (caps: object) => ({ policy: { limits: caps } });
const customer = (more: object) => ({ customers: [{ customer_uuid: "11111111-2222-3333-4444-555555555555", keys: ["k".repeat(40)], ...more }] });

describe("options: an error names the option's path and the fix", () => {
  it.each([
    [{ store: {} }, "store must be a store, for example memoryStore(): an object with the methods find, commit, members, tally, lease, get, put"],
    [{ sender: undefined }, "sender must be an SMS sender: an object with the method send"],
    [{ secret: "short" }, "secret must have at least 32 characters; make one with: openssl rand -base64 32"],
    [{ secret: ["x".repeat(32), "short"] }, "secret.1 must have at least 32 characters"],
    [{ secret: `${"x".repeat(32)}\n` }, "secret has a line break at its end: remove it, for example with .trim()"],
    [{ secret: 5 }, "secret must be a string of at least 32 characters, or [current, previous]"],
    [{ pepper: "short" }, "pepper must have at least 32 characters"],
    [{ countries: undefined }, 'countries must be "all" or a list of ISO 3166-1 alpha-2 codes'],
    [{ countries: [] }, "countries must name at least one country"],
    [{ countries: ["fr"] }, "countries.0 must be an ISO 3166-1 alpha-2 code in capitals"],
    [{ customers: [] }, "customers must hold at least one customer"],
    [{ customers: {} }, 'customers must be a list of { customer_uuid, keys, policy? }, or "store", or an object with the methods findByKeyDigest and find'],
    [customer({ customer_uuid: "x" }), "customers.0.customer_uuid must be a UUID"],
    [customer({ keys: ["short"] }), "customers.0.keys.0 must be an API key of at least 32 characters"],
    [customer({ policy: { checks: 0 } }), "customers.0.policy.checks must be 1 or more"],
    [{ policy: null }, "policy must be an object"],
    [{ policy: { codeLength: 3 } }, "policy.codeLength must be 4 to 10"],
    [{ policy: { lifetime: 0 } }, "policy.lifetime must be more than 0"],
    [{ policy: { lifetime: "600" } }, "policy.lifetime must be a number of seconds"],
    [{ policy: { lifeTime: 600 } }, "policy.lifeTime is not an option"],
    [limits({ perIp: [{ limit: 0, window: 60 }] }), "policy.limits.perIp.0.limit must be 1 or more"],
    [limits({ perIp: [{ limit: 1e9 + 1, window: 60 }] }), "policy.limits.perIp.0.limit must be at most a thousand million"],
    [limits({ numbersPerIp: [{ limit: 1001, window: 60 }] }), "policy.limits.numbersPerIp.0.limit must be at most 1000: distinct numbers are counted"],
    [limits({ numbersPerDevice: [{ limit: 1001, window: 60 }] }), "policy.limits.numbersPerDevice.0.limit must be at most 1000: distinct numbers are counted"],
    [limits({ spend: [1, 2].map((amount) => ({ amount, per: "day" })) }), 'policy.limits.spend must hold at most one ceiling per "hour" and one per "day"'],
    [{ message: { text: { default: "{code}", fr: 5 } } }, "message.text.fr must be a string"],
    [{ message: { text: "no code" } }, "message.text must contain {code}"],
    [{ sendTimout: 5 }, "sendTimout is not an option"],
    [{ clockSkew: 61 }, "clockSkew must be at most 60"],
    [{ testNumbers: ["0044"] }, "testNumbers.0 must be in E.164 form"],
    [{ testNumbers: [5] }, "testNumbers.0 must be a number in E.164 form, or { number, code?, outcome? }"],
    [{ testNumbers: [{ number: "+447700900123", code: "12" }] }, "testNumbers.0.code must be 4 to 10 digits"],
    [{ blockedNumbers: ["+33612345678", "0612345678"] }, "blockedNumbers.1 must be in E.164 form, or a prefix that ends in *"],
    [{ blockedNumbers: "+33612345678" }, "blockedNumbers must be a list of numbers"],
    [{ spamRules: [{ judge: () => undefined }] }, "spamRules.0 must have a name"],
    [{ callbacks: { allowOrigins: ["http://localhost:3000/"] } }, "callbacks.allowOrigins.0 must be an origin"],
    [{ callbacks: { allowOrigins: ["http://localhost:3000", "ws://localhost:3000"] } }, "callbacks.allowOrigins.1 must be an origin"],
    [{ callbacks: { pollInterval: 86_401 } }, "callbacks.pollInterval must be at most a day"],
    [{ callbacks: { concurrency: { total: 0 } } }, "callbacks.concurrency.total must be 1 or more"],
    [{ callbacks: { concurrency: { total: 4, perHost: 5 } } }, "callbacks.concurrency.perHost must be at most total, 4"],
    [{ callbacks: { concurrency: { perHost: 129 } } }, "callbacks.concurrency.perHost must be at most total, 128"],
    [{ logger: {} }, "logger must be a logger: an object with the methods info, warn, error"],
  ])("%j", (options, message) => {
    expect(optionsError(options)).toContain(message);
  });

  it("all errors are reported at once", () => {
    expect(optionsError({ secret: "short", countries: undefined, nope: 1 }).match(/secret|countries must|nope is not/g)).toEqual([
      "secret",
      "countries must",
      "nope is not",
    ]);
  });

  it("missing options are an error", () => {
    expect(() => readOptions(undefined as never)).toThrow(VerifierError);
  });

  it.each([
    [{ polcy: {} }, "polcy is not an option: did you mean policy?"],
    [{ codeLength: 4 }, "codeLength is not an option: did you mean policy.codeLength?"],
    [{ policy: { limtis: {} } }, "policy.limtis is not an option: did you mean limits?"],
    [{ customers: [{ customer_uuid: crypto.randomUUID(), keys: [], polici: {} }] }, "customers.0.polici is not an option: did you mean policy?"],
    [{ nothing: 1 }, "nothing is not an option: remove it or fix its spelling"],
  ])("a misspelt or misplaced option is an error: %j", (given, fault) => {
    expect(optionsError(given)).toContain(fault);
  });

  it("a verifier instead of the options is an error", async () => {
    const message = /^phoneproof: the options are a verifier: pass what it was made of/;
    const verifier = createVerifier(neededOptions);
    expect(() => createVerifier(verifier as never)).toThrow(message);
    expect(await lazyVerifier(() => verifier as never).ping()).toMatchObject({ ok: false, store: { fault: expect.stringMatching(message) } });
  });

  it.each([
    ["twilioVerify", twilioVerify],
    ["preludeV2", preludeV2],
    ["betterAuth", betterAuth],
    ["hooks", (verifier: never) => hooks(verifier, [genericHook({ token: "of-the-server" })])],
  ] as const)("%s fails without a verifier, or with a promise of one", (name, make) => {
    const message = `${name}: the first argument must be the verifier that createVerifier returned`;
    expect(() => make(undefined as never)).toThrow(message);
    expect(() => make(Promise.resolve(createVerifier(neededOptions)) as never)).toThrow(`${message}; it is a promise: await it`);
  });

  it("a promise instead of the options is an error", () => {
    expect(() => readOptions(Promise.resolve(neededOptions) as never)).toThrow(/^phoneproof: the options are a promise: await it/);
  });
});

describe("options: the engine's settings", () => {
  it("durations become whole milliseconds", () => {
    expect(read({ sendTimeout: 2.3, storeTimeout: 0.0014, clockSkew: 0 })).toMatchObject({ sendTimeout: 2300, storeTimeout: 1, clockSkew: 0 });
  });

  it("a pollInterval of a day is accepted", () => {
    expect(read({ callbacks: { pollInterval: 86_400 } }).pollInterval).toBe(86_400_000);
  });

  it("callbacks.concurrency.perHost is 16, or total if that is less", () => {
    const concurrency = (given: object) => read({ callbacks: { concurrency: given } }).callbackConcurrency;
    expect([concurrency({}), concurrency({ total: 4 }), concurrency({ total: 300, perHost: 200 })]).toEqual([
      { total: 128, perHost: 16 },
      { total: 4, perHost: 4 },
      { total: 300, perHost: 200 },
    ]);
  });

  it("the user's objects are passed on, not copied", () => {
    const rule = Object.create({ judge: () => undefined }, { name: { value: "mine" } });
    const source = Object.create({ read: () => [] }, { provider: { value: "mine" } });
    const locale = () => "fr";
    const settings = read({ spamRules: [rule], receipts: { baseUrl: "https://api.example/x/", sources: [source] }, message: { locale } });
    expect([settings.spamRules[0] === rule, settings.receiptSources[0] === source, settings.message.locale === locale]).toEqual([true, true, true]);
    expect(settings.receiptBase).toBe("https://api.example/x");
  });

  it("testNumbers keeps the codes of its numbers, and exempts all of them from the rules for numbers", () => {
    const { testNumbers, numberRules } = read({ testNumbers: ["+447700900001", { number: "+447700900002", code: "1234" }] });
    expect([...testNumbers]).toEqual([
      ["+447700900001", undefined],
      ["+447700900002", { number: "+447700900002", code: "1234" }],
    ]);
    expect(numberRules.testNumbers).toBe(testNumbers);
  });

  it("blockedNumbers blocks the numbers that it lists, and those with a prefix that ends in *", () => {
    const { blocked } = read({ blockedNumbers: ["+33612345678", "+4477*"] });
    expect(["+33612345678", "+336123456789", "+447700900123", "+4476"].map(blocked)).toEqual([true, false, true, false]);
  });
});

describe("an explicit `undefined` counts as left out (docs/contract.md#undefined-options)", () => {
  it.each([
    ["lifetime", { policy: { lifetime: undefined } }],
    ["limits: { perIp }", { policy: { limits: { perIp: undefined } } }],
    ["acceptPreviousCode", { policy: { acceptPreviousCode: undefined } }],
    ["limits", { policy: { limits: undefined } }],
    ["policy", { policy: undefined }],
  ])("%s", (_what, options) => {
    expect(read(options).policy).toEqual(defaultPolicy);
  });

  const change = (checks: number) =>
    ({
      codeLength: 7,
      lifetime: 300,
      longLifetime: true,
      tombstone: 600,
      checks,
      retryCooldowns: [1],
      callCooldown: 1,
      acceptPreviousCode: false,
      maxGuessOdds: 0.001,
      limits: {
        perNumber: [{ limit: 2, window: 86_400 }],
        perDevice: [],
        numbersPerDevice: [],
        perIp: [],
        numbersPerIp: [],
        perCustomer: [],
        lookups: [],
        callsPerNumber: [{ limit: 1, window: 60 }],
        callSpend: [{ amount: 1, per: "hour" }],
        spend: [{ amount: 1, per: "day" }],
      },
      spam: {
        range: { mode: "shadow", seeds: [1, 2, 3], perVerified: 1, provenAt: 9 },
        crowd: { mode: "shadow", messages: 7, share: 0.5 },
        country: { mode: "shadow", seed: 1, perVerified: 1, provenAt: 9 },
        newCountries: { mode: "shadow", seed: 1, perVerified: 1, provenAt: 9 },
        address: { mode: "shadow", seed: 1, perVerified: 1 },
        calls: { mode: "shadow", seed: 1, perVerified: 1 },
        strangeNetwork: { mode: "shadow", base: 1, factor: 1 },
        signals: { mode: "enforce" },
        trust: { open: 1 },
      },
    }) satisfies Required<PolicyOverride>;

  /** Every option, each with a value other than its default. */
  const full = {
    ...neededOptions,
    sender: { send: async () => ({ outcome: "accepted" }), plan: () => ({ route: "one", price: 1 }) },
    customers: [
      { customer_uuid: "11111111-2222-3333-4444-555555555555", keys: ["k".repeat(40)], policy: change(2), webhookSecrets: [`whsec_${"a".repeat(32)}`] },
    ],
    lookup: { lookup: async () => undefined, price: 0 },
    pepper: "p".repeat(32),
    policy: change(3),
    message: { text: { default: "{code}", fr: "code {code}" }, locale: () => "fr", maxSegments: 2, domain: "example.com" },
    sendTimeout: 1,
    storeTimeout: 1,
    lookupTimeout: 1,
    lookupBeforeSend: false,
    clockSkew: 1,
    phoneValidation: "possible",
    testNumbers: [{ number: "+447700900123", code: "123456", outcome: "slow" }],
    blockedNumbers: ["+33612345678"],
    ambiguousLineType: "Mobile",
    spamRules: [{ name: "mine", judge: () => undefined }],
    ipInfo: () => undefined,
    onEvent: () => undefined,
    telemetry: { step: (_step, work) => work(), metrics: () => undefined },
    lists: { block: () => ({}), safe: () => ({}), refresh: 1 },
    challenge: { verify: async () => true },
    receipts: { baseUrl: "https://api.example.com", sources: [] },
    callbacks: {
      allowOrigins: ["http://localhost:3000"],
      fullNumber: true,
      worker: false,
      pollInterval: 1,
      concurrency: { total: 8, perHost: 4 },
      waitUntil: () => undefined,
      sender: { post: async () => ({ status: 200 }) },
    },
    statistics: { keep: 86_400 },
    docUrl: "https://docs.example.com",
    conversion: "late",
    keepCode: true,
    logger: console,
    clock: { now: () => 0, after: () => () => undefined },
  } satisfies Required<VerifierOptions>;

  const groups = [
    "",
    ...[
      "policy",
      "policy.limits",
      "policy.spam",
      "policy.spam.range",
      "policy.spam.trust",
      "message",
      "message.text",
      "callbacks",
      "callbacks.concurrency",
      "lists",
      "testNumbers.0",
    ].map((one) => `${one}.`),
  ];
  const customers = ["customers.0.", "customers.0.policy.", "customers.0.policy.limits.", "customers.0.policy.spam.", "customers.0.policy.spam.crowd."];
  const needed = new Set([...Object.keys(neededOptions), "message.text.default", "testNumbers.0.number", "customers.0.customer_uuid", "customers.0.keys"]);
  const optional = [...groups, ...customers]
    .flatMap((group) => {
      const value = group
        .split(".")
        .slice(0, -1)
        .reduce((outer, key) => (outer as Record<string, object>)[key] as object, full as object);
      return Object.keys(value).map((key) => group + key);
    })
    .filter((path) => !needed.has(path));

  /** The value with the paths left out, or set to `undefined`. */
  function without<T>(value: T, paths: ReadonlySet<string>, how: "gone" | "undefined", at = ""): T {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((one, index) => without(one, paths, how, `${at}${index}.`)) as T;
    const left = Object.entries(value).filter(([key]) => how === "undefined" || !paths.has(at + key));
    return Object.fromEntries(left.map(([key, one]) => [key, paths.has(at + key) ? undefined : without(one, paths, how, `${at}${key}.`)])) as T;
  }

  it("any options on any level give the same settings and policies when `undefined` as when left out", () => {
    const outcome = (paths: ReadonlySet<string>, how: "gone" | "undefined") => {
      const options = without<VerifierOptions>(full, paths, how);
      const { blocked, ...settings } = readOptions(options);
      const [own] = options.customers as typeof full.customers;
      return { settings, blocked: blocked("+33612345678"), policy: readCustomerPolicy({ blocked, ...settings }, own?.policy ?? {}) };
    };
    fc.assert(
      fc.property(fc.subarray(optional), (paths) => {
        const chosen = new Set(paths);
        expect(outcome(chosen, "undefined")).toEqual(outcome(chosen, "gone"));
      }),
      { numRuns: 100 },
    );
  });
});

describe("a customer's policy from a source", () => {
  it("is checked by the rules of the configuration, and its errors name the path", () => {
    const settings = read({});
    const fault = (policy: unknown) => () => readCustomerPolicy(settings, policy);
    expect(fault({ codeLength: 4 })).toThrow("policy: the guess budget is broken");
    expect(fault({ checks: 0 })).toThrow("policy.checks must be 1 or more");
    expect(fault({ check: 1 })).toThrow("policy.check is not an option");
    expect(fault("junk")).toThrow("policy must be an object");
    expect(fault({ retryCooldowns: [30_000] })).toThrow("policy.retryCooldowns.0 is in seconds: after 30000 of them no retry is possible");
    expect(fault({ limits: { lookups: [{ limit: 1, window: 3_600_000 }] } })).toThrow(
      "policy.limits.lookups.0.window is in seconds: 3600000 of them are 41.7 days",
    );
    expect(readCustomerPolicy(settings, { checks: 1 })).toEqual({ ...defaultPolicy, checks: 1 });
  });
});
