import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { hcaptchaChallenge } from "../../adapters/challenge/hcaptcha.js";
import { recaptchaChallenge } from "../../adapters/challenge/recaptcha.js";
import type { SiteverifyOptions } from "../../adapters/challenge/siteverify.js";
import { turnstileChallenge } from "../../adapters/challenge/turnstile.js";
import type { Challenge } from "../../src/ports/challenge.js";
import { hcaptcha, type Provider, type RunningProvider, recaptcha, type Solved, startProvider, turnstile } from "./provider.js";

const wrongHost = 'option hostname must be a host without scheme and port. Pass for example "example.com".';

type Make = (options: SiteverifyOptions) => Challenge;
const all: [name: string, make: Make, provider: Provider, publicUrl: string, human: Solved][] = [
  ["turnstileChallenge", turnstileChallenge, turnstile, "https://challenges.cloudflare.com/turnstile/v0/siteverify", {}],
  ["hcaptchaChallenge", hcaptchaChallenge, hcaptcha, "https://api.hcaptcha.com/siteverify", {}],
  ["recaptchaChallenge", recaptchaChallenge, recaptcha, "https://www.google.com/recaptcha/api/siteverify", { score: 0.9 }],
];

let running: RunningProvider;
afterEach(async () => {
  vi.unstubAllGlobals();
  await running?.close();
});

const context = (ip?: string) => ({ signal: AbortSignal.timeout(20_000), ...(ip !== undefined && { ip }) });

describe.each(all)("%s", (name, make, provider, publicUrl, human) => {
  const challenge = (options: Partial<SiteverifyOptions> = {}) => make({ secret: provider.secret, baseUrl: running.url, ...options });
  const fault = (options: Partial<SiteverifyOptions> = {}, proof = "no proof") =>
    challenge(options)
      .verify(proof, context())
      .then(
        (holds) => `no error: ${holds}`,
        (error: Error) => error.message,
      );
  beforeEach(async () => {
    running = await startProvider(provider);
  });

  it("a solved proof is valid, and is sent with secret and address in a form", async () => {
    const proof = running.solve(human);
    expect(await challenge().verify(proof, context("2001:db8::7"))).toBe(true);
    expect(Object.fromEntries(running.forms[0] ?? [])).toEqual({ secret: provider.secret, response: proof, remoteip: "2001:db8::7" });
    expect(await challenge().verify(running.solve(human), context())).toBe(true);
    expect(running.forms[1]?.has("remoteip")).toBe(false);
  });

  it("a proof is valid once", async () => {
    const proof = running.solve(human);
    const twice = await Promise.all([1, 2].map(() => challenge().verify(proof, context())));
    expect(twice.sort()).toEqual([false, true]);
    expect(await challenge().verify(proof, context())).toBe(false);
  });

  it("a wrong or late proof is invalid, but not an error", async () => {
    expect(await challenge().verify("made up", context())).toBe(false);
    expect(await challenge().verify(running.solve({ ...human, late: true }), context())).toBe(false);
  });

  it("with hostname set, a proof is valid only for that host", async () => {
    const holds = (hostname: string | string[], solvedOn: string) => challenge({ hostname }).verify(running.solve({ ...human, hostname: solvedOn }), context());
    expect(await holds("example.com", "example.com")).toBe(true);
    expect(await holds(["example.com", "shop.example"], "shop.example")).toBe(true);
    expect(await holds("Example.COM", "example.com")).toBe(true);
    expect(await holds("example.com", "EXAMPLE.com")).toBe(true);
    expect(await holds("example.com", "evil.example")).toBe(false);
    expect(await holds("example.com", "example.com.evil.example")).toBe(false);
    expect(await holds("example.com", "ample.com")).toBe(false);
    running.mood = { status: 200, answer: { success: true, score: 1 } };
    expect(await challenge({ hostname: "example.com" }).verify("x", context())).toBe(false);
  });

  it.each([
    ["fails", "the provider could not check the proof: HTTP 500"],
    ["garbage", "the provider could not check the proof: HTTP 200"],
    ["redirects", "the provider could not check the proof: HTTP 307"],
    [{ status: 200, answer: null }, "the provider could not check the proof: HTTP 200"],
    [{ status: 200, answer: [true] }, "the provider could not check the proof: HTTP 200"],
    [{ status: 200, answer: { success: "true", score: 1 } }, "the provider could not check the proof: HTTP 200"],
    [{ status: 200, answer: { success: 1, score: 1 } }, "the provider could not check the proof: HTTP 200"],
    [{ status: 500, answer: { success: true, score: 1 } }, "the provider could not check the proof: HTTP 500"],
    [{ status: 200, answer: { success: false, "error-codes": ["internal-error"] } }, "the provider could not check the proof: HTTP 200, internal-error"],
    [
      { status: 400, answer: { success: false, "error-codes": ["timeout-or-duplicate", "bad-request"] } },
      "could not check the proof: HTTP 400, timeout-or-duplicate, bad-request",
    ],
    ["cut", "no response from the provider: UND_ERR_SOCKET"],
  ] as const)("an unusable response throws an error that contains neither secret nor proof: %j", async (mood, words) => {
    running.mood = mood;
    const message = await fault();
    expect(message).toContain(`${name}: `);
    expect(message).toContain(words);
    expect(message).not.toMatch(new RegExp(`${provider.secret}|no proof`));
    // A redirect was not followed.
    expect(running.forms).toHaveLength(1);
  });

  it("malformed error codes make the proof invalid, and are not repeated", async () => {
    running.mood = { status: 200, answer: { success: false, "error-codes": ["no such proof: no proof", 5, null] } };
    expect(await fault()).toBe("no error: false");
  });

  it("a wrong secret is an error, because no proof would ever be valid", async () => {
    expect(await fault({ secret: "another" })).toBe(`${name}: the provider could not check the proof: HTTP 200, invalid-input-secret`);
  });

  it.each(["hangs", "stalls"] as const)("a provider that %s is given up when the verifier aborts or the timeout is over", async (mood) => {
    running.mood = mood;
    const abort = new AbortController();
    const words = `${name}: no response from the provider: timed out`;
    const ended = Promise.all([undefined, 3600].map((timeout) => expect(challenge({ timeout }).verify("x", { signal: abort.signal })).rejects.toThrow(words)));
    await vi.waitFor(() => expect(running.forms).toHaveLength(2));
    abort.abort();
    await ended;
    expect(await fault({ timeout: 0.05 })).toBe(words);
  });

  it("a timeout may be any fraction of a second", async () => {
    expect(await challenge({ timeout: 20.0005 }).verify(running.solve(human), context())).toBe(true);
  });

  it("a provider that cannot be reached is an error", async () => {
    const { url } = running;
    await running.close();
    await expect(make({ secret: "s", baseUrl: url }).verify("x", context())).rejects.toThrow(`${name}: no response from the provider: ECONNREFUSED`);
  });

  it("calls the provider's public address with the current global fetch, or baseUrl with the given fetch", async () => {
    const asked: [url: string, init: { redirect: string }][] = [];
    vi.stubGlobal("fetch", async (...call: (typeof asked)[number]) => {
      asked.push(call);
      return new Response('{"success":true}');
    });
    expect(await make({ secret: "s" }).verify("x", context())).toBe(true);
    expect(asked[0]?.[0]).toBe(publicUrl);
    expect(asked[0]?.[1].redirect).toBe("manual");
    const own = vi.fn(async () => new Response('{"success":true}'));
    expect(await make({ secret: "s", baseUrl: "https://stand-in.example/api//", fetch: own }).verify("x", context())).toBe(true);
    expect(own).toHaveBeenCalledWith("https://stand-in.example/api/siteverify", expect.anything());
    expect(asked).toHaveLength(1);
  });

  it.each([
    [{ secret: undefined }, "option secret is missing. Take the secret key of your site from the provider's console."],
    [{ secret: " " }, "option secret must be a non-empty string."],
    [{ hostname: "" }, wrongHost],
    [{ hostname: "*.example.com" }, `${wrongHost} Name each host: pass a list instead of commas or wildcards`],
    [{ hostname: "example.com,www.example.com" }, wrongHost],
    [{ hostname: ["example.com", "bücher.example"] }, wrongHost],
    [{ hostname: "example.com." }, wrongHost],
    [{ hostname: [] }, "option hostname is an empty list. Leave it out for any host."],
    [{ hostname: [5] }, "option hostname must be a host without scheme and port."],
    [{ hostname: "https://example.com" }, "option hostname must be a host without scheme and port"],
    [{ fetch: "fetch" }, "option fetch must be a function. Leave it out for the global fetch."],
    [{ baseUrl: "ftp://x" }, "option baseUrl must be a URL that starts with https:// or http://"],
    [{ baseUrl: new URL("https://x.example") }, 'option baseUrl must be a non-empty string. Pass for example "https://'],
    [{ timeout: 0 }, "option timeout must be a number of seconds, above 0 and at most 24 days."],
    [{ timeout: 30 * 86_400 }, "option timeout must be a number of seconds, above 0 and at most 24 days."],
    [{ timeout: "2" }, "option timeout must be a number of seconds, above 0 and at most 24 days."],
  ])("rejects invalid options: %j", (options, message) => {
    expect(() => make({ secret: "s", ...options } as never)).toThrow(TypeError);
    expect(() => make({ secret: "s", ...options } as never)).toThrow(`${name}: ${message}`);
  });
});

describe("options of single providers", () => {
  const at = {
    get baseUrl() {
      return running.url;
    },
  };

  it("Turnstile and reCAPTCHA: with action set, a proof for another action or none is invalid", async () => {
    for (const [make, provider] of [
      [turnstileChallenge, turnstile],
      [recaptchaChallenge, recaptcha],
    ] as const) {
      running = await startProvider(provider);
      const challenge = make({ secret: provider.secret, action: "sign-up", ...at });
      expect(await challenge.verify(running.solve({ action: "sign-up", score: 1 }), context())).toBe(true);
      expect(await challenge.verify(running.solve({ action: "sign-in", score: 1 }), context())).toBe(false);
      expect(await challenge.verify(running.solve({ score: 1 }), context())).toBe(false);
      expect(() => make({ secret: "s", action: "" })).toThrow(`${make.name}: option action must be a non-empty string.`);
      await running.close();
    }
  });

  it("hCaptcha: with siteKey set, the provider gets it and rejects another site's proof", async () => {
    running = await startProvider(hcaptcha);
    const challenge = hcaptchaChallenge({ secret: hcaptcha.secret, siteKey: "site-1", ...at });
    expect(await challenge.verify(running.solve({ siteKey: "site-1" }), context())).toBe(true);
    await expect(challenge.verify(running.solve({ siteKey: "site-2" }), context())).rejects.toThrow("HTTP 200, sitekey-secret-mismatch");
    expect(() => hcaptchaChallenge({ secret: "s", siteKey: " " })).toThrow(
      "hcaptchaChallenge: option siteKey must be a non-empty string. Leave it out for any of your sites.",
    );
  });

  it("reCAPTCHA v3: a proof with a score below minScore, 0.5 by default, is invalid", async () => {
    running = await startProvider(recaptcha);
    const holds = (score: unknown, minScore?: number) =>
      recaptchaChallenge({ secret: recaptcha.secret, minScore, ...at }).verify(running.solve({ score: score as number }), context());
    expect([await holds(0.5), await holds(0.49), await holds(0)]).toEqual([true, false, false]);
    expect([await holds(0.7, 0.7), await holds(0.69, 0.7), await holds(0, 0)]).toEqual([true, false, true]);
    expect(await holds("0.9")).toBe(false);
    for (const minScore of [-0.1, 1.1, Number.NaN, "0.5"])
      expect(() => recaptchaChallenge({ secret: "s", minScore: minScore as number })).toThrow(
        "recaptchaChallenge: option minScore must be a number from 0 to 1. Leave it out for 0.5.",
      );
  });

  it("reCAPTCHA v2: a proof without a score is valid, unless minScore is set", async () => {
    running = await startProvider(recaptcha);
    expect(await recaptchaChallenge({ secret: recaptcha.secret, ...at }).verify(running.solve(), context())).toBe(true);
    expect(await recaptchaChallenge({ secret: recaptcha.secret, minScore: 0.1, ...at }).verify(running.solve(), context())).toBe(false);
  });
});
