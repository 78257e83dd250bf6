import { describe, expect, it } from "vitest";
import { httpSender } from "../../adapters/sms/http.js";
import type { CodeMessage } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/index.js";
import { aMessage, inTime } from "../support/carriers/messages.js";
import { at, carrierNames, carriersOf, fieldsOf, leaks, make, run, scriptOf } from "./carrier-kit.js";
import { service, wide } from "./kit.js";

/** Each carrier's documented field for a message's validity, in seconds, and its range. */
const validities: readonly (readonly [string, string, least: number, most: number])[] = [
  ["twilio", "ValidityPeriod", 1, 36_000],
  ["vonage", "ttl", 20, 604_800],
  ["aws", "TimeToLive", 5, 259_200],
  ["messagebird", "validity", 1, Number.POSITIVE_INFINITY],
  // support.plivo.com, "Message Expiry": "you can set the expiry time to be 5 to 10,799 seconds".
  ["plivo", "message_expiry", 5, 10_799],
  ["infobip", "messages.0.options.validityPeriod.amount", 1, Number.POSITIVE_INFINITY],
];

/** A service that sends through a local carrier; its clock is years ahead of the system clock. */
async function through(name: string, more: object = {}, options: Parameters<typeof service>[0] = {}) {
  const carrier = await run(scriptOf(name));
  const sender = make(name, { ...more, baseUrl: carrier.url });
  const clock = fixedClock(Date.UTC(2031, 5, 1));
  const one = service({ ...options, clock, sender: sender as never, policy: { limits: wide, ...options.policy } });
  const sent = () => carrier.requests.map(fieldsOf);
  return { one, clock, carrier, sent, sender };
}

describe("a message's validity at its carrier, by the verifier's clock", () => {
  it.each(validities)("%s: is what is left of the code's life, at create and at retry", async (name, path, least) => {
    const { one, clock, sent } = await through(name);
    const { authentication_uuid: id } = await one.create("+14155552671");
    clock.advance(95_500);
    await one.retry(id);
    expect(sent().map((fields) => Number(at(fields, path)))).toEqual([600, 504]);
    clock.advance(502_000);
    await one.retry(id);
    const last = Number(at(sent()[2], path));
    expect(last).toBe(Math.max(least, 2));
  });

  it.each(validities)("%s: is never outside the documented range, however long codes live", async (name, path, least, most) => {
    for (const lifetime of [1, 4, 600, 3 * 3600, 11 * 3600, 4 * 86_400, 364 * 86_400]) {
      const { one, sent } = await through(name, {}, { policy: { lifetime, longLifetime: true } });
      await one.create("+14155552671");
      const told = at(sent()[0], path);
      expect(String(told), `${lifetime}`).toMatch(/^\d+$/);
      expect(Number(told), `${lifetime}`).toBeGreaterThanOrEqual(least);
      expect(Number(told), `${lifetime}`).toBeLessThanOrEqual(most);
    }
  });

  it.each(["africastalking", "telnyx", "sinch"])("%s: live codes are accepted, and an expired code is never sent", async (name) => {
    const { one, clock, carrier } = await through(name, {}, { policy: { lifetime: 40 } });
    const { authentication_uuid: id } = await one.create("+14155552671");
    clock.advance(39_999);
    await one.retry(id);
    clock.advance(1);
    await one.retry(id);
    expect(carrier.taken).toHaveLength(2);
  });
});

describe("a second route, after a slow rejection by the first", () => {
  const afterSeconds = async (seconds: number, lifetime: number) => {
    const carrier = await run(scriptOf("twilio"));
    const clock = fixedClock(Date.UTC(2031, 5, 1));
    const slow = {
      send: async () => {
        clock.advance(seconds * 1_000);
        return { outcome: "rejected" as const };
      },
    };
    const sender = router({
      routes: [
        { name: "slow", sender: slow, priority: 0 },
        { name: "second", sender: make("twilio", { baseUrl: carrier.url }) },
      ],
      clock,
    });
    const one = service({ clock, sender: sender as never, policy: { limits: wide, lifetime }, sendTimeout: 30 });
    await one.create("+14155552671");
    return carrier.requests.map((request) => fieldsOf(request)["ValidityPeriod"]);
  };

  it("gets the validity that is left by then", async () => {
    expect(await afterSeconds(20, 600)).toEqual(["580"]);
  });

  it("gets no code that has expired in the meantime", async () => {
    expect(await afterSeconds(20, 20)).toEqual([]);
  });
});

describe("credentials() that fails", () => {
  const context = (ms: number) => ({ signal: AbortSignal.timeout(ms), deadline: Date.now() + ms, timeLeft: ms });
  const credentials = carriersOf["aws"]!.needs["credentials"] as object;

  it("hangs until the time is over: rejected, and nothing is sent", async () => {
    const carrier = await run(scriptOf("aws"));
    const sender = make("aws", { baseUrl: carrier.url, credentials: () => new Promise(() => {}) });
    const ended = await Promise.race([
      sender.send(aMessage(), context(150)),
      new Promise((done) => setTimeout(() => done({ outcome: "still waiting" }), 3_000)),
    ]);
    expect(ended).toMatchObject({ outcome: "rejected" });
    expect(carrier.requests).toEqual([]);
  });

  it("returns after the time is over: rejected, and nothing is sent", async () => {
    const carrier = await run(scriptOf("aws"));
    let give: (value: object) => void = () => {};
    const sender = make("aws", { baseUrl: carrier.url, credentials: () => new Promise((resolve) => (give = resolve)) });
    const signal = new AbortController();
    const sending = sender.send(aMessage(), { signal: signal.signal, deadline: Date.now() + 60_000, timeLeft: 60_000 });
    await Promise.resolve();
    signal.abort();
    give(credentials);
    expect(await sending).toMatchObject({ outcome: "rejected" });
    expect(carrier.requests).toEqual([]);
  });

  it.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("no profile");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no profile"))],
    ["answers nothing", () => undefined],
    ["answers null", () => null],
    ["answers half", () => ({ accessKeyId: "AKID" })],
    ["answers empty ones", () => ({ accessKeyId: "", secretAccessKey: "" })],
    ["answers numbers", () => ({ accessKeyId: 1, secretAccessKey: 2 })],
    ["answers what no header can carry", () => ({ accessKeyId: "AKID\n", secretAccessKey: "secret-in-credentials", sessionToken: "tok\r\nen" })],
  ])("%s: rejected, with a cause, without the secret", async (_, answer) => {
    const carrier = await run(scriptOf("aws"));
    const outcome = await make("aws", { baseUrl: carrier.url, credentials: answer }).send(aMessage(), inTime());
    expect(outcome).toMatchObject({ outcome: "rejected", reason: expect.stringMatching(/^not sent/) });
    expect(JSON.stringify(outcome)).not.toMatch(/secret-in-credentials|tok\\r/);
    expect(carrier.requests).toEqual([]);
  });
});

describe("credentials that no header can carry, such as those from a file with a line break", () => {
  const keys: Readonly<Record<string, string>> = {
    twilio: "authToken",
    vonage: "apiSecret",
    messagebird: "accessKey",
    plivo: "authToken",
    sinch: "apiToken",
    infobip: "apiKey",
    telnyx: "apiKey",
    africastalking: "apiKey",
  };
  it.each(Object.entries(keys))("%s: throw at construction or are rejected, never unknown, and are never shown", async (name, option) => {
    const carrier = await run(scriptOf(name));
    for (const bent of ["s3cr3t-value\n", "s3cr3t-value\r\nx-evil: 1", "s3cr3t-välue-ключ", "s3cr3t-value\0"]) {
      let shown = "";
      const outcome = await (async () => make(name, { [option]: bent, baseUrl: carrier.url }))().then(
        (sender) => sender.send(aMessage(), inTime()),
        (error: unknown) => ({ outcome: error instanceof TypeError ? "rejected" : "thrown", reason: String(error) }),
      );
      expect(outcome.outcome, bent).toBe("rejected");
      shown = JSON.stringify(outcome);
      expect(shown).not.toMatch(/s3cr3t/);
    }
  });
});

describe("nothing that is logged holds a code, a key or a whole number", () => {
  const spilling = (message: Pick<CodeMessage, "to" | "code">, url: string): readonly (readonly [string, () => unknown])[] => {
    const words = `${message.to} ${message.code} ${url}`;
    return [
      ["an error that repeats it", () => Promise.reject(new TypeError(words))],
      ["a cause that repeats it", () => Promise.reject(new TypeError("fetch failed", { cause: new Error(words) }))],
      ["a code that repeats it", () => Promise.reject(Object.assign(new Error("x"), { code: message.code }))],
      [
        "a code with the number",
        () => Promise.reject(new TypeError("fetch failed", { cause: Object.assign(new Error("y"), { code: message.to, syscall: "connect" }) })),
      ],
      ["a thrown text", () => Promise.reject(words)],
      ["a thrown object", () => Promise.reject({ toString: () => words, message: words, outcome: "rejected" })],
      [
        "an answer that repeats it",
        () => new Response(JSON.stringify({ code: message.code, error: message.to, errors: [{ code: message.to }], errorCode: message.code }), { status: 400 }),
      ],
      ["digits in another spelling", () => new Response(JSON.stringify({ code: Number(message.code), message: words }), { status: 422 })],
    ];
  };

  it.each(carrierNames)("%s: whatever its client throws or its carrier returns", async (name) => {
    let answer: () => unknown = () => undefined;
    const seen: { to: string; text: string; url: string }[] = [];
    const sender = make(name, {
      fetch: async (url: string, init: { body: string }) => {
        seen.push({ to: "", text: init.body, url });
        return answer();
      },
    });
    let count = 0;
    const wrapped = {
      ...sender,
      async send(message: CodeMessage, context: never) {
        const [what, spill] = spilling(message, "https://user:pass-word@carrier.example")[count++ % 8] as readonly [string, () => unknown];
        answer = spill;
        const outcome = await sender.send(message, context);
        expect(leaks(JSON.stringify(outcome), message), what).toBe(false);
        sentMessages.push(message);
        return outcome;
      },
    };
    const sentMessages: CodeMessage[] = [];
    const one = service({ sender: wrapped as never, policy: { limits: wide } });
    for (let i = 0; i < 8; i++) await one.create(i).catch(() => undefined);
    expect(sentMessages).toHaveLength(8);
    const log = JSON.stringify(one.log, (_key, value: unknown) =>
      value instanceof Error ? { ...value, message: value.message, stack: value.stack, cause: value.cause } : value,
    );
    expect(log.length).toBeGreaterThan(100);
    for (const message of sentMessages) expect(log).not.toContain(message.to.slice(1));
    for (const message of sentMessages) expect(new RegExp(`(?<!\\d)${message.code}(?!\\d)`).test(log), message.code).toBe(false);
    expect(log).not.toContain("pass-word");
  });

  it("http: the reason never contains a key from an unusable URL", async () => {
    const key = "k3y-in-the-url";
    const urls = [
      `https://carrier.example:99999/?key=${key}`,
      `ftp://carrier.example/${key}`,
      `carrier.example/${key}`,
      `https://[${key}]/`,
      `javascript:${key}`,
    ];
    for (const url of urls) {
      const outcome = await httpSender({ url: () => url, json: { text: "{text}" } }).send(aMessage(), inTime());
      expect(outcome.outcome, url).toBe("rejected");
      expect(JSON.stringify(outcome), url).not.toContain(key);
    }
  });
});

describe("a request that cannot be made is rejected, because nothing was sent", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  it.each<[string, () => ReturnType<typeof make>]>([
    ["a URL with a user and a password, which fetch refuses", () => httpSender({ url: "https://user:password@127.0.0.1/?text={text}" })],
    ["a port that fetch refuses", () => make("twilio", { baseUrl: "http://127.0.0.1:6000" })],
    ["a field that JSON has no word for", () => make("plivo", { extra: { tag: 10n } })],
    ["a field that holds itself", () => make("plivo", { extra: circular })],
  ])("%s", async (_, build) => {
    expect((await build().send(aMessage(), inTime())).outcome).toBe("rejected");
  });

  it("a closed port gives `rejected`, with only the system's error code as the reason", async () => {
    const closed = await run(scriptOf("twilio"), "unreachable");
    for (const name of carrierNames)
      expect(await make(name, { baseUrl: closed.url }).send(aMessage(), inTime()), name).toEqual({
        outcome: "rejected",
        reason: "not sent: no connection, code ECONNREFUSED",
      });
  });
});

describe("options of carriers", () => {
  const wrongTexts: readonly unknown[] = [undefined, null, "", "   ", 7, {}, [], true];
  const needed: readonly (readonly [string, string])[] = Object.entries({
    twilio: ["accountSid", "authToken"],
    vonage: ["apiKey", "apiSecret"],
    aws: ["region", "credentials"],
    messagebird: ["accessKey"],
    plivo: ["authId", "authToken"],
    sinch: ["servicePlanId", "apiToken"],
    infobip: ["apiKey", "baseUrl"],
    telnyx: ["apiKey"],
    africastalking: ["username", "apiKey"],
  }).flatMap(([name, options]) => options.map((option) => [name, option] as const));

  it.each(needed)("%s: a missing or invalid %s is a TypeError that names it", (name, option) => {
    for (const wrong of wrongTexts) {
      expect(() => make(name, { [option]: wrong }), String(wrong)).toThrow(TypeError);
      expect(() => make(name, { [option]: wrong }), String(wrong)).toThrow(new RegExp(option));
    }
  });

  it.each(carrierNames)("%s: an option that is undefined counts as left out", (name) => {
    const undef = { extra: undefined, receipts: undefined, conversions: undefined, fetch: undefined, timeout: undefined };
    expect(make(name, undef).receiptProviders).toEqual([name]);
    if (name !== "infobip") expect(() => make(name, { baseUrl: undefined })).not.toThrow();
  });

  const wrong: readonly (readonly [string, readonly unknown[]])[] = [
    ["from", [null, "", " ", 7, [], { FR: "" }, { FR: 7 }, { FR: null }, { France: "ACME" }, { fr: "ACME" }, true]],
    ["extra", [null, "x", 7, [], true]],
    ["baseUrl", [null, "", "carrier.example", "ftp://carrier.example", 7, {}, "https://"]],
    ["fetch", [null, "fetch", {}, 7]],
    ["timeout", [null, 0, -1, Number.NaN, "5", Number.POSITIVE_INFINITY, {}]],
  ];
  it.each(carrierNames.flatMap((name) => wrong.map(([option, values]) => [name, option, values] as const)))(
    "%s: an invalid %s is a TypeError at construction",
    (name, option, values) => {
      for (const value of values) {
        if (option === "timeout" && value === Number.POSITIVE_INFINITY) continue;
        expect(() => make(name, { [option]: value }), JSON.stringify(value)).toThrow(TypeError);
      }
    },
  );

  it.each(carrierNames.flatMap((name) => ["receipts", "conversions"].map((option) => [name, option] as const)))(
    "%s: %s as a string, as from the environment, is a TypeError",
    (name, option) => {
      for (const value of ["false", "true", "0"]) expect(() => make(name, { [option]: value }), value).toThrow(TypeError);
    },
  );

  it.each(carrierNames.filter((name) => name !== "aws"))("%s: a `from` that no phone can show is a TypeError at construction", (name) => {
    for (const from of ["A\nB", "+", "++33612345678", "+336123456789012345", "+33x"]) expect(() => make(name, { from }), from).toThrow(TypeError);
  });

  const answers = async (name: string, all: readonly unknown[]) => {
    const carrier = await run(scriptOf(name));
    for (const answer of all) {
      const outcome = await make(name, { baseUrl: carrier.url, from: () => answer }).send(aMessage(), inTime());
      expect(outcome.outcome, JSON.stringify(answer)).toBe("rejected");
    }
    expect(carrier.taken).toEqual([]);
  };
  it.each(carrierNames)("%s: a message is rejected, unsent, if the rule for `from` returns no valid text", (name) =>
    answers(name, [undefined, "", null, 7, {}]),
  );
  it.each(carrierNames)("%s: a message is rejected, unsent, if the rule for `from` returns a promise", (name) => answers(name, [Promise.resolve("ACME")]));
  it.each(carrierNames.filter((name) => name !== "aws"))("%s: the result of a rule for `from` is limited to 11 characters, as a text is", (name) =>
    answers(name, ["TwelveLetters"]),
  );
});
