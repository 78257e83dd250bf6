import { createHash, randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { generateApiKey } from "../../src/access/accounts.js";
import { genericHook, kratosHook, logtoHook } from "../../src/hooks/index.js";
import { readCustomer, readCustomerCall, readOptions } from "../../src/options/options.js";
import { isGuessable } from "../../src/options/secret.js";
import { codePoint } from "../support/code-point.js";
import { neededOptions, optionsError } from "../support/options.js";

const sound = randomBytes(32).toString("base64");
const customer = (...keys: string[]) => ({ customers: [{ customer_uuid: "11111111-2222-3333-4444-555555555555", keys }] });
const options = { ...neededOptions, secret: sound, ...customer(generateApiKey().key) };

const errorWith = (change: object) => optionsError({ ...options, ...change });

afterEach(() => void vi.unstubAllEnvs());

describe("the token of a hook must not be guessable", () => {
  it.each([
    ["genericHook", (token: string) => genericHook({ token })],
    ["kratosHook", (token: string) => kratosHook({ token: [sound, token] })],
    ["logtoHook", (token: string) => logtoHook({ token })],
  ] as const)("%s: at least 16 characters in production", (name, make) => {
    expect(() => make("of-the-server")).not.toThrow();
    vi.stubEnv("NODE_ENV", "production");
    expect(() => make("of-the-server")).toThrow(`${name}: option token has fewer than 16 characters, and NODE_ENV is production`);
    expect(() => make("of-the-server-16")).not.toThrow();
  });
});

describe("a secret or key from the documentation is always rejected", () => {
  const secret = "for development only: openssl rand -base64 32";
  const key = "pp_for_development_only_0123456789abcdef";
  it.each([
    [{ secret }, "secret is published in the documentation; make one with: openssl rand -base64 32"],
    [{ secret: [sound, secret] }, "secret.1 is published in the documentation"],
    [{ pepper: secret }, "pepper is published in the documentation"],
    [customer(key), "customers.0.keys.0 is published in the documentation: generateApiKey() makes one"],
    [customer(`sha256:${createHash("sha256").update(key).digest("hex").toUpperCase()}`), "customers.0.keys.0 is published in the documentation"],
  ])("%j", (change, words) => {
    for (const environment of ["development", "test", "production"]) {
      vi.stubEnv("NODE_ENV", environment);
      expect(errorWith(change)).toContain(words);
    }
  });
});

describe("secrets that sign callbacks", () => {
  const documented = `whsec_${"A".repeat(32)}`;
  const guessable = [`whsec_${"a".repeat(32)}`, `whsec_${Buffer.alloc(32, 7).toString("base64")}`, "whsec_changemechangemechangemechangeme"];
  const drawn = () => `whsec_${randomBytes(32).toString("base64")}`;
  const fix = 'make one with: echo "whsec_$(openssl rand -base64 32)"';
  const configured = (...webhookSecrets: string[]) => ({ customers: [{ ...customer(generateApiKey().key).customers[0], webhookSecrets }] });
  const called = (call: "create" | "update", ...webhookSecrets: string[]) => {
    try {
      readCustomerCall(readOptions(options), call, { customer_uuid: "11111111-2222-3333-4444-555555555555", webhookSecrets });
    } catch (error) {
      return (error as Error).message;
    }
    return "no error";
  };

  it("are rejected if they are in the documentation", () => {
    const words = `webhookSecrets.1 is published in the documentation; ${fix}`;
    expect(errorWith(configured(drawn(), documented))).toBe(`phoneproof: customers.0.${words}`);
    expect([called("create", drawn(), documented), called("update", drawn(), documented)]).toEqual([words, words]);
  });

  it.each(guessable)("are rejected in production if they can be guessed: %s", (secret) => {
    expect([errorWith(configured(secret)), called("create", secret)]).toEqual(["no error", "no error"]);
    vi.stubEnv("NODE_ENV", "production");
    const words = `webhookSecrets.0 can be guessed, and NODE_ENV is production; ${fix}`;
    expect(errorWith(configured(secret))).toBe(`phoneproof: customers.0.${words}`);
    expect([called("create", secret), called("update", secret)]).toEqual([words, words]);
  });

  it("are accepted if random; those from a customer source are not checked", () => {
    vi.stubEnv("NODE_ENV", "production");
    for (let i = 0; i < 200; i++) expect(errorWith(configured(drawn()))).toBe("no error");
    const sourced = { customer_uuid: "11111111-2222-3333-4444-555555555555", webhookSecrets: [documented, ...guessable] };
    expect(readCustomer(sourced)).toEqual(sourced);
  });
});

describe("in production, a guessable secret or key is rejected", () => {
  const guessable = [
    "x".repeat(44),
    "abcdefghijklmnopqrstuvwxyz0123456789",
    "0123456789abcdef".repeat(3),
    "qwertyuiopasdfghjklzxcvbnm123456",
    "deadbeef".repeat(5),
    "P@ssw0rd".repeat(4),
    "changeme-changeme-changeme-changeme",
    "correct horse battery staple correct horse",
    "a secret of the tests, long enough to be one",
    "acme-production-secret-do-not-share-2026",
    "for development only, make another one",
  ];
  it.each(guessable)("%s", (secret) => {
    expect(errorWith({ secret })).toBe("no error");
    vi.stubEnv("NODE_ENV", "production");
    expect(errorWith({ secret })).toBe("phoneproof: secret can be guessed, and NODE_ENV is production; make one with: openssl rand -base64 32");
    expect(errorWith({ secret: [sound, secret] })).toContain("secret.1 can be guessed");
    expect(errorWith({ pepper: secret })).toContain("pepper can be guessed");
    expect(errorWith(customer(secret))).toContain("customers.0.keys.0 can be guessed, and NODE_ENV is production: generateApiKey() makes one that cannot");
  });

  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 });
  const drawn = fc.noShrink(fc.integer({ min: 0, max: 0xffff_ffff }).map(() => randomBytes(32)));
  it("32 random bytes in base64, base64url or hexadecimal digits are never guessable, nor is a generated API key", () => {
    fc.assert(
      fc.property(drawn, (random) => {
        const spellings = [random.toString("base64"), random.toString("base64url"), random.toString("hex"), random.toString("hex").toUpperCase()];
        expect([...spellings, generateApiKey().key].filter(isGuessable)).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("a short part repeated many times is guessable", () => {
    fc.assert(
      fc.property(bytes, fc.integer({ min: 4, max: 12 }), fc.integer({ min: 2, max: 20 }), (all, length, times) => {
        expect(isGuessable(Buffer.from(all).toString("base64").slice(0, length).repeat(times))).toBe(true);
      }),
    );
  });

  it("the estimate works for any text", () => {
    fc.assert(fc.property(fc.string({ unit: codePoint }), (text) => typeof isGuessable(text) === "boolean"));
  });
});
