import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { africasTalkingReceipts, africasTalkingSender } from "../../adapters/sms/africastalking.js";
import { awsReceipts } from "../../adapters/sms/aws-receipts.js";
import { infobipReceipts } from "../../adapters/sms/infobip.js";
import { plivoReceipts } from "../../adapters/sms/plivo.js";
import { twilioReceipts, twilioSender } from "../../adapters/sms/twilio.js";
import type { CodeMessage, DeliveryStatusEvent, Feedback, Receipt, Verifier, VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { mountings } from "../http/hosts.js";
import { signSns, signTwilio, topicArn } from "../support/carriers/receipts.js";
import { numberOf, setUp, start } from "../support/verifier.js";

const base = "https://otp.example";
const dashboardSecret = "at-secret-of-the-dashboard";
const sources = [
  twilioReceipts({ authToken: "twilio-auth-token" }),
  plivoReceipts({ authToken: "plivo-auth-token" }),
  africasTalkingReceipts({ secret: dashboardSecret }),
  infobipReceipts(),
];

/** A verifier that accepts receipts, and the events of its callbacks. */
function withReceipts(onEvent?: VerifierOptions["onEvent"]) {
  const events: DeliveryStatusEvent[] = [];
  const feedback: Feedback[] = [];
  const set = setUp({
    ...(onEvent && { onEvent }),
    receipts: { baseUrl: base, sources },
    callbacks: {
      worker: false,
      allowOrigins: ["http://receiver.test"],
      sender: { post: async ({ body }) => ({ status: events.push(JSON.parse(body) as DeliveryStatusEvent) > 0 ? 200 : 500 }) },
    },
  });
  Object.assign(set.box, { plan: () => ({ route: "one" }), feedback: (event: Feedback) => feedback.push(event) });
  const create = () => set.create({ callback_url: "http://receiver.test/" });
  /** To another number. */
  const create2 = () => set.create({ callback_url: "http://receiver.test/", phone_number: numberOf(2) });
  const told = async () => {
    await set.verifier.flush();
    return events.map(({ data }) => data.status);
  };
  /** The URL of the newest message, for a provider. */
  const urlOf = (provider: string) => (set.box.messages.at(-1)?.receipt_url ?? "").replace("{provider}", provider);
  const post = async (verifier: Verifier, url: string, body: string, headers: Record<string, string> = {}) => {
    const { pathname, search } = new URL(url);
    const response = await verifier.receipts.handle({
      method: "POST",
      path: pathname,
      query: search,
      header: (name) => headers[name],
      body: async () => ({ kind: "bytes", bytes: new TextEncoder().encode(body) }),
    });
    return response.status;
  };
  const twilio = (status: string, url = urlOf("twilio")) => {
    const request = signTwilio({ MessageSid: "SM1", MessageStatus: status, To: numberOf(1) }, { url } as never) as unknown as {
      url: string;
      body: Uint8Array;
      header(name: string): string | undefined;
    };
    return {
      url,
      body: Buffer.from(request.body).toString(),
      headers: { "x-twilio-signature": request.header("x-twilio-signature") ?? "", "content-type": "application/x-www-form-urlencoded" },
    };
  };
  const fromTwilio = async (status: string, change: (request: ReturnType<typeof twilio>) => Partial<ReturnType<typeof twilio>> = () => ({})) => {
    const made = twilio(status);
    const { url, body, headers } = { ...made, ...change(made) };
    return post(set.verifier, url, body, headers);
  };
  return { ...set, create, create2, told, events, urlOf, post, fromTwilio, twilio, feedback };
}

describe("receipts: normalized, idempotent, in any order; a final status never changes", () => {
  it("each status is reported once, in order", async () => {
    const set = withReceipts();
    await set.create();
    for (const status of ["queued", "sent", "sent", "delivered", "delivered"]) expect(await set.fromTwilio(status)).toBe(200);
    expect(await set.told()).toEqual(["submitted", "in_transit", "delivered"]);
  });

  it("late and contradictory receipts change nothing", async () => {
    const set = withReceipts();
    await set.create();
    for (const status of ["delivered", "sent", "queued", "undelivered"]) expect(await set.fromTwilio(status)).toBe(200);
    expect(await set.told()).toEqual(["submitted", "delivered"]);
  });

  it("concurrent identical receipts are reported once", async () => {
    const set = withReceipts();
    await set.create();
    await Promise.all(Array.from({ length: 50 }, () => set.fromTwilio("delivered")));
    expect(await set.told()).toEqual(["submitted", "delivered"]);
    expect(set.feedback.map(({ event }) => event)).toEqual(["delivered"]);
  });

  it("a receipt whose write succeeded but whose response was lost is reported to onEvent and the route by the carrier's repeat, once", async () => {
    const seen: string[] = [];
    const set = withReceipts((event) => void (event.type === "receipt" && seen.push(event.status)));
    await set.create();
    const { commit } = set.store;
    set.store.commit = async (change) => {
      await commit.call(set.store, change);
      throw new Error("read ECONNRESET");
    };
    expect(await set.fromTwilio("delivered")).toBe(503);
    set.store.commit = commit;
    for (let repeat = 0; repeat < 2; repeat++) expect(await set.fromTwilio("delivered")).toBe(200);
    expect(await set.told()).toEqual(["submitted", "delivered"]);
    expect(seen).toEqual(["delivered"]);
    expect(set.feedback.map(({ event }) => event)).toEqual(["delivered"]);
  });

  it("receipts block nothing: the code of an undeliverable message is valid, and its check is reported to the route", async () => {
    const set = withReceipts();
    const { authentication_uuid } = await set.create();
    await set.fromTwilio("failed");
    expect((await set.check(authentication_uuid, set.box.code())).status).toBe("valid");
    expect(set.feedback).toEqual([
      { route: "one", country: "FR", authentication_uuid, attempt: 1, sent_at: start, chosen: true, event: "undeliverable" },
      { route: "one", country: "FR", authentication_uuid, attempt: 1, sent_at: start, chosen: true, event: "validated" },
    ]);
  });

  it("receipts of the last three messages are reported, and those of an older one get 200 and are ignored", async () => {
    const set = withReceipts();
    const { authentication_uuid } = await set.create();
    const urls = [set.urlOf("twilio")];
    for (const seconds of [31, 61, 91]) {
      set.clock.advance(seconds * 1000);
      await set.verifier.retry({ customer_uuid: set.customer, authentication_uuid });
      urls.push(set.urlOf("twilio"));
    }
    for (const url of urls) expect(await set.fromTwilio("delivered", () => set.twilio("delivered", url))).toBe(200);
    await set.told();
    expect(set.events.flatMap(({ data }) => (data.status === "delivered" ? [data.attempt] : []))).toEqual([2, 3, 4]);
  });

  it("receipts with unknown ids get 200 and are ignored", async () => {
    const set = withReceipts();
    await set.create();
    const url = `${base}/receipts/twilio`;
    const { body, headers } = set.twilio("delivered", url);
    expect(await set.post(set.verifier, url, body, headers)).toBe(200);
    expect(await set.told()).toEqual(["submitted"]);
  });

  it("a receipt that its carrier signed gets 200 even if its reference is of a retired secret", async () => {
    const before = setUp({ secret: "the secret before the rotation, long enough", receipts: { baseUrl: base, sources } });
    await before.create();
    const url = (before.box.messages[0]?.receipt_url ?? "").replace("{provider}", "twilio");
    const after = withReceipts();
    const { body, headers } = after.twilio("delivered", url);
    expect(await after.post(after.verifier, url, body, headers)).toBe(200);
    expect(await after.post(after.verifier, url, body)).toBe(403);
  });

  it("receipts that do not come over HTTP find their message by its reference", async () => {
    const set = withReceipts();
    await set.create();
    const reference = (set.box.messages[0] as CodeMessage).receipt_reference as string;
    await set.verifier.settleReceipts([
      { reference: `${reference.slice(0, -1)}${reference.endsWith("A") ? "B" : "A"}`, status: "undeliverable" },
      { reference, status: "delivered" },
    ]);
    expect(await set.told()).toEqual(["submitted", "delivered"]);
  });

  it("a receipt that names no message is rejected, and the error names the missing fields", async () => {
    const { verifier } = withReceipts();
    for (const receipt of [{}, { messageId: "77" }, { idSpace: "acme" }])
      await expect(verifier.settleReceipts([{ ...receipt, status: "delivered" }])).rejects.toThrow(
        "receipts.0 names no message: pass its reference, or messageId and idSpace",
      );
  });
});

describe("receipts with bad signatures are rejected and change nothing", () => {
  it.each([
    ["another body", (made: { body: string }) => ({ body: made.body.replace("delivered", "undelivered") })],
    ["another signature", () => ({ headers: { "x-twilio-signature": "AAAA" } })],
    ["no signature", () => ({ headers: {} })],
    [
      "a prefix of the signature",
      (made: { headers: Record<string, string> }) => ({
        headers: { ...made.headers, "x-twilio-signature": made.headers["x-twilio-signature"]?.slice(0, 10) ?? "" },
      }),
    ],
    ["another query", (made: { url: string }) => ({ url: `${made.url}&x=1` })],
    ["another reference in the URL", (made: { url: string }) => ({ url: `${made.url.slice(0, -1)}${made.url.endsWith("A") ? "B" : "A"}` })],
  ])("%s", async (_what, change) => {
    const set = withReceipts();
    await set.create();
    expect(await set.fromTwilio("delivered", change as never)).toBe(403);
    expect(await set.told()).toEqual(["submitted"]);
  });

  it("receipts of carriers that do not sign need our reference, which no one else can make", async () => {
    const set = withReceipts();
    await set.create();
    const { receipt_reference: reference = "" } = set.box.messages[0] as CodeMessage;
    const result = (callbackData?: string) =>
      JSON.stringify({
        results: [{ messageId: "m1", status: { groupName: "DELIVERED", name: "DELIVERED_TO_HANDSET" }, ...(callbackData && { callbackData }) }],
      });
    const bare = `${base}/receipts/infobip`;
    const other = `${reference.startsWith("A") ? "B" : "A"}${reference.slice(1)}`;
    for (const [url, body] of [
      [bare, result()],
      [bare, result(other)],
      [bare, result("customer/7")],
      [`${bare}?r=${other}`, result()],
      [`${bare}?r=`, result()],
      [`${bare}?r=${reference}x`, result()],
      [`${bare}?r=${reference.slice(0, 60)}`, result()],
      [`${bare}?R=${reference}`, result()],
    ] as const)
      expect(await set.post(set.verifier, url, body)).toBe(403);
    expect(await set.told()).toEqual(["submitted"]);
    expect(await set.post(set.verifier, bare, result(reference))).toBe(200);
    expect(await set.told()).toEqual(["submitted", "delivered"]);
  });

  it("a status that its source does not list gets 200 if the message's URL or an echoed reference authenticates it, and changes nothing", async () => {
    const set = withReceipts();
    await set.create();
    const bare = `${base}/receipts/infobip`;
    const accepted = (callbackData?: string) => JSON.stringify({ results: [{ messageId: "m1", status: { groupName: "ACCEPTED" }, callbackData }] });
    const posts = [
      [set.urlOf("infobip"), accepted()],
      [bare, accepted(set.box.messages[0]?.receipt_reference)],
      [bare, accepted()],
      [bare, accepted("A".repeat(68))],
      [`${bare}?r=${"A".repeat(68)}`, accepted()],
    ] as const;
    const answered: number[] = [];
    for (const [url, body] of posts) answered.push(await set.post(set.verifier, url, body));
    expect(answered).toEqual([200, 200, 403, 403, 403]);
    expect(await set.told()).toEqual(["submitted"]);
  });

  it("a reference forged from one's own does not give access to another customer's message", async () => {
    const [mine, theirs] = [withReceipts(), withReceipts()];
    await mine.create();
    await theirs.create();
    const [own = "", their = ""] = [mine, theirs].map(({ box }) => box.messages[0]?.receipt_reference);
    const nameLength = Math.ceil((34 * 4) / 3);
    const forged = their.slice(0, nameLength) + own.slice(nameLength);
    const body = JSON.stringify({ results: [{ messageId: "m1", status: { groupName: "DELIVERED" }, callbackData: forged }] });
    expect(await theirs.post(theirs.verifier, `${base}/receipts/infobip`, body)).toBe(403);
    expect(await theirs.post(theirs.verifier, `${base}/receipts/infobip?r=${forged}`, body)).toBe(403);
    expect(await theirs.told()).toEqual(["submitted"]);
  });

  it("one trailing slash in the path is ignored, and the signature covers the URL as the carrier requested it", async () => {
    const set = withReceipts();
    await set.create();
    const { body, headers, url } = set.twilio("delivered", set.urlOf("twilio").replace("/twilio", "/twilio/"));
    expect(await set.post(set.verifier, url, body, headers)).toBe(200);
    expect(await set.post(set.verifier, url.replace("/twilio/", "/twilio"), body, headers)).toBe(403);
    expect(await set.told()).toEqual(["submitted", "delivered"]);
  });

  it("an unknown provider gives 404, an invalid body 400, and a failing store 503 so that the carrier retries", async () => {
    const set = withReceipts();
    await set.create();
    expect(await set.post(set.verifier, set.urlOf("nobody"), "")).toBe(404);
    const stranger = await set.verifier.receipts.handle({
      method: "POST",
      path: "/receipts/nobody",
      query: "",
      header: () => undefined,
      body: async () => ({ kind: "bytes", bytes: new Uint8Array() }),
    });
    expect(stranger.body, "the list of vendors is told to strangers").not.toMatch(/twilio|plivo|infobip|africa/i);
    expect(await set.post(set.verifier, set.urlOf("infobip"), "not json", { "content-type": "application/json" })).toBe(400);
    set.store.find = () => Promise.reject(new Error("down"));
    set.store.commit = () => Promise.reject(new Error("down"));
    expect(await set.fromTwilio("delivered")).toBe(503);
  });

  it("receipts of SNS get 503 while its certificate cannot be fetched, and the log has the provider and the error's code once", async () => {
    const refused = Object.assign(new TypeError("fetch failed"), { cause: Object.assign(new Error("connect"), { code: "ECONNREFUSED" }) });
    const source = awsReceipts({ topicArn, fetch: () => Promise.reject(refused) });
    const { verifier, log } = setUp({ receipts: { baseUrl: base, sources: [source] } });
    const { method, header, body } = signSns({ Message: "{}" }, { at: start });
    for (let delivery = 0; delivery < 3; delivery++) {
      const answer = await verifier.receipts.handle({ method, path: "/receipts/aws", header, body: async () => ({ kind: "bytes", bytes: body }) });
      expect(answer).toMatchObject({ status: 503, headers: { "retry-after": "2" }, body: expect.stringContaining('"unavailable"') });
    }
    expect(log.lines).toEqual([
      {
        level: "error",
        fields: { provider: "aws", reason: "the certificate at SigningCertURL cannot be read (ECONNREFUSED)" },
        message: "receipts of aws cannot be verified; the carrier is asked to try again",
      },
    ]);
  });
});

/** Posts one report of Africa's Talking to the URL in its dashboard. */
const fromDashboard = (set: ReturnType<typeof withReceipts>, id: string, status = "Success", url = `${base}/receipts/africastalking?key=${dashboardSecret}`) =>
  set.post(set.verifier, url, new URLSearchParams({ id, status, phoneNumber: numberOf(1) }).toString());

describe("carriers whose receipts contain only their own id", () => {
  it("SMPP receipts find their message without an HTTP source, by the line in docs/carriers.md", async () => {
    const events: DeliveryStatusEvent[] = [];
    const set = setUp({
      callbacks: {
        worker: false,
        allowOrigins: ["http://receiver.test"],
        sender: { post: async ({ body }) => ({ status: events.push(JSON.parse(body) as DeliveryStatusEvent) > 0 ? 200 : 500 }) },
      },
    });
    set.box.answer = async () => ({ outcome: "accepted", messageId: "1001", idSpace: "smpp:acme@centre.example:2775" });
    await set.create({ callback_url: "http://receiver.test/" });
    const onReceipt = (receipt: Receipt) => set.verifier.settleReceipts([receipt]);
    await onReceipt({ messageId: "1001", idSpace: "smpp:acme@centre.example:2775", status: "delivered" });
    await set.verifier.flush();
    expect(events.map(({ data }) => data.status)).toEqual(["submitted", "delivered"]);
  });

  it("africasTalkingReceipts: the secret in the dashboard's URL authenticates, and the carrier's id finds the message", async () => {
    const set = withReceipts();
    const answer = { SMSMessageData: { Recipients: [{ statusCode: 101, messageId: "ATXid_1" }] } };
    const carrier = africasTalkingSender({ username: "acme", apiKey: "k", fetch: async () => Response.json(answer, { status: 201 }) });
    set.box.answer = (message, signal) => carrier.send(message, { signal, deadline: set.clock.now() + 5000, timeLeft: 5000 });
    await set.create();
    expect(await fromDashboard(set, "ATXid_1", "Success", `${base}/receipts/africastalking`)).toBe(403);
    expect(await fromDashboard(set, "ATXid_1", "Success", `${base}/receipts/africastalking?key=${dashboardSecret}x`)).toBe(403);
    expect(await set.told()).toEqual(["submitted"]);
    expect(await fromDashboard(set, "ATXid_1")).toBe(200);
    expect(await set.told()).toEqual(["submitted", "delivered"]);
  });

  it("receipts that arrive before their id is stored are applied afterwards, in order", async () => {
    const set = withReceipts();
    set.box.answer = async () => {
      for (const status of ["Sent", "Buffered", "Rejected", "Buffered"]) expect(await fromDashboard(set, "ATXid_2", status)).toBe(200);
      return { outcome: "accepted", messageId: "ATXid_2", idSpace: "africastalking" };
    };
    await set.create();
    expect(await set.told()).toContain("undeliverable");
    expect((await set.told()).at(-1)).toBe("undeliverable");
  });

  it("no receipt is lost, however its store steps and those of the send interleave", async () => {
    // Each order of the store steps of receipt and send: `late` delays one step until the rest is done.
    for (const late of ["put receipt", "get receipt", "put early", "get early"]) {
      const set = withReceipts();
      const { get, put } = set.store;
      let held: (() => void) | undefined;
      const hold = (name: string) => (name === late && held === undefined ? new Promise<void>((resolve) => (held = resolve)) : undefined);
      set.store.get = async (key) => {
        await hold(`get ${key.split(":")[0]}`);
        return get.call(set.store, key);
      };
      set.store.put = async (key, ...rest) => {
        await hold(`put ${key.split(":")[0]}`);
        return put.call(set.store, key, ...rest);
      };
      let receipt: Promise<number> | undefined;
      set.box.answer = async () => {
        receipt = fromDashboard(set, "ATXid_3");
        return { outcome: "accepted", messageId: "ATXid_3", idSpace: "africastalking" };
      };
      const creating = set.create();
      for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      held?.();
      await creating;
      expect(await receipt).toBe(200);
      expect(await set.told(), late).toContain("delivered");
    }
  });

  it("a receipt without a message is dropped after two minutes, and does not apply to a later message with its id", async () => {
    const set = withReceipts();
    expect(await fromDashboard(set, "ATXid_4")).toBe(200);
    set.clock.advance(2 * 60_000 + 1);
    set.box.answer = async () => ({ outcome: "accepted", messageId: "ATXid_4", idSpace: "africastalking" });
    await set.create();
    expect(await set.told()).toEqual(["submitted"]);
  });

  it("the same id at two carriers names two messages: an id counts only in its own space", async () => {
    const set = withReceipts();
    const routes = router({
      routes: ["one", "two"].map((name) => ({
        name,
        prefixes: [name === "one" ? numberOf(1) : numberOf(2)],
        sender: { send: async () => ({ outcome: "accepted" as const, messageId: "1001", idSpace: name }) },
      })),
    });
    Object.assign(set.box, { plan: undefined, feedback: undefined });
    set.box.answer = (message, signal) => routes.send(message, { signal, deadline: set.clock.now() + 5000, timeLeft: 5000 });
    await set.create();
    const events = await set.create2();
    await set.verifier.settleReceipts([{ messageId: "1001", idSpace: "two", status: "undeliverable" }]);
    await set.told();
    expect(set.events.filter(({ data }) => data.status === "undeliverable").map(({ data }) => data.authentication_uuid)).toEqual([events.authentication_uuid]);
  });
});

describe("the content of a receipt", () => {
  it("a receipt is reported with its own time, but never with a future one", async () => {
    const set = withReceipts();
    await set.create();
    const { receipt_reference: reference = "" } = set.box.messages[0] as CodeMessage;
    set.clock.advance(60_000);
    await set.verifier.settleReceipts([
      { reference, status: "in_transit", at: start + 2_000 },
      { reference, status: "delivered", at: start + 3_600_000 },
    ]);
    await set.told();
    expect(set.events.map(({ timestamp }) => timestamp)).toEqual([start, start + 2_000, start + 60_000].map((ms) => new Date(ms).toISOString()));
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1, 1e300, "2020", null])("an invalid time, %s, becomes now", async (at) => {
    const set = withReceipts();
    await set.create();
    await set.verifier.settleReceipts([{ reference: set.box.messages[0]?.receipt_reference as string, status: "delivered", at: at as number }]);
    await set.told();
    expect(set.events.at(-1)).toMatchObject({ timestamp: new Date(start).toISOString(), data: { status: "delivered" } });
  });

  it("captured V2 headers of Plivo authenticate no message: without V3 only our own reference in the URL counts", async () => {
    const set = withReceipts();
    await set.create();
    const url = set.urlOf("plivo");
    const bare = `${base}/receipts/plivo`;
    const headers = {
      "x-plivo-signature-v2": createHmac("sha256", "plivo-auth-token").update(`${bare}12345`).digest("base64"),
      "x-plivo-signature-v2-nonce": "12345",
    };
    const body = "MessageUUID=m1&Status=undelivered&To=33612000001";
    expect(await set.post(set.verifier, bare, body, headers)).toBe(403);
    expect(await set.post(set.verifier, `${bare}?r=AAAA`, body, headers)).toBe(403);
    expect(await set.told()).toEqual(["submitted"]);
    expect(await set.post(set.verifier, url, body, headers)).toBe(200);
    expect(await set.told()).toEqual(["submitted", "undeliverable"]);
  });

  it("Infobip: several results in one request count only for the message in their callbackData, not for the one in the URL", async () => {
    const set = withReceipts();
    await set.create();
    const second = await set.create2();
    const [first = "", other = ""] = set.box.messages.map(({ receipt_reference }) => receipt_reference);
    const result = (groupName: string, callbackData?: string) => ({ messageId: "m", status: { groupName }, ...(callbackData && { callbackData }) });
    const post = (...results: object[]) => set.post(set.verifier, `${base}/receipts/infobip?r=${first}`, JSON.stringify({ results }));
    expect(await post(result("DELIVERED"), result("UNDELIVERABLE"))).toBe(403);
    expect(await set.told()).toEqual(["submitted", "submitted"]);
    expect(await post(result("DELIVERED", other), result("UNDELIVERABLE"))).toBe(200);
    await set.told();
    expect(set.events.slice(2).map(({ data }) => [data.authentication_uuid, data.status])).toEqual([[second.authentication_uuid, "delivered"]]);
  });
});

describe("one mount for the verifier and its receipts", () => {
  const mounts = mountings.flatMap((mounting) => [
    { ...mounting, how: "both in one list", list: (verifier: Verifier) => [verifier, verifier.receipts] },
    { ...mounting, how: "receipts alone", list: (verifier: Verifier) => [verifier.receipts] },
  ]);
  it.each(mounts)("$name, $how: signatures are checked over the bytes as received", async ({ start, list, keepsNoBytes }) => {
    const set = withReceipts();
    await set.create();
    const host = await start(list(set.verifier));
    const { url, body, headers } = set.twilio("delivered");
    const { pathname, search } = new URL(url);
    const post = (body: string) => host.send({ method: "POST", path: host.prefix + pathname + search, body, headers });
    const answered = [(await post(body.replace("delivered", "failed"))).status, (await post(body)).status];
    await host.close();
    if (keepsNoBytes) {
      expect(answered).toEqual([403, 403]);
      expect(set.log.lines.map(({ fields }) => String(fields.err)).join()).toMatch(
        /mount the receipts handler before express\.json\(\) .*, or let the host keep the bytes in req\.rawBody .*express\.urlencoded\(\{ verify \}\) and express\.json\(\{ verify \}\)/,
      );
      return;
    }
    expect(answered).toEqual([403, 200]);
    expect(await set.told()).toEqual(["submitted", "delivered"]);
  });
});

it("a sender puts its provider's name into the receipt URL for Twilio", async () => {
  const requests: string[] = [];
  const sender = twilioSender({
    accountSid: `AC${"0".repeat(32)}`,
    authToken: "twilio-auth-token",
    from: "+15005550006",
    fetch: (async (_url: string, init: { body: string }) => {
      requests.push(init.body);
      return new Response(JSON.stringify({ sid: "SM1", status: "queued" }), { status: 201 });
    }) as never,
  });
  const set = setUp({ sender, receipts: { baseUrl: `${base}/`, sources } });
  await set.create();
  const callback = new URL(new URLSearchParams(requests[0]).get("StatusCallback") ?? "");
  expect(callback.origin + callback.pathname).toBe(`${base}/receipts/twilio`);
});
