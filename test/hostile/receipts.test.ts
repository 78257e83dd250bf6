import { describe, expect, it } from "vitest";
import { secret } from "../support/verifier.js";
import { type Asked, atSecret, base, begin, listening, messageOf, post, providers, tellers, told, urlOf, wordOf } from "./receipt-kit.js";

describe.each(providers)("receipts of %s", (provider) => {
  const teller = tellers[provider]!;

  it("find their message, are reported once, and reveal nothing when repeated", async () => {
    const one = listening();
    const id = await begin(one);
    const word = await wordOf(provider, one, id);
    for (let i = 0; i < 3; i++) expect(await post(one.verifier, word)).toMatchObject({ status: 200, body: "{}" });
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("are reported for the attempt that sent the message, never another", async () => {
    const one = listening();
    const id = await begin(one);
    const first = await wordOf(provider, one, id, "undeliverable", "SM1");
    one.clock.advance(31_000);
    await one.retry(id);
    const second = await tellers[provider]!.tell({
      url: urlOf(messageOf(one, id), provider),
      reference: messageOf(one, id).receipt_reference ?? "",
      id: "SM2",
      status: "delivered",
      at: one.clock.now(),
    });
    expect((await post(one.verifier, second)).status).toBe(200);
    expect((await post(one.verifier, first)).status).toBe(200);
    expect((await told(one, id)).sort()).toEqual(["1:submitted", "1:undeliverable", "2:delivered", "2:submitted"]);
  });

  it("with a reference of another service settle nothing and log no error", async () => {
    const [one, other] = [listening(), listening({ secret: "another secret of another service, as long" })];
    const [id, theirs] = [await begin(one), await begin(other, 2)];
    if (teller.by === "id") return;
    const answer = await post(one.verifier, await wordOf(provider, other, theirs));
    expect([200, 403]).toContain(answer.status);
    expect(await told(one, id)).toEqual(["1:submitted"]);
    expect(one.log.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("of a message sent before a secret's rotation count while the old secret is configured, and not afterwards", async () => {
    const [old, next] = [secret, "the next secret of the tests, long enough"];
    const one = listening({ secret: old });
    const id = await begin(one);
    const word = await wordOf(provider, one, id);
    const { clock, customer } = one;
    const rotated = (value: string | readonly [string, string]) =>
      listening({ ...one.settings, secret: value, customer, clock, callbacks: { sender: one.hook } } as never);
    const gone = rotated(next);
    expect([200, 403]).toContain((await post(gone.verifier, word)).status);
    if (teller.by !== "id") expect(await told(one, id)).toEqual(["1:submitted"]);
    expect((await post(rotated([next, old]).verifier, word)).status).toBe(200);
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });
});

/** Infobip signs nothing: the reference alone authenticates a receipt. */
const infobip = (results: readonly object[], query = ""): Asked => ({ url: `${base}/receipts/infobip${query}`, body: JSON.stringify({ results }) });
const result = (callbackData: unknown, groupName = "DELIVERED") => ({ messageId: "m", status: { groupName }, callbackData });

describe("a reference", () => {
  const flip = (text: string) => [...text].map((letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase())).join("");
  const bent: readonly (readonly [string, (reference: string) => string])[] = [
    ["cut by one", (r) => r.slice(0, -1)],
    ["cut to a half", (r) => r.slice(0, r.length / 2)],
    ["with a letter more", (r) => `${r}A`],
    ["in another case", flip],
    ["twice in a row", (r) => r + r],
    ["with its last letter changed", (r) => r.slice(0, -1) + (r.endsWith("A") ? "B" : "A")],
    ["with padding", (r) => `${r}=`],
    ["in base64's other alphabet", (r) => `${r.replaceAll("-", "+").replaceAll("_", "/")}+/`],
    ["with a blank", (r) => ` ${r}`],
    ["with a line break", (r) => `${r}\n`],
    ["with a null", (r) => `${r}\0`],
    ["of letters that look alike", (r) => r.replace(/[A-Za-z]/, "а")],
    ["empty", () => ""],
    ["of eighty letters", () => "A".repeat(80)],
    ["of a million letters", () => "A".repeat(1_000_000)],
  ];

  it.each(bent)("%s matches no message, in a field or in the URL", async (_, bend) => {
    const one = listening();
    const id = await begin(one);
    const wrong = bend(messageOf(one, id).receipt_reference ?? "");
    for (const word of [infobip([result(wrong)]), infobip([result(undefined)], `?r=${encodeURIComponent(wrong)}`)]) {
      const { status, body } = await post(one.verifier, word);
      expect([400, 403, 413]).toContain(status);
      expect(body).not.toContain(messageOf(one, id).receipt_reference);
    }
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it.each<[string, (reference: string) => unknown]>([
    ["a list", (r) => [r]],
    ["an object", (r) => ({ toString: () => r, r })],
    ["a number", () => 7],
    ["null", () => null],
    ["true", () => true],
  ])("that is %s matches no message", async (_, make) => {
    const one = listening();
    const id = await begin(one);
    expect([400, 403]).toContain((await post(one.verifier, infobip([result(make(messageOf(one, id).receipt_reference ?? ""))]))).status);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("in another field, header or parameter matches no message", async () => {
    const one = listening();
    const id = await begin(one);
    const { receipt_reference: r = "" } = messageOf(one, id);
    const status = { groupName: "DELIVERED" };
    for (const word of [
      infobip([{ messageId: r, status }]),
      infobip([{ messageId: "m", status, reference: r, client_ref: r }]),
      infobip([result(undefined)], `?ref=${r}`),
      infobip([result(undefined)], `?R=${r}`),
      { ...infobip([result(undefined)]), headers: { r, authorization: r, cookie: `r=${r}` } },
    ])
      expect((await post(one.verifier, word)).status).toBe(403);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("twice in one query never gives a message two delivered events", async () => {
    const one = listening();
    const [a, b] = [await begin(one, 1), await begin(one, 2)];
    const [ra, rb] = [a, b].map((id) => messageOf(one, id).receipt_reference);
    for (const query of [`?r=${ra}&r=${rb}`, `?r=nothing&r=${rb}`, `?r=${rb}&r=`]) {
      expect([200, 400, 403]).toContain((await post(one.verifier, infobip([result(undefined)], query))).status);
    }
    const all = [...(await told(one, a)), ...(await told(one, b))];
    expect(all.filter((line) => line === "1:delivered").length).toBeLessThanOrEqual(2);
    for (const id of [a, b]) expect(new Set(await told(one, id)).size).toBe((await told(one, id)).length);
  });

  it("of a message sent through a signing carrier settles nothing at the route of a carrier that signs nothing", async () => {
    const one = listening();
    Object.assign(one.sender, { receiptProviders: ["twilio"] });
    one.sender.answer = async () => ({ outcome: "accepted", messageId: "SM1", route: "twilio" });
    const id = await begin(one);
    const { receipt_reference: r } = messageOf(one, id);
    await post(one.verifier, infobip([result(undefined)], `?r=${r}`));
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("still matches when an intermediary percent-encodes it", async () => {
    const one = listening();
    const id = await begin(one);
    const encoded = [...(messageOf(one, id).receipt_reference ?? "")].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join("");
    expect((await post(one.verifier, infobip([result(undefined)], `?r=${encoded}`))).status).toBe(200);
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("of an authentication without a record settles nothing and logs no error", async () => {
    const one = listening();
    const id = await begin(one);
    const words = await Promise.all(providers.map((provider) => wordOf(provider, one, id)));
    const empty = listening({ customer: one.customer, clock: one.clock, receipts: one.settings?.receipts as never });
    for (const word of words) expect([200, 403]).toContain((await post(empty.verifier, word)).status);
    expect(empty.log.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("of a customer that is no longer configured gives no 5xx", async () => {
    const one = listening();
    const id = await begin(one);
    const word = await wordOf("twilio", one, id);
    const without = listening({ ...one.settings, customer: undefined as never });
    expect((await post(without.verifier, word)).status).toBeLessThan(500);
  });

  it("works between the expiry and the end of the record, and the code stays expired", async () => {
    const one = listening();
    const id = await begin(one);
    one.clock.advance(600_001);
    expect((await post(one.verifier, await wordOf("twilio", one, id))).status).toBe(200);
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
    expect((await one.check(id, one.sender.codeOf(id))).status).toBe("expired_auth");
  });

  it("fits a URL and a carrier's field: up to 80 letters, digits, - and _", async () => {
    const one = listening();
    for (let i = 0; i < 50; i++) expect(messageOf(one, await begin(one, i)).receipt_reference).toMatch(/^[\w-]{20,80}$/);
  });

  it("reveals neither the number nor the code", async () => {
    const one = listening();
    const message = messageOf(one, await begin(one));
    const decoded = Buffer.from(message.receipt_reference ?? "", "base64url").toString("latin1");
    for (const text of [decoded, message.receipt_reference ?? "", message.receipt_url ?? ""]) {
      expect(text).not.toContain(message.code);
      expect(text).not.toContain(message.to.slice(1));
    }
  });
});

describe("only a valid receipt changes a message's status", () => {
  const huge = (bytes: number) => "x".repeat(bytes);
  const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  const nonsense: readonly (readonly [string, string | Uint8Array])[] = [
    ["nothing", ""],
    ["a blank", " "],
    ["null", "null"],
    ["true", "true"],
    ["a number", "1e999"],
    ["a text", '"delivered"'],
    ["a list of lists", "[[]]"],
    ["a list of nulls", "[null,null]"],
    ["an empty object", "{}"],
    ["results that are none", '{"results":"DELIVERED","data":[],"Type":"Notification"}'],
    ["a prototype", '{"__proto__":{"results":[{}],"status":"delivered"},"constructor":{"prototype":{"r":1}}}'],
    ["half of JSON", '{"results":[{"messageId"'],
    ["a hundred thousand brackets", deep(100_000)],
    ["objects in each other", `${'{"data":'.repeat(5_000)}1${"}".repeat(5_000)}`],
    ["half a million bytes", huge(500_000)],
    ["ten million bytes", huge(10_000_000)],
    ["bytes that are no UTF-8", new Uint8Array([0xff, 0xfe, 0xc3, 0x28, 0x00])],
    ["a byte order mark", "\ufeff{}"],
    ["a form of a hundred thousand fields", Array.from({ length: 100_000 }, (_, i) => `f${i}=1`).join("&")],
    ["a form with broken escapes", "ident=%zz&state=%E0%A4%A&MessageStatus=%"],
    ["XML", '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
  ];

  it.each(providers)("%s: an invalid body gets a short 4xx response, changes nothing and logs no error", async (provider) => {
    const one = listening();
    const id = await begin(one);
    const message = messageOf(one, id);
    const url = provider === "africastalking" ? `${base}/receipts/${provider}?key=${atSecret}` : urlOf(message, provider);
    for (const [what, body] of nonsense) {
      const started = performance.now();
      const answer = await post(one.verifier, { url, body, headers: { "content-type": "application/json" } });
      expect([400, 403, 413], `${what}: ${answer.status} ${answer.body}`).toContain(answer.status);
      expect(performance.now() - started, what).toBeLessThan(20_000);
      expect(answer.body.length, what).toBeLessThan(600);
    }
    expect(await told(one, id)).toEqual(["1:submitted"]);
    expect(one.log.filter(({ level }) => level === "error")).toEqual([]);
    expect(Object.hasOwn(Object.prototype, "r")).toBe(false);
  });

  it.each(["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])("%s on a receipts route changes no status", async (method) => {
    const one = listening();
    const id = await begin(one);
    for (const provider of ["twilio", "infobip", "http"]) await post(one.verifier, { ...(await wordOf(provider, one, id)), method });
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("paths that only resemble the route give 404", async () => {
    const one = listening();
    const id = await begin(one);
    const word = await wordOf("infobip", one, id);
    for (const path of [
      "infobip//",
      "/infobip",
      "INFOBIP",
      "infobip/x",
      "infobip%2f",
      "%69nfobip",
      "../receipts/infobip",
      "",
      "__proto__",
      "constructor",
      "toString",
      "infobip;a=b",
      "infobip.json",
    ])
      expect((await post(one.verifier, { ...word, url: `${base}/receipts/${path}` })).status, path).toBe(404);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("no response to a stranger reveals which carriers are configured", async () => {
    const one = listening();
    const names = new RegExp(providers.filter((name) => name !== "http").join("|"), "i");
    for (const method of ["GET", "POST", "PUT"])
      for (const path of ["nobody", "", "x/y"]) {
        const { body, headers } = await post(one.verifier, { method, url: `${base}/receipts/${path}` });
        expect(body + JSON.stringify(headers)).not.toMatch(names);
      }
  });

  it("a captured Plivo V2 signature and nonce settle no message, whatever query they are posted with", async () => {
    const one = listening();
    const id = await begin(one);
    const { createHmac } = await import("node:crypto");
    const bare = `${base}/receipts/plivo`;
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      "x-plivo-signature-v2": createHmac("sha256", "plivo-auth-token").update(`${bare}777`).digest("base64"),
      "x-plivo-signature-v2-nonce": "777",
    };
    for (const query of ["", "?", "?r=", "?r=%00", `?a=${messageOf(one, id).receipt_reference}`, `?r=${id}`])
      for (const body of ["MessageUUID=SM1&Status=delivered", `MessageUUID=SM1&Status=delivered&r=${messageOf(one, id).receipt_reference}`])
        expect((await post(one.verifier, { url: bare + query, headers, body })).status).toBe(403);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("a hundred Infobip results in one post, each as long as in its documentation, are all reported", async () => {
    const one = listening();
    const ids: string[] = [];
    for (let i = 0; i < 100; i++) ids.push(await begin(one, i));
    const full = (id: string) => ({
      bulkId: "BULK-ID-123-xyz-0123456789",
      price: { pricePerMessage: 0.01, currency: "EUR" },
      status: { id: 5, groupId: 3, groupName: "DELIVERED", name: "DELIVERED_TO_HANDSET", description: "Message delivered to handset" },
      error: { id: 0, name: "NO_ERROR", description: "No Error", groupId: 0, groupName: "OK", permanent: false },
      messageId: "MESSAGE-ID-123-xyz-0123456789",
      to: "41793026727",
      sender: "InfoSMS",
      sentAt: "2027-01-01T11:59:00.000+0000",
      doneAt: "2027-01-01T11:59:01.000+0000",
      messageCount: 1,
      mccMnc: "22801",
      callbackData: messageOf(one, id).receipt_reference,
      platform: { entityId: "promotional-traffic-entity", applicationId: "marketing-automation-application" },
    });
    expect((await post(one.verifier, infobip(ids.map(full)))).status).toBe(200);
    for (const id of ids) expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("unknown results in a post do not affect the others", async () => {
    const one = listening();
    const [a, b] = [await begin(one, 1), await begin(one, 2)];
    const [ra, rb] = [a, b].map((id) => messageOf(one, id).receipt_reference);
    await post(one.verifier, infobip([result(ra), result("somebody-elses-campaign"), result(undefined), result(rb, "UNDELIVERABLE")]));
    expect([await told(one, a), await told(one, b)]).toEqual([
      ["1:submitted", "1:delivered"],
      ["1:submitted", "1:undeliverable"],
    ]);
  });
});
