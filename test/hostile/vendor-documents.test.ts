import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { createVerifier, type ReceiptSource } from "phoneproof";
import { authentikHook, authgearHook, casdoorHook, genericHook, hooks, kratosHook, logtoHook, oktaHook, zitadelHook } from "phoneproof/hooks";
import { memoryStore } from "phoneproof/memory";
import { nodeHandler } from "phoneproof/node";
import { router } from "phoneproof/router";
import { messageBirdReceipts } from "phoneproof/senders/messagebird";
import { plivoReceipts } from "phoneproof/senders/plivo";
import { sinchReceipts } from "phoneproof/senders/sinch";
import { smppSender } from "phoneproof/senders/smpp";
import { telegramReceipts } from "phoneproof/senders/telegram";
import { twilioReceipts } from "phoneproof/senders/twilio";
import { twilioVoiceSender } from "phoneproof/senders/twilio-voice";
import { vonageReceipts } from "phoneproof/senders/vonage";
import { whatsappReceipts } from "phoneproof/senders/whatsapp";
import smpp, { type PeerSession } from "smpp";
import { describe, expect, it, onTestFinished } from "vitest";
import { aMessage, inTime } from "../support/carriers/messages.js";
import {
  type Signer,
  signMessageBird,
  signPlivo,
  signSinch,
  signTelegram,
  signTwilio,
  signVonage,
  signWhatsapp,
  statusWebhook,
} from "../support/carriers/receipts.js";

const secret = "a secret of these tests, long enough to be one";
type Receipt = Parameters<NonNullable<Parameters<typeof smppSender>[0]["onReceipt"]>>[0];

describe("a secret from a file that ends with a line break works, or is a TypeError at construction", () => {
  const at = Date.UTC(2026, 10, 29, 12);
  const sources: readonly (readonly [string, (secret: string) => ReceiptSource, Signer, Record<string, unknown>])[] = [
    ["twilioReceipts", (authToken) => twilioReceipts({ authToken }), signTwilio, { MessageSid: "SM1", MessageStatus: "sent" }],
    ["vonageReceipts", (signatureSecret) => vonageReceipts({ signatureSecret }), signVonage, { message_uuid: "m", status: "submitted", client_ref: "r" }],
    ["messageBirdReceipts", (signingKey) => messageBirdReceipts({ signingKey }), signMessageBird, { id: "m", reference: "r", status: "sent" }],
    ["plivoReceipts", (authToken) => plivoReceipts({ authToken }), signPlivo, { MessageUUID: "m", Status: "sent" }],
    [
      "sinchReceipts",
      (webhookSecret) => sinchReceipts({ webhookSecret }),
      signSinch,
      { type: "recipient_delivery_report_sms", batch_id: "m", status: "Delivered", client_reference: "r" },
    ],
    ["telegramReceipts", (token) => telegramReceipts({ token }), signTelegram, { request_id: "m", payload: "r", delivery_status: { status: "sent" } }],
    [
      "whatsappReceipts",
      (appSecret) => whatsappReceipts({ appSecret, verifyToken: "verify" }),
      signWhatsapp,
      statusWebhook({ id: "wamid.1", status: "sent", biz_opaque_callback_data: "r" }),
    ],
  ];
  it.each(sources)("%s: no authentic receipt is rejected because of it (docs/contract.md#receipt-answers)", async (_name, make, sign, content) => {
    const request = await sign(content, { at, secret: "the-secret-of-the-account" });
    expect(await make("the-secret-of-the-account").read(request, at)).toMatchObject({ receipts: [{}] });
    let source: ReceiptSource;
    try {
      source = make("the-secret-of-the-account\n");
    } catch (error) {
      expect(error).toBeInstanceOf(TypeError);
      return;
    }
    expect(await source.read(request, at)).toMatchObject({ receipts: [{}] });
  });

  const token = "an-identity-server's-token";
  const bearer = () => ({ authorization: `Bearer ${token}` });
  const zitadel = (body: string) => {
    const time = Math.floor(Date.now() / 1000);
    return { "zitadel-signature": `t=${time},v1=${createHmac("sha256", token).update(`${time}.${body}`).digest("hex")}` };
  };
  const authgear = (body: string) => ({ "x-authgear-body-signature": createHmac("sha256", token).update(body).digest("hex") });
  const servers = [
    ["okta", (key: string) => oktaHook({ token: key }), bearer],
    ["authentik", (key: string) => authentikHook({ token: key }), bearer],
    ["kratos", (key: string) => kratosHook({ token: key }), bearer],
    ["casdoor", (key: string) => casdoorHook({ token: key }), bearer],
    ["logto", (key: string) => logtoHook({ token: key }), bearer],
    ["generic", (key: string) => genericHook({ token: key }), bearer],
    ["zitadel", (key: string) => zitadelHook({ signingKey: key }), zitadel],
    ["authgear", (key: string) => authgearHook({ signingKey: key }), authgear],
  ] as const;
  /** The status of a request that the server authenticates; its body may be wrong. */
  async function ask(name: string, hook: ReturnType<typeof genericHook>, sign: (body: string) => Record<string, string>): Promise<number> {
    const verifier = createVerifier({
      store: memoryStore({ name: crypto.randomUUID() }),
      sender: router({ routes: [{ name: "main", sender: { send: async () => ({ outcome: "accepted" as const }) }, price: 0.01 }] }),
      secret,
      countries: ["FR"],
      conversion: "reported",
      policy: { limits: { spend: [{ amount: 50, per: "day" }] } },
      callbacks: { worker: false },
      logger: { info: () => {}, warn: () => {}, error: () => {} },
    });
    const server = createServer(nodeHandler(hooks(verifier, [hook])));
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    try {
      const body = JSON.stringify({ to: "+33612345678", code: "482913" });
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks/${name}`;
      return (await fetch(url, { method: "POST", body, headers: { "content-type": "application/json", ...sign(body) } })).status;
    } finally {
      server.closeAllConnections();
      server.close();
      await verifier.close();
    }
  }
  it.each(servers)("the hook of %s: no request of the server is a 401 because of it (docs/behind/index.md#options-of-every-hook)", async (name, make, sign) => {
    expect([401, 404]).not.toContain(await ask(name, make(token), sign));
    let hook: ReturnType<typeof genericHook>;
    try {
      hook = make(`${token}\n`);
    } catch (error) {
      expect(error).toBeInstanceOf(TypeError);
      return;
    }
    expect(await ask(name, hook, sign)).not.toBe(401);
  });
});

describe("Okta (Telephony inline hook; TelephonyRequestDataMessageProfile of its SDKs: `deliveryChannel`, SMS or voice)", () => {
  it.each(["SMS", "call", "voice", "VOICE CALL"])(
    "deliveryChannel %s: an SMS goes out only if it names SMS (docs/behind/index.md#okta: calls are rejected)",
    async (deliveryChannel) => {
      const texts: string[] = [];
      const sender = {
        send: async ({ text }: { readonly text: string }) => {
          texts.push(text);
          return { outcome: "accepted" as const };
        },
      };
      const verifier = createVerifier({
        store: memoryStore({ name: crypto.randomUUID() }),
        sender: router({ routes: [{ name: "main", sender, price: 0.01 }] }),
        secret,
        countries: ["FR"],
        conversion: "unknown",
        policy: { limits: { spend: [{ amount: 50, per: "day" }] } },
        callbacks: { worker: false },
      });
      const server = createServer(nodeHandler(hooks(verifier, [oktaHook({ token: "an-okta-token-of-these-tests" })])));
      await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
      onTestFinished(async () => {
        server.closeAllConnections();
        server.close();
        await verifier.close();
      });
      const messageProfile = { msgTemplate: "Your code is 482913", phoneNumber: "+33612345678", deliveryChannel, otpCode: "482913", locale: "EN-US" };
      const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks/okta`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer an-okta-token-of-these-tests" },
        body: JSON.stringify({ eventId: crypto.randomUUID(), requestType: "com.okta.user.telephony.mfa-verification", data: { messageProfile } }),
      });
      expect(response.status).toBe(200);
      const answer = (await response.json()) as object;
      expect([texts.length, Object.keys(answer)]).toEqual(deliveryChannel === "SMS" ? [1, ["commands"]] : [0, ["error"]]);
    },
  );
});

describe("SMPP 3.4", () => {
  type Options = Partial<Parameters<typeof smppSender>[0]>;
  /** A sender that is bound to the server of npm's smpp, which gives every message the id `id`. */
  async function bound(id: string, options: Options = {}) {
    const sessions: PeerSession[] = [];
    const server = smpp.createServer({}, (session) => {
      sessions.push(session);
      session.on("error", () => {});
      session.on("pdu", (pdu) => {
        if (pdu.command === "submit_sm") session.send(pdu.response({ message_id: id }));
        else if (pdu.command.startsWith("bind_") || pdu.command === "enquire_link" || pdu.command === "unbind") session.send(pdu.response({}));
      });
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const receipts: Receipt[] = [];
    const sender = smppSender({
      host: "127.0.0.1",
      port: (server.address() as AddressInfo).port,
      systemId: "phoneproof",
      password: "s3cret",
      onReceipt: (receipt) => void receipts.push(receipt),
      ...options,
    });
    onTestFinished(async () => {
      await sender.close();
      for (const session of sessions) session.destroy();
      server.close();
    });
    const sent = await sender.send(aMessage(), inTime());
    /** Resolves once the sender has acknowledged the receipt. */
    const deliver = (fields: Record<string, unknown>) =>
      new Promise<void>((done) =>
        (sessions[0] as unknown as { send(pdu: unknown, done: () => void): void }).send(new smpp.PDU("deliver_sm", fields), () => done()),
      );
    return { sent, receipts, deliver };
  }
  const text = (id: string, stat = "DELIVRD") => `id:${id} sub:001 dlvrd:001 submit date:2611291159 done date:2611291200 stat:${stat} err:000 text:Your code`;

  it.each(["msg_7f3a", "V1StGXR8_Z5jdHi6B-myT"])(
    "a receipt in the center's default alphabet, GSM 03.38 (as npm smpp writes it), names the message %s (docs/carriers/smpp.md, `alphabet`; docs/contract.md#receipt-reference)",
    async (id) => {
      const { sent, receipts, deliver } = await bound(id, { alphabet: "gsm" });
      expect(sent).toMatchObject({ outcome: "accepted", messageId: id });
      await deliver({ esm_class: 4, short_message: text(id) });
      expect(receipts).toMatchObject([{ messageId: id, status: "delivered" }]);
    },
  );

  it("a receipt with a user data header (esm_class 0x44) names its message, as one without does (SMPP 3.4, 5.2.12; docs/carriers/smpp.md#receipts)", async () => {
    const { receipts, deliver } = await bound("7f3a");
    const header = Buffer.from([5, 0, 3, 1, 1, 1]);
    await deliver({ esm_class: 0x44, short_message: Buffer.concat([header, Buffer.from(text("7f3a"))]) });
    expect(receipts).toMatchObject([{ messageId: "7f3a", status: "delivered" }]);
  });

  it("the error of a receipt by parameters is network_error_code (SMPP 3.4, 5.3.2.31; docs/contract.md#callback-body: `error` where known)", async () => {
    const { receipts, deliver } = await bound("7f3a");
    // Network 3 is GSM; 27 is "absent subscriber".
    await deliver({ esm_class: 4, short_message: "", receipted_message_id: "7f3a", message_state: 5, network_error_code: Buffer.from([3, 0, 27]) });
    expect(receipts).toMatchObject([{ messageId: "7f3a", status: "undeliverable" }]);
    expect(receipts[0]?.error).toMatch(/27/);
  });

  it("requests of the center are acknowledged under their own sequence number, 0 and those above 0x7FFFFFFF too (SMPP 3.4, 3.2)", async () => {
    const sockets: Socket[] = [];
    const acknowledged: string[] = [];
    const pdu = (command: number, sequence: number, body = Buffer.alloc(0)) => {
      const head = Buffer.alloc(16);
      head.writeUInt32BE(16 + body.length, 0);
      head.writeUInt32BE(command, 4);
      head.writeUInt32BE(sequence, 12);
      return Buffer.concat([head, body]);
    };
    const server = createTcpServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      socket.on("data", (chunk) => {
        for (let rest = chunk; rest.length >= 16; rest = rest.subarray(rest.readUInt32BE(0))) {
          const [command, sequence] = [rest.readUInt32BE(4), rest.readUInt32BE(12)];
          if (command === 9) socket.write(pdu(0x80000009, sequence, Buffer.from("smsc\0")));
          if (command === 6) socket.end(pdu(0x80000006, sequence));
          if (command === 0x80000015) acknowledged.push(sequence.toString(16));
        }
      });
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const sender = smppSender({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, systemId: "phoneproof", password: "s3cret" });
    onTestFinished(async () => {
      await sender.close();
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    await sender.connect();
    for (const sequence of [0, 0x7fffffff, 0x80000001, 0xffffffff]) sockets[0]?.write(pdu(0x15, sequence));
    await expect.poll(() => acknowledged).toEqual(["0", "7fffffff", "80000001", "ffffffff"]);
  });
});

describe("calls by Twilio (Calls resource, twilio.com/docs/voice/api/call-resource)", () => {
  it.each(["failed", "canceled"])("a 201 whose `status` is %s is a rejection, as it is for messages (docs/contract.md#send-outcome)", async (status) => {
    const sender = twilioVoiceSender({
      accountSid: `AC${"a".repeat(32)}`,
      authToken: "twilio-auth-token",
      from: "+15005550006",
      countries: ["US"],
      fetch: async () => new Response(JSON.stringify({ sid: "CA1", status }), { status: 201, headers: { "content-type": "application/json" } }),
    });
    const message = aMessage({ receipt_url: "https://otp.example/receipts/{provider}?r=x", receipt_reference: "x" });
    expect(await sender.send(message, inTime())).toMatchObject({ outcome: "rejected" });
  });
});

describe("the rotation of a secret, with a code of an identity server on its way", () => {
  const [one, other] = ["aaaa: a secret of these tests, long enough", "zzzz: a secret of these tests, long enough"] as const;
  it.each([
    [one, other],
    [other, one],
  ])(
    "a repeat that reaches the process with both secrets, in either order, sends nothing (docs/contract.md#secret-rotation, #deliver-repeats)",
    async (old, next) => {
      for (const both of [
        [next, old],
        [old, next],
      ] as const) {
        const store = memoryStore({ name: crypto.randomUUID() });
        let sent = 0;
        const make = (secrets: string | readonly [string, string]) =>
          createVerifier({
            store,
            sender: router({
              routes: [
                {
                  name: "main",
                  sender: {
                    send: async () => {
                      sent++;
                      return { outcome: "accepted" as const };
                    },
                  },
                  price: 0.01,
                },
              ],
            }),
            secret: secrets as string,
            countries: ["FR"],
            conversion: "reported",
            policy: { limits: { spend: [{ amount: 50, per: "day" }] } },
            callbacks: { worker: false },
          });
        const [before, after] = [make(old), make(both)];
        const request = { phone_number: "+33612345678", code: "482913" };
        const keyed = { phone_number: "+33698765432", code: "482913", idempotency_key: "event-1" };
        for (const body of [request, keyed]) {
          expect((await before.deliver(body)).status).toBe("sent");
          expect((await after.deliver(body)).status).toBe("repeated");
        }
        expect(sent).toBe(2);
      }
    },
  );
});
