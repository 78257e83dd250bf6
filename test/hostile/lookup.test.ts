import { generateKeyPairSync, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { nodeHandler } from "../../adapters/http/node.js";
import { lookupChain } from "../../adapters/lookup/chain.js";
import { httpLookup } from "../../adapters/lookup/http.js";
import { telnyxLookup } from "../../adapters/lookup/telnyx.js";
import { twilioLookup } from "../../adapters/lookup/twilio.js";
import { vonageLookup } from "../../adapters/lookup/vonage.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { LookupProvider } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/index.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { type Answer, type Asked, json, number, numberAt, spellings, troubles, type Vendor, vendor, watched } from "./watching-kit.js";

const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const accountSid = `AC${"a".repeat(32)}`;
const authToken = "f00dbabe".repeat(4);

const inPath = ({ path }: Asked) => decodeURIComponent(path.split("?")[0]?.split("/").at(-1) ?? "");

interface Kind {
  readonly make: (baseUrl: string, price?: number) => LookupProvider;
  /** The vendor's response about an Orange number in France, as in its documentation. */
  readonly sound: (asked: Asked, number?: string) => unknown;
}

const kinds: Readonly<Record<string, Kind>> = {
  twilio: {
    make: (baseUrl, price = 0) => twilioLookup({ accountSid, authToken, baseUrl, price }),
    sound: (asked, phone_number = inPath(asked)) => ({
      calling_country_code: "33",
      country_code: "FR",
      phone_number,
      valid: true,
      validation_errors: [],
      line_type_intelligence: { error_code: null, mobile_country_code: "208", mobile_network_code: "01", carrier_name: "Orange", type: "mobile" },
    }),
  },
  telnyx: {
    make: (baseUrl, price = 0) => telnyxLookup({ apiKey: authToken, baseUrl, price }),
    sound: (asked, phone_number = inPath(asked)) => ({
      data: {
        country_code: "FR",
        phone_number,
        carrier: { mobile_country_code: "208", mobile_network_code: "01", name: "Orange", type: "mobile", error_code: null },
        portability: { ported_status: "" },
        record_type: "number_lookup",
        valid_number: true,
      },
    }),
  },
  vonage: {
    make: (baseUrl, price = 0) => vonageLookup({ applicationId: randomUUID(), privateKey, baseUrl, price }),
    sound(asked, other) {
      const given = other ?? (JSON.parse(asked.body || "{}") as { phone_number?: string }).phone_number ?? "";
      const carrier = { name: "Orange", network_type: "MOBILE", country_code: "FR", network_code: "20801", status: { code: "OK", message: "Success" } };
      const format = { country_code: "FR", number_international: given.replace("+", ""), is_format_valid: true, status: { code: "OK", message: "Success" } };
      return { request_id: randomUUID(), insights: { format, original_carrier: carrier, current_carrier: carrier } };
    },
  },
  http: {
    make: (baseUrl, price = 0) =>
      httpLookup({
        url: `${baseUrl}/v2/{number}`,
        headers: { authorization: `Bearer ${authToken}` },
        number: "msisdn",
        facts: { carrier: "network", mccmnc: "mccmnc", line_type: "type" },
        lineTypes: { MOBILE: "Mobile" },
        price,
      }),
    sound: (asked, phone_number = inPath(asked)) => ({ msisdn: phone_number.slice(1), network: "Orange", mccmnc: "20801", type: "MOBILE" }),
  },
};

async function serve(answer: Answer): Promise<Vendor> {
  const server = await vendor(answer);
  onTestFinished(() => server.close());
  return server;
}

/** An in-process provider that counts its lookups. */
function own(answer: () => unknown, price = 0) {
  const provider = {
    price,
    asked: 0,
    async lookup() {
      provider.asked += 1;
      return answer() as never;
    },
  };
  return provider;
}

const planOnly = { country_code: "FR", line_type: "Mobile", phone_number: number };
const ofOrange = { carrier: "Orange", mcc: "208", mnc: "01" };

describe.each(Object.entries(kinds))("%s", (_name, { make, sound }) => {
  it("returns the numbering plan's result in time however the provider fails, and logs no key and no number (docs/lookup.md#providers)", async () => {
    const server = await serve((asked, response) => json(response, sound(asked)));
    const provider = make(server.origin);
    const well = watched({ lookup: provider });
    expect(await well.verifier.lookup({ phone_number: number })).toMatchObject({ ...planOnly, ...ofOrange });
    for (const [trouble, answer] of Object.entries(troubles)) {
      server.answer = answer(sound);
      const { verifier, told, log } = watched({ lookup: provider, lookupTimeout: 0.3 });
      expect(await verifier.lookup({ phone_number: number }), trouble).toEqual(planOnly);
      expect(log.length, trouble).toBe(1);
      for (const secret of [authToken, privateKey.slice(40, 80), ...spellings(number)]) expect(told(), trouble).not.toContain(secret);
      await verifier.close();
    }
    expect(server.asked.every(({ path }) => !path.includes("elsewhere"))).toBe(true);
  });

  it("ignores a response about another number (docs/lookup.md#providers)", async () => {
    for (const other of ["+33612345679", "+336123456780", "+3361234567", "612345678", "", "null"]) {
      const server = await serve((asked, response) => json(response, sound(asked, other)));
      expect(await watched({ lookup: make(server.origin) }).verifier.lookup({ phone_number: number }), other).toEqual(planOnly);
    }
  });
});

describe("a lookup that costs nothing", () => {
  const { make, sound } = kinds.twilio as Kind;

  it("gives back the count of a lookup that got a status outside 200 to 299, or no connection (docs/lookup.md#price)", async () => {
    const server = await serve((_asked, response) => void response.writeHead(503).end());
    const closed = await vendor(() => {});
    closed.close();
    const of = { store: memoryStore({ name: randomUUID() }), policy: { spam: noSpamRules, limits: { lookups: [{ limit: 2, window: 3600 }] } } };
    const { verifier } = watched({ ...of, lookup: make(server.origin) });
    const unconnected = watched({ ...of, lookup: make(closed.origin) }).verifier;
    for (let index = 0; index < 6; index++) {
      await verifier.lookup({ phone_number: numberAt(index) });
      await unconnected.lookup({ phone_number: numberAt(10 + index) });
    }
    expect(server.asked.length, "no lookup that costs nothing uses the limit up").toBe(6);
    server.answer = (asked, response) => json(response, sound(asked));
    expect(await verifier.lookup({ phone_number: number })).toMatchObject(ofOrange);
  });

  it("gives back the price of such a lookup (docs/lookup.md#price)", async () => {
    const server = await serve((_asked, response) => void response.writeHead(503).end());
    const store = memoryStore({ name: randomUUID() });
    const sender = router({ store, routes: [{ name: "only", price: 0.01, sender: { send: async () => ({ outcome: "accepted" }) } }] });
    const policy = { spam: noSpamRules, limits: { spend: [{ amount: 2, per: "day" as const }] } };
    const { verifier } = watched({ store, sender, policy, lookup: make(server.origin, 1) });
    for (let index = 0; index < 4; index++) await verifier.lookup({ phone_number: numberAt(index) });
    server.answer = (asked, response) => json(response, sound(asked));
    for (let index = 10; index < 12; index++) expect(await verifier.lookup({ phone_number: numberAt(index) })).toMatchObject(ofOrange);
    expect((await verifier.lookup({ phone_number: numberAt(12) })).carrier, "two that cost 1 each use up 2").toBeUndefined();
  });
});

describe("lookups that use up the spend ceiling", () => {
  it("raise the spend alarm, as messages do (docs/fraud.md#how-the-rules-work, docs/routing.md#spend-ceiling)", async () => {
    const spent = async (what: "lookups" | "messages") => {
      const clock = fixedClock(Date.UTC(2026, 2, 1));
      const store = memoryStore({ name: randomUUID(), now: () => clock.now() });
      const sender = router({ store, routes: [{ name: "only", price: 0.1, sender: { send: async () => ({ outcome: "accepted" }) } }] });
      const policy = { spam: noSpamRules, limits: { spend: [{ amount: 1, per: "hour" as const }] } };
      const { verifier, events } = watched({ clock, store, sender, policy, lookup: own(() => ofOrange, 0.1) });
      for (let index = 0; index < 10; index++) {
        const of = { phone_number: numberAt(index) };
        await (what === "lookups" ? verifier.lookup(of) : verifier.createAuthentication(of));
        clock.advance(1000);
        await turn();
      }
      const { status } = await verifier.createAuthentication({ phone_number: numberAt(20) });
      await turn();
      return [status, ...events.flatMap((event) => (event.type === "alarm" ? [event.alarm] : []))];
    };
    const both = { messages: await spent("messages"), lookups: await spent("lookups") };
    expect(both).toEqual({ messages: ["rate_limited", "spend"], lookups: ["rate_limited", "spend"] });
  });
});

describe("a chain", () => {
  it("ignores an invalid fact, so that a later provider can supply it (docs/lookup.md#providers)", async () => {
    const facts = { carrier: "SFR", mcc: "208", mnc: "10", number_ported: true };
    const empty = [
      { carrier: null, mcc: null, mnc: null, number_ported: null, line_type: null },
      { carrier: "" },
      { mcc: "" },
      { mcc: 208, mnc: 10 },
      { number_ported: "no" },
    ];
    const results = [];
    for (const first of empty) {
      expect(await watched({ lookup: own(() => first) }).verifier.lookup({ phone_number: number }), "alone, it knows nothing").toEqual(planOnly);
      const chain = lookupChain([own(() => first), own(() => facts)]);
      results.push(await watched({ lookup: chain }).verifier.lookup({ phone_number: number }));
    }
    expect(results).toEqual(empty.map(() => ({ ...planOnly, ...facts })));
  });

  it("asks the next provider when one hangs, and never combines one's carrier with another's network (docs/lookup.md#providers)", async () => {
    const hung = await serve(() => {});
    const well = await serve((asked, response) => json(response, kinds.telnyx?.sound(asked)));
    const chain = lookupChain([twilioLookup({ accountSid, authToken, baseUrl: hung.origin }), telnyxLookup({ apiKey: "KEY", baseUrl: well.origin })]);
    expect(await watched({ lookup: chain, lookupTimeout: 0.6 }).verifier.lookup({ phone_number: number })).toMatchObject(ofOrange);
    const mixed = lookupChain([own(() => ({ carrier: "Free" })), own(() => ({ carrier: "SFR", mcc: "208", mnc: "10" }))]);
    expect(await watched({ lookup: mixed }).verifier.lookup({ phone_number: number })).toEqual({ ...planOnly, carrier: "Free" });
  });
});

describe("a lookup", () => {
  it("is cached for a day, even without a result, and a failure for ten minutes, in every process (docs/contract.md#lookup-cache)", async () => {
    const clock = fixedClock(Date.UTC(2026, 2, 1));
    const store = memoryStore({ name: randomUUID(), now: () => clock.now() });
    let answer: () => unknown = () => ofOrange;
    const provider = own(() => answer());
    const processes = [watched({ store, clock, lookup: provider }), watched({ store, clock, lookup: provider })];
    const askedAfter = async (seconds: number) => {
      clock.advance(seconds * 1000);
      for (const { verifier } of processes) await verifier.lookup({ phone_number: number });
      return provider.asked;
    };
    expect([await askedAfter(0), await askedAfter(86_399), await askedAfter(2)]).toEqual([1, 1, 2]);
    answer = () => undefined;
    expect([await askedAfter(86_401), await askedAfter(86_399)]).toEqual([3, 3]);
    answer = () => {
      throw new Error("down");
    };
    expect([await askedAfter(2), await askedAfter(599), await askedAfter(2)]).toEqual([4, 4, 5]);
  });

  it("asks once for fifty concurrent callers, none of whom can change another's result (docs/lookup.md#cache)", async () => {
    const server = await serve((asked, response) => void setImmediate(() => json(response, kinds.twilio?.sound(asked))));
    const { verifier } = watched({ lookup: twilioLookup({ accountSid, authToken, baseUrl: server.origin }) });
    const all = await Promise.all(Array.from({ length: 50 }, () => verifier.lookup({ phone_number: number })));
    expect(server.asked.length).toBe(1);
    (all[0] as { carrier?: string }).carrier = "changed";
    expect(all[1]?.carrier).toBe("Orange");
  });

  it("never allows a line that the numbering plan excludes, and is skipped for numbers that get no message (docs/lookup.md#before-a-send)", async () => {
    const provider = own(() => ({ line_type: "Mobile" }));
    const test = { number: "+33699999999", code: "123456" };
    const { verifier, messages } = watched({
      lookup: provider,
      lookupBeforeSend: true,
      countries: ["FR"],
      testNumbers: [test],
      blockedNumbers: ["+33688888888"],
    });
    const codes = [];
    for (const phone_number of ["+33899123456", "+33123456789", "+881612345678", "+14155552671", "+33688888888", "+330", "+33612345678;ext=5"])
      codes.push(await verifier.createAuthentication({ phone_number }).catch(({ code }) => code));
    const region = "unsupported_region";
    expect(codes.slice(0, 2)).toEqual(["invalid_line", "invalid_line"]);
    expect(["invalid_line", region]).toContain(codes[2]);
    expect(codes.slice(3)).toEqual([region, "blocked_number", "invalid_phone_number", "invalid_phone_number"]);
    expect((await verifier.createAuthentication({ phone_number: test.number })).status).toBe("pending");
    expect([provider.asked, messages.length]).toEqual([0, 0]);
  });

  it("is not shared between customers, and a rejected request asks no provider (docs/lookup.md#cache)", async () => {
    const customers = ["a", "b"].map((letter) => ({ customer_uuid: randomUUID(), keys: [letter.repeat(40)] }));
    const provider = own(() => ({ carrier: `carrier ${provider.asked}` }));
    const { verifier } = watched({ customers, lookup: provider });
    const server = createServer(nodeHandler(verifier)).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const get = async (path: string, key: string | undefined, customer: string | undefined) => {
      const headers = { ...(key !== undefined && { "x-api-key": key }), ...(customer !== undefined && { "customer-uuid": customer }) };
      const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/lookup/${path}`, { headers });
      const body = (await response.json()) as { carrier?: string; code?: string };
      return `${response.status} ${body.carrier ?? body.code}`;
    };
    const [one, two] = customers as [(typeof customers)[0], (typeof customers)[0]];
    const [key, other] = [one.keys[0], two.keys[0]];
    expect(await get(number, undefined, one.customer_uuid)).toBe("403 forbidden");
    expect(await get(number, "x".repeat(40), one.customer_uuid)).toBe("403 forbidden");
    expect(await get(number, key, two.customer_uuid)).toBe("400 account_invalid");
    expect(await get(number, key, undefined)).toBe("400 bad_request");
    for (const path of ["33612345678", "0612345678", "+33612345678;ext=5", "+33%206%2012345678", "%00", `+${"3".repeat(2000)}`])
      expect(await get(path, key, one.customer_uuid), path.slice(0, 30)).toBe("400 invalid_phone_number");
    expect(provider.asked).toBe(0);
    expect(await get(number, key, one.customer_uuid)).toBe("200 carrier 1");
    expect(await get(number, other, two.customer_uuid)).toBe("200 carrier 2");
    expect(await get("%2B330612345678/", key, one.customer_uuid)).toBe("200 carrier 1");
  });

  it("is logged once above its ceiling, however many requests reach it (docs/watching.md#events)", async () => {
    const { verifier, lines } = watched({
      lookup: own(() => ({})),
      lookupBeforeSend: true,
      policy: { spam: noSpamRules, limits: { lookups: [{ limit: 1, window: 3600 }] } },
    });
    for (let index = 0; index < 30; index++) await verifier.createAuthentication({ phone_number: numberAt(index) });
    expect(lines()).toEqual({ "the lookup ceiling is reached; only the numbering plan is used": 1 });
  });
});
