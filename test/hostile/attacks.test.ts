import { execFile } from "node:child_process";
import { createHash, createHmac, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect, promisify } from "node:util";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { type BuildOptions, build } from "esbuild";
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { expressHandlers } from "../../adapters/http/express.js";
import { rawText } from "../../src/cli/demo/raw-text.js";
import { genericHook, hooks, supabaseHook } from "../../src/hooks/index.js";
import type { VerifierOptions } from "../../src/index.js";
import { preludeV2 } from "../../src/wires/prelude-v2/index.js";
import { authenticationUuidOf, twilioVerify } from "../../src/wires/twilio-verify/index.js";
import { PlainStore } from "../store/plain-store.js";
import { secret } from "../support/verifier.js";
import { ask, type Host, host, keyOf, type Mount, mine, mounts, prelude, type Reply, raw, type Target, target, theirs, twilio, v1 } from "./attacks-kit.js";
import { drive, ending, receipts, rigged, tallied, turns } from "./kit.js";

const day = 86_400_000;
const number = "+33620000001";
const numberAt = (index: number): string => `+336200${String(10_000 + index)}`;
const hookToken = "a-token-of-24-characters!!";
const hookKey = Buffer.alloc(32, 7);

/** All HTTP handlers of one verifier, on one server. */
async function attacked(options: Partial<VerifierOptions> = {}, mount: Mount = "node"): Promise<Target & { readonly port: number }> {
  const one = target(options);
  const { verifier } = one;
  const of = { customer_uuid: mine, conversion: "reported" } as const;
  const doors = [
    verifier,
    preludeV2(verifier),
    twilioVerify(verifier),
    hooks(verifier, [
      genericHook({ ...of, token: hookToken }),
      supabaseHook({ ...of, secrets: `v1,whsec_${hookKey.toString("base64")}`, confirmToken: hookToken }),
    ]),
    ...(options.receipts ? [verifier.receipts] : []),
  ];
  const server: Host = await host(mount, doors);
  onTestFinished(async () => {
    await server.close();
    await verifier.close();
  });
  return { ...one, port: server.port };
}

/** The outcome of a request, over any wire. */
const told = ({ status, json }: Reply): string => `${status} ${json?.status ?? json?.code ?? ""}`.trim();
const isJudged = (reply: Reply): boolean => ["200 invalid", "200 failure", "200 pending"].includes(told(reply));
const isYes = (reply: Reply): boolean => ["200 valid", "200 success", "200 approved"].includes(told(reply));
/** Codes close to the right one, but never the right one. */
const others = (code: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => String((Number(code) + 1 + i) % 10 ** code.length).padStart(code.length, "0"));
/** The highest number of `times` within any `ms` milliseconds. */
const most = (times: readonly number[], ms: number): number => Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + ms).length));

describe("guesses", () => {
  it("all wires together evaluate 50 wrong codes of a number in 24 hours, however many verifications are created (docs/contract.md#guesses-claimed)", async () => {
    const { port, clock, sender } = await attacked();
    const [a, p, w] = [v1(port), prelude(port), twilio(port)];
    const judged: number[] = [];
    const sent: number[] = [];
    let guess = 13;
    for (const hour of [0, 1, 1, 2, 5, 20, 1, 1, 5, 20, 1]) {
      clock.advance(hour * 3_600_000);
      const made = await Promise.all([a.create(number), a.create("+330620000001"), a.create(number), p.create(number), w.create(number)]);
      while (sent.length < sender.messages.length) sent.push(clock.now());
      const codes = new Set(sender.messages.map(({ code }) => code));
      const next = (): string => {
        do guess = (guess + 7919) % 1_000_000;
        while (codes.has(String(guess).padStart(6, "0")));
        return String(guess).padStart(6, "0");
      };
      const ids = made.flatMap(({ json }) => (json.status === "pending" && json.authentication_uuid ? [json.authentication_uuid as string] : []));
      const sid = made[4]?.json.sid as string | undefined;
      const tries = await Promise.all([
        ...ids.flatMap((id) => Array.from({ length: 8 }, () => a.check(id, next()))),
        ...Array.from({ length: 8 }, () => p.check(number, next())),
        ...Array.from({ length: 4 }, () => p.check(number, next(), { "x-stainless-retry-count": "1" })),
        ...Array.from({ length: 8 }, () => w.check({ To: number, Code: next() })),
        ...(sid ? Array.from({ length: 4 }, () => a.check(authenticationUuidOf(sid) ?? "", next())) : []),
      ]);
      for (const one of tries) if (isJudged(one)) judged.push(clock.now());
      expect(tries.some(isYes)).toBe(false);
      if (sid) await w.update(sid, "canceled");
    }
    expect(most(judged, day)).toBe(50);
    expect(most(sent, day)).toBe(10);
    expect(most(sent, 600_000)).toBeLessThanOrEqual(5);
  });

  it.each<[string, (port: number) => { create(): Promise<unknown>; check(code: string, key: string): Promise<Reply> }]>([
    [
      "/v1",
      (port) => {
        let id = "";
        return {
          create: async () => {
            id = (await v1(port).create(number)).json.authentication_uuid;
          },
          check: (code, key) => v1(port).check(id, code, { "idempotency-key": key }),
        };
      },
    ],
    [
      "Prelude v2",
      (port) => ({ create: () => prelude(port).create(number), check: (code, key) => prelude(port).check(number, code, { "idempotency-key": key }) }),
    ],
    [
      "Twilio Verify",
      (port) => ({
        create: () => twilio(port).create(number),
        check: (code, key) => twilio(port).check({ To: number, Code: code }, { "idempotency-key": key }),
      }),
    ],
  ])("over %s, the idempotency key of a valid check allows no more guesses than policy.checks (SECURITY.md#what-the-library-promises)", async (_, of) => {
    const { port, sender } = await attacked();
    const client = of(port);
    await client.create();
    const code = sender.messages.at(-1)?.code ?? "";
    expect(isYes(await client.check(code, "k"))).toBe(true);
    expect(isYes(await client.check(code, "k"))).toBe(true); // a repeat by someone who knows the code
    for (const wrong of others(code, 60)) expect(isYes(await client.check(wrong, "k"))).toBe(false);
    expect(told(await client.check(code, "k")), "the 61st guess of someone who knows the key and not the code").not.toMatch(/ (valid|success|approved)$/);
  });

  it("under the idempotency key of a wrong code, no other code is evaluated (docs/contract.md#idempotency)", async () => {
    const { port, sender } = await attacked();
    const a = v1(port);
    const id = (await a.create(number)).json.authentication_uuid as string;
    const code = sender.codeOf(id);
    const tries = await Promise.all(others(code, 30).map((one) => a.check(id, one, { "idempotency-key": "k" })));
    expect(tallied(tries.map(told))).toEqual({ "200 invalid": 1, "400 bad_request": 29 });
    expect(told(await a.check(id, code, { "idempotency-key": "k" }))).toBe("400 bad_request");
    expect(told(await a.check(id, code))).toBe("200 valid");
  });

  it("a number gets 50 guesses, test numbers too; unlock allows 50 more once a day, and erase none (docs/contract.md#unlock)", async () => {
    const test = "+33620000050";
    const { verifier, clock, sender } = await attacked({ testNumbers: [{ number: test, code: "424242" }] });
    const guesses = async (phone_number: string) => {
      let judged = 0;
      for (let made = 0; made < 14; made++) {
        const { authentication_uuid } = await verifier.createAuthentication({ customer_uuid: mine, phone_number });
        const right = sender.codeOf(authentication_uuid);
        for (let i = 0; i < 7; i++) {
          const check_code = others(right === "none" ? "424242" : right, 7)[i] ?? "";
          if ((await verifier.check({ customer_uuid: mine, authentication_uuid, check_code })).status === "invalid") judged++;
        }
        clock.advance(400_000);
      }
      return judged;
    };
    for (const phone_number of [test, number]) {
      const of = { customer_uuid: mine, phone_number };
      expect(await guesses(phone_number)).toBe(50);
      const unlocked = await Promise.all(Array.from({ length: 10 }, () => verifier.unlock(of)));
      expect(unlocked.filter((one) => one.unlocked)).toHaveLength(1);
      expect(await guesses(phone_number)).toBe(50);
      await verifier.erase(of);
      expect((await verifier.unlock(of)).unlocked).toBe(false);
      expect(await guesses(phone_number)).toBe(0);
    }
  });
});

describe("valid", () => {
  it("is returned once for concurrent checks by id, by number, by SID and under idempotency keys (docs/contract.md#already-validated)", async () => {
    const { port, sender } = await attacked();
    const [a, w] = [v1(port), twilio(port)];
    const sid = (await w.create(number)).json.sid as string;
    const code = sender.messages[0]?.code ?? "";
    const id = authenticationUuidOf(sid) ?? "";
    const tries = await Promise.all(
      Array.from({ length: 15 }, (_, i) => [
        w.check({ To: number, Code: code }),
        w.check({ VerificationSid: sid, Code: code }),
        a.check(id, code),
        a.check(id, `${code.slice(0, 3)} ${code.slice(3)}`, { "idempotency-key": `k${i}` }),
      ]).flat(),
    );
    expect(tries.filter(isYes)).toHaveLength(1);
    expect(told(await w.update(sid, "approved"))).toMatch(/^4/);
  });

  it("is returned for a code in Unicode decimal digits, but not for lookalikes or values that are not strings (docs/contract.md#check-code)", async () => {
    const { port, sender } = await attacked();
    const a = v1(port);
    const digits = (code: string, zero: number) => [...code].map((one) => String.fromCodePoint(zero + Number(one))).join("");
    const spellings: ((code: string) => readonly [value: unknown, answer: string])[] = [
      (code) => [` ${code.slice(0, 3)} - ${code.slice(3)} `, "200 valid"],
      (code) => [digits(code, 0xff10), "200 valid"],
      (code) => [digits(code, 0x660), "200 valid"],
      (code) => [digits(code, 0x1d7ce), "200 valid"],
      (code) => [[...code].map((one) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(one)]).join(""), "200 invalid"],
      (code) => [[...code].map((one) => (one === "0" ? "⓪" : String.fromCharCode(0x245f + Number(one)))).join(""), "200 invalid"],
      ...["\u200b", "\u202e"].map((end) => (code: string) => [`${code}${end}`, "200 valid"] as const),
      ...["\u0000", ".0", "e0", "|"].map((end) => (code: string) => [`${code}${end}`, "200 invalid"] as const),
      ...["0", "+", "0x", "G-"].map((front) => (code: string) => [`${front}${code}`, "200 invalid"] as const),
      (code) => [`${code} 000000`, "200 invalid"],
      (code) => [`${code}${" ".repeat(59)}`, "400 bad_request"],
      ...["", "      ", "------"].map((text) => () => [text, "400 bad_request"] as const),
      ...[(code: string) => Number(code), (code: string) => [code], () => ({ $ne: null }), () => null, () => true].map(
        (of) => (code: string) => [of(code), "400 bad_request"] as const,
      ),
    ];
    for (const [index, spelling] of spellings.entries()) {
      const id = (await a.create(numberAt(index))).json.authentication_uuid as string;
      const [value, answer] = spelling(sender.codeOf(id));
      expect(told(await a.check(id, value as string)), inspect(value)).toBe(answer);
    }
  });

  it("is not returned for a delivery, whose code another server checks (docs/contract.md#deliver)", async () => {
    const { port, verifier } = await attacked();
    const { delivery_uuid: id } = await verifier.deliver({ customer_uuid: mine, phone_number: number, code: "482913", conversion: "reported" });
    const sid = `VE${(id ?? "").replaceAll("-", "")}`;
    expect(told(await v1(port).check(id ?? "", "482913"))).toBe("400 invalid_auth_uuid");
    expect(told(await v1(port).retry(id ?? ""))).toBe("400 invalid_auth_uuid");
    for (const of of [{ VerificationSid: sid }, { To: number }])
      expect((await twilio(port).check({ ...of, Code: "482913" } as Record<string, string>)).status).toBe(404);
  });

  it("a store whose commits fail in any way does not reveal whether a code is right (docs/contract.md#store-deadline)", async () => {
    for (const fate of ["refused", "lost", "silent", "deaf", "late"] as const) {
      const { verifier, store, sender, clock } = await attacked();
      const { authentication_uuid } = await verifier.createAuthentication({ customer_uuid: mine, phone_number: number });
      const code = sender.codeOf(authentication_uuid);
      store.fate = (method) => (method === "commit" ? fate : "done");
      const asked = async (check_code: string) => {
        const before = store.calls.length;
        const end = await drive(clock, ending(verifier.check({ customer_uuid: mine, authentication_uuid, check_code })), 200, 20_000);
        return [end, store.calls.length - before];
      };
      const [wrong = ""] = others(code, 1);
      expect(await asked(code), fate).toEqual(await asked(wrong));
      store.fate = () => "done";
      await store.release();
      await turns();
    }
  });
});

describe("messages", () => {
  it("caps hold for concurrent creates, retries, idempotency keys, wires and deliveries of one number (docs/contract.md#caps)", async () => {
    const { port, clock, sender, verifier } = await attacked({}, "fastify");
    const [a, p, w] = [v1(port), prelude(port), twilio(port)];
    const sent: number[] = [];
    const ids = new Set<string>();
    for (let round = 0; round < 24; round++) {
      const made = await Promise.all([
        ...Array.from({ length: 5 }, (_, i) =>
          a.create(i % 2 ? number : "+330620000001", { device_id: `d${round}.${i}` }, { "idempotency-key": `${round % 7}.${i}` }),
        ),
        p.create(number, {}, { "idempotency-key": `p${round}` }),
        w.create(number),
        w.create(number, {}, { "idempotency-key": `w${round}` }),
        ...[...ids].slice(-4).map((id) => a.retry(id)),
      ]);
      await verifier.deliver({ customer_uuid: mine, phone_number: number, code: String(482_913 + round), conversion: "reported" });
      for (const { json } of made) if (json?.authentication_uuid) ids.add(json.authentication_uuid);
      while (sent.length < sender.messages.length) sent.push(clock.now());
      clock.advance(round % 3 === 0 ? 31_000 : 3_600_000);
    }
    expect(most(sent, 600_000)).toBe(5);
    expect(most(sent, day)).toBe(10);
  });

  it("one idempotency key sends one message, however many concurrent requests for other numbers use it (docs/contract.md#idempotency)", async () => {
    const { port, sender } = await attacked();
    const made = await Promise.all(Array.from({ length: 40 }, (_, i) => v1(port).create(numberAt(i * 13), {}, { "idempotency-key": "one" })));
    expect(tallied(made.map(told))).toEqual({ "200 pending": 1, "400 bad_request": 39 });
    expect(sender.messages).toHaveLength(1);
  });

  it("a proof that its provider accepts once waives the spam rules for one number (docs/contract.md#challenge)", async () => {
    const used = new Set<string>();
    const challenge = {
      async verify(proof: string) {
        const isNew = !used.has(proof);
        used.add(proof);
        return isNew;
      },
    };
    const { port, sender } = await attacked({ challenge, policy: { spam: { range: { mode: "enforce" } } } });
    for (let i = 0; i < 8; i++) await v1(port).create(numberAt(i));
    const before = sender.messages.length;
    const made = await Promise.all(Array.from({ length: 20 }, (_, i) => v1(port).create(numberAt(100 + i), { proof: "one" })));
    expect(tallied(made.map(told))).toEqual({ "200 pending": 1, "200 spam_detected": 19 });
    expect(sender.messages).toHaveLength(before + 1);
  });

  it("malformed, lookalike and expensive numbers get no message, over any wire (docs/contract.md#phone-number)", async () => {
    const { port, sender } = await attacked();
    const looks = ["33620000001", "0033620000001", "+33 620000001", "+3300620000001", "＋33620000001", "+３３620000001", "+٣٣620000001", "+33O620000001"];
    const marked = ["\n", "\r\nx", "\u0000", " ", "\u202c", "\u200b", ";ext=5", ",,5", "x5", "#", "*"].map((end) => `${number}${end}`);
    const fronts = ["\u202e", "\ufeff", " ", "tel:", "+"].map((front) => `${front}${number}`);
    const dear = ["+19002345678", "+119002345678", "+33899123456", "+330899123456", "+4409098790000", "+499001234567", "+870773123456", "+979123456789"];
    for (const one of [...looks, ...marked, ...fronts, ...dear, `+${"3".repeat(15_000)}`]) {
      expect(told(await v1(port).create(one)), one.slice(0, 30)).toMatch(/^400 invalid_(phone_number|line)$/);
      expect(told(await prelude(port).create(one)), one.slice(0, 30)).toMatch(/^(400 invalid_phone_number|200 blocked)$/);
      expect((await twilio(port).create(one)).status, one.slice(0, 30)).toBeGreaterThanOrEqual(400);
    }
    expect(sender.messages).toEqual([]);
  });

  it('with phoneValidation "possible", canonicalizing a canonical form does not change it (docs/contract.md#canonical-form)', async () => {
    const { verifier } = await attacked({ phoneValidation: "possible" });
    const read = (one: string) => verifier.lookup({ customer_uuid: mine, phone_number: one }).then((found) => found.phone_number);
    for (const one of ["+3100612345678", "+49001701234567", "+490001701234567", "+43006641234567", "+4400797712345"]) {
      const first = await read(one).catch(() => undefined); // a rejection is fine too
      if (first !== undefined) expect(await read(first), one).toBe(first);
    }
  });

  it('with phoneValidation "possible", a second trunk zero bypasses no list, line type or cap (docs/contract.md#canonical-form)', async () => {
    const { port, sender } = await attacked({
      phoneValidation: "possible",
      countries: ["DE"],
      blockedNumbers: ["+49171*"],
      lists: { block: { numbers: ["+491721234567"] } },
      policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } },
    });
    for (const plain of ["+491711234567", "+4901711234567", "+491721234567"]) expect(told(await v1(port).create(plain))).toBe("400 blocked_number");
    expect(told(await v1(port).create("+4909001234567"))).toBe("400 invalid_line");
    expect(told(await v1(port).create("+491751234567"))).toBe("200 pending");
    const second = ["+49001711234567", "+49001721234567", "+49009001234567", "+49001751234567"];
    await Promise.all(second.map((one) => v1(port).create(one)));
    expect(sender.messages.map(({ to }) => to)).toEqual(["+491751234567"]);
  });

  it("neighbors and territories of an allowed country get no message, even under its calling code (docs/contract.md#destinations)", async () => {
    const { port, sender } = await attacked({ countries: ["GB", "US", "IT", "RU", "NO", "FR", "AU"], phoneValidation: "possible" });
    const doors = ["+447624123456", "+447797712345", "+447781123456", "+18765551234", "+18760551234", "+12423591234", "+13405141234", "+16580551234"];
    for (const one of [...doors, "+3906698123456", "+77011234567", "+77991234567", "+4779123456", "+590690123456", "+262692123456", "+61891641234"])
      expect(told(await v1(port).create(one)), one).toBe("400 unsupported_region");
    expect(sender.messages).toEqual([]);
  });

  it("caps and lists treat an IPv4 address and its IPv6 representations as one address (docs/contract.md#address-key)", async () => {
    const forms = ["203.0.113.5", "::ffff:203.0.113.5", "::FFFF:CB00:7105", "2002:cb00:7105:ffff::9", "64:ff9b::cb00:7105", "2001:0:1234:5678:0:0:34ff:8efa"];
    const capped = await attacked({ policy: { limits: { perIp: [{ limit: 1, window: 3600 }] } } });
    const listed = await attacked({ lists: { block: { cidrs: ["203.0.113.0/24"] } } });
    for (const [index, ip] of forms.entries()) {
      expect(told(await v1(capped.port).create(numberAt(index), { ip })), ip).toBe(index === 0 ? "200 pending" : "200 rate_limited");
      expect(told(await v1(listed.port).create(numberAt(index), { ip })), ip).toBe("200 spam_detected");
    }
    for (const ip of ["01.2.3.4", "0x1.2.3.4", "16909060", "1.2.3", "1.2.3.4 ", "1.2.3.4, 5.6.7.8", "fe80::1%eth0", "[::1]", "1.2.3.4:80", "١.2.3.4"])
      expect(told(await v1(listed.port).create(number, { ip })), ip).toBe("400 bad_request");
    expect(told(await v1(capped.port).create(numberAt(50), {}, { "x-forwarded-for": "203.0.113.5", "x-real-ip": "203.0.113.5" }))).toBe("200 pending");
  });

  it("rejections, each under a new idempotency key, do not fill a store (docs/contract.md#refused-records)", async () => {
    const plain = new PlainStore();
    const { verifier } = await attacked({ store: rigged(plain) });
    for (let i = 0; i < 700; i++) await verifier.createAuthentication({ customer_uuid: mine, phone_number: number }, { idempotencyKey: `k${i}` });
    await turns();
    expect(plain.records.size).toBeLessThanOrEqual(5 + 500);
  });
});

describe("customers", () => {
  it("ids of another customer, erased ids and unknown ids get the same response, after the same store calls (docs/contract.md#unknown-authentication)", async () => {
    const { port, store, sender, verifier } = await attacked();
    const [a, b, w] = [v1(port), v1(port, theirs), twilio(port)];
    const foreign = (await b.create(number)).json.authentication_uuid as string;
    const foreignCode = sender.codeOf(foreign);
    const erased = (await a.create("+33620000002")).json.authentication_uuid as string;
    await verifier.erase({ customer_uuid: mine, phone_number: "+33620000002" });
    const told = async (id: string, make: (id: string, sid: string) => Promise<Reply>) => {
      const sid = `VE${id.replaceAll("-", "")}`;
      const before = store.calls.length;
      const { status, headers, text } = await make(id, sid);
      const { date, ...rest } = headers;
      return { status, rest, text: text.replaceAll(sid, "SID"), calls: store.calls.slice(before).map(({ method }) => method) };
    };
    const makes: ((id: string, sid: string) => Promise<Reply>)[] = [
      (id) => a.check(id, foreignCode),
      (id) => a.check(id, foreignCode, { "idempotency-key": "k" }),
      (id) => a.retry(id),
      (_, sid) => w.check({ VerificationSid: sid, Code: foreignCode }),
      (_, sid) => w.fetch(sid),
      (_, sid) => w.update(sid, "canceled"),
    ];
    for (const [index, make] of makes.entries()) {
      const unknown = await told(randomUUID(), make);
      expect(unknown.status).toBe(index < 3 ? 400 : 404);
      for (const id of [foreign, erased]) expect(await told(id, make)).toEqual(unknown);
    }
    expect((await b.check(foreign, foreignCode)).json.status).toBe("valid");
  });

  it("a key gives access to its own customer only, wherever a request names the customer (docs/contract.md#foreign-customer)", async () => {
    const { port, sender } = await attacked();
    const sid = (await twilio(port, theirs).create(number)).json.sid as string;
    const code = sender.messages[0]?.code ?? "";
    const digits = (customer: string) => customer.replaceAll("-", "");
    const basic = (user: string, key: string) => ({
      authorization: `Basic ${Buffer.from(`${user}:${key}`).toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
    });
    const form = new URLSearchParams({ To: number, Code: code }).toString();
    for (const [user, service] of [
      [`AC${digits(mine)}`, theirs],
      [`AC${digits(theirs)}`, theirs],
      [`AC${digits(theirs)}`, mine],
      ["SK1", theirs],
      ["SK1", mine],
    ] as const)
      expect(
        (await ask(port, `/v2/Services/VA${digits(service)}/VerificationCheck`, form, { headers: basic(user, keyOf(mine)) })).status,
        user,
      ).toBeGreaterThan(400);
    for (const of of [{ VerificationSid: sid }, { To: number, VerificationSid: sid }])
      expect((await twilio(port).check({ ...of, Code: code } as Record<string, string>)).status).toBe(404);
    expect(told(await prelude(port).check(number, code))).toBe("200 expired_or_not_found");
    const body = { customer_uuid: mine, authentication_uuid: randomUUID(), check_code: "123456" };
    const [key, other] = [keyOf(mine), keyOf(theirs)];
    const digest = createHash("sha256").update(key).digest("hex");
    for (const wrong of [
      undefined,
      "",
      "nope",
      key.slice(0, -1),
      `${key}x`,
      key.toUpperCase(),
      digest,
      `sha256:${digest}`,
      [key, other],
      [key, key],
      "__proto__",
    ]) {
      const headers = { "content-type": "application/json", ...(wrong !== undefined && { "x-api-key": wrong }) };
      expect(told(await ask(port, "/v1/check", body, { headers })), String(wrong)).toBe("403 forbidden");
    }
    for (const customer of [theirs, randomUUID()])
      expect(told(await ask(port, "/v1/check", { ...body, customer_uuid: customer }, { headers: v1(port).headers }))).toBe("400 account_invalid");
    expect(told(await twilio(port, theirs).check({ To: number, Code: code }))).toBe("200 approved");
  });
});

const fields = `"customer_uuid":"${mine}","phone_number":"${number}"`;
const filled = (bytes: number) => `{${fields},"x":"${"a".repeat(bytes - `{${fields},"x":""}`.length)}"}`;
const bodies: readonly (readonly [name: string, body: string | Buffer, answer: string])[] = [
  ["a key __proto__", `{${fields},"__proto__":{"ip":"1.2.3.4"}}`, "400 bad_request"],
  ["a key __proto__, escaped", `{${fields},"\\u005f_proto__":1}`, "400 bad_request"],
  ["a key __proto__ below", `{${fields},"x":[{"__proto__":{"a":1}}]}`, "400 bad_request"],
  ["constructor.prototype", `{${fields},"constructor":{"prototype":{"polluted":1}}}`, "200 pending"],
  ["all fields in constructor.prototype", `{"constructor":{"prototype":{${fields}}}}`, "400 bad_request"],
  ["a foreign customer before the own", `{"customer_uuid":"${theirs}",${fields}}`, "200 pending"],
  ["a foreign customer after the own", `{${fields},"customer_uuid":"${theirs}"}`, "400 account_invalid"],
  ["32 levels", `{${fields},"x":${"[".repeat(31)}${"]".repeat(31)}}`, "200 pending"],
  ["33 levels", `{${fields},"x":${"[".repeat(32)}${"]".repeat(32)}}`, "400 bad_request"],
  ["7,000 levels", `{${fields},"x":${"[".repeat(7000)}${"]".repeat(7000)}}`, "400 bad_request"],
  ["a huge number", `{${fields},"x":1e999999}`, "200 pending"],
  ["a lone surrogate", `{${fields},"device_id":"\\ud800"}`, "400 invalid_device_id"],
  ["UTF-16", Buffer.from(`{${fields}}`, "utf16le"), "400 bad_request"],
  ["an array", `[{${fields}}]`, "400 bad_request"],
  ["two documents", `{${fields}} {}`, "400 bad_request"],
  ["16 KiB", filled(16_384), "200 pending"],
  ["16 KiB and 1", filled(16_385), "413 payload_too_large"],
  ["2 MB", filled(2_000_000), "413 payload_too_large"],
];

describe.each(mounts)("mounted in %s", (mount) => {
  it("parses each body as the contract requires, and pollutes no prototype (docs/contract.md#sound-bodies)", async () => {
    const { port, clock } = await attacked({}, mount);
    for (const [name, body, answer] of bodies) {
      expect(told(await ask(port, "/v1/authentication", body, { headers: v1(port).headers })), name).toBe(answer);
      clock.advance(day * 1.6);
    }
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    const bomb = `{${fields},"x":"${"a".repeat(8_000_000)}"}`;
    for (const [encoding, bytes] of [
      ["gzip", gzipSync(bomb)],
      ["br", brotliCompressSync(bomb)],
    ] as const)
      expect(told(await ask(port, "/v1/authentication", bytes, { headers: { ...v1(port).headers, "content-encoding": encoding } })), encoding).toBe(
        mount === "express behind a parser" ? "413 payload_too_large" : "400 bad_request",
      );
  });

  it("accepts a path in one spelling and with one method, and allows no other origin (docs/contract.md#routes)", async () => {
    const { port, sender } = await attacked({}, mount);
    const to = (path: string, method = "POST", more: Record<string, string> = {}) =>
      ask(port, path, method === "GET" || method === "OPTIONS" || method === "HEAD" ? undefined : `{${fields}}`, {
        method,
        headers: { ...v1(port).headers, ...more },
      });
    const name = "authentication";
    const paths = [
      `/v1//${name}`,
      `//v1/${name}`,
      `/V1/${name}`,
      "/v1/Authentication",
      "/v1/%61uthentication",
      `/v1/${name}%2f`,
      `/v1/check/../${name}`,
      `/v1/./${name}`,
    ];
    const more = [
      `/v1/check/%2e%2e/${name}`,
      `/v1/${name};a=b`,
      `/v1/${name}%00`,
      `/v1/${name}%0d%0aX:1`,
      `/v1%2f${name}`,
      `/v1\\${name}`,
      `/v1/${name}.json`,
      "/v1/%",
    ];
    for (const path of [...paths, ...more, "/v1/__proto__", "/v2/__proto__", "/hooks/__proto__", "/hooks/constructor", `/v1/${"a/".repeat(3000)}`])
      expect((await to(path)).status, path.slice(0, 40)).toBe(404);
    for (const method of ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "PROPFIND"])
      expect((await to("/v1/authentication", method, { "x-http-method-override": "POST" })).status, method).toBe(405);
    const preflight = await to("/v1/authentication", "OPTIONS", { origin: "https://evil.example", "access-control-request-method": "POST" });
    const simple = await to("/v1/check", "POST", { origin: "https://evil.example" });
    for (const { headers } of [preflight, simple]) expect(Object.keys(headers).filter((one) => one.startsWith("access-control"))).toEqual([]);
    expect(sender.messages).toEqual([]);
  });

  it("rejects conflicting length headers, and bodies that are too long or too slow (docs/contract.md#key-before-body)", async () => {
    const { port, sender, clock } = await attacked({}, mount);
    const body = `{${fields}}`;
    const head = (more: string, key = keyOf(mine)) =>
      `POST /v1/authentication HTTP/1.1\r\nHost: x\r\nconnection: close\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\n${more}\r\n\r\n`;
    const length = `content-length: ${body.length}`;
    const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    for (const [bytes, answer] of [
      [head(`${length}\r\ntransfer-encoding: chunked`) + chunked, 400],
      [head(`${length}\r\ncontent-length: 5`) + body, 400],
      [head("content-length: 10") + body + head(length) + body, 400],
      [head("transfer-encoding: chunked, identity") + chunked, 400],
    ] as const)
      expect(await raw(port, bytes)).toMatch(new RegExp(`^HTTP/1.1 ${answer} `));
    expect(sender.messages).toEqual([]);
    expect(await raw(port, head("transfer-encoding: chunked") + chunked)).toMatch(/^HTTP\/1.1 200 /);
    expect(sender.messages).toHaveLength(1);
    if (mount === "express behind a parser") return; // the parser reads first, and waits
    expect(await raw(port, head("content-length: 1000000000", "no-key"))).toMatch(/^HTTP\/1.1 403 /);
    expect(await raw(port, head("content-length: 1000000000"))).toMatch(/^HTTP\/1.1 413 /);
    let slow = "";
    void raw(port, `${head("content-length: 100")}{`, 20_000).then((text) => {
      slow = text;
    });
    for (let i = 0; i < 2000 && slow === ""; i++) {
      clock.advance(1001);
      await turns(4);
    }
    expect(slow).toMatch(/^HTTP\/1.1 408 /);
  });
});

describe("untrusted text", () => {
  it("fields reject control, bidirectional and invisible characters (docs/contract.md#device-fields)", async () => {
    const { port } = await attacked({ policy: { limits: { perCustomer: [] } } });
    for (const field of ["device_id", "device_model", "app_version", "os_version"])
      for (const text of [
        "a\r\nb",
        "\u001b[31m",
        "a\u0000",
        "\u202eb",
        "a\u200bb",
        "a\u2028b",
        "a\u0085b",
        "\u007f",
        "\ufeffa",
        "a\u{e0041}",
        "",
        "a".repeat(129),
      ])
        expect(told(await v1(port).create(number, { [field]: text })), `${field} ${inspect(text)}`).toBe(`400 invalid_${field}`);
    for (const key of ["", "é", "a\tb", "a".repeat(256)])
      expect(told(await v1(port).create(number, {}, { "idempotency-key": key })), inspect(key)).toBe("400 bad_request");
    for (const [field, text] of [
      ["channel", "__proto__"],
      ["channel", "constructor"],
      ["device_type", "constructor"],
      ["proof", { $gt: "" }],
    ] as const)
      expect(told(await v1(port).create(number, { [field]: text })), field).toBe("400 bad_request");
  });

  it("a locale such as `toString` or `__proto__` gets one of the configured texts (docs/contract.md#locale)", async () => {
    const { port, sender } = await attacked({ message: { text: { default: "Code {code}", fr: "Votre code {code}" } } });
    for (const [index, locale] of ["toString", "valueOf", "constructor", "__proto__", "hasOwnProperty", "fr\r\nx", "x".repeat(5000)].entries()) {
      await prelude(port).create(numberAt(index), { options: { locale } });
      await twilio(port).create(numberAt(100 + index), { Locale: locale });
    }
    for (const { text } of sender.messages) expect(text).toMatch(/^(Votre code|Code) \d{6}$/);
  });

  it("form fields that a parser turned into objects are never read as a code or a number (docs/contract.md#strict-types)", async () => {
    const { verifier, sender, clock } = target();
    const app = express();
    app.use(express.urlencoded({ extended: true }), express.json({ strict: false }), expressHandlers([verifier, twilioVerify(verifier)]));
    const server = createServer(app);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await verifier.close();
    });
    const { port } = server.address() as AddressInfo;
    const w = twilio(port);
    await w.create(number);
    const code = sender.messages[0]?.code ?? "";
    const to = `To=${encodeURIComponent(number)}`;
    const forms = [`${to}&Code[$ne]=1`, `${to}&Code=000000&Code=${code}`, `To[a]=${number}&Code=${code}`, `${to}&__proto__[Code]=${code}`];
    for (const form of [...forms, `${to}&constructor[prototype][Code]=${code}`, `${to}&Code[toString]=x`, `Code=${code}`, `To=&VerificationSid=&Code=${code}`])
      expect((await ask(port, `${w.root}/VerificationCheck`, form, { headers: w.headers })).status, form).toBe(400);
    for (const form of [`To=${number}&${to}&Channel=sms`, "To[a]=1&Channel=sms", `${to}&Channel[a]=sms`])
      expect((await ask(port, `${w.root}/Verifications`, form, { headers: w.headers })).status, form).toBe(400);
    for (const json of ['"x"', "[]", "null", "1"])
      expect(told(await ask(port, "/v1/check", json, { headers: v1(port).headers })), json).toBe("400 bad_request");
    clock.advance(60_000);
    expect(told(await w.check({ To: number, Code: code }))).toBe("200 approved");
  });

  it("a sender's reason puts no code and no number into log, events or explain, in any digits (docs/contract.md#logs)", async () => {
    const from = (zero: number) => (text: string) => text.replace(/\d/g, (one) => String.fromCharCode(zero + Number(one)));
    const [arabic, wide] = [from(0x660), from(0xff10)];
    const spelled = (text: string) => [`${text.slice(0, 3)} ${text.slice(3)}`, `${text.slice(0, 3)}-${text.slice(3)}`, `x${text}x`, [...text].join(" ")];
    const leaks: string[] = [];
    for (const end of ["rejected", "unknown", "thrown"] as const)
      for (let index = 0; ; index++) {
        const one = target();
        let words: readonly string[] = [];
        one.sender.answer = async ({ code }) => {
          words = [
            number,
            code,
            ...spelled(code),
            "06 20 00 00 01",
            "%2B33620000001",
            `${number}${code}`,
            arabic(code),
            wide(code),
            arabic(number),
            wide(number),
          ];
          const reason = `Invalid: ${words[index] ?? ""}`;
          if (end === "thrown") throw new Error(reason);
          return { outcome: end, reason };
        };
        const { authentication_uuid } = await one.verifier.createAuthentication({ customer_uuid: mine, phone_number: number });
        await turns();
        const seen = JSON.stringify([one.log, one.events, await one.verifier.explain({ customer_uuid: mine, authentication_uuid })]);
        await one.verifier.close();
        const word = words[index];
        if (word === undefined) break;
        if (seen.includes(word)) leaks.push(`${end} ${word}`);
      }
    expect(leaks).toEqual([]);
  });

  it("a receipt's error puts no code and no number into callbacks or events, in any digits (docs/contract.md#callback-body)", async () => {
    const source: NonNullable<VerifierOptions["receipts"]>["sources"][number] = {
      provider: "mine",
      read: async ({ body }) => ({ receipts: [{ status: "undeliverable", error: Buffer.from(body).toString() }], vouched: false }),
    };
    const { port, sender, verifier, events, hook } = await attacked({ receipts: { baseUrl: "https://otp.example", sources: [source] } });
    await v1(port).create(number, { callback_url: "https://receiver.example/x" });
    const [message] = sender.messages;
    const { pathname, search } = new URL((message?.receipt_url ?? "").replace("{provider}", "mine"));
    const code = message?.code ?? "";
    const arabic = (text: string) => text.replace(/\d/g, (one) => String.fromCharCode(0x660 + Number(one)));
    const words = [code, number.slice(1), arabic(code), arabic(number.slice(1))];
    expect((await ask(port, `${pathname}${search}`, `Invalid: ${words.join(" ")}`)).status).toBe(200);
    await verifier.flush();
    const seen = JSON.stringify([events, hook.posted.map(({ body }) => body)]);
    expect(hook.posted).not.toEqual([]);
    expect(words.filter((word) => seen.includes(word))).toEqual([]);
  });

  it("a sender's reason cannot move the cursor, set a color or begin a line in the output of `phoneproof why` (SECURITY.md#what-the-library-promises)", async () => {
    const folder = await mkdtemp(join(tmpdir(), "attacks-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const root = join(import.meta.dirname, "../..");
    const made: BuildOptions = {
      bundle: true,
      format: "esm",
      platform: "node",
      loader: { ".lua": "text" },
      plugins: [rawText()],
      banner: { js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);' },
      external: ["redis", "ioredis", "pg", "mongodb", "libsql", "better-sqlite3", "@upstash/redis"],
      logLevel: "error",
    };
    const [command, module] = [join(folder, "cli.mjs"), join(folder, "verifier.mjs")];
    const contents = `
      import { createVerifier } from "./src/index.js";
      import { memoryStore } from "./adapters/store/memory/index.js";
      const reason = "no\\u001b[31m\\u001b]0;title\\u0007\\r\\n  All is well.";
      const sender = { send: async () => ({ outcome: "rejected", reason }) };
      const logger = { info() {}, warn() {}, error() {} };
      const store = memoryStore({ name: "attacks" });
      store.inspect = undefined; // the command rejects a store that only its own process can read
      export const verifier = createVerifier({ store, sender, logger, secret: "${secret}", countries: ["FR"], callbacks: { worker: false } });
      await verifier.createAuthentication({ phone_number: "${number}" });`;
    await build({ ...made, entryPoints: [join(root, "src/cli/cli.ts")], outfile: command });
    await build({ ...made, stdin: { contents, resolveDir: root, loader: "ts" }, outfile: module });
    const { stdout } = await promisify(execFile)(process.execPath, [command, "why", number, module]);
    expect(stdout).toContain("the carrier rejected it");
    expect([...stdout].filter((one) => one !== "\n" && /\p{Cc}/u.test(one)).map((one) => inspect(one))).toEqual([]);
    expect(stdout).not.toMatch(/^ *All is well/m);
  });
});

describe("callbacks", () => {
  it("a callback_url outside the public internet is rejected in every spelling (docs/contract.md#callback-url)", async () => {
    const { port, sender } = await attacked({ callbacks: { allowOrigins: ["https://hook.example.com"] }, policy: { limits: { perCustomer: [] } } });
    const hosts = [
      "127.0.0.1",
      "127.1",
      "2130706433",
      "0x7f000001",
      "0177.0.0.1",
      "0x7f.1",
      "127.0.0.1.",
      "0",
      "0.0.0.0",
      "10.0.0.1",
      "172.16.0.1",
      "192.168.1.1",
    ];
    const more = [
      "169.254.169.254",
      "100.64.0.1",
      "198.18.0.1",
      "192.0.2.1",
      "224.0.0.1",
      "240.0.0.1",
      "255.255.255.255",
      "localhost",
      "localhost.",
      "a.localhost",
    ];
    const six = [
      "::1",
      "::",
      "::ffff:127.0.0.1",
      "::ffff:7f00:1",
      "::127.0.0.1",
      "64:ff9b::7f00:1",
      "64:ff9b:1::7f00:1",
      "2002:7f00:1::",
      "2001::7f00:1",
      "fc00::1",
      "fe80::1",
    ];
    const odd = ["１２７.0.0.1", "①②⑦.0.0.1", "127。0。0。1", "ｌｏｃａｌｈｏｓｔ", "%31%32%37.0.0.1", "printer.local", "metadata.google.internal", "intranet"];
    const urls = [...hosts, ...more, ...six.map((one) => `[${one}]`), ...odd].map((one) => `https://${one}/`);
    const forms = [
      "http://example.com/",
      "https://example.com:22/",
      "https://u@example.com/",
      "https://u:p@example.com/",
      "https://example.com/#x",
      "//example.com/",
    ];
    const traps = [
      "https://hook.example.com@127.0.0.1/",
      "http://hook.example.com/",
      "javascript:alert(1)",
      "file:///etc/passwd",
      `https://example.com/${"a".repeat(2029)}`,
    ];
    for (const callback_url of [...urls, ...forms, ...traps])
      expect(told(await v1(port).create(number, { callback_url })), callback_url.slice(0, 60)).toBe("400 bad_request");
    expect(sender.messages).toEqual([]);
  });

  it("a receiver that redirects, floods or responds with nonsense is a failure, and the same flush delivers another customer's callback (docs/contract.md#callback-answers)", async () => {
    const flood = (socket: Socket, ...parts: readonly (string | Buffer)[]) => {
      const go = () => {
        while (!socket.destroyed && parts.every((part) => socket.write(part)));
        if (!socket.destroyed) socket.once("drain", go);
      };
      go();
    };
    let reached = 0;
    const empty = "content-length: 0\r\n\r\n";
    const answers: Record<string, (socket: Socket, origin: string) => void> = {
      redirect: (socket, origin) => socket.end(`HTTP/1.1 307 x\r\nlocation: ${origin}/inner\r\n${empty}`),
      headers: (socket) => {
        socket.write("HTTP/1.1 200 OK\r\n");
        flood(socket, `x-a: ${"b".repeat(1000)}\r\n`);
      },
      switching: (socket) => socket.end("HTTP/1.1 101 x\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxx"),
      odd: (socket) => socket.end(`HTTP/1.1 999 x\r\n${empty}`),
      wait: (socket) => socket.end(`HTTP/1.1 503 x\r\nretry-after: ${"9".repeat(400)}\r\n${empty}`),
      junk: (socket) => socket.end("<html>"),
      fine: (socket) => socket.end(`HTTP/1.1 200 OK\r\n${empty}`),
    };
    const server = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", (bytes) => {
        const [, path = ""] = /^POST \/(\w*)/.exec(bytes.toString()) ?? [];
        if (path === "inner") reached++;
        answers[path]?.(socket, origin);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    onTestFinished(() => void server.close());
    const { verifier } = await attacked({ callbacks: { sender: undefined, allowOrigins: [origin] } });
    const create = (customer_uuid: string, index: number, path: string) =>
      verifier.createAuthentication({ customer_uuid, phone_number: numberAt(index), callback_url: `${origin}/${path}` });
    for (const [index, path] of Object.keys(answers).entries()) {
      if (path === "fine") continue;
      await create(mine, index, path);
      await create(theirs, index, "fine");
      expect(await verifier.flush(), path).toEqual({ delivered: 1, failed: 1, dead: 0 });
    }
    expect(reached).toBe(0);
  });
});

describe("receipts and hooks", () => {
  it("a reference with one changed letter is rejected without a store call (docs/contract.md#receipt-reference)", async () => {
    const { port, sender, store, events } = await attacked({ receipts }, "express");
    await v1(port).create(number, { callback_url: "https://receiver.example/x" });
    await v1(port, theirs).create(number, { callback_url: "https://receiver.example/y" });
    const [message] = sender.messages;
    const reference = message?.receipt_reference ?? "";
    const { pathname, search } = new URL((message?.receipt_url ?? "").replace("{provider}", "mine"));
    const before = store.calls.length;
    const changed = [...reference].map((one, i) => `${reference.slice(0, i)}${one === "A" ? "B" : "A"}${reference.slice(i + 1)}`);
    for (const one of [...changed, reference.slice(0, -1), `${reference}A`, `${reference}=`, reference.toLowerCase(), "", "__proto__"])
      expect((await ask(port, `${pathname}${search.replace(reference, one)}`, "undeliverable")).status, one).toBe(403);
    for (const path of ["/receipts/__proto__", "/receipts/constructor", "/receipts/MINE", "/receipts/%6dine", "/receipts/mine%00"])
      expect((await ask(port, `${path}${search}`, "undeliverable")).status, path).toBe(404);
    expect(store.calls).toHaveLength(before);
    for (const status of ["delivered", "delivered", "undeliverable"]) expect((await ask(port, `${pathname}${search}`, status)).status).toBe(200);
    const reported = events.flatMap((event) => (event.type === "receipt" ? [`${event.customer_uuid} ${event.status}`] : []));
    expect(reported).toEqual([`${mine} delivered`]);
  });

  it("a hook accepts only its own secret, and handles a signed request once (docs/behind/index.md#rules-of-all-hooks)", async () => {
    const { port, clock, sender } = await attacked({}, "fastify");
    const json = { "content-type": "application/json" };
    const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
    const wrong = [
      undefined,
      "",
      "Bearer ",
      `Bearer ${hookToken.slice(0, -1)}`,
      `Bearer ${hookToken}x`,
      `Bearer Bearer ${hookToken}`,
      basic(`${hookToken}:x`),
      keyOf(mine),
    ];
    for (const authorization of wrong) {
      const headers = { ...json, ...(authorization !== undefined && { authorization }) };
      for (const path of ["/hooks/generic", "/hooks/generic/confirmed", "/hooks/supabase", "/hooks/supabase/confirmed"])
        expect((await ask(port, path, { to: number, code: "482913" }, { headers })).status, `${path} ${authorization}`).toBe(401);
    }
    const sign = (body: string, at = clock.now(), key = hookKey) => {
      const timestamp = String(Math.floor(at / 1000));
      const mac = createHmac("sha256", key).update(`m1.${timestamp}.${body}`).digest("base64");
      return { ...json, "webhook-id": "m1", "webhook-timestamp": timestamp, "webhook-signature": `v1,${mac}` };
    };
    const body = (code: string, uuid: string) => JSON.stringify({ user: { id: "u" }, sms: { otp: code, phone: number.slice(1) }, metadata: { uuid } });
    const [one, two] = [body("111222", "u1"), body("333444", "u2")];
    const signed = sign(one);
    const post = async (text: string, headers: Record<string, string>) => (await ask(port, "/hooks/supabase", text, { headers })).status;
    expect(await post(one, signed)).toBe(200);
    for (const bad of [sign(two, clock.now() - 301_000), sign(two, clock.now() + 301_000), sign(two, clock.now(), Buffer.alloc(32, 8)), signed])
      expect(await post(two, bad)).toBe(401);
    for (const cut of ["v1,", signed["webhook-signature"].slice(0, 20)]) expect(await post(one, { ...signed, "webhook-signature": cut })).toBe(401);
    clock.advance(60_000);
    expect(await post(two, sign(two))).toBe(200);
    for (const wait of [0, 60_000, 100_000]) {
      clock.advance(wait);
      expect(await post(one, signed)).toBe(200);
    }
    expect(sender.messages.map(({ code }) => code)).toEqual(["111222", "333444"]);
  });
});
