import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DeliveryStatus } from "../../src/contract/callback.js";
import type { Authentication, OutboxEvent } from "../../src/domain/authentication.js";
import {
  type DeliveryResult,
  deadEvent,
  deliveryLadder,
  dueEvent,
  leaseTime,
  needsWork,
  redelivered,
  settleDelivery,
  wakeAt,
  withEvent,
} from "../../src/domain/delivery.js";
import { defaultPolicy } from "../../src/domain/policy.js";
import { listedClaims } from "../../src/domain/quota.js";

const t = Date.UTC(2026, 0, 1);
const day = 86_400_000;

const blank: Authentication = {
  customer: "c",
  id: "i",
  number: "+33612000001",
  createdAt: t,
  expiresAt: t + 600_000,
  keepUntil: t + 600_000 + day,
  status: "pending",
  attempts: 2,
  sent: 2,
  fallbacks: 0,
  retries: 1,
  lastSendAt: t,
  wrongChecks: 0,
  validated: false,
  sends: [1, 2].map((attempt) => ({ attempt, digest: "d", state: "undecided", at: t })),
  decisions: [],
  checks: [],
  starts: [],
  otherRoutes: [],
  keptIds: [],
  uncounted: 0,
  outbox: [],
  events: 0,
  callbackUrl: "https://hook.example.com/",
};

const told = (...events: readonly (readonly [attempt: number, status: DeliveryStatus])[]) =>
  events.reduce((auth, [attempt, status]) => withEvent(auth, { attempt, status }, t), blank);

/** One attempt to deliver the event that is due, at its time. */
const tried = (auth: Authentication, answer: DeliveryResult, jitter = 0): Authentication => {
  const event = auth.outbox.find(({ dead }) => dead === undefined) as OutboxEvent;
  return settleDelivery(auth, event.sequence, event.tries, answer, event.nextAt, jitter) as Authentication;
};

/** Milliseconds between the attempts until the event is given up. */
const waits = (answer: (tries: number) => DeliveryResult, jitter = 0): number[] => {
  let auth = told([1, "submitted"]);
  const all: number[] = [];
  for (let tries = 0; deadEvent(auth, 1) === undefined; tries++) {
    const before = auth.outbox[0]?.nextAt as number;
    auth = tried(auth, answer(tries), jitter);
    if (deadEvent(auth, 1) === undefined) all.push((auth.outbox[0]?.nextAt as number) - before);
  }
  return all;
};

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);

describe("the delays between attempts are 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h with jitter (docs/contract.md#callback-ladder)", () => {
  it("waits each delay, up to a fifth longer, in whole milliseconds, then gives up", () => {
    expect(deliveryLadder).toEqual([5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400].map((seconds) => seconds * 1000));
    expect(waits(() => ({ status: 500 }))).toEqual(deliveryLadder);
    const late = waits(() => ({ failed: "cut" }), 0.999_999);
    expect(late).toEqual(deliveryLadder.map((wait) => Math.round(wait * (1 + 0.999_999 / 5))));
    expect(late.every(Number.isInteger)).toBe(true);
  });

  it("a `Retry-After` below the next delay changes nothing", () => {
    expect(waits(() => ({ status: 503, retryAfter: 2_000 }))).toEqual(deliveryLadder);
    expect(waits(() => ({ status: 429, retryAfter: 0 }))).toEqual(deliveryLadder);
  });

  it("a longer `Retry-After` of 429 is respected, up to a day; that of 500 is ignored", () => {
    const asked = (retryAfter: number) => tried(told([1, "submitted"]), { status: 429, retryAfter }).outbox[0]?.nextAt;
    expect(asked(120_000)).toBe(t + 120_000);
    expect(asked(30 * day)).toBe(t + day);
    expect(asked(Number.POSITIVE_INFINITY)).toBe(t + day);
    expect(tried(told([1, "submitted"]), { status: 500, retryAfter: 120_000 }).outbox[0]?.nextAt, "of no other status").toBe(t + 5_000);
  });

  it("with any `Retry-After`, an event is tried for at least three days, and at most twice as long", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 2 * day }), { minLength: 1, maxLength: 12 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (asked, jitter) => {
          const all = waits((tries) => ({ status: 503, retryAfter: asked[tries % asked.length] }), jitter);
          expect(sum(all)).toBeGreaterThanOrEqual(sum(deliveryLadder));
          expect(sum(all)).toBeLessThanOrEqual(2 * sum(deliveryLadder));
          expect(all.length).toBeLessThanOrEqual(deliveryLadder.length);
        },
      ),
    );
  });

  it("a number lists its authentication until its last callback ends it, whatever `Retry-After` asks for (docs/contract.md#erase)", () => {
    const [listed] = listedClaims(blank, defaultPolicy, { now: t, skew: 0 }, (text) => text, true);
    // Just too short to use up two of the delays.
    const asked = deliveryLadder.map((wait, index) => wait + (deliveryLadder[index + 1] ?? 0) - 1);
    const longest = sum(waits((tries) => ({ status: 503, retryAfter: asked[tries] }), 0.999));
    expect(longest).toBeGreaterThan(5 * day);
    expect(listed?.keepUntil).toBeGreaterThanOrEqual(blank.keepUntil + longest + 7 * day);
  });

  it.each([200, 202, 204, 299])("2xx is success: %i", (status) => {
    expect(tried(told([1, "submitted"]), { status }).outbox).toEqual([]);
  });

  it("410 ends it", () => {
    expect(deadEvent(tried(told([1, "submitted"]), { status: 410 }), 1)).toMatchObject({ dead: "answered 410 Gone", nextAt: t });
  });
});

describe("the events of one send are reported in their order, and none after a final one (docs/contract.md#callback-order)", () => {
  it("the events of one send are due one after the other; those of other sends do not wait for them", () => {
    const auth = told([1, "submitted"], [1, "delivered"], [2, "submitted"]);
    expect(dueEvent(auth, t)?.sequence).toBe(1);
    const failed = settleDelivery(auth, 1, 0, { status: 500 }, t, 0) as Authentication;
    expect(dueEvent(failed, t)?.sequence).toBe(3);
    const both = settleDelivery(failed, 3, 0, { status: 204 }, t, 0) as Authentication;
    expect(dueEvent(both, t), "`delivered` waits for `submitted`").toBeUndefined();
    expect(dueEvent(both, t + 5_000)?.sequence).toBe(1);
    const caughtUp = settleDelivery(both, 1, 1, { status: 204 }, t + 5_000, 0) as Authentication;
    expect(dueEvent(caughtUp, t + 5_000)?.sequence).toBe(2);
  });

  it("an event that was given up does not delay later ones", () => {
    const auth = told([1, "submitted"], [1, "delivered"]);
    expect(dueEvent(settleDelivery(auth, 1, 0, { status: 410 }, t, 0) as Authentication, t)?.sequence).toBe(2);
  });

  it("no event is added after a final one, even if that was reported before", () => {
    const auth = told([1, "delivered"]);
    expect(told([1, "delivered"], [1, "submitted"])).toEqual(auth);
    expect(told([1, "undeliverable"], [1, "unknown"], [1, "undeliverable"], [2, "submitted"]).events).toBe(2);
    const known: Authentication = { ...blank, sends: [{ attempt: 1, digest: "d", state: "accepted", at: t, delivery: "delivered" }] };
    expect(withEvent(known, { attempt: 1, status: "submitted" }, t)).toBe(known);
    expect(withEvent(known, { attempt: 1, status: "delivered" }, t).events, "the final one itself").toBe(1);
  });

  it("without a callback URL no event is added", () => {
    const { callbackUrl, ...rest } = blank;
    expect(withEvent(rest, { attempt: 1, status: "submitted" }, t)).toBe(rest);
  });
});

describe("`wakeAt` is when it next needs work (docs/contract.md#outbox)", () => {
  it("is the earliest of due events and the deadline, without events that were given up", () => {
    const auth = told([1, "submitted"], [2, "submitted"]);
    expect(wakeAt(auth, t, undefined)).toBe(t);
    expect(wakeAt({ ...auth, settleBy: t - 1 }, t, undefined)).toBe(t - 1);
    const failed = settleDelivery(auth, 2, 0, { status: 500 }, t, 0) as Authentication;
    const given = settleDelivery(failed, 1, 0, { status: 410 }, t, 0) as Authentication;
    expect(wakeAt(given, t, undefined)).toBe(t + 5_000);
    expect(wakeAt(tried(given, { status: 410 }), t, undefined)).toBeUndefined();
    expect(wakeAt(blank, t, t + leaseTime)).toBeUndefined();
  });

  it("a writer that delivers itself leases the events that are due, and no others", () => {
    const auth = told([1, "submitted"]);
    expect(wakeAt(auth, t, t + leaseTime)).toBe(t + leaseTime);
    expect(wakeAt(tried(auth, { status: 500 }), t, t + leaseTime)).toBe(t + 5_000);
    expect(wakeAt({ ...auth, settleBy: t + 7_000 }, t, t + leaseTime)).toBe(t + 7_000);
  });

  it("ignores an event that waits for another one of its send", () => {
    const failed = settleDelivery(told([1, "submitted"], [1, "delivered"]), 1, 0, { status: 500 }, t, 0) as Authentication;
    expect(wakeAt(failed, t, undefined)).toBe(t + 5_000);
  });

  it("an unsettled send needs work from its deadline on", () => {
    expect([
      needsWork(blank, t),
      needsWork({ ...blank, settleBy: t + 1 }, t),
      needsWork({ ...blank, settleBy: t }, t),
      needsWork(told([1, "unknown"]), t),
    ]).toEqual([false, false, true, true]);
  });
});

describe("a late worker", () => {
  it("changes nothing if the event is gone, was tried again or was given up", () => {
    const auth = told([1, "submitted"]);
    const failed = tried(auth, { status: 500 });
    expect(settleDelivery(failed, 1, 0, { status: 204 }, t, 0)).toBeUndefined();
    expect(settleDelivery(tried(auth, { status: 204 }), 1, 0, { status: 500 }, t, 0)).toBeUndefined();
    expect(settleDelivery(tried(auth, { status: 410 }), 1, 0, { status: 204 }, t, 0)).toBeUndefined();
  });
});

describe("events that were given up remain listed", () => {
  it("and can be queued again, from the first attempt", () => {
    const given = tried(tried(told([1, "submitted"]), { status: 500 }), { status: 410 });
    expect(redelivered(given, 1, t + day)?.outbox).toEqual([{ attempt: 1, status: "submitted", sequence: 1, at: t, tries: 0, nextAt: t + day }]);
    expect([redelivered(given, 2, t), redelivered(told([1, "submitted"]), 1, t)]).toEqual([undefined, undefined]);
  });

  it("their record stays until 7 days after the last delivery step, and no longer than usual once all are delivered", () => {
    const failed = tried(told([1, "submitted"]), { status: 500 });
    expect(failed.keepUntil).toBe(t + 7 * day);
    expect(tried(failed, { status: 410 }).keepUntil).toBe(t + 5_000 + 7 * day);
    expect(tried(failed, { status: 204 })).toMatchObject({ keepUntil: blank.keepUntil });
  });
});
