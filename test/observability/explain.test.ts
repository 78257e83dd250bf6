import { describe, expect, it } from "vitest";
import type { CodeMessage } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { onePerTenMinutes, setUp } from "../support/verifier.js";

const explain = (set: ReturnType<typeof setUp>, authentication_uuid: string) => set.verifier.explain({ customer_uuid: set.customer, authentication_uuid });

describe("explain: failed sends, wrong codes, and what is left", () => {
  it("a create whose only send was rejected shows the reason, without the code", async () => {
    const set = setUp();
    set.box.answer = async ({ code }) => ({ outcome: "rejected", reason: `HTTP 400, code 21211 ${code}` });
    const { authentication_uuid: id, created_at, expires_at } = await set.create();
    expect(await explain(set, id)).toEqual({
      authentication_uuid: id,
      status: "pending",
      created_at,
      expires_at,
      validated: false,
      wrong_codes: 0,
      left: { checks: 0, retries: 0, seconds: 600 },
      sends: [{ attempt: 1, at: created_at, state: "rejected", route: "sender", reason: "HTTP 400, code 21211 ******" }],
      decisions: [
        {
          at: created_at,
          rule: "sender",
          mode: "route",
          attempt: 1,
          outcome: "rejected",
          reason: "rejected: HTTP 400, code 21211 ******",
          answer: "HTTP 400, code 21211 ******",
        },
      ],
    });
  });

  it("a rejected retry is listed between the sends around it", async () => {
    const set = setUp();
    const { authentication_uuid: id } = await set.create();
    const answers = ["rejected", "accepted"] as const;
    for (const outcome of answers) {
      set.clock.advance(60_000);
      set.box.answer = async () => (outcome === "rejected" ? { outcome, reason: "HTTP 400, code 30005", route: "one" } : { outcome });
      await set.retry(id);
    }
    expect((await explain(set, id)).sends).toMatchObject([
      { attempt: 1, state: "undecided" },
      { attempt: 2, state: "rejected", route: "one", reason: "HTTP 400, code 30005" },
      { attempt: 3, state: "undecided" },
    ]);
  });

  it("failover: the route that rejected, with its reason but without code and number, then the one that accepted", async () => {
    const rejects = { send: async ({ code, to }: CodeMessage) => ({ outcome: "rejected" as const, reason: `HTTP 400, code 21211 ${code} ${to}` }) };
    const accepts = { send: async () => ({ outcome: "accepted" as const }) };
    const set = setUp({
      sender: router({
        routes: [
          { name: "first", priority: 1, sender: rejects },
          { name: "second", priority: 2, sender: accepts },
        ],
      }),
    });
    const { authentication_uuid: id } = await set.create();
    expect((await explain(set, id)).sends).toMatchObject([
      { attempt: 1, state: "rejected", route: "first", reason: "HTTP 400, code 21211 ****** +…" },
      { attempt: 1, route: "second" },
    ]);
  });

  it.each([
    ["throws", async () => Promise.reject(new Error("socket hang up")), "unknown: socket hang up"],
    ["leaves it open", async () => ({ outcome: "unknown", reason: "HTTP 502", route: "one" }) as const, "unknown: HTTP 502"],
  ])("a sender that %s: the message may have been sent, and its code works", async (_what, answer, reason) => {
    const set = setUp();
    set.box.answer = answer;
    const { authentication_uuid: id } = await set.create();
    expect(await explain(set, id)).toMatchObject({
      left: { checks: 5, retries: 4 },
      sends: [{ attempt: 1, state: "undecided", reason: reason.replace("unknown: ", "") }],
      decisions: [{ mode: "route", reason }],
    });
    expect((await set.check(id, set.box.code())).status).toBe("valid");
  });

  it("an accepted send adds no decision", async () => {
    const set = setUp();
    const { authentication_uuid: id } = await set.create();
    expect((await explain(set, id)).decisions).toEqual([]);
  });

  it("wrong codes, retries and time reduce what is left", async () => {
    const set = setUp();
    const { authentication_uuid: id } = await set.create();
    for (let wrong = 0; wrong < 2; wrong++) await set.check(id, set.wrong());
    set.clock.advance(30_000);
    await set.retry(id);
    expect(await explain(set, id)).toMatchObject({ wrong_codes: 2, left: { checks: 3, retries: 3, seconds: 570 }, sends: [{ attempt: 1 }, { attempt: 2 }] });
    await set.check(id, set.box.code());
    expect(await explain(set, id)).toMatchObject({ validated: true, left: { checks: 0, retries: 0, seconds: 570 } });
    set.clock.advance(600_000);
    expect(await explain(set, id)).toMatchObject({ left: { checks: 0, retries: 0, seconds: 0 } });
  });

  it("a blocked create has nothing left but its time", async () => {
    const set = setUp({ policy: onePerTenMinutes });
    await set.create();
    const { authentication_uuid: id } = await set.create();
    expect(await explain(set, id)).toMatchObject({ status: "rate_limited", left: { checks: 0, retries: 0, seconds: 600 }, sends: [] });
  });
});
