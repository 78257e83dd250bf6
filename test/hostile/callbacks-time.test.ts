import { describe, expect, it } from "vitest";
import type { CallbackResponse } from "../../src/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore } from "../store/plain-store.js";
import { start } from "../support/verifier.js";
import { callbackUrl, drive, ending, ForgetfulStore, hook, pass, postReceipt, receipts, rigged, type Service, service, turns } from "./kit.js";

const minutes = 60_000;
const hours = 3_600_000;
/** "The delays between attempts are 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h" */
const ladder = [5_000, 5 * minutes, 30 * minutes, 2 * hours, 5 * hours, 10 * hours, 14 * hours, 20 * hours, 24 * hours];
const days = (count: number) => count * 24 * hours;

/** Advances the clock in steps that suit the delays, and returns when each post was made, in ms after the first. */
async function posts(one: Service, most: number, until: () => boolean = () => false): Promise<number[]> {
  const at: number[] = [];
  const seen = () => {
    while (at.length < one.hook.posted.length) at.push(one.clock.now());
  };
  const end = one.clock.now() + most;
  while (one.clock.now() < end && !until()) {
    await drive(one.clock, one.verifier.flush(), 10);
    seen();
    const since = at.length === 0 ? 0 : one.clock.now() - (at.at(-1) as number);
    one.clock.advance(since < minutes ? 500 : since < hours ? 15_000 : 5 * minutes);
  }
  return at.map((time) => time - (at[0] as number));
}

async function withEvent(answer: () => Promise<CallbackResponse>): Promise<Service & { id: string }> {
  const clock = fixedClock(start);
  const one = service({ clock, store: new ForgetfulStore(clock.now) });
  one.hook.answer = answer;
  const { authentication_uuid: id } = await one.create(1, { callback_url: callbackUrl });
  await turns();
  return { ...one, id };
}

describe("the attempts of a callback", () => {
  it.each<[string, () => Promise<CallbackResponse>]>([
    ["500", async () => ({ status: 500 })],
    ["302", async () => ({ status: 302 })],
    ["no connection", async () => ({ failed: "refused" })],
    ["a sender that throws", () => Promise.reject(new Error("broken"))],
    ["a sender that answers nonsense", async () => undefined as never],
    ["503 without Retry-After", async () => ({ status: 503 })],
    ["503 with Retry-After: 0", async () => ({ status: 503, retryAfter: 0 })],
    ["503 with a negative Retry-After", async () => ({ status: 503, retryAfter: -5_000 })],
    ["503 with Retry-After that is no number", async () => ({ status: 503, retryAfter: Number.NaN })],
    ["503 with Retry-After: 2", async () => ({ status: 503, retryAfter: 2_000 })],
    ["429 with Retry-After: 2", async () => ({ status: 429, retryAfter: 2_000 })],
  ])("after %s, follow all delays for three days, and the event becomes a dead letter", async (_, answer) => {
    const one = await withEvent(answer);
    const at = await posts(one, days(5), () => one.hook.posted.length > 20);
    expect(at.length).toBe(ladder.length + 1);
    for (const [i, rung] of ladder.entries()) {
      const waited = (at[i + 1] as number) - (at[i] as number);
      // "with jitter"
      expect(waited, `rung ${i + 1}`).toBeGreaterThanOrEqual(rung * 0.7);
      expect(waited, `rung ${i + 1}`).toBeLessThanOrEqual(rung * 1.4 + 5 * minutes);
    }
    const letters = await one.verifier.deadLetters();
    expect(letters).toHaveLength(1);
    expect(letters[0]).toMatchObject({ authentication_uuid: one.id, status: "submitted" });
  });

  it("a Retry-After of an hour is respected, and the three days are not shortened", async () => {
    const one = await withEvent(async () => ({ status: 503, retryAfter: hours }));
    const at = await posts(one, days(6));
    for (let i = 1; i < at.length; i++) expect((at[i] as number) - (at[i - 1] as number)).toBeGreaterThanOrEqual(hours * 0.999);
    expect(at.at(-1)).toBeGreaterThanOrEqual(days(2.8));
    expect(at.at(-1)).toBeLessThanOrEqual(days(5));
    expect(await one.verifier.deadLetters()).toHaveLength(1);
  });

  it.each([Number.POSITIVE_INFINITY, 1e15, days(365)])("a Retry-After of %d ms neither loses the event nor stops the others", async (retryAfter) => {
    const one = await withEvent(async () => ({ status: 503, retryAfter }));
    await one.verifier.flush();
    one.hook.answer = async () => ({ status: 204 });
    await one.create(2, { callback_url: callbackUrl });
    await one.verifier.flush();
    expect(one.hook.posted).toHaveLength(2);
    await posts(one, days(5));
    // Delivered in the end, or listed as a dead letter.
    const told = one.hook.story(one.id).length > 1;
    expect(told || (await one.verifier.deadLetters()).length === 1).toBe(true);
  });

  it.each([404, 500])("Retry-After with status %i is ignored", async (status) => {
    const one = await withEvent(async () => ({ status, retryAfter: days(2) }));
    const at = await posts(one, 10 * minutes);
    expect(at.length).toBeGreaterThanOrEqual(3);
  });

  it("410 ends them at once; any 2xx is success", async () => {
    const gone = await withEvent(async () => ({ status: 410, retryAfter: hours }));
    expect(await gone.verifier.flush()).toEqual({ delivered: 0, failed: 0, dead: 1 });
    for (const status of [200, 201, 202, 204, 299]) {
      const one = await withEvent(async () => ({ status }));
      expect(await one.verifier.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
    }
  });

  it("a dead letter stays listed for seven days after its last attempt, and can be redelivered (docs/contract.md#tombstone)", async () => {
    const one = await withEvent(async () => ({ status: 500 }));
    const last = start + ((await posts(one, days(5))).at(-1) as number);
    const posted = one.hook.posted.length;
    one.clock.advance(last + days(7) - minutes - one.clock.now());
    const [letter] = await one.verifier.deadLetters();
    expect(letter).toBeDefined();
    one.hook.answer = async () => ({ status: 204 });
    expect(await one.verifier.redeliver(letter as never)).toBe(true);
    await one.verifier.flush();
    expect(one.hook.posted).toHaveLength(posted + 1);
    expect(new Set(one.hook.posted.map(({ id }) => id)).size).toBe(1);
    expect(await one.verifier.deadLetters()).toEqual([]);
  });

  it("a redelivered event goes through all attempts again", async () => {
    const one = await withEvent(async () => ({ status: 500 }));
    await posts(one, days(4));
    const [letter] = await one.verifier.deadLetters();
    const before = one.hook.posted.length;
    expect(await one.verifier.redeliver(letter as never)).toBe(true);
    await posts(one, days(4));
    expect(one.hook.posted.length - before).toBeGreaterThanOrEqual(ladder.length);
    expect(await one.verifier.deadLetters()).toHaveLength(1);
  });

  it("a dead letter with a wrong id, customer or sequence is not redelivered", async () => {
    const one = await withEvent(async () => ({ status: 410 }));
    await one.verifier.flush();
    const [letter] = await one.verifier.deadLetters();
    for (const change of [
      { customer_uuid: "11111111-2222-3333-4444-555555555555" },
      { authentication_uuid: "11111111-2222-3333-4444-555555555555" },
      { sequence: 99 },
      { sequence: -1 },
      { sequence: Number.NaN },
      { authentication_uuid: "rubbish" },
    ]) {
      expect(await one.verifier.redeliver({ ...letter, ...change } as never)).toBe(false);
    }
    await expect(one.verifier.redeliver({ ...letter, customer_uuid: undefined } as never)).rejects.toMatchObject({ code: "bad_request" });
    expect(await one.verifier.redeliver({ ...letter, authentication_uuid: (letter?.authentication_uuid ?? "").toUpperCase() } as never)).toBe(true);
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "10", null])("deadLetters({ limit: %s }) passes no invalid number to the store", async (limit) => {
    const store = rigged(new PlainStore());
    const one = service({ store });
    await one.verifier.deadLetters({ limit: limit as number }).catch((error) => expect(error.code).toMatch(/bad_request|invalid_options/));
    for (const { args } of store.calls) for (const arg of args) if (typeof arg === "number") expect(Number.isInteger(arg)).toBe(true);
    expect(await one.verifier.deadLetters({ limit: undefined as never })).toEqual([]);
  });
});

describe("the events of one send", () => {
  it("are posted in order: a failed event is repeated before later ones", async () => {
    const clock = fixedClock(start);
    const one = service({ clock, receipts });
    let well = false;
    one.hook.answer = async () => ({ status: well ? 204 : 500 });
    const { authentication_uuid: id } = await one.create(1, { callback_url: callbackUrl });
    await one.verifier.flush();
    // The first delay, with the most jitter.
    clock.advance(6_000);
    await one.verifier.flush();
    for (const status of ["in_transit", "delivered"] as const) expect(await postReceipt(one.verifier, one.sender.messages[0] as never, status)).toBe(200);
    well = true;
    for (let i = 0; i < 40; i++) {
      await one.verifier.flush();
      clock.advance(15_000);
    }
    // "delivered at least once"; "the events of one send are reported in their order"
    expect(one.hook.story(id).slice(2)).toEqual(["1:submitted", "1:in_transit", "1:delivered"]);
    const sequences = one.hook.posted.slice(2).map(({ event }) => event.data.sequence);
    expect(sequences).toEqual([...sequences].sort((x, y) => x - y));
    expect(new Set(sequences).size).toBe(3);
  });

  it("stay in order if the receipt arrives before the carrier's response", async () => {
    for (const final of ["delivered", "undeliverable"] as const) {
      const one = service({ receipts });
      one.sender.answer = async (message) => {
        expect(await postReceipt(one.verifier, message, final)).toBe(200);
        await one.verifier.flush();
        return { outcome: "accepted" };
      };
      const { authentication_uuid: id } = await one.create(1, { callback_url: callbackUrl });
      for (let i = 0; i < 4; i++) await one.verifier.flush();
      const story = one.hook.story(id);
      expect(story.at(-1)).toBe(`1:${final}`);
      expect(["1:submitted", undefined]).toContain(story.at(-2));
      expect(story.length).toBeLessThanOrEqual(2);
      expect((await one.check(id, one.sender.codeOf(id))).status).toBe("valid");
    }
  });

  it("stop after a final one", async () => {
    const finals = ["delivered", "undeliverable"] as const;
    for (const final of finals) {
      const one = service({ receipts });
      const { authentication_uuid: id } = await one.create(1, { callback_url: callbackUrl });
      for (const status of [final, "in_transit", "submitted", ...finals, "unknown"] as const) {
        await postReceipt(one.verifier, one.sender.messages[0] as never, status);
        await one.verifier.flush();
      }
      expect(one.hook.story(id)).toEqual(["1:submitted", `1:${final}`]);
    }
  });

  it("of several sends each keep their own order, and no sequence number repeats", async () => {
    const one = service({ receipts });
    const { authentication_uuid: id } = await one.create(1, { callback_url: callbackUrl });
    one.clock.advance(31_000);
    await one.retry(id);
    one.clock.advance(61_000);
    await one.retry(id);
    // Receipts of the first message come last.
    for (const message of [...one.sender.messages].reverse())
      for (const status of ["in_transit", "delivered"] as const) await postReceipt(one.verifier, message, status);
    for (let i = 0; i < 12; i++) await one.verifier.flush();
    for (const attempt of [1, 2, 3]) {
      expect(one.hook.story(id).filter((step) => step.startsWith(`${attempt}:`))).toEqual([
        `${attempt}:submitted`,
        `${attempt}:in_transit`,
        `${attempt}:delivered`,
      ]);
    }
    const sequences = one.hook.posted.map(({ event }) => event.data.sequence);
    expect(new Set(sequences).size).toBe(9);
    expect(new Set(one.hook.posted.map(({ id: webhookId }) => webhookId)).size).toBe(9);
    for (const { event } of one.hook.posted) expect(Number.isInteger(event.data.sequence) && event.data.sequence >= 0).toBe(true);
  });

  it("do not overtake a post that hangs", async () => {
    const one = service({ receipts });
    let release: (answer: CallbackResponse) => void = () => {};
    let first = true;
    one.hook.answer = () => {
      if (!first) return Promise.resolve({ status: 204 });
      first = false;
      return new Promise((resolve) => (release = resolve));
    };
    const { authentication_uuid: id } = await one.create(1, { callback_url: callbackUrl });
    const flush = one.verifier.flush();
    await turns();
    await postReceipt(one.verifier, one.sender.messages[0] as never, "delivered");
    const second = one.verifier.flush();
    await turns();
    expect(one.hook.story(id)).toEqual(["1:submitted"]);
    release({ status: 204 });
    await flush;
    await second;
    await one.verifier.flush();
    expect(one.hook.story(id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("stay in order if one of two processes hangs in a post", async () => {
    const clock = fixedClock(start);
    const store = new PlainStore();
    const hanging = hook();
    hanging.answer = () => new Promise(() => {});
    const a = service({ store, clock, receipts, callbacks: { sender: hanging } });
    const b = service({ store, clock, receipts, customer: a.customer });
    const { authentication_uuid: id } = await a.create(1, { callback_url: callbackUrl });
    void a.verifier.flush();
    await turns();
    await postReceipt(b.verifier, a.sender.messages[0] as never, "delivered");
    for (let i = 0; i < 200; i++) {
      await b.verifier.flush();
      clock.advance(1_000);
      await turns(3);
    }
    expect(b.hook.story(id)).toEqual(["1:submitted", "1:delivered"]);
  });
});

describe("an event", () => {
  it("of a process that dies during a send is `unknown`, reported by another process after the send's deadline", async () => {
    const clock = fixedClock(start);
    const store = new PlainStore();
    const dying = service({ store, clock });
    dying.sender.answer = () => new Promise(() => {});
    let id = "";
    dying.sender.answer = (message) => {
      id = message.authentication_uuid;
      return new Promise(() => {});
    };
    void dying.create(1, { callback_url: callbackUrl }).catch(() => {});
    await turns();
    const other = service({ store, clock, customer: dying.customer });
    await other.verifier.flush();
    expect(other.hook.posted).toEqual([]);
    // The dead process no longer runs: time passes only for the other one.
    const later = service({ store, clock: fixedClock(clock.now() + minutes), customer: dying.customer });
    await later.verifier.flush();
    await later.verifier.flush();
    expect(later.hook.story(id)).toEqual(["1:unknown"]);
  });

  it("is signed and masked, without the code; its id and body are the same over redeliveries", async () => {
    const one = await withEvent(async () => ({ status: 500 }));
    await posts(one, 20 * minutes);
    expect(one.hook.posted.length).toBeGreaterThanOrEqual(3);
    const code = one.sender.codeOf(one.id);
    for (const { body, id, event, url, headers } of one.hook.posted) {
      expect(url).toBe(callbackUrl);
      expect(id).toBe(one.hook.posted[0]?.id);
      expect(body).not.toContain(code);
      expect(body).not.toContain(one.sender.messages[0]?.to);
      expect(Object.keys(event).sort()).toEqual(["data", "timestamp", "type"]);
      expect(Object.keys(event.data).sort()).toEqual(["attempt", "authentication_uuid", "phone_number", "sequence", "status"]);
      expect(headers["webhook-signature"]).toMatch(/^v1,[A-Za-z0-9+/]+=*/);
    }
    expect(new Set(one.hook.posted.map(({ body }) => body)).size).toBe(1);
  });

  it("waits while the customer source fails, and is posted when it is back", async () => {
    let broken = false;
    const clock = fixedClock(start);
    const base = service({ clock });
    const customer = { customer_uuid: base.customer };
    const store = new PlainStore();
    const one = service({
      clock,
      store,
      customer: base.customer,
      customers: {
        findByKeyDigest: () => customer,
        find: () => {
          if (broken) throw new Error("database away");
          return customer;
        },
      },
    });
    await one.create(1, { callback_url: callbackUrl });
    broken = true;
    // Another process: this one may still know the customer.
    const other = service({
      clock,
      store,
      customer: base.customer,
      customers: {
        findByKeyDigest: () => customer,
        find: () => {
          if (broken) throw new Error("database away");
          return customer;
        },
      },
    });
    for (let i = 0; i < 3; i++) {
      await drive(clock, other.verifier.flush());
      clock.advance(2_000);
    }
    broken = false;
    await pass(clock, 10 * minutes, 30_000);
    for (let i = 0; i < 3; i++) await drive(clock, other.verifier.flush());
    expect(other.hook.posted).toHaveLength(1);
    expect(await other.verifier.deadLetters()).toEqual([]);
  });

  it("whose delivery cannot be stored is not lost, and is posted again only under the same id", async () => {
    for (const fate of ["refused", "silent", "lost", "held"] as const) {
      const clock = fixedClock(start);
      const store = rigged(new PlainStore());
      const one = service({ clock, store });
      await one.create(1, { callback_url: callbackUrl });
      one.hook.answer = async () => {
        store.fate = (method) => (method === "commit" ? fate : "done");
        return { status: 204 };
      };
      await drive(clock, one.verifier.flush()).catch(() => {});
      await pass(clock, 30_000);
      store.fate = () => "done";
      await store.release();
      one.hook.answer = async () => ({ status: 204 });
      for (let i = 0; i < 5; i++) {
        await drive(clock, one.verifier.flush());
        await pass(clock, 2 * minutes, 10_000);
      }
      expect(one.hook.posted.length).toBeGreaterThanOrEqual(1);
      expect(one.hook.posted.length).toBeLessThanOrEqual(3);
      expect(new Set(one.hook.posted.map(({ id: webhookId }) => webhookId)).size).toBe(1);
      expect(await drive(clock, one.verifier.flush())).toEqual({ delivered: 0, failed: 0, dead: 0 });
    }
  });

  it("flush() ends even if the store hangs, and the next one delivers", async () => {
    const store = rigged(new PlainStore());
    const one = service({ store });
    await one.create(1, { callback_url: callbackUrl });
    store.fate = (method) => (method === "lease" ? "silent" : "done");
    await drive(
      one.clock,
      one.verifier.flush().catch(() => undefined),
      100,
      60_000,
    );
    store.fate = () => "done";
    expect((await drive(one.clock, one.verifier.flush())).delivered).toBe(1);
  });

  it("the worker resumes after the store hung for an hour", async () => {
    const clock = fixedClock(start);
    const store = rigged(new PlainStore());
    const one = service({ clock, store, callbacks: { worker: true } });
    await pass(clock, 20_000);
    store.fate = (method) => (method === "lease" ? "silent" : "done");
    await pass(clock, hours, 2_500);
    const maker = service({ clock, store, customer: one.customer });
    await maker.create(1, { callback_url: callbackUrl });
    store.fate = () => "done";
    await pass(clock, minutes, 1_000);
    expect(one.hook.posted).toHaveLength(1);
    await one.verifier.close();
  });

  it("an idle worker asks the store about 720 times an hour at the default interval, and never once closed", async () => {
    const store = rigged(new PlainStore());
    const clock = fixedClock(start);
    const one = service({ clock, store, callbacks: { worker: true } });
    await pass(clock, hours, 1_000);
    expect(store.count("lease")).toBeGreaterThan(600);
    expect(store.count("lease")).toBeLessThan(760);
    await one.verifier.close();
    await turns();
    const after = store.calls.length;
    await pass(clock, hours, 10_000);
    expect(store.calls.length).toBe(after);
  });
});

describe("a callback_url", () => {
  it("never reaches a private address in any spelling, and is `bad_request` if invalid", async () => {
    const one = service({ callbacks: { sender: undefined, worker: false } });
    let n = 100;
    for (const url of [
      "https://127.0.0.1/",
      "https://2130706433/",
      "https://0x7f000001/",
      "https://[::1]/",
      "https://[::ffff:127.0.0.1]/",
      "https://[64:ff9b::7f00:1]/",
      "https://[2002:7f00:1::]/",
      "https://169.254.169.254/",
    ]) {
      const answer = await ending(one.create(n++, { callback_url: url }));
      if (answer === "bad_request") continue;
      expect(await one.verifier.flush()).toMatchObject({ delivered: 0 });
    }
    for (const url of [
      "http://example.com/",
      "ftp://example.com/",
      "javascript:alert(1)",
      "blob:https://x/",
      "https://user:pass@example.com/",
      "",
      " ",
      "https://",
      7,
      null,
    ]) {
      expect(await ending(one.create(n++, { callback_url: url as string })), String(url)).toBe("bad_request");
    }
  });
});
