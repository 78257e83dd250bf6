import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { defaultSpamPolicy } from "../../src/domain/spam-policy.js";
import { genericHook, hooks } from "../../src/hooks/index.js";
import type { VerifierOptions } from "../../src/index.js";
import type { Answer, Call } from "../http/client.js";
import { setUp } from "../support/verifier.js";
import { actionOf, lambdaOf } from "./hook-pages.js";
import { answerWithin, expectNothingLeaks, foreign, landline, losingProxy, type Served, serve } from "./hooks-kit.js";
import {
  type Ask,
  authentik,
  authgear,
  authgearKey,
  casdoor,
  genericToken,
  goJson,
  hexHmac,
  keycloak,
  kratos,
  kratosToken,
  logto,
  logtoSigningKey,
  logtoToken,
  logtoWebhook,
  okta,
  oktaBody,
  oktaToken,
  oldSupabase,
  oneOfEach,
  plain,
  type Speaker,
  speakers,
  supabase,
  supabaseBody,
  supabaseConfirmToken,
  supabaseHeaders,
  supabaseNext,
  supabaseSecret,
  supabaseUser,
  zitadel,
  zitadelBody,
  zitadelKey,
  zitadelNext,
  zitadelSignature,
} from "./identity-servers.js";

afterEach(expectNothingLeaks);

const textsOf = ({ box }: Served) => box.messages.map(({ text }) => text);
const codesOf = ({ box }: Served) => box.messages.map(({ code }) => code);

describe("a code is sent once, and the identity server reports success", () => {
  test.each(speakers)("$name", async (speaker) => {
    const served = await serve(speaker);
    const ask = served.ask();
    expect(await served.told(speaker, ask)).toMatchObject({ result: "sent", tries: 1 });
    expect(served.box.messages).toMatchObject([{ to: ask.to, code: ask.code, text: expect.stringContaining(ask.code), attempt: 1 }]);
    expect(await served.newest(ask.to)).toMatchObject({ validated: false });
  });

  test.each(speakers.flatMap((speaker) => speaker.purposes.map((purpose) => ({ ...speaker, purpose, speaker }))))(
    "$name: stores the purpose $purpose",
    async ({ speaker, purpose }) => {
      const served = await serve(speaker);
      const ask = served.ask({ purpose });
      await served.told(speaker, ask);
      expect(await served.newest(ask.to)).toMatchObject({ purpose });
    },
  );

  test.each(speakers.filter(({ ownText }) => ownText))("$name: sends the server's own text", async (speaker) => {
    const served = await serve(speaker, { message: { maxSegments: 2 } });
    const ask = served.ask({ locale: "fr" });
    await served.told(speaker, ask);
    expect(textsOf(served)).toEqual([expect.stringContaining(`Votre code Acme est ${ask.code}.`)]);
  });

  test.each(speakers.filter(({ locale }) => locale))("$name: sends our text in the user's language", async (speaker) => {
    const served = await serve(speaker, { message: { text: { default: "Code {code}", fr: "Voici {code}" } } });
    const ask = served.ask({ locale: "fr" });
    await served.told(speaker, ask);
    expect(textsOf(served)).toEqual([`Voici ${ask.code}`]);
  });

  test.each(speakers)("$name: accepts a number with and without +", async (speaker) => {
    const served = await serve(speaker);
    const ask = served.ask();
    for (const to of [ask.to, ask.to.replace("+", "")]) {
      const { code } = served.ask();
      expect(await served.told(speaker, { to, code })).toMatchObject({ result: "sent" });
      expect(served.box.messages.at(-1)).toMatchObject({ to: ask.to, code });
    }
  });

  test.each(speakers)("$name: accepts codes of four and eight digits", async (speaker) => {
    const served = await serve(speaker);
    for (const code of ["4821", "48213975"]) expect(await served.told(speaker, served.ask({ code }))).toMatchObject({ result: "sent" });
    expect(codesOf(served)).toEqual(["4821", "48213975"]);
  });
});

interface Refusal {
  readonly why: string;
  readonly of: "limited" | "invalid" | "no_route" | "unavailable";
  readonly options?: Partial<VerifierOptions>;
  readonly to?: string;
  prepare?(served: Served, speaker: Speaker, ask: Ask): Promise<unknown> | unknown;
}

const blocked = "+33698765432";
const refusals: readonly Refusal[] = [
  {
    why: "a cap",
    of: "limited",
    options: { policy: { limits: { perNumber: [{ limit: 1, window: 600 }] } } },
    prepare: (served, speaker, { to }) => served.told(speaker, served.ask({ to })),
  },
  { why: "a spam rule", of: "limited", options: { spamRules: [{ name: "mine", judge: () => ({ reason: "mine" }) }] } },
  { why: "the ceiling", of: "limited", options: { policy: { limits: { spend: [{ amount: 0.001, per: "day" }] } } } },
  { why: "a landline", of: "invalid", to: landline },
  { why: "a country that is not served", of: "invalid", to: foreign },
  { why: "no number at all", of: "invalid", to: "+336" },
  { why: "a blocked number", of: "invalid", to: blocked, options: { blockedNumbers: [blocked] } },
  {
    why: "every carrier rejects",
    of: "no_route",
    prepare: ({ box }) => {
      box.answer = async () => ({ outcome: "rejected" });
    },
  },
  {
    why: "the store is down",
    of: "unavailable",
    prepare: ({ store }) => {
      store.fate = () => "refused";
    },
  },
  {
    why: "the store hangs",
    of: "unavailable",
    prepare: ({ store }) => {
      store.fate = () => "held";
    },
  },
];

/** What the docs page states for each family. `undefined`: anything that the server does not read as success. */
const answersOf: Record<string, Partial<Record<Refusal["of"], [status: number | undefined, result: string, toItsClient?: number]>>> = {
  Supabase: { limited: [200, "refused", 429], invalid: [200, "refused", 422], no_route: [200, "refused", 502], unavailable: [503, "refused", 500] },
  Logto: { limited: [429, "refused", 500], invalid: [422, "refused", 500], no_route: [502, "refused", 500], unavailable: [503, "refused", 500] },
  queue: { limited: [200, "sent"], invalid: [200, "sent"], no_route: [503, "again"], unavailable: [503, "again"] },
  Okta: { limited: [200, "refused"], invalid: [200, "refused"], no_route: [200, "falls back"], unavailable: [200, "refused"] },
  Authgear: { limited: [undefined, "refused"], invalid: [undefined, "refused"], no_route: [undefined, "refused"], unavailable: [503, "refused"] },
  others: { limited: [429, "refused"], invalid: [422, "refused"], no_route: [502, "refused"], unavailable: [503, "refused"] },
  Casdoor: { limited: [undefined, "refused"], invalid: [undefined, "refused"], no_route: [undefined, "refused"], unavailable: [undefined, "refused"] },
  Keycloak: { limited: [429, "sent"], invalid: [422, "sent"], no_route: [502, "sent"], unavailable: [503, "sent"] },
};
const familyOf = ({ name }: Speaker) => {
  if (name === "Kratos" || name === "ZITADEL") return "queue";
  return Object.keys(answersOf).find((family) => name.startsWith(family)) ?? "others";
};
/** What the docs page does not promise, or only as uncertain. */
const doubt = ({ name }: Speaker, { of }: Refusal) => (name === "Okta" && of === "no_route" ? " [unsure: fails open]" : "");

describe("each kind of rejection has the documented effect in the server's own code", () => {
  const cases = speakers.flatMap((speaker) =>
    refusals.map((refusal) => ({ name: speaker.name + doubt(speaker, refusal), why: refusal.why, speaker, refusal })),
  );
  test.each(cases)("$name: $why", async ({ speaker, refusal }) => {
    const served = await serve(speaker, refusal.options);
    const ask = served.ask(refusal.to === undefined ? {} : { to: refusal.to });
    await refusal.prepare?.(served, speaker, ask);
    const before = served.box.messages.length;
    const at = served.answers.length;
    // A single request: repeats have their own tests.
    const answer = await answerWithin(served, speaker.timeOut - 500, served.send(speaker.request({ event: crypto.randomUUID(), ...ask }, served.clock.now())));
    const [status, result, toItsClient] = answersOf[familyOf(speaker)]?.[refusal.of] ?? [];
    const told = speaker.conclude(answer);
    expect(told.result, `${answer.status} ${answer.text}`).toBe(result);
    if (status !== undefined) expect(answer.status, answer.text).toBe(status);
    if (toItsClient !== undefined) expect(told.status, answer.text).toBe(toItsClient);
    if (refusal.of !== "no_route") expect(served.box.messages.length).toBe(before);
    expect(served.answers.length - at).toBe(1);
    if (speaker.name.startsWith("Supabase")) expect(answer.headers["retry-after"], "a repeat within the same five seconds cannot help").toBeUndefined();
    if (familyOf(speaker) === "queue" && status === 200) expect(answer.headers["x-phoneproof-status"]).toMatch(/^(rate_limited|spam_detected|invalid)$/);
    if (told.words !== undefined) expect(told.words).not.toMatch(/phoneproof|perNumber|spam|rule|mine|ceiling|store|carrier|route/i);
  });

  test.each(speakers.filter(({ name }) => name !== "Kratos" && name !== "ZITADEL" && name !== "Keycloak"))(
    "$name: a cap and a spam rule give the user the same response, byte for byte",
    async (speaker) => {
      const seen: unknown[] = [];
      for (const { options, prepare } of refusals.slice(0, 2)) {
        const served = await serve(speaker, options);
        const ask = served.ask({ locale: "fr", purpose: "sign_in" });
        await prepare?.(served, speaker, ask);
        const { status, headers, text } = await served.send(speaker.request(ask, served.clock.now()));
        const { date: _date, ...rest } = headers;
        // The generic route also reports the status, to the operator's own code.
        seen.push([
          status,
          speaker.path === "/hooks/generic" ? JSON.parse(text).message : text,
          speaker.path === "/hooks/generic" ? [] : Object.keys(rest).sort(),
        ]);
      }
      expect(seen[0]).toEqual(seen[1]);
    },
  );

  test.each([supabase, oldSupabase])("$name: the error message is in the user's language", async (speaker) => {
    const served = await serve(speaker, { spamRules: [{ name: "mine", judge: () => ({ reason: "mine" }) }] });
    expect(await served.told(speaker, served.ask({ locale: "fr" }))).toMatchObject({
      status: 429,
      words: "Trop de messages ont été demandés. Réessayez plus tard.",
    });
  });

  test.each([logto, authentik])("$name: a rejection that its user may see is one sentence of plain text", async (speaker) => {
    const served = await serve(speaker, { spamRules: [{ name: "mine", judge: () => ({ reason: "mine" }) }] });
    const answer = await served.send(speaker.request(served.ask(), served.clock.now()));
    expect(answer.headers["content-type"]).toMatch(/^text\/plain/);
    expect(answer.text).toMatch(/^[A-Z][^<>{}"\n]+\.$/);
  });

  test.each([
    ["limited", "rate_limited"],
    ["invalid", "invalid_phone_number"],
    ["no_route", "delivery_rejected"],
  ] as const)("Authgear: a rejection of kind %s is reported as %s", async (of, kind) => {
    for (const refusal of refusals.filter((one) => one.of === of)) {
      const served = await serve(authgear, refusal.options);
      const ask = served.ask(refusal.to === undefined ? {} : { to: refusal.to });
      await refusal.prepare?.(served, authgear, ask);
      expect(await served.told(authgear, ask), refusal.why).toMatchObject({ words: kind });
    }
  });

  test("Okta: a successful response includes the provider and a transaction id", async () => {
    const served = await serve(okta);
    const { text } = await served.send(okta.request(served.ask(), served.clock.now()));
    expect(JSON.parse(text)).toEqual({
      commands: [
        {
          type: "com.okta.telephony.action",
          value: [expect.objectContaining({ status: "SUCCESSFUL", provider: expect.any(String), transactionId: expect.any(String) })],
        },
      ],
    });
  });

  test.each<[string, (ask: Ask, at: number) => object]>([
    ["a call", (ask, at) => oktaBody(ask, at, { deliveryChannel: "CALL" })],
    ["no code and no text", (ask, at) => oktaBody(ask, at, { otpCode: undefined, msgTemplate: undefined })],
    ["a code of two digits", (ask, at) => oktaBody({ ...ask, code: "12" }, at)],
    ["a number that is a list", (ask, at) => oktaBody(ask, at, { phoneNumber: [ask.to] })],
    ["no profile", (ask, at) => ({ ...oktaBody(ask, at), data: {} })],
    ["no data", () => ({ eventType: "com.okta.telephony.provider" })],
    ["nothing", () => ({})],
    [
      "another hook's event",
      (ask, at) => ({ ...oktaBody(ask, at), eventType: "com.okta.oauth2.tokens.transform", data: { identity: { claims: { sub: "zoe" } } } }),
    ],
  ])("Okta never falls back to its own sending: %s", async (_what, bodyOf) => {
    const served = await serve(okta);
    const call = { ...okta.request(served.ask(), 0), body: JSON.stringify(bodyOf(served.ask(), served.clock.now())) };
    expect(okta.conclude(await served.send(call)).result).toBe("refused");
    expect(served.box.messages).toEqual([]);
  });

  test.each(["{", "", "[]", "null", '"text"', "\u0000"])("Okta never falls back to its own sending: the body %j", async (body) => {
    const served = await serve(okta);
    expect(okta.conclude(await served.send({ ...okta.request(served.ask(), 0), body })).result).toBe("refused");
  });

  test.each(["", "yesterday", "2022-01-28T21:48:34.321Z", "2099-01-01T00:00:00Z", 5])(
    "Okta: a code with otpExpires %j is sent all the same",
    async (otpExpires) => {
      const served = await serve(okta);
      const ask = served.ask();
      const call = { ...okta.request(ask, 0), body: JSON.stringify(oktaBody(ask, served.clock.now(), { otpExpires })) };
      expect(okta.conclude(await served.send(call)).result).toBe("sent");
    },
  );
});

describe("a carrier slower than the server's timeout", () => {
  test.each(speakers)("$name: gets a response before its timeout, and one message is sent", async (speaker) => {
    const served = await serve(speaker);
    served.hangCarrier();
    const ask = served.ask();
    const told = await answerWithin(served, speaker.timeOut - 500, served.told(speaker, ask));
    expect(told).toMatchObject({ result: "sent", tries: 1 });
    expect(served.box.messages).toHaveLength(1);
  });

  test("Okta gets the status PENDING", async () => {
    const served = await serve(okta);
    served.hangCarrier();
    const answer = await answerWithin(served, 2_500, served.send(okta.request(served.ask(), served.clock.now())));
    expect(JSON.parse(answer.text)).toMatchObject({ commands: [{ value: [{ status: "PENDING" }] }] });
  });

  test.each([
    ["Supabase", supabase, 3_500],
    ["ZITADEL", zitadel, 4_000],
    ["Okta", okta, 2_000],
  ] as const)("%s: waits for the documented time, or for the option `within`", async (_name, speaker, ms) => {
    for (const within of [ms, 700]) {
      const served = await serve([speaker.hook(within === ms ? {} : { within })]);
      served.hangCarrier();
      const from = served.clock.now();
      await answerWithin(served, within, served.told(speaker));
      expect(served.clock.now() - from).toBeGreaterThanOrEqual(within - 100);
    }
  });
});

describe("repeats as each server makes them", () => {
  test.each([
    [supabase, 2],
    [oldSupabase, 2],
    [kratos, 5],
    [zitadel, 9],
    [okta, 1],
  ] as const)("$name loses $1 responses: one message is sent", async (speaker, lost) => {
    const served = await serve(speaker);
    const proxy = await losingProxy(served.url);
    proxy.drop(lost);
    expect(await served.told(speaker, served.ask(), served.line(proxy))).toMatchObject({ result: "sent", tries: lost + 1 });
    expect(served.box.messages).toHaveLength(1);
  });

  test.each([supabase, okta])("$name: repeats of an event send nothing more, even after three minutes", async (speaker) => {
    const served = await serve(speaker);
    const ask = served.ask({ event: crypto.randomUUID() });
    for (const ms of [0, 29_000, 31_000, 120_000]) {
      served.clock.advance(ms);
      expect(await served.told(speaker, ask)).toMatchObject({ result: "sent" });
    }
    expect(served.box.messages).toHaveLength(1);
  });

  test.each(speakers)("$name: twenty concurrent identical requests send one message, and all report success", async (speaker) => {
    const served = await serve(speaker);
    const ask = served.ask({ event: crypto.randomUUID() });
    const call = speaker.request(ask, served.clock.now());
    const all = await Promise.all(Array.from({ length: 20 }, () => served.send(call)));
    expect(all.map((answer) => speaker.conclude(answer).result)).toEqual(Array(20).fill("sent"));
    expect(served.box.messages).toHaveLength(1);
  });

  test("Kratos: two couriers send the same message at the same time, five times in five minutes: one message is sent", async () => {
    const served = await serve(kratos);
    const ask = served.ask();
    for (let round = 0; round < 5; round++) {
      const both = await Promise.all([served.told(kratos, ask), served.told(kratos, ask)]);
      expect(both).toMatchObject([{ result: "sent" }, { result: "sent" }]);
      served.clock.advance(60_000);
    }
    expect(served.box.messages).toHaveLength(1);
  });

  test.each([kratos, zitadel])("$name: does not retry a rejected message", async (speaker) => {
    const served = await serve(speaker, { spamRules: [{ name: "mine", judge: () => ({ reason: "mine" }) }] });
    expect(await served.told(speaker)).toMatchObject({ tries: 1 });
  });

  test.each([kratos, zitadel])("$name: retries after a store outage, and the code is sent", async (speaker) => {
    const served = await serve(speaker);
    served.store.fate = () => "refused";
    const line = served.line();
    const told = await served.told(speaker, served.ask(), {
      ...line,
      pause(ms) {
        served.store.fate = () => "done";
        return line.pause(ms);
      },
    });
    expect(told).toMatchObject({ result: "sent", tries: 2 });
    expect(served.box.messages).toHaveLength(1);
  });

  test.each([kratos, zitadel])("$name: retries after all carriers rejected the message, and the code is sent", async (speaker) => {
    const served = await serve(speaker);
    let sends = 0;
    served.box.answer = async () => ({ outcome: ++sends < 3 ? "rejected" : "accepted" });
    expect(await served.told(speaker)).toMatchObject({ result: "sent", tries: 3 });
  });

  test.each(speakers)("$name: 'send again' with a new code sends a second message", async (speaker) => {
    const served = await serve(speaker);
    const first = served.ask();
    const second = served.ask({ to: first.to });
    for (const ask of [first, second]) {
      expect(await served.told(speaker, ask)).toMatchObject({ result: "sent" });
      served.clock.advance(1_000);
    }
    expect(codesOf(served)).toEqual([first.code, second.code]);
  });

  test.each([logto, authentik, casdoor, keycloak])(
    "$name: the same code is a repeat within 30 s (except from Keycloak), and a new message after that",
    async (speaker) => {
      const served = await serve(speaker);
      const ask = served.ask();
      for (const ms of [0, 29_000, 1_001]) {
        served.clock.advance(ms);
        // Keycloak's plugin gives each request its own id.
        expect(await served.told(speaker, ask)).toMatchObject({ result: "sent" });
      }
      expect(served.box.messages).toHaveLength(speaker === keycloak ? 3 : 2);
    },
  );

  test("Supabase before metadata: a captured request that is replayed after a minute sends nothing, as its webhook-id is known", async () => {
    const served = await serve(oldSupabase);
    const call = oldSupabase.request(served.ask(), served.clock.now());
    for (const ms of [0, 60_000, 200_000]) {
      served.clock.advance(ms);
      expect(oldSupabase.conclude(await served.send(call)).result).toBe("sent");
    }
    expect(served.box.messages).toHaveLength(1);
  });

  test("Authgear: a captured request sends nothing for a day, although its signature holds no time", async () => {
    const served = await serve(authgear);
    const call = authgear.request(served.ask(), served.clock.now());
    for (const ms of [0, 300_000, 86_000_000]) {
      served.clock.advance(ms);
      expect(authgear.conclude(await served.send(call)).result).toBe("sent");
    }
    expect(served.box.messages).toHaveLength(1);
  });

  test("Supabase: another code under a known event is never reported as sent unless it is", async () => {
    const served = await serve(supabase);
    const event = crypto.randomUUID();
    const ask = served.ask({ event });
    await served.told(supabase, ask);
    const other = await served.told(supabase, served.ask({ event, to: ask.to }));
    expect([other.result, served.box.messages.length]).not.toEqual(["sent", 1]);
  });
});

// Authenticity

interface Forgery {
  readonly of: Speaker;
  readonly what: string;
  call(served: Served): Call;
}

/** A request of the server with other headers or bytes. */
const changed = (speaker: Speaker, change: (call: { headers: Record<string, string>; body: string }, at: number) => Partial<Call>) => (served: Served) => {
  const at = served.clock.now();
  const call = speaker.request(served.ask(), at);
  return { ...call, ...change(call as { headers: Record<string, string>; body: string }, at) };
};
const without = (headers: Record<string, string>, name: string) => Object.fromEntries(Object.entries(headers).filter(([other]) => other !== name));
const oneByte = (body: string) => body.replace(/(\d)(?=\D*$)/, (digit) => String((Number(digit) + 1) % 10));

const signed = (speaker: Speaker, header: string, of: string): Forgery[] => {
  const value = (change: (value: string, headers: Record<string, string>) => string | string[]) =>
    changed(speaker, ({ headers }) => ({ headers: { ...headers, [header]: change(headers[header] as string, headers) } }));
  return [
    { of: speaker, what: "no signature", call: changed(speaker, ({ headers }) => ({ headers: without(headers, header) })) },
    { of: speaker, what: "an empty signature", call: value(() => "") },
    { of: speaker, what: "a signature cut short", call: value((given) => given.slice(0, -4)) },
    { of: speaker, what: "a signature cut to its name", call: value((given) => given.slice(0, given.indexOf(of) + of.length)) },
    { of: speaker, what: "a signature that goes on", call: value((given) => `${given}AAAA`) },
    ...(of === "v1," ? [{ of: speaker, what: "a signature of another case", call: value((given) => given.slice(0, -44) + swapCase(given.slice(-44))) }] : []),
    { of: speaker, what: "__proto__ as the signature", call: value(() => "__proto__") },
    {
      of: speaker,
      what: "a thousand wrong signatures",
      call: value((given) =>
        Array(200)
          .fill(`${of}${"A".repeat(given.length > 80 ? 64 : 44)}`)
          .join(of === "" ? "," : ","),
      ),
    },
    { of: speaker, what: "one byte of the body changed", call: changed(speaker, ({ body }) => ({ body: oneByte(body) })) },
    { of: speaker, what: "the body serialised again", call: changed(speaker, ({ body }) => ({ body: JSON.stringify(JSON.parse(body), null, 1) })) },
    { of: speaker, what: "a byte order mark before the body", call: changed(speaker, ({ body }) => ({ body: `\ufeff${body}` })) },
    { of: speaker, what: "a newline after the body", call: changed(speaker, ({ body }) => ({ body: `${body}\n` })) },
    { of: speaker, what: "no body", call: changed(speaker, () => ({ body: "" })) },
    {
      of: speaker,
      what: "invalid UTF-8 in the body",
      call: changed(speaker, ({ body }) => ({ body: Buffer.concat([Buffer.from(body.slice(0, -1)), Buffer.from([0xff, 0xfe]), Buffer.from("}")]) })),
    },
  ];
};
const swapCase = (text: string) => text.replace(/[a-z]/gi, (char) => (char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase()));

const supabaseWith = (more: (headers: Record<string, string>, body: string, at: number) => Record<string, string | readonly string[]>) =>
  changed(supabase, ({ headers, body }, at) => ({ headers: { ...headers, ...more(headers, body, at) } as Record<string, string> }));
const zitadelWith = (signature: (body: string, at: number) => string) =>
  changed(zitadel, ({ headers, body }, at) => ({ headers: { ...headers, "zitadel-signature": signature(body, at) } }));

const tokens = (speaker: Speaker, token: string): Forgery[] => {
  const by = (value: string | undefined): Forgery["call"] =>
    changed(speaker, ({ headers }) => ({ headers: value === undefined ? without(headers, "authorization") : { ...headers, authorization: value } }));
  const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;
  return (
    [
      ["no token", undefined],
      ["an empty one", ""],
      ["Bearer and nothing", "Bearer "],
      ["another", `Bearer ${token.slice(0, -1)}x`],
      ["one cut short", `Bearer ${token.slice(0, -1)}`],
      ["one that goes on", `Bearer ${token}0`],
      ["two", `Bearer ${token} ${token}`],
      ["in capitals", `Bearer ${swapCase(token)}`],
      ["with something before", `Bearer x${token}`],
      ["undefined", "Bearer undefined"],
      ["null", "Bearer null"],
      ["[object Object]", "Bearer [object Object]"],
      ["Basic without a colon", basic("x")],
      ["Basic with the token's start as the password", basic(`user:${token.slice(0, -1)}`)],
      ["Basic with an empty password", basic("user:")],
      ["Basic of nothing", "Basic "],
      ["Basic that is no base64", "Basic ====%%%"],
      ["Digest", `Digest ${token}`],
      ["unicode", `Bearer ${Buffer.from(`${token}é`).toString("latin1")}`],
    ] as const
  ).map(([what, value]) => ({ of: speaker, what: `token: ${what}`, call: by(value) }));
};

const forgeries: readonly Forgery[] = [
  ...signed(supabase, "webhook-signature", "v1,"),
  ...signed(zitadel, "zitadel-signature", "v1="),
  ...signed(authgear, "x-authgear-body-signature", ""),
  ...(
    [
      ["no id", () => ({ "webhook-id": "" })],
      ["another id", () => ({ "webhook-id": crypto.randomUUID() })],
      ["301 s old", (_headers, body, at) => supabaseHeaders(body, at - 301_000)],
      ["301 s early", (_headers, body, at) => supabaseHeaders(body, at + 301_000)],
      ["another time than the signed", (headers) => ({ "webhook-timestamp": String(Number(headers["webhook-timestamp"]) + 1) })],
      ["a time in milliseconds", (headers, body, at) => ({ ...headers, ...supabaseHeaders(body, at * 1000), "webhook-id": headers["webhook-id"] as string })],
      ["no time", () => ({ "webhook-timestamp": "" })],
      ["a time that is none", () => ({ "webhook-timestamp": "now" })],
      ["a time of Infinity", () => ({ "webhook-timestamp": "Infinity" })],
      ["a time with a sign", (headers) => ({ "webhook-timestamp": `+${headers["webhook-timestamp"]}` })],
      ["another secret", (_headers, body, at) => supabaseHeaders(body, at, [supabaseNext])],
      ["an asymmetric version", (headers) => ({ "webhook-signature": (headers["webhook-signature"] as string).replace("v1,", "v1a,") })],
      ["no version", (headers) => ({ "webhook-signature": (headers["webhook-signature"] as string).replace("v1,", "") })],
      ["the version's parts reordered", (headers) => ({ "webhook-signature": (headers["webhook-signature"] as string).split(",").reverse().join(",") })],
      ["svix names", (headers) => ({ "webhook-signature": "", "svix-signature": headers["webhook-signature"] as string })],
      ["the confirm token as a bearer", () => ({ "webhook-signature": "", authorization: `Bearer ${supabaseConfirmToken}` })],
      ["two times", (headers) => ({ "webhook-timestamp": [headers["webhook-timestamp"] as string, "0"] })],
    ] as [string, Parameters<typeof supabaseWith>[0]][]
  ).map(([what, more]) => ({ of: supabase, what, call: supabaseWith(more) })),
  ...(
    [
      ["301 s old", (body, at) => zitadelSignature(body, at - 301_000)],
      ["301 s early", (body, at) => zitadelSignature(body, at + 301_000)],
      ["a time in milliseconds", (body, at) => zitadelSignature(body, at * 1000)],
      ["another key", (body, at) => zitadelSignature(body, at, [zitadelNext])],
      ["an empty key", (body, at) => zitadelSignature(body, at, [""])],
      ["no time", (body, at) => zitadelSignature(body, at).replace(/t=\d+,/, "")],
      ["an old signature with a new time after it", (body, at) => `${zitadelSignature(body, at - 400_000)},t=${Math.floor(at / 1000)}`],
      ["an old signature with a new time before it", (body, at) => `t=${Math.floor(at / 1000)},${zitadelSignature(body, at - 400_000)}`],
      ["version 0", (body, at) => zitadelSignature(body, at).replace("v1=", "v0=")],
      ["base64", (body, at) => zitadelSignature(body, at).replace(/v1=(\w+)/, (_all, hex: string) => `v1=${Buffer.from(hex, "hex").toString("base64")}`)],
    ] as [string, Parameters<typeof zitadelWith>[0]][]
  ).map(([what, signature]) => ({ of: zitadel, what, call: zitadelWith(signature) })),
  {
    of: authgear,
    what: "another key",
    call: changed(authgear, ({ headers, body }) => ({ headers: { ...headers, "x-authgear-body-signature": hexHmac(body, "x") } })),
  },
  ...tokens(logto, logtoToken),
  ...tokens(kratos, kratosToken),
  ...tokens(okta, oktaToken),
  ...tokens(authentik, authentik.secrets[0] as string),
  ...tokens(casdoor, casdoor.secrets[0] as string),
  ...tokens(plain, genericToken),
  {
    of: casdoor,
    what: "another token in the URL",
    call: changed(casdoor, ({ headers }) => ({ path: "/hooks/casdoor/x", headers: without(headers, "authorization") })),
  },
  {
    of: casdoor,
    what: "half of the token in the URL",
    call: changed(casdoor, ({ headers }) => ({ path: `${casdoor.path}/casdoor-c3d2`, headers: without(headers, "authorization") })),
  },
  {
    of: plain,
    what: "the token in the query",
    call: changed(plain, ({ headers }) => ({ path: `${plain.path}?token=${genericToken}`, headers: without(headers, "authorization") })),
  },
];

describe("unauthenticated requests: nothing is sent, and all get the same response", () => {
  test.each(forgeries.map((forgery) => ({ ...forgery, name: forgery.of.name, forgery })))("$name: $what", async ({ forgery: { of, call } }) => {
    const served = await serve(of);
    const answer = await served.send(call(served));
    expect(answer.status).toBe(401);
    expect(served.box.messages).toEqual([]);
    const bare = await served.send({
      method: "POST",
      path: of.path.split("/").slice(0, 3).join("/"),
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect([answer.text, Object.keys(answer.headers).sort()]).toEqual([bare.text, Object.keys(bare.headers).sort()]);
    expect(answer.text).not.toMatch(/signature|timestamp|token|secret|old|body|header|key|bearer|v1/i);
    expect(answer.headers).not.toHaveProperty("x-phoneproof-status");
  });

  test.each(oneOfEach)("$name: other methods give 405, unknown paths 401 or 404", async (speaker) => {
    const served = await serve(speaker);
    const call = speaker.request(served.ask(), served.clock.now());
    for (const method of ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"]) {
      const { body: _body, ...rest } = call;
      expect((await served.send({ ...(method === "PUT" || method === "PATCH" ? call : rest), method })).status, method).toBe(405);
    }
    for (const path of [
      "/hooks",
      "/hooks/",
      "/hooks/none",
      "/hooks/none/confirmed",
      "/hooks/__proto__",
      "/hooks/constructor",
      "/hooks/toString",
      `/hooks//${speaker.path.slice(7)}`,
      `${speaker.path}x`,
      `${speaker.path}/confirmed/x`,
      `${speaker.path.toUpperCase()}`,
      "/hooks/%2e%2e/hooks/x",
      `/hooks/${encodeURIComponent("../")}`,
    ]) {
      const { status, text } = await served.send({ ...call, path });
      expect([401, 404], `${path}: ${status} ${text}`).toContain(status);
      expect(text, path).not.toMatch(/supabase|logto|kratos|zitadel|okta|authentik|authgear|casdoor|generic/i);
    }
    expect(served.box.messages).toEqual([]);
  });

  test.each(oneOfEach)("$name: bodies of more than 64 KiB send nothing, with and without a content-length", async (speaker) => {
    const served = await serve(speaker);
    const at = served.clock.now();
    const call = speaker.request(served.ask(), at);
    for (const size of [65_537, 1_048_576]) {
      const text = `{"a":"${"x".repeat(size - 8)}"}`;
      expect(text).toHaveLength(size);
      // Large, but correctly signed.
      const headers = {
        ...call.headers,
        ...(speaker === supabase
          ? supabaseHeaders(text, at)
          : speaker === zitadel
            ? { "zitadel-signature": zitadelSignature(text, at) }
            : speaker === authgear
              ? { "x-authgear-body-signature": hexHmac(text, authgearKey) }
              : {}),
      };
      for (const body of [text, [text.slice(0, 100), text.slice(100)]]) {
        const answer = await served.send({ ...call, headers, body }).catch(() => undefined);
        if (speaker === okta) expect(answer).toMatchObject({ status: 200, text: expect.stringContaining('"error"') });
        else expect(answer?.status).toBe(413);
      }
    }
    expect(served.box.messages).toEqual([]);
  });

  test.each([supabase, kratos])("$name: a body of exactly 64 KiB is accepted", async (speaker) => {
    const served = await serve(speaker);
    const at = served.clock.now();
    const ask = served.ask();
    const call = speaker.request(ask, at);
    const pad = 65_536 - Buffer.byteLength(call.body as string) - 9;
    const body = (call.body as string).replace("{", `{"pad":"${"x".repeat(pad)}",`);
    expect(Buffer.byteLength(body)).toBe(65_536);
    const answer = await served.send({ ...call, body, ...(speaker === supabase && { headers: supabaseHeaders(body, at) }) });
    expect(speaker.conclude(answer).result, answer.text).toBe("sent");
    expect(served.box.messages).toMatchObject([{ code: ask.code }]);
  });
});

describe("unusual but valid signatures and tokens", () => {
  const taken = async (
    speaker: Speaker,
    options: object,
    headersOf: (body: string, at: number) => Record<string, string | readonly string[]>,
    more: Partial<Call> = {},
  ) => {
    const served = await serve([speaker.hook(options)]);
    const at = served.clock.now();
    const call = speaker.request(served.ask(), at);
    const answer = await served.send({ ...call, ...more, headers: { ...call.headers, ...headersOf(call.body as string, at) } as Record<string, string> });
    return [answer.status, speaker.conclude(answer).result, served.box.messages.length];
  };
  const sent = [200, "sent", 1];

  test.each<[string, object, (body: string, at: number) => Record<string, string>]>([
    ["two secrets at the server, the old one here", {}, (body, at) => supabaseHeaders(body, at, [supabaseNext, supabaseSecret])],
    ["two secrets at the server, the new one here", { secrets: supabaseNext }, (body, at) => supabaseHeaders(body, at, [supabaseNext, supabaseSecret])],
    ["one secret at the server, two here", { secrets: [supabaseNext, supabaseSecret] }, (body, at) => supabaseHeaders(body, at)],
    [
      "signatures with the bare space of the specification",
      {},
      (body, at) => {
        const headers = supabaseHeaders(body, at, [supabaseNext, supabaseSecret]);
        return { ...headers, "webhook-signature": headers["webhook-signature"].replace(", v1", " v1") };
      },
    ],
    ["299 s old", {}, (body, at) => supabaseHeaders(body, at - 299_000)],
    ["299 s early", {}, (body, at) => supabaseHeaders(body, at + 299_000)],
    [
      "a right one after fifty wrong ones",
      {},
      (body, at) => ({
        ...supabaseHeaders(body, at),
        "webhook-signature": `${Array(50)
          .fill(`v1,${"A".repeat(43)}=`)
          .join(", ")}, ${supabaseHeaders(body, at, [supabaseSecret], "m1")["webhook-signature"]}`,
        "webhook-id": "m1",
      }),
    ],
    [
      "the right one twice",
      {},
      (body, at) => {
        const headers = supabaseHeaders(body, at);
        return { ...headers, "webhook-signature": `${headers["webhook-signature"]}, ${headers["webhook-signature"]}` };
      },
    ],
    ["several secrets as Supabase's own setting has them", { secrets: `${supabaseNext}|${supabaseSecret}` }, (body, at) => supabaseHeaders(body, at)],
  ])("Supabase: %s", async (_what, options, headersOf) => {
    expect(await taken(supabase, options, headersOf)).toEqual(sent);
  });

  test.each<[string, object, (body: string, at: number) => string]>([
    ["two keys at the server", {}, (body, at) => zitadelSignature(body, at, [zitadelNext, zitadelKey])],
    ["two keys here", { signingKey: [zitadelNext, zitadelKey] }, (body, at) => zitadelSignature(body, at)],
    ["a right one after one that is no hex", {}, (body, at) => zitadelSignature(body, at).replace("v1=", "v1=zz,v1=")],
    ["a version to come", {}, (body, at) => `${zitadelSignature(body, at)},v2=abc`],
    ["299 s old", {}, (body, at) => zitadelSignature(body, at - 299_000)],
  ])("ZITADEL: %s", async (_what, options, signature) => {
    expect(await taken(zitadel, options, (body, at) => ({ "zitadel-signature": signature(body, at) }))).toEqual(sent);
  });

  test.each([supabase, zitadel, authgear])("$name: accepts a body chunked inside a character, and a content type with a charset", async (speaker) => {
    const served = await serve(speaker);
    for (const type of ["application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8"]) {
      const at = served.clock.now();
      const call = speaker.request(served.ask(), at);
      const bytes = Buffer.from(call.body as string);
      const cut = bytes.indexOf(0xc3) + 1 || 20;
      const answer = await served.send({ ...call, headers: { ...call.headers, "content-type": type }, body: [bytes.subarray(0, cut), bytes.subarray(cut)] });
      expect(speaker.conclude(answer).result, `${type}: ${answer.status} ${answer.text}`).toBe("sent");
    }
    expect(served.box.messages).toHaveLength(3);
  });

  test.each([supabase, zitadel, authgear])("$name: a gzipped body sends nothing, with or without a content-encoding", async (speaker) => {
    const served = await serve(speaker);
    const call = speaker.request(served.ask(), served.clock.now());
    const packed = gzipSync(call.body as string);
    for (const one of [{ body: packed, headers: { ...call.headers, "content-encoding": "gzip" } }, { body: packed }]) {
      const { status } = await served.send({ ...call, ...one });
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(500);
    }
    expect(served.box.messages).toEqual([]);
  });

  test.each<[string, Speaker, string, string, string?]>([
    ["Basic with a user's name", authentik, "Basic", `authentik:${authentik.secrets[0]}`],
    ["Kratos, auth.type basic_auth", kratos, "Basic", `phoneproof:${kratosToken}`],
    ["Basic with a colon in the user's name's place", plain, "Basic", `:${genericToken}`],
    ["Basic with a unicode user", plain, "Basic", `zoë:${genericToken}`],
    ["a token with a colon", plain, "Basic", "user:pass:word:of:the:hook:0123", "pass:word:of:the:hook:0123"],
    ["a token with = and +", plain, "Bearer", "dGhlIHRva2Vu+IG9m/IHRoZSBob29r==", "dGhlIHRva2Vu+IG9m/IHRoZSBob29r=="],
    ["the scheme in small letters", plain, "bearer", genericToken],
    ["the scheme in capitals", plain, "BEARER", genericToken],
  ])("%s", async (_what, speaker, scheme, given, token) => {
    const options = token === undefined ? {} : { token };
    const value = scheme === "Basic" ? Buffer.from(given).toString("base64") : given;
    expect(await taken(speaker, options, () => ({ authorization: `${scheme} ${value}` }))).toEqual(sent);
  });

  test("both tokens of a list work during rotation, and no other", async () => {
    const [old, next] = ["an-old-token-of-the-hook-0123", "a-new-token-of-the-hook-0123"];
    for (const token of [old, next, `${old},${next}`]) {
      const expected = token.includes(",") ? [401, "refused", 0] : sent;
      expect(await taken(plain, { token: [old, next] }, () => ({ authorization: `Bearer ${token}` }))).toEqual(expected);
    }
  });

  test("Okta: the token is read from the header in the option `header`", async () => {
    expect(await taken(okta, { header: "x-okta-hook" }, () => ({ authorization: "Bearer none", "x-okta-hook": oktaToken }))).toEqual(sent);
    expect((await taken(okta, { header: "x-okta-hook" }, () => ({})))[0]).toBe(401);
  });

  test("Keycloak's plugin sends its token without a scheme [unsure: the page says only 'in a header']", async () => {
    expect(await taken(keycloak, {}, () => ({ authorization: genericToken }))).toEqual(sent);
  });
});

describe("malformed bodies from an authenticated server", () => {
  const deep = `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`;
  const bodies: readonly [string, string | Uint8Array][] = [
    ["empty", ""],
    ["no JSON", "{"],
    ["null", "null"],
    ["a list", "[]"],
    ["a text", '"482913"'],
    ["deep nesting", deep],
    ["deep lists", "[".repeat(30_000)],
    ["__proto__", '{"__proto__":{"to":"+33612000001","code":"482913","sms":{"otp":"482913"},"user":{"phone":"33612000001"}}}'],
    ["constructor", '{"constructor":{"prototype":{"to":"+33612000001"}}}'],
    ["invalid UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
    ["NUL", "\u0000"],
    ["a number of a million digits", `{"to":${"9".repeat(60_000)}}`],
  ];
  const cases = oneOfEach.flatMap((speaker) => bodies.map(([what, body]) => ({ name: speaker.name, what, speaker, body })));
  test.each(cases)("$name: $what", async ({ speaker, body }) => {
    const served = await serve(speaker);
    const at = served.clock.now();
    const call = speaker.request(served.ask(), at);
    const text = body as string;
    const proof =
      speaker === supabase
        ? supabaseHeaders(text, at)
        : speaker === zitadel
          ? { "zitadel-signature": zitadelSignature(text, at) }
          : speaker === authgear
            ? { "x-authgear-body-signature": hexHmac(text, authgearKey) }
            : {};
    const answer = await served.send({ ...call, headers: { ...call.headers, ...proof }, body });
    // 401: bytes that are not text are not what the string's signature covers.
    if (speaker === okta) expect(speaker.conclude(answer).result, `${answer.status} ${answer.text}`).toBe("refused");
    else expect([200, 400, 401, 413, 415, 422], `${answer.status} ${answer.text}`).toContain(answer.status);
    expect(served.box.messages).toEqual([]);
    expect(answer.text).not.toMatch(/482913|SyntaxError|position|at .*\.ts/);
    // The hook still works.
    expect(await served.told(speaker)).toMatchObject({ result: "sent" });
  });

  test.each(oneOfEach)("$name: a line break in the event's id injects no response header", async (speaker) => {
    const served = await serve(speaker);
    const ask = served.ask({ event: "x\r\nset-cookie: a=b" });
    const answer = await served.send(speaker.request(ask, served.clock.now()));
    expect(answer.headers).not.toHaveProperty("set-cookie");
    expect(answer.status).toBeLessThan(500);
  });

  test.each<[string, Speaker, (ask: Ask, at: number) => object]>([
    ["no sms", supabase, (ask, at) => ({ ...supabaseBody(ask, at), sms: undefined })],
    ["no number at all", supabase, (ask, at) => ({ ...supabaseBody(ask, at), user: { id: "x" }, sms: { otp: ask.code } })],
    ["no user", supabase, (ask, at) => ({ ...supabaseBody(ask, at), user: null, sms: { otp: ask.code } })],
  ])("Supabase: %s is rejected without a retry, and nothing is sent", async (_what, speaker, bodyOf) => {
    const served = await serve(speaker);
    const at = served.clock.now();
    const body = goJson(bodyOf(served.ask(), at));
    const answer = await served.send({ method: "POST", path: speaker.path, headers: supabaseHeaders(body, at), body });
    expect(speaker.conclude(answer)).toMatchObject({ result: "refused" });
    expect(speaker.pauseAfter(answer)).toBeUndefined();
    expect(served.box.messages).toEqual([]);
  });

  test("Supabase: MFA and number change go to sms.phone, not to the number on file", async () => {
    const served = await serve(supabase);
    const at = served.clock.now();
    const ask = served.ask();
    const body = goJson({ ...supabaseBody(ask, at), user: supabaseUser("33612999999", at) });
    expect(supabase.conclude(await served.send({ method: "POST", path: supabase.path, headers: supabaseHeaders(body, at), body })).result).toBe("sent");
    expect(served.box.messages).toMatchObject([{ to: ask.to }]);
  });

  test.each([
    ["code", { args: { code: "83920174" } }],
    ["oTP", { args: { oTP: "83920174" } }],
    ["otp", { args: { otp: "83920174" } }],
  ])("ZITADEL: the code is read from args.%s", async (_name, more) => {
    const served = await serve(zitadel, { message: { maxSegments: 2 } });
    const at = served.clock.now();
    const body = goJson(zitadelBody({ to: served.ask().to, code: "83920174" }, more));
    expect(
      (
        await served.send({
          method: "POST",
          path: zitadel.path,
          headers: { "content-type": "application/json", "zitadel-signature": zitadelSignature(body, at) },
          body,
        })
      ).status,
    ).toBe(200);
    expect(codesOf(served)).toEqual(["83920174"]);
  });

  test.each(["FusionAuth: a call", "the generic route: a call of Auth0's"])("%s is not sent as a text message", async (name) => {
    const served = await serve(plain);
    const { to, code } = served.ask();
    const body = name.startsWith("Fusion")
      ? { code, phoneNumber: to, message: `Your code is ${code}`, type: "Voice", userId: "1" }
      : { to, code, text: `Your code is ${code}`, delivery_method: "voice" };
    const answer = await served.send({ ...plain.request({ to, code }, 0), body: JSON.stringify(body) });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect(served.box.messages).toEqual([]);
  });

  test("the generic route: no code is guessed from a text with two numbers", async () => {
    const served = await serve(plain);
    const { to, code } = served.ask();
    const answer = await served.send({ ...plain.request({ to, code }, 0), body: JSON.stringify({ to, text: `Code ${code}, or call 0800123456` }) });
    expect(answer.status).toBeLessThan(500);
    for (const message of served.box.messages) expect(message.code).toBe("");
  });

  test("Kratos: a notice without a code is sent with Kratos's text", async () => {
    const served = await serve(kratos);
    const { to } = served.ask();
    const body = JSON.stringify({
      to,
      text: "A passkey was added to your account.",
      type: "authenticator_key_added",
      data: { to, identity: {} },
      headers: null,
    });
    expect((await served.send({ ...kratos.request({ to, code: "" }, 0), body })).status).toBe(200);
    expect(served.box.messages).toMatchObject([{ to, code: "", text: "A passkey was added to your account." }]);
  });

  test("Logto: an invitation is sent with its link", async () => {
    const served = await serve(logto);
    const { to } = served.ask();
    const body = JSON.stringify({ to, type: "OrganizationInvitation", payload: { link: "https://acme.example/i/x9" } });
    expect((await served.send({ ...logto.request({ to, code: "" }, 0), body })).status).toBe(200);
    expect(textsOf(served)).toEqual([expect.stringContaining("https://acme.example/i/x9")]);
  });
});

// Confirmations

interface Confirmer {
  readonly speaker: Speaker;
  /** The call that the server makes after a user has signed in. */
  confirm(number: string, at: number): Call;
  /** The same call from someone who does not know the secret. */
  forge(call: Call): Call;
}

const databaseWebhook = (record: object, old: object, at: number, more: object = {}): Call => ({
  method: "POST",
  path: "/hooks/supabase/confirmed",
  headers: { "content-type": "application/json", authorization: `Bearer ${supabaseConfirmToken}`, "user-agent": "pg_net/0.14.0" },
  body: JSON.stringify({
    type: "UPDATE",
    table: "users",
    schema: "auth",
    record: { updated_at: new Date(at).toISOString(), ...record },
    old_record: old,
    ...more,
  }),
});
const bearerTo = (path: string, token: string, body: object): Call => ({
  method: "POST",
  path,
  headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
  body: JSON.stringify(body),
});
const otherToken = (call: Call): Call => ({ ...call, headers: { ...call.headers, authorization: "Bearer 0123456789abcdef0123456789abcdef" } });
const signedIn = (number: string, at: number) => {
  const phone = number.replace("+", "");
  const old = supabaseUser(phone, at - 1_000, { last_sign_in_at: null, confirmation_sent_at: new Date(at - 1_000).toISOString() });
  return databaseWebhook({ ...old, phone_confirmed_at: new Date(at).toISOString(), last_sign_in_at: new Date(at).toISOString() }, old, at);
};

const confirmers: readonly Confirmer[] = [
  { speaker: supabase, confirm: signedIn, forge: otherToken },
  {
    speaker: logto,
    confirm: (number, at) => logtoWebhook("PostSignIn", number.replace("+", ""), at),
    forge: (call) => ({ ...call, headers: { ...call.headers, "logto-signature-sha-256": hexHmac(call.body as string, "guessed") } }),
  },
  { speaker: kratos, confirm: (to) => bearerTo("/hooks/kratos/confirmed", kratosToken, { to }), forge: otherToken },
  { speaker: plain, confirm: (to) => bearerTo("/hooks/generic/confirmed", genericToken, { to }), forge: otherToken },
];

describe("confirmations", () => {
  const cases = confirmers.map((confirmer) => ({ name: confirmer.speaker.name, ...confirmer }));

  test.each(cases)("$name: one confirmation counts; repeats and other numbers do not", async ({ speaker, confirm }) => {
    const served = await serve(speaker);
    const [ask, other] = [served.ask(), served.ask()];
    for (const one of [ask, other]) await served.told(speaker, one);
    served.clock.advance(20_000);
    const nobody = served.ask();
    expect((await served.send(confirm(nobody.to, served.clock.now()))).status, "a number that nothing was sent to").toBeLessThan(300);
    for (let turn = 0; turn < 3; turn++) expect((await served.send(confirm(ask.to, served.clock.now()))).status).toBeLessThan(300);
    expect(await served.newest(ask.to)).toMatchObject({ validated: true });
    expect(await served.newest(other.to)).toMatchObject({ validated: false });
    expect(served.events.filter(({ type }) => type === "confirmed")).toHaveLength(1);
  });

  test.each(cases)("$name: a forged confirmation is rejected, and one before the message does not count", async ({ speaker, confirm, forge }) => {
    const served = await serve(speaker);
    const ask = served.ask();
    await served.send(confirm(ask.to, served.clock.now()));
    served.clock.advance(2_000);
    await served.told(speaker, ask);
    served.clock.advance(2_000);
    const call = confirm(ask.to, served.clock.now());
    const { headers = {} } = call;
    const forged = [
      forge(call),
      { ...call, headers: { "content-type": "application/json" } },
      { ...call, headers: { ...headers, authorization: `Bearer ${speaker.name}`, "logto-signature-sha-256": "" } },
      // The secret of the hook itself is not valid for its confirmations.
      ...(speaker === logto ? [{ ...call, headers: { "content-type": "application/json", authorization: `Bearer ${logtoToken}` } }] : []),
      ...(speaker === supabase ? [{ ...call, headers: supabaseHeaders(call.body as string, served.clock.now()) }] : []),
    ];
    const answers: Answer[] = [];
    for (const one of forged) answers.push(await served.send(one));
    expect(answers.map(({ status }) => status)).toEqual(forged.map(() => 401));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await served.newest(ask.to)).toMatchObject({ validated: false });
  });

  test.each(cases)("$name: confirmations give credit, forged ones do not", async ({ speaker, confirm, forge }) => {
    const run = async (how: "confirmed" | "forged") => {
      const served = await serve(speaker, { policy: { spam: defaultSpamPolicy } });
      let sent = 0;
      for (let index = 0; index < 12; index++) {
        const to = `+33612${String(index * 3).padStart(6, "0")}`;
        const before = served.box.messages.length;
        await served.told(speaker, served.ask({ to }));
        if (served.box.messages.length === before) continue;
        sent++;
        const call = confirm(to, served.clock.now());
        await served.send(how === "confirmed" ? call : forge(call));
      }
      return sent;
    };
    // The same figures as for direct calls of deliver and confirm: test/spec/deliveries.test.ts.
    expect([await run("confirmed"), await run("forged")]).toEqual([12, 5]);
  });

  // The body comes from the trigger in docs/behind/supabase.md, which first-week.test.ts runs.
  test("Supabase: the row of an MFA challenge, with the factor's number, confirms", async () => {
    const served = await serve(supabase);
    const ask = served.ask({ purpose: "mfa" });
    await served.told(supabase, ask);
    served.clock.advance(5_000);
    const at = served.clock.now();
    const record = { phone: ask.to.replace("+", ""), verified_at: new Date(at).toISOString() };
    expect((await served.send(databaseWebhook(record, undefined as never, at, { table: "mfa_challenges" }))).status).toBeLessThan(300);
    expect(await served.newest(ask.to)).toMatchObject({ validated: true });
  });

  test.each<[string, (phone: string, at: number) => Call]>([
    [
      "an update that is no sign-in",
      (phone, at) => databaseWebhook(supabaseUser(phone, at, { user_metadata: { name: "new" } }), supabaseUser(phone, at - 1), at),
    ],
    [
      "the message itself: confirmation_sent_at",
      (phone, at) =>
        databaseWebhook(supabaseUser(phone, at, { confirmation_sent_at: new Date(at).toISOString(), confirmation_token: "x" }), supabaseUser(phone, at), at),
    ],
    ["a new user", (phone, at) => databaseWebhook(supabaseUser(phone, at), null as never, at, { type: "INSERT" })],
    [
      "a user who is gone",
      (phone, at) =>
        databaseWebhook(null as never, supabaseUser(phone, at, { phone_confirmed_at: new Date(at).toISOString() }), at, { type: "DELETE", record: null }),
    ],
    [
      "another table",
      (phone, at) =>
        databaseWebhook({ phone, phone_confirmed_at: new Date(at).toISOString(), last_sign_in_at: new Date(at).toISOString() }, { phone }, at, {
          table: "profiles",
          schema: "public",
        }),
    ],
    [
      "a table of the same name in another schema",
      (phone, at) =>
        databaseWebhook({ phone, phone_confirmed_at: new Date(at).toISOString(), last_sign_in_at: new Date(at).toISOString() }, { phone }, at, {
          schema: "public",
        }),
    ],
    [
      "a factor that was only asked",
      (phone, at) =>
        databaseWebhook(
          { factor_type: "phone", status: "verified", phone, last_challenged_at: new Date(at).toISOString() },
          { factor_type: "phone", status: "verified", phone, last_challenged_at: null },
          at,
          { table: "mfa_factors" },
        ),
    ],
    [
      "a challenge of a factor that is no phone",
      (phone, at) =>
        databaseWebhook({ phone: null, verified_at: new Date(at).toISOString() }, undefined as never, at, { table: "mfa_challenges", ignored: phone }),
    ],
    [
      "a challenge's row without its factor's number",
      (_phone, at) =>
        databaseWebhook({ factor_id: "f1", verified_at: new Date(at).toISOString() }, { factor_id: "f1", verified_at: null }, at, { table: "mfa_challenges" }),
    ],
    [
      "a sign-in of a user whose number is not confirmed",
      (phone, at) => databaseWebhook(supabaseUser(phone, at, { last_sign_in_at: new Date(at).toISOString() }), supabaseUser(phone, at), at),
    ],
    [
      "a sign-in by e-mail, of a user without a number",
      (_phone, at) => databaseWebhook(supabaseUser("", at, { last_sign_in_at: new Date(at).toISOString() }), supabaseUser("", at), at),
    ],
    [
      "a number of null",
      (_phone, at) => databaseWebhook({ ...supabaseUser("", at, { last_sign_in_at: new Date(at).toISOString() }), phone: null }, supabaseUser("", at), at),
    ],
  ])("Supabase: %s is accepted and ignored", async (_what, make) => {
    const served = await serve(supabase);
    const ask = served.ask();
    await served.told(supabase, ask);
    served.clock.advance(5_000);
    const { status, text } = await served.send(make(ask.to.replace("+", ""), served.clock.now()));
    expect(status, text).toBeLessThan(300);
    expect(await served.newest(ask.to)).toMatchObject({ validated: false });
  });

  test.each(["PostSignIn", "PostRegister", "PostResetPassword"])("Logto: %s counts as a confirmation", async (event) => {
    const served = await serve(logto);
    const ask = served.ask();
    await served.told(logto, ask);
    served.clock.advance(5_000);
    expect((await served.send(logtoWebhook(event, ask.to.replace("+", ""), served.clock.now()))).status).toBeLessThan(300);
    expect(await served.newest(ask.to)).toMatchObject({ validated: true });
  });

  test.each([
    ["User.Data.Updated", true],
    ["Message.RateLimited", true],
    ["Identifier.Lockout", true],
    ["PostSignInAdaptiveMfaTriggered", true],
    ["PostSignIn", null],
  ] as const)("Logto: %s (with a number: %s) is accepted and ignored", async (event, phone) => {
    const served = await serve(logto);
    const ask = served.ask();
    await served.told(logto, ask);
    served.clock.advance(5_000);
    expect((await served.send(logtoWebhook(event, phone && ask.to.replace("+", ""), served.clock.now()))).status).toBeLessThan(300);
    expect(await served.newest(ask.to)).toMatchObject({ validated: false });
  });

  test("Logto's test button: a made-up number is accepted", async () => {
    const served = await serve(logto);
    expect((await served.send(logtoWebhook("PostSignIn", "1234567890", served.clock.now()))).status).toBeLessThan(300);
  });

  test("Supabase, conversion 'late': the next message confirms the previous one", async () => {
    const served = await serve([supabase.hook({ conversion: "late" })]);
    const ask = served.ask();
    await served.told(supabase, ask);
    const first = await served.newest(ask.to);
    served.clock.advance(3_600_000);
    const at = served.clock.now();
    const again = served.ask({ to: ask.to });
    const signed = new Date(at - 3_590_000).toISOString();
    const body = goJson({ ...supabaseBody(again, at), user: supabaseUser(ask.to.slice(1), at, { phone_confirmed_at: signed, last_sign_in_at: signed }) });
    await served.send({ method: "POST", path: supabase.path, headers: supabaseHeaders(body, at), body });
    expect(codesOf(served)).toEqual([ask.code, again.code]);
    const all = await served.verifier.history({ phone_number: ask.to });
    expect(all.find(({ authentication_uuid }) => authentication_uuid === first?.["authentication_uuid"])).toMatchObject({ validated: true });
    expect(all.filter(({ validated }) => validated)).toHaveLength(1);
  });

  test.each([okta, authentik, authgear, casdoor, zitadel])("$name: a call to /confirmed without the secret does not count", async (speaker) => {
    const served = await serve(speaker);
    const ask = served.ask();
    await served.told(speaker, ask);
    for (const headers of [{}, { authorization: "Bearer x" }]) {
      const { status } = await served.send({
        method: "POST",
        path: `${speaker.path}/confirmed`,
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ to: ask.to }),
      });
      expect([401, 404]).toContain(status);
    }
    expect(await served.newest(ask.to)).toMatchObject({ validated: false });
  });

  test.each(cases)("$name: malformed bodies give no 5xx and confirm nothing", async ({ speaker, confirm }) => {
    const served = await serve(speaker);
    const call = confirm(served.ask().to, served.clock.now());
    for (const body of ["", "{", "null", "[]", '{"to":{}}', '{"record":null}', '{"event":"PostSignIn","user":null}']) {
      const headers = speaker === logto ? { ...call.headers, "logto-signature-sha-256": hexHmac(body, logtoSigningKey) } : call.headers;
      const { status, text } = await served.send({ ...call, headers: headers ?? {}, body });
      expect(status, `${body}: ${text}`).toBeLessThan(500);
    }
    expect(served.events.filter(({ type }) => type === "confirmed")).toEqual([]);
  });

  test.each(cases)("$name: a confirmation gets 503 while the store is down, and counts when it is repeated", async ({ speaker, confirm }) => {
    const served = await serve(speaker);
    const ask = served.ask();
    await served.told(speaker, ask);
    served.clock.advance(1_000);
    served.store.fate = () => "refused";
    expect((await served.send(confirm(ask.to, served.clock.now()))).status).toBe(503);
    served.store.fate = () => "done";
    expect((await served.send(confirm(ask.to, served.clock.now()))).status).toBeLessThan(300);
    expect(await served.newest(ask.to)).toMatchObject({ validated: true });
  });
});

describe("the user's address", () => {
  const trusting = [supabase, logto, kratos, authentik, plain];
  const twoFrom = async (served: Served, speaker: Speaker, ips: readonly [string, string]) => {
    for (const ip of ips) expect(await served.told(speaker, served.ask({ ip }))).toMatchObject({ result: expect.any(String) });
    return served.box.messages.length;
  };
  const perIp = { policy: { limits: { perIp: [{ limit: 1, window: 600 }] } } };
  const cap = "198.51.100.7";

  test.each(trusting)("$name: an address that may be forged is used only with ip: 'trust'", async (speaker) => {
    expect(await twoFrom(await serve([speaker.hook()], perIp), speaker, [cap, cap])).toBe(2);
    expect(await twoFrom(await serve([speaker.hook({ ip: "trust" })], perIp), speaker, [cap, cap])).toBe(1);
    expect(await twoFrom(await serve([speaker.hook({ ip: "trust" })], perIp), speaker, [cap, "198.51.100.8"])).toBe(2);
  });

  test("Okta's address is used unless ip is 'ignore'", async () => {
    expect(await twoFrom(await serve([okta.hook()], perIp), okta, [cap, cap])).toBe(1);
    expect(await twoFrom(await serve([okta.hook({ ip: "ignore" })], perIp), okta, [cap, cap])).toBe(2);
  });

  test.each(oneOfEach)("$name: address headers of the request itself are ignored", async (speaker) => {
    const served = await serve([speaker.hook({ ip: "trust" })], perIp);
    const headers = { "x-forwarded-for": cap, forwarded: `for=${cap}`, "true-client-ip": cap, "x-real-ip": cap, "sb-forwarded-for": cap };
    for (const ip of ["203.0.113.1", "203.0.113.2"]) {
      const call = speaker.request(served.ask({ ip }), served.clock.now());
      await served.send({ ...call, headers: { ...headers, ...call.headers } });
    }
    expect(served.box.messages).toHaveLength(2);
  });

  const garbage = [
    "",
    "unknown",
    "not an address",
    "203.0.113.7, 10.0.0.1",
    "203.0.113.7:51234",
    "[2001:db8::1]:443",
    "::ffff:203.0.113.7",
    "fe80::1%eth0",
    "999.1.1.1",
    "x".repeat(500),
  ];
  test.each([...trusting, okta].flatMap((speaker) => garbage.map((ip) => ({ name: speaker.name, ip, speaker }))))(
    "$name: with the address $ip the code is still sent",
    async ({ speaker, ip }) => {
      const served = await serve([speaker.hook({ ip: "trust" })]);
      expect(await served.told(speaker, served.ask({ ip }))).toMatchObject({ result: "sent" });
      expect(served.box.messages).toHaveLength(1);
    },
  );

  test("Kratos: addresses in the client's transient_payload are ignored", async () => {
    const served = await serve([kratos.hook({ ip: "trust" })], perIp);
    for (let turn = 0; turn < 2; turn++) {
      const ask = served.ask();
      const call = kratos.request(ask, 0);
      const body = (call.body as string)
        .replace('"transient_payload": { }', "")
        .replace('"transient_payload": {}', `"transient_payload": {"ip":"${cap}","True-Client-Ip":["${cap}"],"client_ip":"${cap}"}`);
      expect(body).toContain("client_ip");
      await served.send({ ...call, body });
    }
    expect(served.box.messages).toHaveLength(2);
  });
});

describe("several hooks on one verifier", () => {
  const [shop, bank] = ["7f6dd9d2-8d1e-4f86-9b44-5b4dd2f3a001", "7f6dd9d2-8d1e-4f86-9b44-5b4dd2f3a002"] as const;
  const keys = [shop, bank].map((customer_uuid) => ({ customer_uuid, keys: [`pp_${customer_uuid}${customer_uuid}`] }));

  test("two Supabase projects of two customers do not mix", async () => {
    const of = (name: string, customer_uuid: string, secrets: string, confirmToken: string) => supabase.hook({ name, customer_uuid, secrets, confirmToken });
    const tokens = ["the-shop-confirm-token-0123", "the-bank-confirm-token-0123"] as const;
    const served = await serve([of("shop", shop, supabaseSecret, tokens[0]), of("bank", bank, supabaseNext, tokens[1])], { customers: keys });
    const ask = served.ask({ event: crypto.randomUUID() });
    const at = served.clock.now();
    const body = goJson(supabaseBody(ask, at));
    const to = (name: string, secret: string) => served.send({ method: "POST", path: `/hooks/${name}`, headers: supabaseHeaders(body, at, [secret]), body });
    expect((await to("shop", supabaseNext)).status).toBe(401);
    expect((await to("bank", supabaseSecret)).status).toBe(401);
    expect((await to("supabase", supabaseSecret)).status).toBe(404);
    // The same event at both: each sends its own message.
    for (const [name, secret] of [
      ["shop", supabaseSecret],
      ["bank", supabaseNext],
    ] as const)
      expect(supabase.conclude(await to(name, secret)).result).toBe("sent");
    expect(served.box.messages).toHaveLength(2);
    served.clock.advance(5_000);
    const confirmation = (name: string, token: string) => {
      const call = signedIn(ask.to, served.clock.now());
      return served.send({ ...call, path: `/hooks/${name}/confirmed`, headers: { ...call.headers, authorization: `Bearer ${token}` } });
    };
    expect((await confirmation("bank", tokens[0])).status).toBe(401);
    expect((await confirmation("shop", tokens[0])).status).toBeLessThan(300);
    expect(await served.newest(ask.to, shop)).toMatchObject({ validated: true });
    expect(await served.newest(ask.to, bank)).toMatchObject({ validated: false });
  });

  test("a cap that one customer has reached does not affect the other", async () => {
    const served = await serve([plain.hook({ name: "shop", customer_uuid: shop }), plain.hook({ name: "bank", customer_uuid: bank })], {
      customers: keys,
      policy: { limits: { perNumber: [{ limit: 1, window: 600 }] } },
    });
    const { to } = served.ask();
    const post = async (name: string) => (await served.send({ ...plain.request(served.ask({ to }), 0), path: `/hooks/${name}` })).status;
    expect([await post("shop"), await post("shop"), await post("bank")]).toEqual([200, 429, 200]);
  });

  test("invalid options throw when the hook is built or mounted", () => {
    const { verifier } = setUp({ customers: undefined, conversion: "reported" } as never);
    expect(() => hooks(verifier, [plain.hook(), plain.hook()])).toThrow(/name/);
    for (const speaker of oneOfEach)
      for (const empty of [undefined, "", []])
        expect(() => speaker.hook({ token: empty, secrets: empty, signingKey: empty }), `${speaker.name} with ${JSON.stringify(empty)}`).toThrow();
    for (const name of ["", "a/b", "confirmed/x", "A B", "__proto__", "..", "%2e"])
      expect(() => genericHook({ token: genericToken, name }), name).toThrow(/name/);
    for (const options of [{ ip: "yes" }, { within: -1 }, { within: "1" }, { expiresIn: 0 }, { conversion: "sometimes" }, { customer: shop }])
      expect(() => plain.hook(options), JSON.stringify(options)).toThrow();
    for (const secrets of ["whsec", "v1,whsec_", "v1,whsec_!!!", "v1a,whsk_AAAA"]) expect(() => supabase.hook({ secrets }), secrets).toThrow(/secrets/);
    let message = "";
    try {
      supabase.hook({ secrets: "v1,whsec_notbase64!!" });
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).not.toContain("notbase64");
  });

  test("mounting a hook whose sign-ins are not reported throws without a spend ceiling", () => {
    const { verifier } = setUp({ customers: undefined } as never);
    expect(() => hooks(verifier, [plain.hook()])).toThrow(/spend/);
  });
});

// The snippets of docs/behind/index.md

describe("Auth0's action from the docs page", () => {
  const auth0 = (options: Partial<VerifierOptions> = {}) =>
    serve([genericHook({ token: genericToken, name: "auth0", ip: "trust", conversion: "reported" })], options);
  const eventOf = ({ to, code }: Ask, more: object = {}) => ({
    notification: {
      recipient: to,
      code,
      as_text: `Your Acme code is ${code}`,
      as_voice: "…",
      delivery_method: "text",
      locale: "en-us",
      message_type: "otp_verify",
      ...more,
    },
    request: { ip: "203.0.113.7", user_agent: "Mozilla/5.0", geoip: { countryCode: "FR" } },
    user: { user_id: "auth0|64", phone_verified: false },
    client: { client_id: "c1" },
    transaction: { correlation_id: crypto.randomUUID() },
    secrets: { TOKEN: genericToken },
  });
  const run = async (served: Served, event: object) => {
    const calls: unknown[][] = [];
    const api = {
      notification: { retry: (...given: unknown[]) => calls.push(["retry", ...given]), drop: (...given: unknown[]) => calls.push(["drop", ...given]) },
    };
    await actionOf("auth0-action.cjs", served.url).onExecuteCustomPhoneProvider?.(event, api);
    return calls;
  };

  test("a sent message calls neither retry nor drop, and five repeats of its event send nothing more", async () => {
    const served = await auth0();
    const ask = served.ask();
    const event = eventOf(ask);
    for (let turn = 0; turn < 6; turn++) {
      expect(await run(served, event)).toEqual([]);
      served.clock.advance(60_000);
    }
    expect(served.box.messages).toMatchObject([{ to: ask.to, code: ask.code, text: `Your Acme code is ${ask.code}` }]);
  });

  test.each(refusals)("$why", async (refusal) => {
    const served = await auth0(refusal.options);
    const ask = served.ask(refusal.to === undefined ? {} : { to: refusal.to });
    await refusal.prepare?.(served, { ...plain, path: "/hooks/auth0", request: (one, at) => ({ ...plain.request(one, at), path: "/hooks/auth0" }) }, ask);
    const calls = await answerWithin(served, 9_500, run(served, eventOf(ask)));
    const expected = {
      limited: ["drop", expect.stringMatching(/^(rate_limited|spam_detected)$/)],
      invalid: ["drop", "invalid"],
      no_route: ["retry", "HTTP 502"],
      unavailable: ["retry", "HTTP 503"],
    };
    expect(calls).toEqual([expected[refusal.of]]);
  });

  test("a message with a wrong secret is dropped, without an error in the action itself", async () => {
    const served = await auth0();
    expect(await run(served, { ...eventOf(served.ask()), secrets: { TOKEN: "another" } })).toEqual([["drop", expect.any(String)]]);
    expect(served.box.messages).toEqual([]);
  });

  test("a call is dropped", async () => {
    const served = await auth0();
    expect(await run(served, eventOf(served.ask(), { delivery_method: "voice" }))).toEqual([["drop", expect.any(String)]]);
    expect(served.box.messages).toEqual([]);
  });

  test("a notice without a code is sent with its text", async () => {
    const served = await auth0();
    const { to } = served.ask();
    expect(await run(served, eventOf({ to, code: "" }, { code: undefined, as_text: "Your account was blocked", message_type: "blocked_account" }))).toEqual([]);
    expect(served.box.messages).toMatchObject([{ to, code: "", text: "Your account was blocked" }]);
  });

  test("without a transaction, the same code within 30 s is sent once", async () => {
    const served = await auth0();
    const { transaction: _none, ...event } = eventOf(served.ask());
    for (let turn = 0; turn < 2; turn++) expect(await run(served, event)).toEqual([]);
    expect(served.box.messages).toHaveLength(1);
  });

  test("'send again' with a new code in the same transaction is sent", async () => {
    const served = await auth0();
    const first = eventOf(served.ask());
    const again = served.ask({ to: first.notification.recipient });
    expect(await run(served, first)).toEqual([]);
    expect(await run(served, { ...eventOf(again), transaction: first.transaction })).toEqual([]);
    expect(codesOf(served)).toEqual([first.notification.code, again.code]);
  });

  test("the post-login action confirms sign-ins by phone, and no others", async () => {
    const served = await auth0();
    const ask = served.ask();
    await run(served, eventOf(ask));
    served.clock.advance(10_000);
    const login = (names: readonly string[]) =>
      actionOf("auth0-post-login.cjs", served.url).onExecutePostLogin?.({
        authentication: { methods: names.map((name) => ({ name, timestamp: "2026-03-01T12:00:10Z" })) },
        user: { user_id: "auth0|64", phone_number: ask.to },
        secrets: { TOKEN: genericToken },
      });
    await login(["pwd"]);
    expect(await served.newest(ask.to)).toMatchObject({ validated: false });
    // The number of a second factor is not in the event.
    await login(["pwd", "mfa"]);
    expect(await served.newest(ask.to)).toMatchObject({ validated: false });
    await login(["sms"]);
    expect(await served.newest(ask.to)).toMatchObject({ validated: true });
  });
});

describe("Cognito's handler from the docs page, with a stand-in for the AWS Encryption SDK", () => {
  const load = (url: string) => lambdaOf("cognito-sender.mjs", url);
  const cognito = (options: Partial<VerifierOptions> = {}) => serve([genericHook({ token: genericToken, name: "cognito" })], options);
  const eventOf = ({ to, code }: Ask, more: object = {}) => ({
    version: "1",
    triggerSource: "CustomSMSSender_SignUp",
    region: "eu-west-3",
    userPoolId: "eu-west-3_x",
    userName: "zoe",
    callerContext: { awsSdkVersion: "aws-sdk-js-3", clientId: "c1" },
    request: {
      type: "customSMSSenderRequestV1",
      code: Buffer.from(code).toString("base64"),
      clientMetadata: null,
      userAttributes: { sub: "s1", phone_number: to, phone_number_verified: "false", "cognito:user_status": "UNCONFIRMED", locale: "fr" },
      ...more,
    },
  });

  test("the handler returns once the message is sent, and three runs of it send one message", async () => {
    const served = await cognito({ message: { text: { default: "Code {code}", fr: "Voici {code}" } } });
    const handler = await load(served.url);
    const ask = served.ask();
    for (let turn = 0; turn < 3; turn++) await handler(eventOf(ask));
    expect(textsOf(served)).toEqual([`Voici ${ask.code}`]);
  });

  test.each(["SignUp", "ResendCode", "ForgotPassword", "UpdateUserAttribute", "VerifyUserAttribute", "Authentication", "AdminCreateUser"])(
    "CustomSMSSender_%s is sent",
    async (source) => {
      const served = await cognito();
      const handler = await load(served.url);
      await handler({ ...eventOf(served.ask()), triggerSource: `CustomSMSSender_${source}` });
      expect(served.box.messages).toHaveLength(1);
    },
  );

  test.each(["Zk4!vQ$9x", "48291!aB {code}"])("the temporary password %s is sent unchanged", async (password) => {
    const served = await cognito({ message: { text: "Code {code}", maxSegments: 1 } });
    const handler = await load(served.url);
    const ask = { ...served.ask(), code: password };
    for (let turn = 0; turn < 2; turn++) await handler({ ...eventOf(ask), triggerSource: "CustomSMSSender_AdminCreateUser" });
    expect(served.box.messages).toMatchObject([{ text: `Your temporary password is ${password}`, code: "" }]);
  });

  test("a notification without a code is not sent", async () => {
    const served = await cognito();
    const handler = await load(served.url);
    await handler({ ...eventOf(served.ask(), { code: null }), triggerSource: "CustomSMSSender_AccountTakeOverNotification" });
    expect(served.box.messages).toEqual([]);
  });

  test.each(refusals)("$why: the handler throws our message for the user", async (refusal) => {
    const served = await cognito(refusal.options);
    const handler = await load(served.url);
    const ask = served.ask(refusal.to === undefined ? {} : { to: refusal.to });
    await refusal.prepare?.(served, { ...plain, path: "/hooks/cognito", request: (one, at) => ({ ...plain.request(one, at), path: "/hooks/cognito" }) }, ask);
    const error = await answerWithin(
      served,
      4_500,
      handler(eventOf(ask)).then(
        () => undefined,
        (reason: Error) => reason,
      ),
    );
    expect(error?.message).toMatch(/^(Trop de messages|Ce numéro|Le message|L|Too many|This phone|The message)[^{}<>]*[.]$/);
  });
});

describe("known: only the server's own data counts", () => {
  const spam = { ...defaultSpamPolicy, range: { ...defaultSpamPolicy.range, seeds: [2, 12, 30] as const } };
  /** How many of five messages to a range with seed 2 are sent. */
  const passed = async (speaker: Speaker, call: (ask: Ask, at: number) => Call, options: object = {}) => {
    const served = await serve([speaker.hook(options)], { policy: { spam } });
    for (let index = 0; index < 5; index++) await served.send(call(served.ask({ to: `+33612${String(index * 3).padStart(6, "0")}` }), served.clock.now()));
    return served.box.messages.length;
  };
  const supabaseAs = (more: (ask: Ask, at: number) => object) =>
    passed(supabase, (ask, at) => {
      const body = goJson({ ...supabaseBody(ask, at), user: supabaseUser(ask.to.slice(1), at, more(ask, at)) });
      return { method: "POST", path: supabase.path, headers: supabaseHeaders(body, at), body };
    });
  const daysAgo = (at: number, days: number) => new Date(at - days * 86_400_000).toISOString();

  test("Supabase: a number confirmed before today is known; not one confirmed today, another number or user metadata", async () => {
    expect(await supabaseAs((_ask, at) => ({ phone_confirmed_at: daysAgo(at, 2) }))).toBe(5);
    expect(await supabaseAs((_ask, at) => ({ phone_confirmed_at: new Date(at - 60_000).toISOString() }))).toBe(2);
    expect(await supabaseAs((_ask, at) => ({ phone: "33612999999", phone_confirmed_at: daysAgo(at, 2) }))).toBe(2);
    expect(await supabaseAs((_ask, at) => ({ phone_confirmed_at: null, user_metadata: { known: true, phone_confirmed_at: daysAgo(at, 2) } }))).toBe(2);
    expect(await supabaseAs(() => ({ phone_confirmed_at: "long ago" }))).toBe(2);
    expect(await supabaseAs((_ask, at) => ({ phone_confirmed_at: daysAgo(at, -2) }))).toBe(2);
  });

  const zitadelAs = (verifiedPhone: (ask: Ask) => string) =>
    passed(zitadel, (ask, at) => {
      const body = goJson(zitadelBody(ask, { args: { verifiedPhone: verifiedPhone(ask), oTP: ask.code } }));
      return { method: "POST", path: zitadel.path, headers: { "content-type": "application/json", "zitadel-signature": zitadelSignature(body, at) }, body };
    });

  test("ZITADEL: a number is known if verifiedPhone is the recipient", async () => {
    expect(await zitadelAs(({ to }) => to)).toBe(5);
    expect(await zitadelAs(() => "+33612999999")).toBe(2);
    expect(await zitadelAs(() => "")).toBe(2);
  });

  test("Logto, Okta, Authentik and Casdoor: a field `known` is ignored", async () => {
    for (const speaker of [logto, okta, authentik])
      expect(
        await passed(speaker, (ask, at) => {
          const call = speaker.request(ask, at);
          return { ...call, body: (call.body as string).replace("{", '{"known":true,') };
        }),
        speaker.name,
      ).toBe(2);
    expect(await passed(casdoor, (ask, at) => ({ ...casdoor.request(ask, at), body: `${casdoor.request(ask, at).body}&known=true` }))).toBe(2);
  });

  test("the generic route: only `known: true` counts, no other value", async () => {
    const as = (known: unknown) => passed(plain, ({ to, code }) => ({ ...plain.request({ to, code }, 0), body: JSON.stringify({ to, code, known }) }));
    expect(await as(true)).toBe(5);
    expect(await as(false)).toBe(2);
    for (const word of ["true", 1, "yes", {}]) expect(await as(word), JSON.stringify(word)).toBeLessThanOrEqual(2);
  });
});

describe("details from the docs pages", () => {
  test("Kratos: a repeat after fifty minutes of a code valid for an hour sends nothing", async () => {
    const served = await serve(kratos);
    const ask = served.ask();
    await served.told(kratos, ask);
    served.clock.advance(50 * 60_000);
    expect(await served.told(kratos, ask)).toMatchObject({ result: "sent" });
    expect(served.box.messages).toHaveLength(1);
  });

  test("a confirmation with an invalid number logs nothing that looks like a whole number", async () => {
    const served = await serve(kratos);
    await served.send(bearerTo("/hooks/kratos/confirmed", kratosToken, { to: "+336" }));
    for (const { message, fields } of served.log) expect(message + JSON.stringify(fields)).not.toMatch(/\d{9}/);
  });

  test("a token with spaces works, or throws when the hook is built", async () => {
    const token = "pass phrase of the hook 0123";
    let hook: ReturnType<typeof plain.hook>;
    try {
      hook = plain.hook({ token });
    } catch (error) {
      return expect((error as Error).message).toMatch(/token/);
    }
    const served = await serve([hook]);
    const call = plain.request(served.ask(), 0);
    expect((await served.send({ ...call, headers: { ...call.headers, authorization: `Bearer ${token}` } })).status).toBe(200);
  });

  test("a wrong token gets a JSON response, which Cognito's handler can parse", async () => {
    const served = await serve([genericHook({ token: "another-token-of-the-hook-0123", name: "cognito" })]);
    const answer = await served.send({ ...plain.request(served.ask(), 0), path: "/hooks/cognito" });
    // The handler does `throw new Error((await response.json()).message)`.
    expect(() => JSON.parse(answer.text)).not.toThrow();
  });
});
