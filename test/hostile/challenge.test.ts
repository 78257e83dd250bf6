import { describe, expect, it, onTestFinished } from "vitest";
import { hcaptchaChallenge } from "../../adapters/challenge/hcaptcha.js";
import { recaptchaChallenge } from "../../adapters/challenge/recaptcha.js";
import { turnstileChallenge } from "../../adapters/challenge/turnstile.js";
import type { SpamRule, VerifierOptions } from "../../src/index.js";
import { type Answer, address, json, number, numberAt, spellings, troubles, type Vendor, vendor, type Watched, watched } from "./watching-kit.js";

const secret = "0x4AAAAAAA-the-secret-of-the-site";
const proof = "the.proof+of/a&browser=";
const hostname = "example.com";

const kinds = {
  turnstile: (options: object) => turnstileChallenge({ secret, hostname, ...options }),
  hcaptcha: (options: object) => hcaptchaChallenge({ secret, hostname, ...options }),
  recaptcha: (options: object) => recaptchaChallenge({ secret, hostname, ...options }),
};
const passed = { success: true, challenge_ts: new Date(0).toISOString(), hostname, action: "sign-up", score: 0.9 };

async function serve(answer: Answer): Promise<Vendor> {
  const server = await vendor(answer);
  onTestFinished(() => server.close());
  return server;
}

/** A verifier whose rule for addresses blocks every further create from `address`, unless a proof waives it. */
async function full(options: Partial<VerifierOptions>): Promise<Watched> {
  const one = watched({ policy: { spam: { address: { seed: 1 } } }, ...options });
  expect((await one.verifier.createAuthentication({ phone_number: numberAt(90), ip: address })).status).toBe("pending");
  expect((await one.verifier.createAuthentication({ phone_number: numberAt(91), ip: address })).status).toBe("spam_detected");
  return one;
}

describe.each(Object.entries(kinds))("%s", (_name, make) => {
  it("waives the rules for a valid proof, and receives only the proof and the address (docs/privacy.md)", async () => {
    const server = await serve((_asked, response) => json(response, passed));
    const { verifier, told } = await full({ challenge: make({ baseUrl: server.origin }) });
    const create = { phone_number: number, ip: address, device_id: "a-browser", device_model: "Pixel", proof };
    expect((await verifier.createAuthentication(create)).status).toBe("pending");
    expect(server.asked.map(({ body }) => [...new URLSearchParams(body)])).toEqual([
      [
        ["secret", secret],
        ["response", proof],
        ["remoteip", address],
      ],
    ]);
    for (const one of [secret, proof]) expect(told()).not.toContain(one);
  });

  it("keeps the rules in force when the provider fails, and logs no proof and no secret (docs/fraud.md#lists-and-challenges)", async () => {
    const server = await serve(() => {});
    const { verifier, told, log } = await full({ challenge: make({ baseUrl: server.origin, timeout: 1 }) });
    let index = 0;
    for (const [trouble, answer] of Object.entries(troubles)) {
      server.answer = answer(() => ({ ...passed, "error-codes": [proof] }));
      const before = log.length;
      const { status } = await verifier.createAuthentication({ phone_number: numberAt(index++), ip: address, proof });
      expect(status, trouble).toBe("spam_detected");
      expect(log.length - before, trouble).toBeLessThanOrEqual(1);
    }
    expect(server.asked.length).toBe(index);
    for (const one of [secret, proof]) expect(told()).not.toContain(one);
  });

  it("accepts no proof that was solved elsewhere, failed, or is not clearly a success (docs/fraud.md#lists-and-challenges)", async () => {
    const server = await serve(() => {});
    const { verifier } = await full({ challenge: make({ baseUrl: server.origin }) });
    const wrong = [
      { ...passed, hostname: "example.com.evil.test" },
      { ...passed, hostname: ["example.com"] },
      { ...passed, hostname: undefined },
      { ...passed, success: "true" },
      { ...passed, success: 1 },
      { success: false, hostname, "error-codes": ["timeout-or-duplicate"] },
      { success: false, hostname, "error-codes": "invalid-input-secret" },
    ];
    for (const [index, body] of wrong.entries()) {
      server.answer = (_asked, response) => json(response, body);
      const { status } = await verifier.createAuthentication({ phone_number: numberAt(index), ip: address, proof });
      expect(status, JSON.stringify(body)).toBe("spam_detected");
    }
  });
});

describe("a proof", () => {
  it("lets one of ten concurrent creates through, and a repeat under a key uses up no second one (docs/fraud.md#lists-and-challenges)", async () => {
    const used = new Set<string>();
    const server = await serve(({ body }, response) => {
      const token = new URLSearchParams(body).get("response") as string;
      const answer = used.has(token) ? { success: false, "error-codes": ["timeout-or-duplicate"] } : passed;
      used.add(token);
      setImmediate(() => json(response, answer));
    });
    const { verifier, messages } = await full({ challenge: turnstileChallenge({ secret, baseUrl: server.origin }) });
    const create = (index: number, token: string, idempotencyKey?: string) =>
      verifier.createAuthentication({ phone_number: numberAt(index), ip: address, proof: token }, { idempotencyKey });
    const race = await Promise.all(Array.from({ length: 10 }, (_, index) => create(index, "one")));
    expect(race.filter(({ status }) => status === "pending").length).toBe(1);
    const repeats = [...(await Promise.all(Array.from({ length: 5 }, () => create(20, "two", "key")))), await create(20, "three", "key")];
    expect(new Set(repeats.map(({ status, authentication_uuid }) => status + authentication_uuid)).size).toBe(1);
    expect(repeats[0]?.status).toBe("pending");
    expect(messages.length).toBe(3);
  });

  it("of another action, or with a low score, waives nothing (docs/fraud.md#lists-and-challenges)", async () => {
    const server = await serve(() => {});
    const baseUrl = server.origin;
    const cases = [
      [turnstileChallenge({ secret, baseUrl, action: "sign-up" }), { ...passed, action: "login" }],
      [turnstileChallenge({ secret, baseUrl, action: "sign-up" }), { ...passed, action: undefined }],
      [recaptchaChallenge({ secret, baseUrl, action: "sign-up" }), { ...passed, action: "login" }],
      [recaptchaChallenge({ secret, baseUrl }), { ...passed, score: 0.49 }],
      [recaptchaChallenge({ secret, baseUrl }), { ...passed, score: "0.9" }],
      [recaptchaChallenge({ secret, baseUrl, minScore: 0.7 }), { ...passed, score: undefined }],
    ] as const;
    for (const [challenge, body] of cases) {
      server.answer = (_asked, response) => json(response, body);
      const { verifier } = await full({ challenge });
      const { status } = await verifier.createAuthentication({ phone_number: number, ip: address, proof });
      expect(status, JSON.stringify(body)).toBe("spam_detected");
    }
  });

  it("is not checked for a number that gets no message anyway, and bypasses no block list and no cap (docs/contract.md#challenge)", async () => {
    let asked = 0;
    const challenge = { verify: async () => ++asked > 0 };
    const lists = { block: { numbers: ["+3369*"], cidrs: ["198.51.100.0/24"], devices: ["a bad one"] } };
    const { verifier } = watched({ challenge, lists, countries: ["FR"] });
    const outcome = (fields: { phone_number: string; ip?: string; device_id?: string }) =>
      verifier.createAuthentication({ ...fields, proof }).then(
        ({ status }) => status,
        ({ code }) => code,
      );
    expect(await outcome({ phone_number: "+33699999999" })).toBe("blocked_number");
    expect(await outcome({ phone_number: "+14155552671" })).toBe("unsupported_region");
    expect(await outcome({ phone_number: "+330" })).toBe("invalid_phone_number");
    expect(asked).toBe(0);
    expect(await outcome({ phone_number: number, ip: "::ffff:198.51.100.7" })).toBe("spam_detected");
    expect(await outcome({ phone_number: number, device_id: "a bad one" })).toBe("spam_detected");
    const sends = [];
    for (let send = 0; send < 6; send++) sends.push(await outcome({ phone_number: number }));
    expect(sends).toEqual([...Array(5).fill("pending"), "rate_limited"]);
  });
});

describe("the caller's own rules", () => {
  const rules: Record<string, SpamRule> = {
    judge: { name: "mine", judge: () => ({ reason: "never" }) },
    cell: { name: "mine", cell: () => "all", seed: 0 },
  };

  const outcomes = async (options: Partial<VerifierOptions>, fields: { phone_number: string; proof?: string }) => {
    const found: Record<string, string[]> = {};
    for (const [kind, rule] of Object.entries(rules)) {
      const { verifier } = watched({ spamRules: [rule], ...options });
      const blocked = await verifier.createAuthentication({ phone_number: numberAt(1) });
      found[kind] = [blocked.status, (await verifier.createAuthentication(fields)).status];
    }
    return found;
  };
  const exempt = { judge: ["spam_detected", "pending"], cell: ["spam_detected", "pending"] };

  it("are waived by a valid proof (docs/fraud.md#lists-and-challenges)", async () => {
    expect(await outcomes({ challenge: { verify: async () => true } }, { phone_number: number, proof })).toEqual(exempt);
  });

  it("do not apply to a number on the safe list (docs/fraud.md#lists-and-challenges)", async () => {
    expect(await outcomes({ lists: { safe: { numbers: [number] } } }, { phone_number: number })).toEqual(exempt);
  });

  it("allow the message within about a second when they hang, throw or return anything odd (docs/contract.md#own-rules)", async () => {
    const odd = ["spam", true, false, 5, {}, [], { reason: 5 }];
    const spamRules: SpamRule[] = [
      { name: "hangs", judge: () => new Promise<never>(() => {}) },
      { name: "rejects", judge: () => Promise.reject(new Error(`no ${number}`)) },
      {
        name: "throws",
        judge: ({ phone_number }) => {
          throw new Error(`no ${phone_number}`);
        },
      },
      { name: "odd-cell", cell: () => 5 as never, seed: 0 },
      ...odd.map((verdict, index) => ({ name: `odd-${index}`, judge: () => verdict as never })),
    ];
    const { verifier, told } = watched({ spamRules });
    expect((await verifier.createAuthentication({ phone_number: number })).status).toBe("pending");
    for (const one of spellings(number)) expect(told()).not.toContain(one);
  });
});
