import { describe, expect, it } from "vitest";
import { twilioVoiceReceipts, twilioVoiceSender } from "../../adapters/sms/twilio-voice.js";
import { vonageVoiceReceipts, vonageVoiceSender } from "../../adapters/sms/vonage-voice.js";
import type { CodeMessage, ReceiptSource, SmsSender } from "../../src/index.js";
import { PlainStore } from "../store/plain-store.js";
import type { Callee, Listened } from "./channel-vendors/callee.js";
import { type Hook, hangs, type Network, says, type Vendor } from "./channel-vendors/server.js";
import { actionOf, callStatus, keyPress, playCall, startTwilio, type Taken, twilioAccount, twilioPost, unanswered } from "./channel-vendors/twilio.js";
import {
  callEvent,
  inputEvent,
  inputUrlOf,
  playVonageCall,
  signVonage,
  startVonage,
  strangeKey,
  type VonageCall,
  vonageAccount,
} from "./channel-vendors/vonage.js";
import { aCode, leaks, type Mounted, mounted, publicUrl, within } from "./channels-kit.js";
import { rigged } from "./kit.js";

const { applicationId, privateKey, signatureSecret } = vonageAccount;

/** A call that a vendor accepted, and what can happen to it. */
interface Call {
  readonly to: string;
  /** Everything that the vendor received, unencoded. */
  readonly given: string;
  /** The URL that the vendor requests when a key is pressed. */
  readonly keyUrl: string | undefined;
  play(callee: Callee, network?: Network, now?: () => number): Promise<Listened>;
  key(digits: string, now: number, url?: string): Hook & { readonly body: string };
  /** An event of the call. `seconds`: its length. */
  event(status: string, now: number, seconds?: number, more?: Record<string, string>): Hook & { readonly body: string };
}

interface Caller {
  readonly provider: string;
  readonly start: () => Promise<{ readonly vendor: Vendor; readonly calls: () => readonly Call[] }>;
  readonly make: (options: object) => SmsSender;
  readonly source: (secret?: string | readonly string[]) => ReceiptSource;
  /** Statuses of calls that end without an answer, which are also the reported errors. */
  readonly ends: readonly string[];
  readonly machine: readonly (readonly [status: string, more: Record<string, string>])[];
}

const twilioCall = (call: Taken): Call => ({
  to: call.form.get("To") ?? "",
  given: decodeURIComponent(call.form.toString()),
  keyUrl: actionOf(call),
  play: (callee, network) => playCall(call, callee, network),
  key: (digits, _now, url = actionOf(call) ?? "none") => keyPress(call, url, digits),
  event: (status, _now, seconds, more = {}) =>
    callStatus(call, status, { ...(seconds !== undefined && { CallDuration: String(seconds), Duration: "1" }), ...more }),
});
const vonageCall = (call: VonageCall): Call => ({
  to: `+${call.to}`,
  given: JSON.stringify(call),
  keyUrl: inputUrlOf(call),
  play: (callee, network, now = Date.now) => playVonageCall(call, callee, now, network),
  key: (digits, now, url = inputUrlOf(call) ?? "none") => inputEvent(call, url, digits, now),
  event: (status, now, seconds, more = {}) => callEvent(call, status, now, { ...(seconds !== undefined && { duration: String(seconds) }), ...more }),
});

const callers: Readonly<Record<string, Caller>> = {
  Twilio: {
    provider: "twiliovoice",
    start: async () => {
      const vendor = await startTwilio();
      return { vendor, calls: () => vendor.calls.map(twilioCall) };
    },
    make: (options) => twilioVoiceSender({ ...twilioAccount, from: "+15005550006", countries: ["FR", "US", "BR"], ...options }),
    source: (authToken = twilioAccount.authToken) => twilioVoiceReceipts({ authToken }),
    ends: ["busy", "no-answer", "failed", "canceled"],
    machine: [
      ["completed", { AnsweredBy: "machine_start" }],
      ["completed", { AnsweredBy: "machine_end_beep" }],
      ["completed", { AnsweredBy: "fax" }],
    ],
  },
  Vonage: {
    provider: "vonagevoice",
    start: async () => {
      const vendor = await startVonage();
      return { vendor, calls: () => vendor.calls.map(vonageCall) };
    },
    make: (options) => vonageVoiceSender({ applicationId, privateKey, signatureSecret, from: "447700900000", countries: ["FR", "US", "BR"], ...options }),
    source: (secret = signatureSecret) => vonageVoiceReceipts({ signatureSecret: secret } as never),
    ends: ["busy", "unanswered", "failed", "cancelled", "rejected", "timeout"],
    machine: [["machine", {}]],
  },
};

/** The languages that calls speak (docs/carriers/channels.md). */
const spoken = ["ar", "zh", "nl", "en", "fr", "de", "hi", "it", "ja", "ko", "pl", "pt", "ru", "es", "tr"];

/** How often all digits of a code were heard, in order, as separate digits. */
function heardCode(heard: Listened["heard"], code: string): number {
  const text = heard.map((one) => one.text).join(" | ");
  return [...text.matchAll(new RegExp(`(?<!\\d)${[...code].join("[^\\d|]+")}(?!\\d)`, "g"))].length;
}
const noDigits = (heard: Listened["heard"]) => heard.every(({ text }) => !/\d[^\d]*\d[^\d]*\d/.test(text));

/** A verifier that calls, and the call to its first number. */
async function calling(name: string, options: object = {}, more: Parameters<typeof mounted>[2] = {}, source?: ReceiptSource) {
  const caller = callers[name]!;
  const { vendor, calls } = await caller.start();
  const sender = caller.make({ baseUrl: vendor.url, ...options });
  const one: Mounted = await mounted(sender, [source ?? caller.source()], more);
  const id = await one.begin();
  const now = () => one.clock.now();
  const call = calls()[0] as Call;
  return { caller, vendor, one, id, calls, call, now, message: one.messageOf(id), play: (callee: Callee) => call.play(callee, one.network, now) };
}

describe.each(Object.keys(callers))("calls by %s", (name) => {
  const caller = callers[name]!;
  const plain = async (options: object = {}) => {
    const { vendor, calls } = await caller.start();
    return { vendor, calls, sender: caller.make({ baseUrl: vendor.url, ...options }) };
  };

  describe("a person who presses a key", () => {
    it("hears the code twice, digit by digit; the call is delivered, and the code is valid", async () => {
      const { one, id, play, message } = await calling(name);
      const { heard, answers, seconds } = await play({ kind: "person", presses: "5" });
      expect(heardCode(heard, message.code)).toBe(2);
      expect(heard.every(({ text }) => !/\d\d/.test(text))).toBe(true);
      expect(answers.every((status) => status === 200)).toBe(true);
      expect(seconds).toBeLessThan(90);
      expect(await one.delivery(id)).toBe("delivered");
      expect((await one.told(id)).at(-1)).toBe("1:delivered");
      expect(await one.check(id, message.code)).toMatchObject({ status: "valid" });
    });

    it.each([..."0123456789*"])("hears the code twice after pressing %s, and the call is delivered", async (presses) => {
      const { one, id, play, message } = await calling(name);
      expect(heardCode((await play({ kind: "person", presses })).heard, message.code)).toBe(2);
      expect(await one.delivery(id)).toBe("delivered");
    });

    it("hears the code twice after pressing several keys in a row", async () => {
      const { play, message } = await calling(name);
      expect(heardCode((await play({ kind: "person", presses: "123" })).heard, message.code)).toBe(2);
    });

    it("makes the call delivered, even when hanging up during the code", async () => {
      const { one, id, play } = await calling(name);
      await play({ kind: "person", presses: "1", patience: 4 });
      expect(await one.delivery(id)).toBe("delivered");
    });

    it.each(["4829", "0000000", "482913482", "9999999999"])("hears all of %s twice within 90 seconds, in every language", async (code) => {
      const { sender, calls } = await plain();
      const source = caller.source();
      /** Only the source, without a verifier, whose codes could not be so short. */
      const network: Network = async ({ method = "POST", url, headers = {}, body = "" }) => {
        const reading = await source.read({ method, url, header: (name) => headers[name], body: new TextEncoder().encode(body) }, Date.now());
        if ("refused" in reading) throw new Error(reading.reason);
        return { status: 200, type: reading.reply?.contentType ?? "application/json", text: reading.reply?.body ?? "{}" };
      };
      for (const locale of spoken) {
        await sender.send(aCode({ code, locale }), within());
        const { heard, seconds } = await calls().at(-1)!.play({ kind: "person", presses: "1" }, network);
        expect(heardCode(heard, code), locale).toBe(2);
        expect(seconds).toBeLessThan(90);
        expect(heard.every(({ language }) => language === heard[0]!.language)).toBe(true);
      }
    });
  });

  describe("someone who does not press a key never hears the code", () => {
    it.each<[string, Callee]>([
      ["a mailbox", { kind: "mailbox" }],
      ["a mailbox that no one recognises", { kind: "mailbox", recognised: false }],
      ["a person who only listens", { kind: "person" }],
      ["a person who hangs up at once", { kind: "person", patience: 1 }],
      ["a person who hangs up at the end of the question", { kind: "person", patience: 12 }],
    ])("%s: the call is undeliverable, with `no-key`", async (_, callee) => {
      const { one, id, play, message, call } = await calling(name);
      const { heard } = await play(callee);
      expect(heard.length).toBeGreaterThan(0);
      expect(heardCode(heard, message.code)).toBe(0);
      expect(noDigits(heard)).toBe(true);
      expect(call.given).not.toContain(message.code);
      expect(await one.delivery(id)).toBe("undeliverable");
      expect((await one.told(id)).at(-1)).toBe("1:undeliverable no-key");
    });

    it("nothing that the vendor stores about the call contains the code, in any encoding", async () => {
      const { call, message } = await calling(name);
      const url = new URL(call.keyUrl ?? "");
      const parts = [...url.searchParams.values(), ...url.pathname.split("/")].flatMap((text) => [text, ...text.split(/[.~]/)]);
      for (const part of parts)
        for (const encoding of ["base64url", "hex", "base64"] as const) expect(Buffer.from(part, encoding).toString("latin1")).not.toContain(message.code);
      expect(leaks(url.href, message)).toBe(false);
      expect(new RegExp([...message.code].join("\\D{1,4}")).test(call.given)).toBe(false);
    });

    it("two calls with the same code have different key URLs", async () => {
      const { sender, calls } = await plain();
      const message = aCode();
      await sender.send(message, within());
      await sender.send({ ...message, idempotency_key: "another", attempt: 2 }, within());
      expect(calls()[0]!.keyUrl).not.toBe(calls()[1]!.keyUrl);
    });

    it("a message without receipts is rejected, or its call never reads the code at once", async () => {
      const { sender, calls } = await plain();
      const message = aCode({ receipt_reference: undefined, receipt_url: undefined });
      const outcome = await sender.send(message, within());
      for (const call of calls()) expect(heardCode((await call.play({ kind: "mailbox" })).heard, message.code)).toBe(0);
      if (calls().length === 0) expect(outcome).toMatchObject({ outcome: "rejected", reason: expect.stringMatching(/receipt|pressKey/) });
    });

    it("making a sender with `receipts: false` and a key to press throws", () => {
      expect(() => caller.make({ receipts: false })).toThrow(/pressKey|receipts/);
    });
  });

  describe("the key URL", () => {
    it("rejects a request without a signature, with another account's or with another body, and returns no code", async () => {
      const { one, id, call, message, now } = await calling(name);
      const word = call.key("1", now());
      const forged: Hook[] = [
        { ...word, headers: { "content-type": word.headers!["content-type"]! } },
        { ...word, body: word.body.replace(/1/, "2") },
        { ...word, body: "" },
        { ...word, url: `${word.url}&x=1` },
        { ...word, url: word.url.replace(/.{8}$/, "AAAAAAAA") },
        name === "Twilio"
          ? { ...word, headers: { ...word.headers, "x-twilio-signature": "AAAAAAAAAAAAAAAAAAAAAAAAAAA=" } }
          : { ...word, headers: { ...word.headers, authorization: signVonage(word.body, now(), { secret: "another account's signature secret" }) } },
        { method: "GET", url: word.url, headers: word.headers ?? {} },
        { method: "GET", url: word.url },
      ];
      for (const [i, hook] of forged.entries()) {
        const { status, text } = await one.network(hook);
        // Vonage's tokens cover the body, not the URL: an extra parameter changes nothing, and a changed one gets no code.
        if (name === "Twilio" || ![3, 4].includes(i)) expect([400, 403], `${i}: ${text}`).toContain(status);
        if (name === "Twilio" || i !== 3) expect(heardCode([{ text, language: "" }], message.code), `${i}`).toBe(0);
      }
      if (name === "Twilio") expect(await one.delivery(id)).toBeUndefined();
    });

    it("returns no code to a correctly signed request without a key, which is not delivered", async () => {
      const { one, id, call, message, now } = await calling(name);
      const hooks = [call.key("", now()), ...(name === "Twilio" ? [call.key("none", now())] : [])];
      for (const hook of hooks) {
        const { text } = await one.network(hook);
        expect(heardCode([{ text, language: "" }], message.code)).toBe(0);
      }
      expect(await one.delivery(id)).not.toBe("delivered");
    });

    it("returns no code to an event of the call", async () => {
      const { one, call, message, now } = await calling(name);
      const keyUrl = call.keyUrl ?? "none";
      for (const status of ["completed", "busy", "in-progress", "answered", "ringing"]) {
        const event = call.event(status, now(), 20);
        const asked = name === "Twilio" ? twilioPost(keyUrl, Object.fromEntries(new URLSearchParams(event.body))) : { ...event, url: keyUrl };
        const { text } = await one.network(asked);
        expect(heardCode([{ text, language: "" }], message.code), status).toBe(0);
      }
    });

    it("a key posted to the event URL gets no code, and is not delivered", async () => {
      const { one, id, call, message, now } = await calling(name);
      const { url } = call.event("ringing", now());
      const { text } = await one.network(call.key("1", now(), url));
      expect(heardCode([{ text, language: "" }], message.code)).toBe(0);
      expect(await one.delivery(id)).not.toBe("delivered");
    });

    it("returns no code if its secret part is cut, changed or missing, and logs no error", async () => {
      const { one, call, message, now } = await calling(name);
      const url = new URL(call.keyUrl ?? "");
      for (const key of [...url.searchParams.keys()].filter((one) => one !== "r"))
        for (const bend of [
          (value: string) => value.slice(0, -3),
          (value: string) => `${value.startsWith("A") ? "B" : "A"}${value.slice(1)}`,
          () => "",
          () => "A".repeat(5000),
          () => "%00",
          undefined,
        ]) {
          const bent = new URL(url);
          if (bend === undefined) bent.searchParams.delete(key);
          else bent.searchParams.set(key, bend(url.searchParams.get(key) ?? ""));
          const { status, text } = await one.network(call.key("1", now(), bent.href));
          expect(status).toBeLessThan(500);
          expect(heardCode([{ text, language: "" }], message.code)).toBe(0);
        }
      expect(one.log.filter(({ level }) => level === "error")).toEqual([]);
    });

    it("returns the same response to a repeated request, and the delivery is reported once", async () => {
      const { one, id, call, message, now } = await calling(name);
      const word = call.key("1", now());
      const [first, second] = [await one.network(word), await one.network(word)];
      expect([first.status, second.status]).toEqual([200, 200]);
      expect(first.text).toBe(second.text);
      expect(first.text.replace(/<[^>]*>|"[a-z]+"/gi, "")).toMatch(new RegExp([...message.code].join("\\D+")));
      expect(await one.told(id)).toEqual(["1:submitted", "1:delivered"]);
    });

    it("returns 403 and no code in a service with another secret of the vendor", async () => {
      const { one, id, call, message, now } = await calling(name, {}, {}, caller.source("the secret of another account, long enough"));
      const { status, text } = await one.network(call.key("1", now()));
      expect(status).toBe(403);
      expect(heardCode([{ text, language: "" }], message.code)).toBe(0);
      expect(await one.delivery(id)).toBeUndefined();
    });

    it("works during the rotation of the vendor's secret", async () => {
      const own = name === "Twilio" ? twilioAccount.authToken : signatureSecret;
      const { one, id, play, message } = await calling(name, {}, {}, caller.source(["the next secret of the account, long enough", own]));
      expect(heardCode((await play({ kind: "person", presses: "1" })).heard, message.code)).toBe(2);
      expect(await one.delivery(id)).toBe("delivered");
    });

    it("still returns the code while the store fails", async () => {
      const store = rigged(new PlainStore());
      const { call, one, message, now } = await calling(name, {}, { store });
      store.fate = () => "refused";
      const { text } = await one.network(call.key("1", now()));
      store.fate = () => "done";
      expect(text).toMatch(new RegExp([...message.code].join("\\D+")));
    });

    it("works with a public address that has to be escaped", async () => {
      const base = `${publicUrl}/it's&<so>`.replace(/[<>]/g, "");
      const { one, id, play, message } = await calling(name, {}, { base } as never);
      expect(heardCode((await play({ kind: "person", presses: "1" })).heard, message.code)).toBe(2);
      expect(await one.delivery(id)).toBe("delivered");
    });
  });

  describe("calls that end without an answer", () => {
    it.each(caller.ends)("%s: undeliverable, with that status as the error", async (status) => {
      const { one, id, call, now } = await calling(name);
      expect((await one.network(call.event(status, now(), 0))).status).toBe(200);
      expect(await one.delivery(id)).toBe("undeliverable");
      expect((await one.told(id)).at(-1)).toBe(`1:undeliverable ${status}`);
    });

    it("intermediate and unknown events give 200 and settle nothing", async () => {
      const { one, id, call, now } = await calling(name);
      for (const status of ["queued", "initiated", "started", "ringing", "in-progress", "answered", "pondering", ""])
        expect((await one.network(call.event(status, now()))).status, status).toBe(200);
      expect([undefined, "submitted", "in_transit"]).toContain(await one.delivery(id));
    });

    it("events that are repeated or out of order are reported once", async () => {
      const { one, id, call, now } = await calling(name);
      for (const word of [call.event("completed", now(), 8), call.event("answered", now()), call.event("ringing", now()), call.event("completed", now(), 8)])
        expect((await one.network(word)).status).toBe(200);
      expect(await one.told(id)).toEqual(["1:submitted", "1:undeliverable no-key"]);
    });

    it("a forged event gives 403", async () => {
      const { one, id, call, now } = await calling(name);
      const word = call.event("busy", now(), 0);
      for (const hook of [
        { ...word, headers: { "content-type": word.headers!["content-type"]! } },
        { ...word, body: word.body.replace("busy", "completed") },
      ])
        expect((await one.network(hook)).status).toBe(403);
      expect(await one.delivery(id)).toBeUndefined();
    });

    it("callbacks, log and explain contain neither the code nor the number", async () => {
      const { one, id, call, now, message } = await calling(name);
      const words = `${message.to} ${message.code}`;
      const more = { SipResponseCode: words, ErrorCode: words, ErrorMessage: words, reason: words, detail: words };
      await one.network(call.event("failed", now(), 0, more));
      for (const text of [JSON.stringify(await one.told(id)), JSON.stringify(one.log), JSON.stringify(await one.explain(id))])
        expect(leaks(text, message)).toBe(false);
    });
  });

  describe("with pressKey: false", () => {
    const atOnce = (more: object = {}) => calling(name, { pressKey: false, ...more });

    it("a person hears the code twice without a key, and the call is delivered", async () => {
      const { one, id, play, message } = await atOnce();
      const { heard } = await play({ kind: "person" });
      expect(heardCode(heard, message.code)).toBe(2);
      expect(await one.delivery(id)).toBe("delivered");
    });

    // Twilio also plays TwiML that comes with the call to machines (docs/carriers/channels.md, "Calls").
    const heard = name === "Twilio" ? "the code, as the documentation warns" : "no code";
    it(`a recognized mailbox hears ${heard}`, async () => {
      const { play, message } = await atOnce();
      const times = heardCode((await play({ kind: "mailbox" })).heard, message.code);
      if (name === "Twilio") expect(times).toBeGreaterThan(0);
      else expect(times).toBe(0);
    });

    it("a call to a recognized mailbox is undeliverable", async () => {
      const { one, id, play } = await atOnce();
      await play({ kind: "mailbox" });
      expect(await one.delivery(id)).toBe("undeliverable");
    });

    it.each([
      [0, "undeliverable"],
      [1, "undeliverable"],
      [4, "undeliverable"],
      [5, "delivered"],
      [60, "delivered"],
    ])("a call of %i seconds: %s", async (seconds, expected) => {
      const { one, id, call, now } = await atOnce();
      expect((await one.network(call.event("completed", now(), seconds))).status).toBe(200);
      expect(await one.delivery(id)).toBe(expected);
    });

    it("a call with an invalid length is not delivered", async () => {
      for (const field of ["", "NaN", "-5", "5x"]) {
        const { one, id, call, now } = await atOnce();
        await one.network(call.event("completed", now(), undefined, { CallDuration: field, duration: field }));
        expect(await one.delivery(id), field).not.toBe("delivered");
      }
    });

    it.each(caller.machine)("%s %j: undeliverable, however long the call", async (status, more) => {
      const { one, id, call, now } = await atOnce();
      for (const word of [call.event(status, now(), 30, more), call.event("completed", now(), 30, more)]) expect((await one.network(word)).status).toBe(200);
      expect(await one.delivery(id)).toBe("undeliverable");
    });

    it("works without receipts", async () => {
      const { sender, calls } = await plain({ pressKey: false, receipts: false });
      const message = aCode();
      expect(await sender.send(message, within())).toMatchObject({ outcome: "accepted" });
      expect(heardCode((await calls()[0]!.play({ kind: "person" })).heard, message.code)).toBe(2);
      const bare = aCode({ receipt_reference: undefined, receipt_url: undefined });
      expect(await sender.send(bare, within())).toMatchObject({ outcome: "accepted" });
    });
  });

  describe("languages", () => {
    const said = async (fields: Partial<CodeMessage>, pressKey = false) => {
      const { sender, calls } = await plain({ pressKey });
      const message = aCode(fields);
      expect(await sender.send(message, within())).toMatchObject({ outcome: "accepted" });
      const { heard } = await calls()[0]!.play({ kind: "person" }, async () => ({ status: 200, type: "application/json", text: "{}" }));
      return { heard, message };
    };
    const code: Readonly<Record<string, RegExp>> = { ar: /^ar/, zh: /^(zh|cmn)/ };
    const tagOf = (language: string) => code[language] ?? new RegExp(`^${language}`);

    it.each(spoken)("%s: code and question are spoken, by a voice of that language", async (locale) => {
      const { heard, message } = await said({ locale });
      expect(heardCode(heard, message.code)).toBe(2);
      for (const { language } of heard) expect(language).toMatch(tagOf(locale));
      const question = await said({ locale }, true);
      expect(question.heard.length).toBeGreaterThan(0);
      for (const { language, text } of question.heard) expect([language, text.length > 5]).toEqual([expect.stringMatching(tagOf(locale)), true]);
    });

    it("each has its own words", async () => {
      const words = await Promise.all(spoken.map(async (locale) => (await said({ locale }, true)).heard.map(({ text }) => text).join()));
      expect(new Set(words).size).toBe(spoken.length);
    });

    it.each<[string | undefined, string | undefined, RegExp]>([
      [undefined, "FR", /^fr/],
      [undefined, "BR", /^pt/],
      [undefined, "US", /^en/],
      ["EN-gb", "FR", /^en/],
      ["fr-CA", "US", /^fr/],
      ["pt-PT", "FR", /^pt/],
      ["zh-Hant-TW", "US", /^(zh|cmn)/],
      ["sw", "US", /^en/],
      ["cy", "US", /^en/],
      ["__proto__", "US", /^en/],
      ["constructor", "US", /^en/],
      ["", "US", /^en/],
    ])("locale %s, country %s: %s", async (locale, country, expected) => {
      const { heard } = await said({ locale, country });
      for (const { language } of heard) expect(language).toMatch(expected);
    });

    it("the question and the code are in the language of the request, through a whole verifier", async () => {
      const { one, calls } = await calling(name);
      await one.verifier.verifications.start({ customer_uuid: one.customer, phone_number: "+33612345678", locale: "de-AT" });
      const { heard } = await calls()[1]!.play({ kind: "person", presses: "1" }, one.network, () => one.clock.now());
      expect(heardCode(heard, one.sent.at(-1)!.message.code)).toBe(2);
      for (const { language } of heard) expect(language).toBe("de-DE");
    });
  });

  describe("which numbers are called, and how often", () => {
    it("only numbers of listed countries are called", async () => {
      const { sender, vendor } = await plain({ countries: ["FR"] });
      expect(await sender.send(aCode({ to: "+14155552671", country: "US" }), within())).toMatchObject({ outcome: "rejected" });
      expect(await sender.send(aCode({ country: undefined }), within())).toMatchObject({ outcome: "rejected" });
      expect(vendor.seen).toEqual([]);
      expect(sender.reaches?.("US")).toBe(false);
      expect(sender.reaches?.("FR")).toBe(true);
      await expect(mounted(sender, [caller.source()])).rejects.toThrow();
    });

    it.each<[string, object]>([
      ["no countries", { countries: undefined }],
      ["an empty list", { countries: [] }],
      ["all", { countries: "all" }],
      ["what is no country", { countries: ["XX1"] }],
      ["pressKey that is no boolean", { pressKey: "no" }],
    ])("%s: throws when the sender is made", (_, options) => {
      expect(() => caller.make(options)).toThrow();
    });

    it("twenty concurrent creates and a later one, under one idempotency key, make one call", async () => {
      const { one, calls } = await calling(name);
      const create = () => one.create(7, {}, { idempotencyKey: "signup-7" });
      const all = await Promise.all(Array.from({ length: 20 }, create));
      all.push(await create());
      expect(new Set(all.map(({ authentication_uuid }) => authentication_uuid)).size).toBe(1);
      expect(calls()).toHaveLength(2);
    });

    it("a vendor that hangs gets one request, and the code stays live", async () => {
      const { one, vendor } = await calling(name, { timeout: 1 });
      vendor.trick = hangs;
      const id = await one.begin(3);
      expect((await one.explain(id)).sends.at(-1)).toMatchObject({ state: "unknown" });
      expect(vendor.seen).toHaveLength(2);
      expect(await one.check(id, one.messageOf(id).code)).toMatchObject({ status: "valid" });
    });

    it("a call whose API response was lost is delivered when a key is pressed", async () => {
      const { one, vendor, calls } = await calling(name);
      vendor.trick = says(500, "");
      const id = await one.begin(3);
      const { heard } = await calls()[1]!.play({ kind: "person", presses: "1" }, one.network, () => one.clock.now());
      expect(heardCode(heard, one.messageOf(id).code)).toBe(2);
      expect(await one.delivery(id)).toBe("delivered");
    });

    it("in thirty concurrent calls, each person hears their own code", async () => {
      const { one, calls } = await calling(name);
      const ids = await Promise.all(Array.from({ length: 30 }, (_, i) => one.begin(i + 2)));
      await Promise.all(
        ids.map(async (id) => {
          const { to, code } = one.messageOf(id);
          const call = calls().find((one) => one.to === to)!;
          expect(heardCode((await call.play({ kind: "person", presses: "1" }, one.network, () => one.clock.now())).heard, code)).toBe(2);
        }),
      );
      expect(await Promise.all(ids.map((id) => one.delivery(id)))).toEqual(ids.map(() => "delivered"));
    });

    it("a retry is a separate call, and each has its own delivery status", async () => {
      const { one, id, calls, now } = await calling(name);
      one.clock.advance(61_000);
      await one.retry(id);
      expect(calls()).toHaveLength(2);
      await one.network(calls()[0]!.event("busy", now(), 0));
      await calls()[1]!.play({ kind: "person", presses: "1" }, one.network, now);
      const { sends } = await one.explain(id);
      expect(sends.map(({ delivery }) => delivery)).toEqual(["undeliverable", "delivered"]);
    });

    it("an error that repeats the number and the code is rejected, without either", async () => {
      const { sender, vendor } = await plain();
      const message = aCode();
      const words = `${message.to} ${message.code}`;
      vendor.trick = says(400, { code: 21211, message: words, status: 400, title: words, detail: words });
      const outcome = await sender.send(message, within());
      expect(outcome).toMatchObject({ outcome: "rejected" });
      expect(leaks(outcome, message)).toBe(false);
    });
  });
});

describe("calls by Twilio, as documented", () => {
  it("ring for 25 seconds and last 90; extra replaces that", async () => {
    const vendor = await startTwilio();
    const make = (options: object) => twilioVoiceSender({ ...twilioAccount, from: "+15005550006", countries: ["FR"], baseUrl: vendor.url, ...options });
    await make({}).send(aCode(), within());
    await make({ extra: { Timeout: "40" } }).send(aCode(), within());
    expect(vendor.calls.map(({ form }) => [form.getAll("Timeout"), form.getAll("TimeLimit")])).toEqual([
      [["25"], ["90"]],
      [["40"], ["90"]],
    ]);
  });

  it("report each end without an answer through the requested events", async () => {
    for (const status of ["busy", "no-answer", "failed", "canceled"] as const) {
      const vendor = await startTwilio();
      const sender = twilioVoiceSender({ ...twilioAccount, from: "+15005550006", countries: ["FR"], baseUrl: vendor.url });
      const one = await mounted(sender, [twilioVoiceReceipts({ authToken: twilioAccount.authToken })], { countries: ["FR"] });
      const id = await one.begin();
      expect((await unanswered(vendor.calls[0]!, status, one.network)).at(-1)).toBe(200);
      expect(await one.delivery(id)).toBe("undeliverable");
    }
  });

  it("a person who presses # hears the code, as with any key", async () => {
    const { one, id, play, message } = await calling("Twilio");
    expect(heardCode((await play({ kind: "person", presses: "#" })).heard, message.code)).toBe(2);
    expect(await one.delivery(id)).toBe("delivered");
  });

  it("detect machines only if the code is spoken without a key", async () => {
    const vendor = await startTwilio();
    const make = (pressKey: boolean) => twilioVoiceSender({ ...twilioAccount, from: "+15005550006", countries: ["FR"], baseUrl: vendor.url, pressKey });
    await make(false).send(aCode(), within());
    await make(true).send(aCode(), within());
    expect(vendor.calls.map(({ form }) => form.get("MachineDetection"))).toEqual(["Enable", null]);
  });
});

describe("calls by Vonage, as documented", () => {
  it("ring for 25 seconds and last 90; extra replaces that", async () => {
    const vendor = await startVonage();
    const make = (options: object) =>
      vonageVoiceSender({ applicationId, privateKey, signatureSecret, from: "447700900000", countries: ["FR"], baseUrl: vendor.url, ...options });
    await make({}).send(aCode(), within());
    await make({ extra: { ringing_timer: 40 } }).send(aCode(), within());
    expect(vendor.calls.map(({ ringing_timer, length_timer }) => [ringing_timer, length_timer])).toEqual([
      [25, 90],
      [40, 90],
    ]);
  });

  it("are rejected with another application's key", async () => {
    const vendor = await startVonage();
    const sender = vonageVoiceSender({ applicationId, privateKey: strangeKey, signatureSecret, from: "447700900000", countries: ["FR"], baseUrl: vendor.url });
    expect(await sender.send(aCode(), within())).toMatchObject({ outcome: "rejected", reason: expect.stringContaining("401") });
  });

  it("throw when the sender is made with an invalid private key, which is not shown", () => {
    for (const bad of ["", "not a key", "-----BEGIN PRIVATE KEY-----\nsecret-words\n-----END PRIVATE KEY-----"]) {
      let shown = "";
      try {
        vonageVoiceSender({ applicationId, privateKey: bad, signatureSecret, from: "447700900000", countries: ["FR"] });
      } catch (error) {
        shown = String(error);
      }
      expect(shown, bad).not.toBe("");
      expect(shown).not.toContain("secret-words");
    }
  });

  it("a key request that is an hour off or has a wrong hash or algorithm gives 403, and no code", async () => {
    const { one, call, message, now } = await calling("Vonage");
    const word = call.key("1", now());
    for (const authorization of [
      signVonage(word.body, now() - 3_600_000),
      signVonage(word.body, now() + 3_600_000),
      signVonage("{}", now()),
      signVonage(word.body, now(), { claims: { payload_hash: undefined } }),
      signVonage(word.body, now(), { head: { alg: "none", typ: "JWT" } }),
    ]) {
      const { status, text } = await one.network({ ...word, headers: { ...word.headers, authorization } });
      expect(status).toBe(403);
      expect(heardCode([{ text, language: "" }], message.code)).toBe(0);
    }
  });

  it("a correctly signed key request with odd or no digits gets no code, and logs no error", async () => {
    const { one, call, message, now } = await calling("Vonage");
    const { url } = call.key("1", now());
    for (const dtmf of [
      undefined,
      null,
      {},
      { digits: null },
      { digits: "" },
      { digits: 7 },
      { digits: [] },
      { digits: "", timed_out: false },
      [],
      { timed_out: true },
    ]) {
      const body = JSON.stringify({ dtmf, uuid: "u" });
      const { status, text } = await one.network({ url, headers: { "content-type": "application/json", authorization: signVonage(body, now()) }, body });
      expect(status).toBeLessThan(500);
      if (JSON.stringify(dtmf) !== '{"digits":7}') expect(heardCode([{ text, language: "" }], message.code), body).toBe(0);
    }
    expect(one.log.filter(({ level }) => level === "error")).toEqual([]);
  });
});
