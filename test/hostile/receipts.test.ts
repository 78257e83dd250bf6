import { describe, expect, it } from "vitest";
import { africasTalkingReceipts } from "../../adapters/sms/africastalking.js";
import { infobipReceipts } from "../../adapters/sms/infobip.js";
import type { Verifier } from "../../src/index.js";
import { secret } from "../support/verifier.js";
import { type Asked, atSecret, base, begin, listening, messageOf, noon, post, providers, tellers, told, urlOf, wordOf } from "./receipt-kit.js";

describe.each(providers)("%s: its receipts", (provider) => {
  const teller = tellers[provider]!;

  it("find their message, are told once, and say nothing to whoever repeats them", async () => {
    const one = listening();
    const id = await begin(one);
    const word = await wordOf(provider, one, id);
    for (let i = 0; i < 3; i++) expect(await post(one.verifier, word)).toMatchObject({ status: 200, body: "{}" });
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("name the attempt whose message it was, never another", async () => {
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

  it("a reference of another service settles nothing, and is no error of ours", async () => {
    const [one, other] = [listening(), listening({ secret: "another secret of another service, as long" })];
    const [id, theirs] = [await begin(one), await begin(other, 2)];
    if (teller.by === "id") return;
    const answer = await post(one.verifier, await wordOf(provider, other, theirs));
    expect([200, 403]).toContain(answer.status);
    expect(await told(one, id)).toEqual(["1:submitted"]);
    expect(one.log.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("of a message that was sent before the secret's rotation count while the old secret is kept, and not after", async () => {
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

/** Infobip signs nothing: the reference alone speaks. */
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

  it.each(bent)("%s names nothing, in a field or in the URL", async (_, bend) => {
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
  ])("that is %s names nothing", async (_, make) => {
    const one = listening();
    const id = await begin(one);
    expect([400, 403]).toContain((await post(one.verifier, infobip([result(make(messageOf(one, id).receipt_reference ?? ""))]))).status);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("in another field, header or parameter names nothing", async () => {
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

  it("twice in one query is never two messages: nobody is told of the wrong one", async () => {
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

  it("percent-encoded by something in between is still the same", async () => {
    const one = listening();
    const id = await begin(one);
    const encoded = [...(messageOf(one, id).receipt_reference ?? "")].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join("");
    expect((await post(one.verifier, infobip([result(undefined)], `?r=${encoded}`))).status).toBe(200);
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("of an authentication whose record has been erased settles nothing and is no error", async () => {
    const one = listening();
    const id = await begin(one);
    const words = await Promise.all(providers.map((provider) => wordOf(provider, one, id)));
    const empty = listening({ customer: one.customer, clock: one.clock, receipts: one.settings?.receipts as never });
    for (const word of words) expect([200, 403]).toContain((await post(empty.verifier, word)).status);
    expect(empty.log.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("of a customer that is no longer configured settles nothing and is no error", async () => {
    const one = listening();
    const id = await begin(one);
    const word = await wordOf("twilio", one, id);
    const without = listening({ ...one.settings, customer: undefined as never });
    expect((await post(without.verifier, word)).status).toBeLessThan(500);
  });

  it("holds for the time between expiry and the end of the record, and says nothing about the code", async () => {
    const one = listening();
    const id = await begin(one);
    one.clock.advance(600_001);
    expect((await post(one.verifier, await wordOf("twilio", one, id))).status).toBe(200);
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
    expect((await one.check(id, one.sender.codeOf(id))).status).toBe("expired_auth");
  });

  it("fits a URL and a carrier's field: at most 80 letters, digits, - and _", async () => {
    const one = listening();
    for (let i = 0; i < 50; i++) expect(messageOf(one, await begin(one, i)).receipt_reference).toMatch(/^[\w-]{20,80}$/);
  });

  it("tells its holder neither the number nor the code", async () => {
    const one = listening();
    const message = messageOf(one, await begin(one));
    const decoded = Buffer.from(message.receipt_reference ?? "", "base64url").toString("latin1");
    for (const text of [decoded, message.receipt_reference ?? "", message.receipt_url ?? ""]) {
      expect(text).not.toContain(message.code);
      expect(text).not.toContain(message.to.slice(1));
    }
  });
});

describe("nothing but a carrier's word moves a message", () => {
  const huge = (bytes: number) => "x".repeat(bytes);
  const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  const nonsense: readonly (readonly [string, string | Uint8Array])[] = [
    ["nothing", ""],
    ["a blank", " "],
    ["null", "null"],
    ["true", "true"],
    ["a number", "1e999"],
    ["a text", '"delivered"'],
    ["an empty list", "[]"],
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

  it.each(providers)("%s: any body that is none is answered 4xx at once, whoever posts it, and neither repeated nor logged", async (provider) => {
    const one = listening();
    const id = await begin(one);
    const message = messageOf(one, id);
    const url = provider === "africastalking" ? `${base}/receipts/${provider}?key=${atSecret}` : urlOf(message, provider);
    for (const [what, body] of nonsense) {
      const started = performance.now();
      const answer = await post(one.verifier, { url, body, headers: { "content-type": "application/json" } });
      expect([400, 403, 413], `${what}: ${answer.status} ${answer.body}`).toContain(answer.status);
      expect(performance.now() - started, what).toBeLessThan(2_000);
      expect(answer.body.length, what).toBeLessThan(600);
    }
    expect(await told(one, id)).toEqual(["1:submitted"]);
    expect(one.log.filter(({ level }) => level === "error")).toEqual([]);
    expect(Object.hasOwn(Object.prototype, "r")).toBe(false);
  });

  // Seen: any method settles a receipt; a link preview's HEAD, or a browser's OPTIONS, is one.
  it.fails.each(["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])("%s on a receipts route moves nothing", async (method) => {
    const one = listening();
    const id = await begin(one);
    for (const provider of ["twilio", "infobip", "http"]) await post(one.verifier, { ...(await wordOf(provider, one, id)), method });
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("paths beside the route are 404: none finds a source by a trick", async () => {
    const one = listening();
    const id = await begin(one);
    const word = await wordOf("infobip", one, id);
    for (const path of [
      "infobip/",
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

  it("strangers are not told which carriers are asked, by any answer", async () => {
    const one = listening();
    const names = new RegExp(providers.filter((name) => name !== "http").join("|"), "i");
    for (const method of ["GET", "POST", "PUT"])
      for (const path of ["nobody", "", "x/y"]) {
        const { body, headers } = await post(one.verifier, { method, url: `${base}/receipts/${path}` });
        expect(body + JSON.stringify(headers)).not.toMatch(names);
      }
  });

  it("a captured Plivo V2 pair speaks for no message of any carrier, whatever query it is posted with", async () => {
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

  it("Infobip's hundred results in one post, each as long as its pages show them, are all told", async () => {
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

  it("one result that is nobody's among others takes nothing from them", async () => {
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

describe("whichever order receipts come in", () => {
  const words = ["submitted", "in_transit", "delivered", "undeliverable", "unknown"] as const;

  it("events of a message are in their order, none twice, and none after a final one", async () => {
    let state = 7;
    const draw = (below: number) => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) % below;
    const rank: Record<string, number> = { submitted: 0, in_transit: 1, unknown: 1, delivered: 2, undeliverable: 2 };
    for (let round = 0; round < 150; round++) {
      const one = listening();
      const id = await begin(one, round);
      const { receipt_reference: reference = "" } = messageOf(one, id);
      const said = Array.from({ length: 1 + draw(8) }, () => words[draw(5)] as (typeof words)[number]);
      if (round % 2 === 0) await Promise.all(said.map((status) => one.verifier.settleReceipts([{ reference, status }])));
      else await one.verifier.settleReceipts(said.map((status) => ({ reference, status })));
      const story = (await told(one, id)).map((line) => line.slice(2));
      expect(new Set(story).size, `${said}: ${story}`).toBe(story.length);
      const finals = story.filter((status) => rank[status] === 2);
      expect(finals.length, `${said}: ${story}`).toBe(said.some((status) => rank[status] === 2) ? 1 : 0);
      if (finals.length > 0) expect(rank[story.at(-1) ?? ""], `${said}: ${story}`).toBe(2);
      expect(story[0]).toBe("submitted");
      const sequences = one.hook.posted.map(({ event }) => event.data.sequence);
      expect(sequences).toEqual([...sequences].sort((x, y) => x - y));
    }
  });

  it("three thousand at once for one message are told once each", async () => {
    const one = listening();
    const id = await begin(one);
    const word = await wordOf("twilio", one, id);
    const answers = await Promise.all(Array.from({ length: 3_000 }, () => post(one.verifier, word)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("a thousand at once for a thousand messages are told each to its own", async () => {
    const one = listening();
    const ids: string[] = [];
    for (let i = 0; i < 1_000; i++) ids.push(await begin(one, i));
    const posts = ids.map(async (id, i) =>
      post(one.verifier, await wordOf(i % 2 ? "infobip" : "africastalking", one, id, i % 3 ? "delivered" : "undeliverable", `SM${i + 1}`)),
    );
    expect(new Set((await Promise.all(posts)).map(({ status }) => status))).toEqual(new Set([200]));
    await one.verifier.flush();
    // Past the leases of callbacks: see the next test.
    one.clock.advance(120_000);
    await one.verifier.flush();
    for (const [i, id] of ids.entries()) expect(one.hook.story(id)).toEqual(["1:submitted", i % 3 ? "1:delivered" : "1:undeliverable"]);
  });

  // Seen: of 2,000 events 1,984 are posted; the second event of the first sixteen waits for the end of a lease that nobody works on.
  it.fails("one flush posts all that is due, of a thousand authentications with two events each", async () => {
    const one = listening();
    const ids: string[] = [];
    for (let i = 0; i < 1_000; i++) ids.push(await begin(one, i));
    for (const id of ids) await post(one.verifier, await wordOf("infobip", one, id));
    const first = await one.verifier.flush();
    const second = await one.verifier.flush();
    expect(first.delivered + second.delivered).toBe(2_000);
  });
});

describe("the time a receipt says", () => {
  const at = async (time: unknown, after = 60_000) => {
    const one = listening();
    const id = await begin(one);
    const sent = one.clock.now();
    one.clock.advance(after);
    const { receipt_reference: reference = "" } = messageOf(one, id);
    await one.verifier.settleReceipts([{ reference, status: "delivered", at: time as number }]);
    await one.verifier.flush();
    const stamp = one.hook.posted.find(({ event }) => event.data.status === "delivered")?.event.timestamp ?? "";
    return { sent, now: one.clock.now(), told: Date.parse(stamp) };
  };

  it("is told when it can be true", async () => {
    const { sent } = await at(undefined);
    expect((await at(sent + 2_500)).told).toBe(sent + 2_500);
  });

  const { sent } = { sent: noon };
  it.each([Number.NaN, -1, sent + 61_000, 8.64e15, 8.64e15 + 1, 1.5e300, "x", {}, [], null, undefined])(
    "is now where it is to come, or none: %s",
    async (time) => {
      const { now, told: when } = await at(time);
      expect(when).toBe(now);
    },
  );

  // Seen: a message sent in 2027 is told as delivered in 1970 (`at: 0`, or seconds taken for milliseconds), or an hour before it was sent.
  it.fails.each([0, 1, Math.floor(sent / 1000), sent - 3_600_000, sent - 365 * 86_400_000])("is never before the message was sent: %s", async (time) => {
    const { now, told: when } = await at(time);
    expect(when).toBeGreaterThanOrEqual(now - 60_000 - 5_000);
  });
});

describe("settleReceipts, as users call it", () => {
  const fit = async (change: object) => {
    const one = listening();
    const id = await begin(one);
    const { receipt_reference: reference = "" } = messageOf(one, id);
    const settled = (async () => (one.verifier as Verifier).settleReceipts([{ reference, ...change }] as never))();
    return { one, id, refused: await settled.then(() => "taken", String) };
  };

  // Seen: the word is stored as it is; the record is then CorruptRecord for every reader: no callback, no retry, no check.
  it.fails.each(["DELIVRD", "", "__proto__", "constructor", "Delivered", ["delivered"], null, 7, {}])(
    "a status that is none, %j, is refused, and the code still works",
    async (status) => {
      const { one, id, refused } = await fit({ status });
      one.clock.advance(31_000);
      expect((await one.retry(id)).status).toBe("approved");
      expect((await one.check(id, one.sender.codeOf(id, 2))).status).toBe("valid");
      expect(refused).toMatch(/VerifierError/);
      expect(await told(one, id)).toEqual(["1:submitted", "2:submitted"]);
    },
  );

  // Seen: a callback of type delivery_status without a status.
  it.fails("a status that is left out is refused, and nobody is told of it", async () => {
    const { one, id, refused } = await fit({});
    expect(refused).toMatch(/VerifierError/);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  // Seen: TypeErrors of our own making, "reference.slice is not a function".
  it.fails.each([[[null]], [[{ reference: 7, status: "delivered" }]], [{ status: "delivered" }], [null], [undefined]])(
    "what is no list of receipts is refused in words: %j",
    async (receipts) => {
      const one = listening();
      await expect((async () => one.verifier.settleReceipts(receipts as never))()).rejects.toMatchObject({ code: "bad_request" });
    },
  );

  it("what is no receipt moves nothing", async () => {
    const one = listening();
    const id = await begin(one);
    for (const receipts of [
      [null],
      ["delivered"],
      [{ messageId: 7, idSpace: "africastalking", status: "delivered" }],
      {},
      null,
      [{ messageId: "SM1", status: "delivered" }],
    ])
      await (async () => one.verifier.settleReceipts(receipts as never))().catch(() => undefined);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("takes an empty list", async () => {
    await expect(listening().verifier.settleReceipts([])).resolves.toBeUndefined();
  });

  // Seen: `error` of settleReceipts goes to the receiver as it is, of any length, with the whole number and the code in it.
  it.fails("keeps carriers' words short and free of numbers, in callbacks and log", async () => {
    const one = listening();
    const id = await begin(one);
    const message = messageOf(one, id);
    await one.verifier.settleReceipts([
      { reference: message.receipt_reference as string, status: "undeliverable", error: `${message.to} ${message.code} ${"x".repeat(5_000)}` },
    ]);
    await one.verifier.flush();
    const out = JSON.stringify([one.hook.posted, one.log]);
    expect(out).not.toContain(message.to.slice(1));
    expect(out).not.toContain(message.code);
    expect(out.length).toBeLessThan(10_000);
  });
});

describe("ids of carriers that can carry no reference", () => {
  it("need no sources: a verifier without `receipts` finds a message by its id alone", async () => {
    const one = listening({ receipts: undefined as never });
    const id = await begin(one);
    await one.verifier.settleReceipts([{ messageId: "SM1", idSpace: "africastalking", status: "delivered" }]);
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("never meet over two spaces, two customers, or names with the same letters in them", async () => {
    const one = listening();
    const spaces = ["a", "a:b", "a:b:1", "A", "a ", "å", "a\u030a"];
    const own: string[] = [];
    for (const [i, idSpace] of spaces.entries()) {
      one.sender.answer = async () => ({ outcome: "accepted", messageId: i === 0 ? "b:1" : "1", idSpace });
      own.push(await begin(one, i));
    }
    for (const [i, idSpace] of spaces.entries()) {
      if (i > 0) await one.verifier.settleReceipts([{ messageId: "1", idSpace, status: "delivered" }]);
      const stories = await Promise.all(own.map((id) => told(one, id)));
      expect(stories.map((story) => story.length)).toEqual(spaces.map((_, j) => (j > 0 && j <= i ? 2 : 1)));
    }
  });

  // Seen: space `a/b` and id `1` are one key with space `a` and id `b/1`.
  it.fails("never meet where a space and an id have a slash in them", async () => {
    const one = listening();
    one.sender.answer = async () => ({ outcome: "accepted", messageId: "b/1", idSpace: "a" });
    const id = await begin(one);
    await one.verifier.settleReceipts([{ messageId: "1", idSpace: "a/b", status: "delivered" }]);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("are told apart by the letter: 1001 is not 01001, 1001.0, 0x3e9 or 1001 with a blank", async () => {
    const one = listening();
    one.sender.answer = async () => ({ outcome: "accepted", messageId: "1001", idSpace: "s" });
    const id = await begin(one);
    for (const messageId of ["01001", "1001.0", "0x3e9", "1001 ", " 1001", "+1001", "１００１"])
      await one.verifier.settleReceipts([{ messageId, idSpace: "s", status: "undeliverable" }]).catch(() => undefined);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("the dashboard's secret counts as it is and nowhere else", async () => {
    const one = listening();
    const id = await begin(one);
    const body = "id=SM1&status=Success";
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    for (const [url, more] of [
      [`${base}/receipts/africastalking`, `&key=${atSecret}`],
      [`${base}/receipts/africastalking?KEY=${atSecret}`, ""],
      [`${base}/receipts/africastalking?key=${atSecret.toUpperCase()}`, ""],
      [`${base}/receipts/africastalking?key=${atSecret.slice(0, -1)}`, ""],
      [`${base}/receipts/africastalking?key=${atSecret}x`, ""],
      [`${base}/receipts/africastalking?key=`, ""],
      [`${base}/receipts/infobip?key=${atSecret}`, ""],
      [`${base}/receipts/http?key=${atSecret}`, ""],
    ] as const)
      expect([400, 403], url).toContain((await post(one.verifier, { url, headers, body: body + more })).status);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("a secret that can be guessed, or is none, is a fault at construction", () => {
    for (const wrong of [
      undefined,
      null,
      "",
      "short",
      "a".repeat(15),
      7,
      [],
      [""],
      ["long-enough-to-be-a-secret", ""],
      "white space in the secret",
      "a&b=c&d=e&f=g&h=i",
    ])
      expect(() => africasTalkingReceipts({ secret: wrong as never }), String(wrong)).toThrow(TypeError);
    expect(infobipReceipts().provider).toBe("infobip");
  });
});
