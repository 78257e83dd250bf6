import { describe, expect, it } from "vitest";
import { africasTalkingReceipts } from "../../adapters/sms/africastalking.js";
import type { Verifier } from "../../src/index.js";
import { atSecret, base, begin, listening, messageOf, noon, post, told, wordOf } from "./receipt-kit.js";

describe("receipts in any order", () => {
  const words = ["submitted", "in_transit", "delivered", "undeliverable", "unknown"] as const;

  it("give the events of a message in order, none twice and none after a final one", async () => {
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

  it("three thousand concurrent copies for one message are reported once", async () => {
    const one = listening();
    const id = await begin(one);
    const word = await wordOf("twilio", one, id);
    const answers = await Promise.all(Array.from({ length: 3_000 }, () => post(one.verifier, word)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("a thousand concurrent receipts for a thousand messages are each reported for their own message", async () => {
    const one = listening();
    const ids: string[] = [];
    for (let i = 0; i < 1_000; i++) ids.push(await begin(one, i));
    const posts = ids.map(async (id, i) =>
      post(one.verifier, await wordOf(i % 2 ? "infobip" : "africastalking", one, id, i % 3 ? "delivered" : "undeliverable", `SM${i + 1}`)),
    );
    expect(new Set((await Promise.all(posts)).map(({ status }) => status))).toEqual(new Set([200]));
    await one.verifier.flush();
    // Past the leases of callbacks; see the next test.
    one.clock.advance(120_000);
    await one.verifier.flush();
    for (const [i, id] of ids.entries()) expect(one.hook.story(id)).toEqual(["1:submitted", i % 3 ? "1:delivered" : "1:undeliverable"]);
  });

  it("two flushes post all that is due, of a thousand authentications with two events each", async () => {
    const one = listening();
    const ids: string[] = [];
    for (let i = 0; i < 1_000; i++) ids.push(await begin(one, i));
    for (const id of ids) await post(one.verifier, await wordOf("infobip", one, id));
    const first = await one.verifier.flush();
    const second = await one.verifier.flush();
    expect(first.delivered + second.delivered).toBe(2_000);
  });
});

describe("the time in a receipt", () => {
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

  it("is reported if it is plausible", async () => {
    const { sent } = await at(undefined);
    expect((await at(sent + 2_500)).told).toBe(sent + 2_500);
  });

  const { sent } = { sent: noon };
  it.each([Number.NaN, -1, sent + 61_000, 8.64e15, 8.64e15 + 1, 1.5e300, "x", {}, [], null, undefined])(
    "is replaced with the current time if it is in the future or invalid: %s",
    async (time) => {
      const { now, told: when } = await at(time);
      expect(when).toBe(now);
    },
  );

  it.each([0, 1, Math.floor(sent / 1000)])("is replaced with the current time if it is zero or in seconds: %s", async (time) => {
    const { now, told: when } = await at(time);
    expect(when).toBe(now);
  });

  it.each([sent - 3_600_000, sent - 365 * 86_400_000])("is reported as it is if the carrier's clock is behind: %s", async (time) => {
    expect((await at(time)).told).toBe(time);
  });
});

describe("settleReceipts, as users call it", () => {
  const settling = async (change: object) => {
    const one = listening();
    const id = await begin(one);
    const { receipt_reference: reference = "" } = messageOf(one, id);
    const settled = (async () => (one.verifier as Verifier).settleReceipts([{ reference, ...change }] as never))();
    return { one, id, refused: await settled.then(() => "taken", String) };
  };

  it.each(["DELIVRD", "", "__proto__", "constructor", "Delivered", ["delivered"], null, 7, {}])(
    "rejects the invalid status %j, and the code still works",
    async (status) => {
      const { one, id, refused } = await settling({ status });
      // Another process, which reads the record from the store.
      const other = listening({ ...one.settings, customer: one.customer });
      expect((await other.check(id, one.sender.codeOf(id))).status).toBe("valid");
      expect(refused).toMatch(/VerifierError/);
      expect(await told(one, id)).toEqual(["1:submitted"]);
    },
  );

  it("rejects a missing status and emits no event", async () => {
    const { one, id, refused } = await settling({});
    expect(refused).toMatch(/VerifierError/);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it.each([[[null]], [[{ reference: 7, status: "delivered" }]], [{ status: "delivered" }], [null], [undefined]])(
    "rejects an invalid list of receipts with bad_request: %j",
    async (receipts) => {
      const one = listening();
      await expect((async () => one.verifier.settleReceipts(receipts as never))()).rejects.toMatchObject({ code: "bad_request" });
    },
  );

  it("changes no status for an invalid receipt", async () => {
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

  it("accepts an empty list", async () => {
    await expect(listening().verifier.settleReceipts([])).resolves.toBeUndefined();
  });

  it("shortens a carrier's error text and removes number and code from it, in callbacks and log", async () => {
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

describe("ids of carriers that cannot return a reference", () => {
  it("need no sources: a verifier without `receipts` finds a message by its id alone", async () => {
    const one = listening({ receipts: undefined as never });
    const id = await begin(one);
    await one.verifier.settleReceipts([{ messageId: "SM1", idSpace: "africastalking", status: "delivered" }]);
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("never collide between id spaces, even with similar names", async () => {
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

  it("never collide if a space and an id contain a slash", async () => {
    const one = listening();
    one.sender.answer = async () => ({ outcome: "accepted", messageId: "b/1", idSpace: "a" });
    const id = await begin(one);
    await one.verifier.settleReceipts([{ messageId: "1", idSpace: "a/b", status: "delivered" }]);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("are compared exactly: 1001 is not 01001, 1001.0, 0x3e9 or 1001 with a blank", async () => {
    const one = listening();
    one.sender.answer = async () => ({ outcome: "accepted", messageId: "1001", idSpace: "s" });
    const id = await begin(one);
    for (const messageId of ["01001", "1001.0", "0x3e9", "1001 ", " 1001", "+1001", "１００１"])
      await one.verifier.settleReceipts([{ messageId, idSpace: "s", status: "undeliverable" }]).catch(() => undefined);
    expect(await told(one, id)).toEqual(["1:submitted"]);
  });

  it("the dashboard's secret is accepted only unchanged and only as `key` in the query of its own route", async () => {
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

  it("a guessable or invalid secret throws at construction", () => {
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
  });
});
