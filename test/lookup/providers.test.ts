import { afterEach, describe, expect, it } from "vitest";
import { httpLookup } from "../../adapters/lookup/http.js";
import { telnyxLookup } from "../../adapters/lookup/telnyx.js";
import { twilioLookup } from "../../adapters/lookup/twilio.js";
import { vonageLookup } from "../../adapters/lookup/vonage.js";
import { lineTypes } from "../../src/contract/lookup.js";
import type { LookupFacts, LookupProvider } from "../../src/index.js";
import { json } from "../support/carriers/server.js";
import { hlrScript } from "../support/lookups/hlr.js";
import { type LookupLine, type LookupMood, type LookupScript, type RunningLookup, startLookup } from "../support/lookups/server.js";
import { telnyxLookupOptions, telnyxLookupScript } from "../support/lookups/telnyx.js";
import { twilioLookupOptions, twilioLookupScript } from "../support/lookups/twilio.js";
import { vonageInsights, vonageLookupOptions, vonageLookupScript } from "../support/lookups/vonage.js";

const running: RunningLookup[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.close();
});

const number = "+14155552671";
const scripts: readonly LookupScript[] = [twilioLookupScript, telnyxLookupScript, vonageLookupScript, hlrScript];
const byName = scripts.map((script): [string, LookupScript] => [script.name, script]);

const look = (provider: LookupProvider, signal = new AbortController().signal) =>
  provider.lookup({ phone_number: number, country_code: "US", line_type: "Unknown" }, { signal, timeLeft: 60_000 });

/** Asks a running provider about a line. */
async function ask(script: LookupScript, line: LookupLine, mood?: LookupMood, more: object = {}) {
  const server = await startLookup(script, line);
  running.push(server);
  server.mood = mood;
  const provider = script.provider(server.url, { price: 0.01, ...more });
  return { provider, server, looking: () => look(provider) };
}

const mobile: LookupLine = { type: "mobile", carrier: "Verizon", mcc: "311", mnc: "480", ported: true };

/** Each provider's words for line types in our terms; `undefined` if a word gives no line type. */
const words: [string, LookupScript, Readonly<Record<string, string | undefined>>][] = [
  [
    "twilio",
    twilioLookupScript,
    {
      landline: "FixedLine",
      mobile: "Mobile",
      fixedVoip: "Voip",
      nonFixedVoip: "Voip",
      tollFree: "TollFree",
      premium: "PremiumRate",
      sharedCost: "SharedCost",
      uan: "UniversalAccess",
      voicemail: "VoiceMail",
      pager: "Pager",
      personal: undefined,
      unknown: undefined,
    },
  ],
  [
    "telnyx",
    telnyxLookupScript,
    {
      "fixed line": "FixedLine",
      mobile: "Mobile",
      voip: "Voip",
      "toll free": "TollFree",
      "premium rate": "PremiumRate",
      "shared cost": "SharedCost",
      pager: "Pager",
      uan: "UniversalAccess",
      voicemail: "VoiceMail",
      "fixed line or mobile": undefined,
      "personal number": undefined,
      unknown: undefined,
    },
  ],
  [
    "vonage",
    vonageLookupScript,
    { mobile: "Mobile", landline: "FixedLine", tollfree: "TollFree", premium: "PremiumRate", virtual: "Voip", unknown: undefined },
  ],
  ["http", hlrScript, { MOBILE: "Mobile", landline: "FixedLine", SERVICE: "Service", BAD: undefined }],
];

describe("each provider is called as documented, and its response is read", () => {
  it.each<[string, LookupScript, LookupFacts]>([
    ["twilio: carrier, line type, MCC and MNC, never porting", twilioLookupScript, { carrier: "Verizon", line_type: "Mobile", mcc: "311", mnc: "480" }],
    ["telnyx: porting too", telnyxLookupScript, { carrier: "Verizon", line_type: "Mobile", mcc: "311", mnc: "480", number_ported: true }],
    [
      "vonage: porting, of original and current network",
      vonageLookupScript,
      { carrier: "Verizon", line_type: "Mobile", mcc: "311", mnc: "480", number_ported: true },
    ],
    ["http: MCC and MNC in one", hlrScript, { carrier: "Verizon", line_type: "Mobile", mcc: "311", mnc: "480", number_ported: true }],
  ])("%s", async (_, script, facts) => {
    const { looking, server } = await ask(script, mobile);
    expect(await looking()).toEqual(facts);
    expect(server.requests, "one request, never a second one").toHaveLength(1);
  });

  it.each(byName)("%s: unknown fields are left out, and the provider's word for unknown is not a fact", async (_, script) => {
    const { looking } = await ask(script, { type: "unknown", carrier: null, mcc: null, mnc: null });
    expect(await looking()).toEqual({});
  });

  it.each<[string, LookupScript]>(byName.filter(([name]) => name !== "twilio"))(
    "%s: number_ported may be false, and is absent if unknown",
    async (_, script) => {
      expect(await (await ask(script, { ...mobile, ported: false })).looking()).toMatchObject({ number_ported: false });
      expect(await (await ask(script, { ...mobile, ported: undefined })).looking()).not.toHaveProperty("number_ported");
    },
  );

  it.each(words)("%s: reads its words for line types", async (_, script, ours) => {
    const { server, looking } = await ask(script, {});
    for (const [word, type] of Object.entries(ours)) {
      server.line = { type: word };
      expect((await looking())?.line_type, word).toBe(type);
    }
  });

  it("all 11 line types of the specification are reachable, with `Unknown` if no provider knows", () => {
    const reached = new Set(words.flatMap(([, , ours]) => Object.values(ours).filter((type) => type !== undefined)));
    expect([...reached, "Unknown"].sort()).toEqual([...lineTypes].sort());
  });

  it("vonage: the original carrier alone gives the line type, but never the current carrier", async () => {
    const { server, looking } = await ask(vonageLookupScript, {});
    const original = { name: "Acme", network_type: "LANDLINE", country_code: "US", network_code: "310004", status: { code: "OK", message: "Success" } };
    server.mood = vonageInsights("14155552671", original, { status: { code: "NO_COVERAGE", message: "…" } });
    expect(await looking()).toEqual({ line_type: "FixedLine" });
    server.mood = vonageInsights("14155552671", original, { status: { code: "SUPPLIER_ERROR", message: "…" } });
    expect(await looking(), "what failed may know more").toEqual({ line_type: "FixedLine", failed: ["vonageLookup: SUPPLIER_ERROR"], incomplete: true });
    server.mood = vonageInsights("14155552671", { status: { code: "INTERNAL_ERROR" } }, { status: { code: "SUPPLIER_ERROR" } });
    await expect(looking()).rejects.toThrow("the response is not in the provider's format, code SUPPLIER_ERROR");
  });
});

describe("rejections, errors and invalid responses never become facts", () => {
  it.each(scripts.flatMap((script) => Object.entries(script.unknown).map(([what, reply]) => [script.name, what, script, reply] as const)))(
    "%s: %s: gives no facts",
    async (_name, _what, script, reply) => {
      const { looking } = await ask(script, mobile, reply);
      const { price, ...facts } = (await looking()) ?? {};
      expect(facts).toEqual({});
      expect(price, "what is answered outside 200 to 299 costs nothing").toBe(reply.status < 300 ? undefined : 0);
    },
  );

  it.each(scripts.flatMap((script) => (["throttled", "failure", "forbidden"] as const).map((what) => [script.name, what, script] as const)))(
    "%s: %s: fails with status and code only, and costs nothing",
    async (_name, what, script) => {
      const { looking } = await ask(script, mobile, script[what]);
      const error = await looking().catch((thrown: unknown) => thrown as Error & { price?: number });
      expect((error as Error).message).toMatch(new RegExp(`^\\w+: HTTP ${script[what].status}(, code [\\w ]+)?$`));
      expect(error).toMatchObject({ price: 0 });
    },
  );

  it.each(
    scripts.flatMap((script) =>
      (
        [
          ["garbage at 200", { status: 200, body: "<html>It works!</html>", contentType: "text/html" }, "the response is not in the provider's format"],
          ["JSON that is nothing of the kind", json(200, [null]), "the response is not in the provider's format|names another number, or no number"],
          ["an empty object", json(200, {}), "the response is not in the provider's format|names another number, or no number"],
          ["a redirect, which is not followed", { status: 307, body: "" }, "HTTP 307"],
          ["a cut connection", "cut", "no response: SocketError, code UND_ERR_SOCKET"],
          ["an answer that breaks off", "breaks off", "the response is not in the provider's format"],
          ["an answer without end", "endless", "the response is not in the provider's format"],
        ] as [string, LookupMood, string][]
      ).map(([what, mood, reason]) => [script.name, what, script, mood, reason] as const),
    ),
  )("%s: %s: fails, and counts as paid unless the status is outside 200 to 299", async (_name, _what, script, mood, reason) => {
    const { looking } = await ask(script, mobile, mood);
    const error = await looking().catch((thrown: unknown) => thrown as Error & { price?: number });
    expect((error as Error).message).toMatch(new RegExp(reason));
    expect((error as { price?: number }).price).toBe(reason === "HTTP 307" ? 0 : undefined);
  });

  it.each(byName)("%s: a response about another number fails", async (_, script) => {
    const { looking } = await ask(script, { ...mobile, number: "+14155552672" });
    await expect(looking()).rejects.toThrow("the response names another number, or no number");
  });

  it.each(byName)("%s: a provider that hangs or stalls is given up when the lookup is aborted", async (_, script) => {
    for (const mood of ["hangs", "stalls"] as const) {
      const { provider, server } = await ask(script, mobile, mood);
      const abort = new AbortController();
      const looking = look(provider, abort.signal);
      const ended = looking.catch((error: Error) => error.message);
      while (server.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
      abort.abort();
      expect(await ended).toMatch(/no response in time|not in the provider's format/);
    }
  });

  it.each(byName)("%s: a refused connection fails and costs nothing", async (_, script) => {
    await expect(look(script.provider("http://127.0.0.1:1023", { price: 0.01 }))).rejects.toMatchObject({
      message: expect.stringMatching(/no connection, code ECONNREFUSED$/),
      price: 0,
    });
  });

  it.each<[string, LookupLine]>([
    ["an MCC of letters", { ...mobile, mcc: "US" }],
    ["an MNC of one digit", { ...mobile, mnc: "4" }],
  ])("malformed facts are left out: %s", async (_, line) => {
    for (const script of scripts) {
      const facts = await (await ask(script, line)).looking();
      expect(facts).toMatchObject({ carrier: "Verizon" });
      if (line.mcc === "US") expect(facts).not.toHaveProperty("mcc");
      else expect(facts).not.toHaveProperty("mnc");
    }
  });

  it.each<[string, unknown]>([
    ["too long", "x".repeat(5000)],
    ["blank", "  "],
    ["with control characters", "a\u0000b\nc"],
    ["no text", 5],
  ])("a carrier's name that is %s is left out", async (_, carrier) => {
    for (const script of scripts) expect(await (await ask(script, { ...mobile, carrier: carrier as string })).looking()).not.toHaveProperty("carrier");
  });
});

describe("invalid options throw, with the option and the fix", () => {
  it.each<[string, () => unknown, string]>([
    ["twilio without credentials", () => twilioLookup({} as never), "twilioLookup: option accountSid is missing"],
    ["twilio without a token", () => twilioLookup({ accountSid: "AC1" } as never), "twilioLookup: option authToken is missing"],
    ["telnyx without a key", () => telnyxLookup({} as never), "telnyxLookup: option apiKey is missing"],
    ["vonage without an application", () => vonageLookup({} as never), "vonageLookup: option applicationId is missing"],
    [
      "vonage with a key that is none",
      () => vonageLookup({ ...vonageLookupOptions, privateKey: "x" }),
      "vonageLookup: option privateKey is not an RSA private key",
    ],
    ["a price below 0", () => telnyxLookup({ ...telnyxLookupOptions, price: -1 }), "telnyxLookup: option price must be"],
    ["a price that is no number", () => telnyxLookup({ ...telnyxLookupOptions, price: "1" as never }), "telnyxLookup: option price must be"],
    ["a time-out of 0", () => twilioLookup({ ...twilioLookupOptions, timeout: 0 }), "twilioLookup: option timeout must be"],
    ["a base URL that is none", () => twilioLookup({ ...twilioLookupOptions, baseUrl: "ftp://x" }), "twilioLookup: option baseUrl must be"],
    ["http without a URL", () => httpLookup({} as never), "httpLookup: option url is missing"],
    ["http with a strange placeholder", () => httpLookup({ url: "https://x/{to}", facts: { mcc: "a" }, number: "n" }), "unknown placeholder {to}"],
    ["http without the number", () => httpLookup({ url: "https://x/", facts: { mcc: "a" }, number: "n" }), "has neither {number} nor {number_digits}"],
    [
      "http with headers as a text",
      () => httpLookup({ url: "https://x/{number}", headers: "Bearer a" as never, facts: { mcc: "a" }, number: "n" }),
      "option headers must be an object",
    ],
    [
      "http with a form as a list",
      () => httpLookup({ url: "https://x/{number}", form: ["a"] as never, facts: { mcc: "a" }, number: "n" }),
      "option form must be an object",
    ],
    ["http without facts", () => httpLookup({ url: "https://x/{number}", facts: {}, number: "n" }), "option facts is missing"],
    ["http without the place of the number", () => httpLookup({ url: "https://x/{number}", facts: { mcc: "a" } } as never), "option number is missing"],
    ["http with two bodies", () => httpLookup({ url: "https://x/{number}", form: {}, json: {}, facts: { mcc: "a" }, number: "n" }), "exclude each other"],
    ["http, GET with a body", () => httpLookup({ url: "https://x/{number}", method: "GET", json: {}, facts: { mcc: "a" }, number: "n" }), "GET takes no body"],
    ["http, PUT", () => httpLookup({ url: "https://x/{number}", method: "PUT" as never, facts: { mcc: "a" }, number: "n" }), "method is not one of GET, POST"],
    ["http, a list as path", () => httpLookup({ url: "https://x/{number}", errorCode: ["a"] as never, facts: { mcc: "a" }, number: "n" }), "errorCode must be"],
  ])("%s", (_, make, message) => {
    expect(make).toThrow(message);
  });

  it("http: sends a GET with a percent-encoded query and headers from a function, and reads words for porting", async () => {
    const server = await startLookup({ answer: () => json(200, { results: [{ to: "14155552671", mccMnc: 23410, ported: "Y" }] }) });
    running.push(server);
    const provider = httpLookup({
      url: `${server.url}/hlr?lookup={number}&country={country}`,
      headers: (asked) => ({ "X-Signature": `signed ${asked}` }),
      number: "results.0.to",
      facts: { mccmnc: "results.0.mccMnc", number_ported: "results.0.ported" },
      portedWords: { Y: true },
    });
    expect(await look(provider)).toEqual({ mcc: "234", mnc: "10", number_ported: true });
    expect(server.requests[0]).toMatchObject({ method: "GET", headers: { "x-signature": "signed +14155552671" } });
    expect(server.requests[0]?.url.search).toBe("?lookup=%2B14155552671&country=US");
  });

  it("http: a headers function that throws makes no request and costs nothing", async () => {
    const headers = () => {
      throw new Error("no key for +14155552671");
    };
    const provider = httpLookup({ url: "https://x.invalid/{number}", headers, number: "n", facts: { mcc: "mcc" }, price: 1 });
    await expect(look(provider)).rejects.toMatchObject({ message: "httpLookup: the request could not be made", price: 0 });
  });
});
