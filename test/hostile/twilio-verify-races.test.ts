import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { HttpResponse } from "../../src/http/message.js";
import type { Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/index.js";
import { twilioVerify } from "../../src/wires/twilio-verify/index.js";
import { redisIsInstalled, startRedis } from "../support/redis.js";
import { newFolder } from "../support/sqlite.js";
import { numberOf, start } from "../support/verifier.js";
import { losingProxy } from "../wires/listen.js";
import { drive, type Fate, fates, pass, rigged, sender, service, tallied } from "./kit.js";
import {
  type Answer,
  basic,
  Checked,
  callerOf,
  codeOf,
  failed,
  outcome,
  type Service,
  type ServiceOptions,
  serve,
  to,
  Verification,
} from "./twilio-verify-kit.js";

const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const all = async (answers: readonly Promise<Answer>[]): Promise<Record<string, number>> => tallied((await Promise.all(answers)).map(outcome));
const cooldowns = [30_000, 60_000, 90_000, 120_000];

/** How to open each store, with one handle or connection for each process. */
const stores: readonly (readonly [name: string, present: boolean, open: () => Promise<() => Store>])[] = [
  [
    "memory",
    true,
    async () => {
      const store = memoryStore({ name: randomUUID() });
      return () => store;
    },
  ],
  [
    "SQLite",
    true,
    async () => {
      const { file, remove } = newFolder();
      onTestFinished(remove);
      return () => sqliteStore({ file });
    },
  ],
  [
    "Redis",
    redisIsInstalled("the Twilio Verify wire on Redis"),
    async () => {
      const redis = await startRedis();
      onTestFinished(() => redis.stop());
      return () => {
        const client = new Redis(redis.url);
        onTestFinished(() => client.disconnect());
        return redisStore({ client });
      };
    },
  ],
];

describe.each(stores)("four processes on one store, %s", (_, present, open) => {
  const processes = async (options: ServiceOptions = {}): Promise<(i: number) => Service> => {
    const next = await open();
    const shared = { clock: fixedClock(start), sender: sender(), ...options.verifier };
    const customer = randomUUID();
    const set: Service[] = [];
    for (let i = 0; i < 4; i++) set.push(await serve({ customer, ...options, verifier: { ...shared, store: next() } }));
    return (i) => set[i % 4] as Service;
  };

  it.runIf(present)("100 concurrent starts send one message; the others get 429 60212 and change nothing (docs/contract.md#start)", async () => {
    const at = await processes();
    expect(await all(times(100, (i) => at(i).begin()))).toEqual({ "201 pending": 1, "429 60212": 99 });
    expect(at(0).box.messages).toHaveLength(1);
    expect(outcome(await at(1).check(to, codeOf(at(0).box)))).toBe("200 approved");
  });

  it.runIf(present)(
    "100 concurrent right checks, by number and by SID: one is approved, the others get 404 20404 (docs/contract.md#already-validated)",
    async () => {
      const at = await processes();
      const { sid } = (await at(0).begin()).json as { sid: string };
      const code = codeOf(at(0).box);
      expect(await all(times(100, (i) => at(i).check(i % 3 ? to : sid, code)))).toEqual({ "200 approved": 1, "404 20404": 99 });
      for (const name of [sid, to]) expect(outcome(await at(2).fetch(name))).toBe("404 20404");
    },
  );

  it.runIf(present)("100 concurrent wrong checks: five are pending, the others and the right code get 429 60202 (docs/contract.md#checks)", async () => {
    const at = await processes();
    const { sid } = (await at(0).begin()).json as { sid: string };
    const code = at(0).wrong();
    expect(await all(times(100, (i) => at(i).check(i % 2 ? to : sid, code)))).toEqual({ "200 pending": 5, "429 60202": 95 });
    for (const by of [to, sid]) expect(outcome(await at(3).check(by, codeOf(at(0).box)))).toBe("429 60202");
    expect(outcome(await at(1).fetch(sid))).toBe("200 max_attempts_reached");
    expect(outcome(await at(1).begin())).toBe("429 60203");
  });

  it.runIf(present)("a check that races a cancel is approved before it, or not at all (docs/contract.md#cancel)", async () => {
    const at = await processes();
    for (let i = 1; i <= 5; i++) {
      const number = numberOf(i);
      const { sid } = (await at(i).begin(number)).json as { sid: string };
      const code = codeOf(at(0).box, number);
      const ends = await all(times(8, (n) => (n % 2 ? at(n).check(number, code) : at(n).cancel(n % 4 ? sid : number))));
      const { "200 approved": approved = 0, "200 canceled": canceled = 0 } = ends;
      expect([approved, canceled > 0], JSON.stringify(ends)).toEqual(approved ? [1, false] : [0, true]);
      expect(outcome(await at(i).check(number, code))).toBe("404 20404");
    }
  });

  it.runIf(present)(
    "starts racing cancels send no more than one message for each verification, and none without a 201 (docs/contract.md#one-loop)",
    async () => {
      const at = await processes();
      const ends = await Promise.all(times(60, (i) => (i % 3 === 2 ? at(i).cancel(to) : at(i).begin())));
      for (const end of ends) expect(["201 pending", "200 canceled", "404 20404", "429 60212", "429 60203", "503 20503"]).toContain(outcome(end));
      const begun = ends.filter(({ status }) => status === 201);
      expect(at(0).box.messages).toHaveLength(begun.length);
      expect(begun.length).toBeLessThanOrEqual(5);
      expect(new Set(begun.map(({ json }) => json["sid"])).size).toBe(begun.length);
    },
  );

  it.runIf(present)("each process continues what another began: fetch, resend, check, cancel, with one SID (docs/contract.md#slot)", async () => {
    const at = await processes();
    const { sid, date_created } = (await at(0).begin()).json as { sid: string; date_created: string };
    expect(outcome(await at(1).begin())).toBe("429 60212");
    at(0).clock.advance(30_000);
    const again = await at(2).begin();
    expect([again.status, again.json["sid"], again.json["date_created"]]).toEqual([201, sid, date_created]);
    expect((await at(3).fetch(to)).json["send_code_attempts"]).toHaveLength(2);
    expect(outcome(await at(3).cancel(sid))).toBe("200 canceled");
    expect(outcome(await at(0).check(to, codeOf(at(0).box)))).toBe("404 20404");
    expect(outcome(await at(1).fetch(sid))).toBe("200 canceled");
  });
});

describe("guesses", () => {
  it("by number, by SID, across new starts and cancels: no more than 50 a day are evaluated (docs/contract.md#guesses-claimed)", async () => {
    const { begin, check, cancel, fetch, clock, box, wrong } = await serve();
    let evaluated = 0;
    let used = 0;
    for (let minute = 0; minute < 23 * 60; minute += 11) {
      const { json } = await begin();
      for (let i = 0; i < 7; i++) {
        const answer = await check(i % 2 && json["sid"] ? String(json["sid"]) : to, wrong());
        if (outcome(answer) === "200 pending") evaluated++;
        else expect(["404 20404", "429 60202"]).toContain(outcome(answer));
        if (outcome(answer) === "429 60202") used++;
        await fetch(to);
        if (i === 5 && minute % 2) await cancel(to);
      }
      clock.advance(11 * 60_000);
    }
    expect(box.messages).toHaveLength(10);
    expect(evaluated).toBe(50);
    expect(used).toBeGreaterThan(0);
  });

  it("when used up, checks give 60202 and starts 60203 until the verification is canceled or expires (docs/contract.md#guesses-claimed)", async () => {
    const { begin, check, cancel, clock, box, wrong } = await serve();
    const first = (await begin()).json as { sid: string };
    for (let i = 0; i < 5; i++) expect(outcome(await check(i % 2 ? to : first.sid, wrong()))).toBe("200 pending");
    for (const wait of [0, 30_000, 60_000, 300_000, 209_999]) {
      clock.advance(wait);
      const again = await begin();
      expect([again.status, failed(again, "start")]).toEqual([429, 60203]);
      for (const by of [to, first.sid]) expect(outcome(await check(by, codeOf(box)))).toBe("429 60202");
    }
    expect(box.messages).toHaveLength(1);
    clock.advance(1);
    for (const by of [to, first.sid]) expect(outcome(await check(by, codeOf(box)))).toBe("404 20404");
    const second = (await begin()).json as { sid: string };
    expect(second.sid).not.toBe(first.sid);
    for (let i = 0; i < 5; i++) expect(outcome(await check(to, wrong()))).toBe("200 pending");
    expect(outcome(await cancel(second.sid))).toBe("200 canceled");
    const third = await begin();
    expect(third.status).toBe(201);
    expect(outcome(await check(second.sid, codeOf(box)))).toBe("404 20404");
    expect(outcome(await check(String(third.json["sid"]), codeOf(box)))).toBe("200 approved");
  });

  it("a code belongs to its number: the codes of a hundred others approve nothing", async () => {
    const { begin, check, box } = await serve();
    await Promise.all(times(100, (i) => begin(numberOf(i + 1))));
    const own = codeOf(box);
    const others = [...new Set(box.messages.map(({ code }) => code))].filter((code) => code !== own);
    const ends = await all(others.map((code) => check(to, code)));
    expect(ends).toEqual({ "200 pending": 5, "429 60202": others.length - 5 });
  });
});

describe("time", () => {
  it("a verification expires after exactly 600 s, and a resend does not extend it (docs/contract.md#lifetime)", async () => {
    for (const [early, ended] of [
      [599_999, false],
      [600_000, true],
    ] as const) {
      const { begin, check, fetch, cancel, clock, box } = await serve();
      const { sid } = (await begin()).json as { sid: string };
      clock.advance(30_000);
      expect((await begin()).status).toBe(201);
      clock.advance(early - 30_000);
      for (const name of [sid, to]) expect(outcome(await fetch(name))).toBe(ended ? "404 20404" : "200 pending");
      if (ended) for (const name of [sid, to]) expect(outcome(await cancel(name))).toBe("404 20404");
      expect(outcome(await check(to, codeOf(box)))).toBe(ended ? "404 20404" : "200 approved");
      const next = await begin();
      expect([next.status, next.json["sid"] === sid]).toEqual([201, false]);
    }
  });

  it("the cool-downs are exactly 30, 60, 90 and 120 s, then 60203; all attempts have the vendor's format (docs/contract.md#retries)", async () => {
    const { begin, clock, box, fetch } = await serve();
    const first = Verification.parse((await begin()).json);
    for (const [i, wait] of cooldowns.entries()) {
      clock.advance(wait - 1);
      const early = await begin();
      expect([early.status, failed(early, String(wait))]).toEqual([429, 60212]);
      clock.advance(1);
      const again = Verification.parse((await begin()).json);
      expect([again.sid, again.date_created]).toEqual([first.sid, first.date_created]);
      expect(again.send_code_attempts).toHaveLength(Math.min(i + 2, 4));
      expect(again.send_code_attempts[0]).toEqual(first.send_code_attempts[0]);
      expect(again.send_code_attempts.at(-1)?.time).toBe(new Date(clock.now()).toISOString());
      expect(new Set(again.send_code_attempts.map(({ attempt_sid }) => attempt_sid)).size).toBe(again.send_code_attempts.length);
    }
    clock.advance(150_000);
    const last = await begin();
    expect([last.status, failed(last, "sixth")]).toEqual([429, 60203]);
    expect(box.messages).toHaveLength(5);
    expect(Verification.parse((await fetch(to)).json).status).toBe("pending");
  });

  it("responses have the vendor's exact fields and dates without a fraction, and contain no code", async () => {
    const { begin, check, fetch, cancel, clock, box, wrong } = await serve({ verifier: { clock: fixedClock(start + 789) } });
    const texts: string[] = [];
    const seen = (answer: Answer) => {
      texts.push(answer.text);
      return answer.json;
    };
    const begun = Verification.parse(seen(await begin()));
    expect(begun.date_created).toBe("2026-03-01T12:00:00Z");
    clock.advance(31_000);
    Verification.parse(seen(await begin()));
    for (const name of [begun.sid, to, to.replace("+", "%2B")]) expect(Verification.parse(seen(await fetch(name))).sid).toBe(begun.sid);
    expect(Checked.parse(seen(await check(to, wrong()))).valid).toBe(false);
    expect(Checked.parse(seen(await check(begun.sid, codeOf(box)))).to).toBe(to);
    for (const answer of [await fetch(begun.sid), await fetch(to), await check(to, codeOf(box)), await cancel(to), await cancel(begun.sid)]) {
      seen(answer);
      expect([answer.status, failed(answer, "approved")]).toEqual([404, 20404]);
    }
    const next = Verification.parse(seen(await begin(numberOf(2))));
    const canceled = Verification.parse(seen(await cancel(numberOf(2))));
    expect([canceled.sid, canceled.status]).toEqual([next.sid, "canceled"]);
    expect(outcome(await check(numberOf(2), codeOf(box, numberOf(2))))).toBe("404 20404");
    expect(outcome(await fetch(numberOf(2)))).toBe("404 20404");
    const later = await fetch(next.sid);
    expect([later.status, later.json["status"]]).toEqual([200, "canceled"]);
    expect(later.text).not.toContain(numberOf(2));
    for (const { code } of box.messages) for (const text of texts) expect(text).not.toContain(`"${code}"`);
  });
});

describe("the twilio client", () => {
  it("with autoRetry repeats each 429, which sends, counts and delays nothing (docs/contract.md#refusal-consumes-nothing)", async () => {
    const { client, begin, clock, box, seen, wrong } = await serve();
    const verify = client({ autoRetry: true, maxRetries: 3, maxRetryDelay: 10 });
    await begin();
    const before = seen.length;
    for (let i = 0; i < 3; i++) await expect(verify.verifications.create({ to, channel: "sms" })).rejects.toMatchObject({ status: 429, code: 60212 });
    expect(seen.length - before).toBe(12);
    clock.advance(30_000);
    expect((await verify.verifications.create({ to, channel: "sms" })).sendCodeAttempts).toHaveLength(2);
    for (let i = 0; i < 5; i++) expect((await verify.verificationChecks.create({ to, code: wrong() })).status).toBe("pending");
    await expect(verify.verificationChecks.create({ to, code: codeOf(box) })).rejects.toMatchObject({ status: 429, code: 60202 });
    await expect(verify.verifications.create({ to, channel: "sms" })).rejects.toMatchObject({ status: 429, code: 60203 });
    expect(box.messages).toHaveLength(2);
  });

  it("throws RestException with code, status and moreInfo, and parses dates", async () => {
    const { client } = await serve();
    const verify = client();
    const begun = await verify.verifications.create({ to, channel: "sms" });
    expect([begun.dateCreated, begun.dateUpdated]).toEqual([new Date(start), new Date(start)]);
    const error = await verify.verificationChecks.create({ to: numberOf(2), code: "123456" }).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 404, code: 20404, moreInfo: "https://www.twilio.com/docs/errors/20404" });
    expect((error as Error).constructor.name).toBe("RestException");
  });
});

describe("responses lost on the way to the client", () => {
  it("a repeated start sends one message, and so does a repeated resend; the verification can be continued", async () => {
    const { client, url, clock, box, seen } = await serve();
    const proxy = await losingProxy(url);
    const verify = client({}, proxy.url);
    for (let sent = 1; sent <= 2; sent++) {
      proxy.drop(1);
      await expect(verify.verifications.create({ to, channel: "sms" })).rejects.toThrow();
      await expect(verify.verifications.create({ to, channel: "sms" })).rejects.toMatchObject({ code: 60212 });
      expect(box.messages).toHaveLength(sent);
      expect((await verify.verifications(to).fetch()).status).toBe("pending");
      clock.advance(30_000);
    }
    expect((await verify.verificationChecks.create({ to, code: codeOf(box) })).status).toBe("approved");
    expect(seen.length).toBeGreaterThan(6);
  });

  it("a repeated right check gives 404 20404 without a key, and is approved again with its key (docs/contract.md#idempotency)", async () => {
    const { ask, begin, check, box } = await serve();
    await begin();
    const form = { To: to, Code: codeOf(box) };
    const key = { "idempotency-key": "check-1" };
    expect(outcome(await ask("POST", "/VerificationCheck", form, key))).toBe("200 approved");
    const again = await ask("POST", "/VerificationCheck", form, key);
    expect([outcome(again), Checked.parse(again.json).valid]).toEqual(["200 approved", true]);
    expect(outcome(await check(to, codeOf(box)))).toBe("404 20404");
    expect(outcome(await ask("POST", "/VerificationCheck", form, { "idempotency-key": "check-2" }))).toBe("404 20404");
    const other = await ask("POST", "/VerificationCheck", { To: numberOf(2), Code: codeOf(box) }, key);
    expect(other.json["status"]).not.toBe("approved");
  });

  it("a start with a key sends one message however often it is repeated, at once or later; another body gives 400", async () => {
    const { ask, clock, box } = await serve();
    const form = { To: to, Channel: "sms" };
    const key = { "idempotency-key": "start-1" };
    const ends = await Promise.all(times(20, () => ask("POST", "/Verifications", form, key)));
    expect(tallied(ends.map(outcome))).toEqual({ "201 pending": 20 });
    expect(new Set(ends.map(({ json }) => json["sid"])).size).toBe(1);
    clock.advance(120_000);
    expect(outcome(await ask("POST", "/Verifications", form, key))).toBe("201 pending");
    expect(box.messages).toHaveLength(1);
    const odd = await ask("POST", "/Verifications", { ...form, DeviceIp: "192.0.2.7" }, key);
    expect([odd.status, failed(odd, "another body")]).toEqual([400, 60200]);
    for (const name of ["", " ", "k".repeat(256), "é"]) {
      const answer = await ask("POST", "/Verifications", { ...form, To: numberOf(2) }, { "idempotency-key": name });
      if (answer.status !== 201) expect([answer.status, failed(answer, name)]).toEqual([400, 60200]);
    }
    expect(box.messages.filter((one) => one.to === to)).toHaveLength(1);
  });
});

/** The wire in this process, on a clock that advances while a call waits. */
function inside() {
  const store = rigged(memoryStore({ name: randomUUID() }));
  const one = service({ store, policy: {} });
  const { accountSid, serviceSid, token } = callerOf(one.customer, `pp_${one.customer}`);
  const { handle } = twilioVerify(one.verifier);
  const headers: Record<string, string> = { authorization: basic(accountSid, token), "content-type": "application/x-www-form-urlencoded" };
  const ask = async (path: string, form: Record<string, string>): Promise<string> => {
    const text = new URLSearchParams(form).toString();
    const request = {
      method: "POST",
      path: `/v2/Services/${serviceSid}${path}`,
      header: (name: string) => headers[name],
      body: async () => ({ kind: "text" as const, text }),
    };
    const { status, body }: HttpResponse = await drive(one.clock, handle(request));
    const json = JSON.parse(body) as Record<string, unknown>;
    expect(body).not.toMatch(/connection|refused"|reset/i);
    return `${status} ${json["code"] ?? json["status"]}`;
  };
  return {
    ...one,
    store,
    begin: () => ask("/Verifications", { To: to, Channel: "sms" }),
    check: (Code: string) => ask("/VerificationCheck", { To: to, Code }),
    cancel: () => ask(`/Verifications/${to}`, { Status: "canceled" }),
    /** The next `nth` call of the store, and all that follow it if `onwards`, meet this fate. */
    rig(fate: Fate, nth: number, onwards: boolean) {
      let count = 0;
      store.fate = () => {
        count++;
        return count === nth || (onwards && count > nth) ? fate : "done";
      };
    },
    async heal() {
      store.fate = () => "done";
      await store.release();
      await pass(one.clock, 60_000);
    },
  };
}

describe.each(fates)("a store whose calls are %s", (fate) => {
  it.each([1, 2, 3])(
    "at call %i, or from there on: 503 20503 or the result, no message without a 201, and all works afterwards (docs/contract.md#lost-write)",
    async (nth) => {
      for (const onwards of [false, true]) {
        const name = `${fate} ${nth} ${onwards}`;
        const one = inside();
        one.rig(fate, nth, onwards);
        const begun = await one.begin();
        expect(["201 pending", "503 20503"], name).toContain(begun);
        expect(one.sender.messages.length, name).toBe(begun === "201 pending" ? 1 : 0);
        await one.heal();
        if (begun !== "201 pending") expect(await one.begin(), name).toBe("201 pending");
        const code = codeOf(one.sender);
        one.rig(fate, nth, onwards);
        const wrong = await one.check(code === "000000" ? "111111" : "000000");
        expect(["200 pending", "503 20503"], name).toContain(wrong);
        await one.heal();
        one.rig(fate, nth, onwards);
        const ends = [await one.check(code)];
        await one.heal();
        ends.push(await one.check(code));
        expect(ends.filter((end) => end === "200 approved").length, `${name} ${ends}`).toBeLessThanOrEqual(1);
        if (!ends.includes("200 approved")) expect(ends, name).toEqual(["503 20503", "404 20404"]);
        expect(one.sender.messages, name).toHaveLength(1);
      }
    },
  );

  it("at a cancel: 503 20503 or canceled; after a repeat, the code no longer works (docs/contract.md#cancel)", async () => {
    for (const nth of [1, 2]) {
      const one = inside();
      await one.begin();
      one.rig(fate, nth, true);
      expect(["200 canceled", "503 20503"]).toContain(await one.cancel());
      await one.heal();
      expect(["200 canceled", "404 20404"]).toContain(await one.cancel());
      expect(await one.check(codeOf(one.sender))).toBe("404 20404");
    }
  });
});

describe("carriers", () => {
  it.each([
    ["never answers", () => new Promise<never>(() => {})],
    ["throws", () => Promise.reject(new Error("hunter2"))],
    ["does not know", async () => ({ outcome: "unknown" as const })],
  ])("one that %s: 201, and the sent code works (docs/contract.md#send-outcome)", async (_, answer) => {
    const one = inside();
    one.sender.answer = answer as never;
    expect(await one.begin()).toBe("201 pending");
    expect(await one.begin()).toBe("429 60212");
    expect(await one.check(codeOf(one.sender))).toBe("200 approved");
    expect(one.sender.messages).toHaveLength(1);
  });

  it("one that rejects: 201 pending, a check is pending or 404, and a later start sends again (docs/contract.md#every-route-rejects)", async () => {
    const one = inside();
    one.sender.answer = async () => ({ outcome: "rejected" });
    expect(await one.begin()).toBe("201 pending");
    expect(["200 pending", "404 20404"]).toContain(await one.check(codeOf(one.sender)));
    one.sender.answer = async () => ({ outcome: "accepted" });
    await pass(one.clock, 31_000);
    expect(await one.begin()).toBe("201 pending");
    expect(await one.check(codeOf(one.sender))).toBe("200 approved");
  });

  it("one that hangs for 200 numbers: 201 for each, and other numbers and checks work in the meantime", async () => {
    const { begin, check, fetch, box, clock } = await serve();
    const hung: (() => void)[] = [];
    box.answer = ({ to: number }) =>
      number === to ? Promise.resolve({ outcome: "accepted" }) : new Promise((done) => hung.push(() => done({ outcome: "accepted" })));
    const waiting = times(200, (i) => begin(numberOf(i + 2)));
    await expect.poll(() => box.messages.length).toBe(200);
    expect(outcome(await begin())).toBe("201 pending");
    expect(outcome(await check(to, codeOf(box)))).toBe("200 approved");
    expect(outcome(await check(numberOf(2), codeOf(box, numberOf(2))))).toBe("200 approved");
    expect(outcome(await fetch(numberOf(3)))).toBe("200 pending");
    clock.advance(5_000);
    expect(await all(waiting)).toEqual({ "201 pending": 200 });
    for (const one of hung) one();
    expect(box.messages).toHaveLength(201);
  });
});

it("an unavailable store: 503 20503 with Retry-After for every call, and nothing internal in it; afterwards all works (docs/contract.md#fail-closed)", async () => {
  const store = rigged(memoryStore({ name: randomUUID() }));
  const { begin, check, fetch, cancel, box } = await serve({ verifier: { store } });
  const { sid } = (await begin()).json as { sid: string };
  store.fate = () => "refused";
  for (const answer of [
    await begin(numberOf(2)),
    await begin(),
    await check(to, "123456"),
    await check(sid, "123456"),
    await fetch(sid),
    await fetch(to),
    await cancel(sid),
  ]) {
    expect([answer.status, failed(answer, answer.text), answer.headers["retry-after"]]).toEqual([503, 20503, "2"]);
    expect(answer.text).not.toMatch(/connection|refused/);
  }
  store.fate = () => "done";
  expect(box.messages).toHaveLength(1);
  expect(outcome(await begin(numberOf(2)))).toBe("201 pending");
  expect(outcome(await check(to, codeOf(box)))).toBe("200 approved");
});
