import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import type { CodeMessage, Feedback, SendContext, SendOutcome, SmsSender } from "../../src/ports/sms-sender.js";
import { router } from "../../src/routing/router.js";
import { type RouteOptions, type RouterOptions, readRouterOptions } from "../../src/routing/router-options.js";
import { type FixedClock, fixedClock } from "../../src/testing/fixed-clock.js";
import { senderContract } from "../../src/testing/sender-contract.js";
import { aMessage } from "../support/carriers/messages.js";
import { logger } from "../support/verifier.js";
import { seeded } from "./simulation.js";

type Answer = SendOutcome | Error | "never" | ((message: CodeMessage, context: SendContext) => unknown);

/** A sender that gives this answer and records its calls. */
function double(
  answer: Answer = { outcome: "accepted", messageId: "id-1" },
): SmsSender & { got: CodeMessage[]; contexts: SendContext[]; heard: Feedback[]; closed: number } {
  const self = {
    got: [] as CodeMessage[],
    contexts: [] as SendContext[],
    heard: [] as Feedback[],
    closed: 0,
    send(message: CodeMessage, context: SendContext): Promise<SendOutcome> {
      self.got.push(message);
      self.contexts.push(context);
      if (answer === "never") return new Promise(() => {});
      if (answer instanceof Error) return Promise.reject(answer);
      return Promise.resolve((typeof answer === "function" ? answer(message, context) : answer) as SendOutcome);
    },
    feedback: (event: Feedback) => void self.heard.push(event),
    close: async () => void self.closed++,
  };
  return self;
}

const rejected = { outcome: "rejected", reason: "no credit" } as const;
const clocked = (clock: FixedClock, ms = 5000): SendContext => ({ signal: new AbortController().signal, deadline: clock.now() + ms, timeLeft: ms });
const first = (fields: Partial<CodeMessage> = {}) => aMessage({ attempt: 1, ...fields });
const route = (name: string, sender: SmsSender, fields: Partial<RouteOptions> = {}): RouteOptions => ({ name, sender, ...fields });
const set = (routes: RouteOptions[], options: Partial<RouterOptions> = {}) => {
  const clock = fixedClock();
  return { clock, sms: router({ routes, clock, random: () => 0.5, ...options }) };
};

describe("choice of the route", () => {
  it("takes the route that matches by country, prefix and network", async () => {
    const [fr, us, orange, rest] = [double(), double(), double(), double()];
    const { sms, clock } = set(
      [
        route("fr", fr, { countries: ["FR"], priority: 2 }),
        route("us", us, { countries: ["US"], prefixes: ["+1415"] }),
        route("orange", orange, { networks: ["208-01"] }),
        route("rest", rest, { countries: "all", priority: 3 }),
      ],
      { network: (to) => (to === "+33612345678" ? { mcc: "208", mnc: "01" } : undefined) },
    );
    const taken = async (fields: Partial<CodeMessage>) => (await sms.send(first(fields), clocked(clock))).route;
    expect(await taken({ to: "+14155552671", country: "US" })).toBe("us");
    expect(await taken({ to: "+12025550123", country: "US" })).toBe("rest");
    expect(await taken({ to: "+33612345678", country: "FR" })).toBe("orange");
    expect(await taken({ to: "+33700000000", country: "FR" })).toBe("fr");
    const { country: _, ...nowhere } = first({ to: "+88213000000" });
    expect((await sms.send(nowhere, clocked(clock))).route).toBe("rest");
  });

  it("reads a prefix with a national trunk prefix, as people write it", async () => {
    const prefixes = ["+3306", "+3906"];
    const { sms, clock } = set([route("listed", double(), { prefixes }), route("rest", double(), { priority: 2 })]);
    const taken = async (to: string) => (await sms.send(first({ to }), clocked(clock))).route;
    expect(await taken("+33612345678")).toBe("listed");
    expect(await taken("+33712345678")).toBe("rest");
    expect(await taken("+390612345678")).toBe("listed");
  });

  it("rejects a message that no route takes, names its country, and plans nothing", async () => {
    const { sms, clock } = set([route("fr", double(), { countries: ["FR"] })]);
    expect(await sms.send(first(), clocked(clock))).toEqual({ outcome: "rejected", reason: "no route for US" });
    const { country: _, ...nowhere } = first();
    expect(await sms.send(nowhere, clocked(clock))).toEqual({ outcome: "rejected", reason: "no route for a number without a country" });
    expect(sms.plan(first())).toBeUndefined();
  });

  it("assumes no network if the host's function fails", async () => {
    const { sms, clock } = set([route("n", double(), { networks: ["310"] }), route("rest", double(), { priority: 2 })], {
      network: () => {
        throw new Error("cache gone");
      },
    });
    expect(sms.plan(first())).toEqual({ route: "rest" });
    expect((await sms.send(first(), clocked(clock))).route).toBe("rest");
  });

  it("never takes a route that does not match, the same route twice, or more than maxRoutes (property)", async () => {
    const outcomes = ["accepted", "rejected", "unknown"] as const;
    const some = fc.array(
      fc.record({
        countries: fc.subarray<"FR" | "US" | "DE">(["FR", "US", "DE"], { minLength: 1 }),
        outcome: fc.constantFrom(...outcomes),
        priority: fc.integer({ min: 0, max: 2 }),
      }),
      { minLength: 1, maxLength: 6 },
    );
    await fc.assert(
      fc.asyncProperty(
        some,
        fc.constantFrom("FR", "US", "DE"),
        fc.boolean(),
        fc.integer({ min: 1, max: 4 }),
        fc.integer(),
        async (list, country, afterUnknown, maxRoutes, seed) => {
          const { sms, clock } = set(
            list.map(({ countries, outcome, priority }, i) => route(`r${i}`, double({ outcome }), { countries, priority })),
            { failover: { afterUnknown, maxRoutes }, random: seeded(seed) },
          );
          const fits = list.flatMap(({ countries }, i) => (countries.includes(country) ? [`r${i}`] : []));
          const { steps = [], route: taken, outcome } = await sms.send(first({ country }), clocked(clock));
          const names = steps.map((step) => step.route);
          expect(names.every((name) => fits.includes(name))).toBe(true);
          expect(new Set(names).size).toBe(names.length);
          expect(names.length).toBeLessThanOrEqual(Math.min(maxRoutes, fits.length));
          expect(names.length > 0).toBe(fits.length > 0);
          for (const step of steps.slice(0, -1)) expect(step.outcome === "rejected" || (afterUnknown && step.outcome === "unknown")).toBe(true);
          const priorities = names.map((name) => list[Number(name.slice(1))]!.priority);
          expect(priorities).toEqual([...priorities].sort());
          if (taken !== undefined) expect(steps.find((step) => step.route === taken)?.outcome).toBe(outcome);
          if (outcome === "rejected") expect(steps.every((step) => step.outcome === "rejected")).toBe(true);
        },
      ),
    );
  });
});

describe("plan", () => {
  it("names the route, and the message takes it", async () => {
    const { sms, clock } = set([route("a", double()), route("b", double()), route("c", double())], { random: seeded(7) });
    for (let i = 0; i < 50; i++) {
      const plan = sms.plan(first())!;
      expect(plan).toEqual({ route: expect.stringMatching(/^[abc]$/) });
      const outcome = await sms.send(first({ planned_route: plan.route }), clocked(clock));
      expect(outcome.route).toBe(plan.route);
      expect(outcome.steps).toEqual([{ route: plan.route, reason: "planned, weight 1 of 3", outcome: "accepted" }]);
    }
  });

  it("is ignored if its route does not match", async () => {
    const { sms, clock } = set([route("a", double()), route("fr", double(), { countries: ["FR"] })]);
    expect((await sms.send(first({ planned_route: "fr" }), clocked(clock))).route).toBe("a");
  });
});

describe("price", () => {
  const dear = { price: 0.09, priority: 3 };

  it("is the most that a message may cost: the price of the planned route, or the highest that a failover may lead to", () => {
    const routes = [route("a", double(), { price: 0.04 }), route("b", double(), { price: 0.05, priority: 2 }), route("c", double(), dear)];
    expect(set(routes).sms.plan(first())).toEqual({ route: "a", price: 0.09 });
    expect(set(routes, { failover: { maxRoutes: 1 } }).sms.plan(first())).toEqual({ route: "a", price: 0.04 });
    const twice = set(routes, { failover: { maxRoutes: 2, afterUnknown: true } }).sms.plan(first());
    expect(twice?.route).toBe("a");
    expect(twice?.price, "both of two routes may take it").toBeCloseTo(0.13, 9);
  });

  it("is in the end the sum for the routes that sent the message or may have, without those known not to have sent it", async () => {
    const unknown = { outcome: "unknown" } as const;
    const send = async (answers: Answer[], options: Partial<RouterOptions> = {}) => {
      const { sms, clock } = set(
        answers.map((answer, at) => route(`r${at}`, double(answer), { price: 2 ** at, priority: at })),
        options,
      );
      const outcome = await sms.send(first(), clocked(clock));
      return "price" in outcome ? outcome.price : "none";
    };
    expect(await send([rejected, { outcome: "accepted" }])).toBe(2);
    expect(await send([unknown, { outcome: "accepted" }])).toBe(1);
    expect(await send([unknown, { outcome: "accepted" }], { failover: { afterUnknown: true } })).toBe(3);
    expect(await send([unknown, rejected], { failover: { afterUnknown: true } })).toBe(1);
    expect(await send([rejected, rejected])).toBe("none");
  });

  it("is what the sender returns instead of the route's, up to what was claimed", async () => {
    const send = async (answers: Answer[], max_price?: number) => {
      const routes = answers.map((answer, at) => route(`r${at}`, double(answer), { price: 5, priority: at }));
      const { sms, clock } = set(routes, { failover: { afterUnknown: true } });
      const outcome = await sms.send(first({ max_price }), clocked(clock));
      return "price" in outcome ? outcome.price : "none";
    };
    expect(await send([{ outcome: "accepted", price: 1 }], 5)).toBe(1);
    expect(await send([{ outcome: "accepted", price: 0 }], 5)).toBe(0);
    expect(await send([{ outcome: "accepted", price: 7 }], 5)).toBe(5);
    expect(await send([{ outcome: "accepted", price: 7 }])).toBe(7);
    expect(await send([{ outcome: "accepted", price: -1 }], 5), "an invalid price is none").toBe(5);
    expect(
      await send(
        [
          { outcome: "unknown", price: 2 },
          { outcome: "accepted", price: 1 },
        ],
        10,
      ),
    ).toBe(3);
  });

  it("may differ by country, and `unpriced` lists the routes without a price for some message", () => {
    const routes = [
      route("a", double(), { price: { default: 0.08, FR: 0.05 } }),
      route("b", double(), { price: { FR: 0.04 }, countries: ["FR"], priority: 2 }),
    ];
    const { sms } = set(routes);
    expect([sms.plan(first({ country: "FR" }))?.price, sms.plan(first({ country: "US" }))?.price]).toEqual([0.05, 0.08]);
    expect(sms.unpriced).toEqual([]);
    const some = [route("c", double(), { price: { FR: 1 } }), route("d", double(), { price: { FR: 1 }, countries: ["FR", "US"] }), route("e", double())];
    expect(set([...routes, ...some]).sms.unpriced).toEqual(["c", "d", "e"]);
    expect(set(some).sms.plan(first({ country: "US" }))).toEqual({ route: expect.any(String) });
  });

  it("decides among routes of one priority with cheapestFirst, country by country", async () => {
    const [dear, cheap, unknown] = [double(), double(), double()];
    const routes = [
      route("dear", dear, { price: { default: 0.08, FR: 0.02 }, weight: 1000 }),
      route("cheap", cheap, { price: 0.04 }),
      route("unknown", unknown),
      route("backup", double(), { price: 0.01, priority: 2 }),
    ];
    const { sms } = set(routes, { cheapestFirst: true });
    expect([sms.plan(first({ country: "US" }))?.route, sms.plan(first({ country: "FR" }))?.route]).toEqual(["cheap", "dear"]);
    expect(sms.plan(first({ country: "US", routes_tried: ["cheap"], attempt: 2 }))?.route).toBe("dear");
    expect(set(routes).sms.plan(first({ country: "US" }))?.route, "unless told so, weight decides").toBe("dear");
  });

  it("is never higher in the end than planned (property)", async () => {
    const outcomes = ["accepted", "rejected", "unknown"] as const;
    const some = fc.array(fc.record({ outcome: fc.constantFrom(...outcomes), priority: fc.integer({ min: 0, max: 2 }), cents: fc.nat(20) }), {
      minLength: 1,
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(some, fc.boolean(), fc.integer({ min: 1, max: 4 }), fc.integer(), async (list, afterUnknown, maxRoutes, seed) => {
        const { sms, clock } = set(
          list.map(({ outcome, priority, cents }, i) => route(`r${i}`, double({ outcome }), { priority, price: cents / 100 })),
          { failover: { afterUnknown, maxRoutes }, random: seeded(seed) },
        );
        const plan = sms.plan(first())!;
        const outcome = await sms.send(first({ planned_route: plan.route }), clocked(clock));
        const paid = "price" in outcome ? outcome.price! : 0;
        expect(paid).toBeLessThanOrEqual(plan.price! + 1e-9);
      }),
    );
  });
});

describe("failover", () => {
  it("continues after a rejection, in order of priority, and reports each step", async () => {
    const [a, b, c] = [double(rejected), double(Object.assign(new Error("blocked"), { outcome: "rejected" })), double()];
    const { sms, clock } = set([route("c", c, { priority: 3 }), route("a", a), route("b", b, { priority: 2 })]);
    expect(await sms.send(first(), clocked(clock))).toEqual({
      outcome: "accepted",
      messageId: "id-1",
      route: "c",
      steps: [
        { route: "a", reason: "priority 1", outcome: "rejected", answer: "no credit" },
        { route: "b", reason: "failover, rejected by a", outcome: "rejected", answer: "blocked" },
        { route: "c", reason: "failover, rejected by b", outcome: "accepted" },
      ],
    });
  });

  const unknowns: [what: string, answer: Answer, reason: string][] = [
    ["an unknown outcome", { outcome: "unknown", reason: "cut" }, "cut"],
    ["an error", new Error("boom"), "boom"],
    ["no outcome", () => ({ ok: true }), "the sender's result has no outcome of accepted, rejected or unknown"],
    ["nothing", () => undefined, "the sender's result has no outcome of accepted, rejected or unknown"],
    [
      "a throw before any promise",
      () => {
        throw new Error("at once");
      },
      "at once",
    ],
  ];
  it.each(unknowns)("stops at %s, unless afterUnknown is set", async (_, answer, reason) => {
    const next = double();
    const strict = set([route("a", double(answer)), route("b", next, { priority: 2 })]);
    expect(await strict.sms.send(first(), clocked(strict.clock))).toMatchObject({ outcome: "unknown", route: "a", reason });
    expect(next.got).toEqual([]);
    const bold = set([route("a", double(answer)), route("b", next, { priority: 2 })], { failover: { afterUnknown: true } });
    expect(await bold.sms.send(first(), clocked(bold.clock))).toMatchObject({ outcome: "accepted", route: "b" });
  });

  it("does not report a message as rejected if an earlier route may have sent it", async () => {
    const { sms, clock } = set([route("a", double(new Error("cut"))), route("b", double(rejected), { priority: 2 })], { failover: { afterUnknown: true } });
    const outcome = await sms.send(first(), clocked(clock));
    expect(outcome).toMatchObject({ outcome: "unknown", route: "a" });
    expect(outcome.steps?.map((step) => step.outcome)).toEqual(["unknown", "rejected"]);
  });

  it("gives the last route's reason when all reject, without the code or the number", async () => {
    const { sms, clock } = set([route("a", double({ outcome: "rejected", reason: "493817 to +14155552671 refused" }))]);
    expect(await sms.send(first(), clocked(clock))).toMatchObject({ outcome: "rejected", route: "a", reason: "****** to +… refused" });
  });

  it("hides only the numbers of the text if a message has no code", async () => {
    const { sms, clock } = set([route("a", double({ outcome: "rejected", reason: "busy with 2468" }))]);
    const notice = first({ code: "", text: "Your order 2468 is ready" });
    expect(await sms.send(notice, clocked(clock))).toMatchObject({ outcome: "rejected", reason: "busy with ******" });
  });

  it("treats an outcome that cannot be read as unknown", async () => {
    const unreadable = () => Object.defineProperty({}, "outcome", { get: () => assert.fail("unreadable") });
    const { sms, clock } = set([route("a", double(unreadable))]);
    expect(await sms.send(first(), clocked(clock))).toMatchObject({ outcome: "unknown", reason: "unreadable" });
  });
});

describe("deadline", () => {
  it("gives one attempt all the time left, aborts it, and returns before the deadline", async () => {
    const slow = double("never");
    const { sms, clock } = set([route("a", slow), route("b", double(), { priority: 2 })]);
    const deadline = clock.now() + 5000;
    const sending = sms.send(first(), clocked(clock));
    expect(slow.contexts[0]?.deadline).toBe(deadline - 50);
    clock.advance(4949);
    expect(slow.contexts[0]?.signal.aborted).toBe(false);
    clock.advance(1);
    expect(await sending).toMatchObject({ outcome: "unknown", route: "a", reason: "no response in time", steps: [{ route: "a", outcome: "unknown" }] });
    expect(slow.contexts[0]?.signal.aborted).toBe(true);
  });

  it("asks each route but the last to give up after its share if it has sent nothing", async () => {
    const doubles = [double(rejected), double(rejected), double()] as const;
    const { sms, clock } = set(doubles.map((sender, index) => route(`r${index}`, sender, { priority: index })));
    await sms.send(first(), clocked(clock));
    expect(doubles.map(({ contexts }) => contexts[0]?.rejectAfter)).toEqual([1650, 2475, undefined]);
  });

  it("divides the time among the attempts with afterUnknown", async () => {
    const { sms, clock } = set([route("a", double("never")), route("b", double("never"), { priority: 2 }), route("c", double(), { priority: 3 })], {
      failover: { afterUnknown: true },
    });
    const sending = sms.send(first(), clocked(clock));
    clock.advance(1650);
    await vi.waitFor(() => expect(sms.health().find(({ route }) => route === "a")?.handOver.all).toBe(1));
    clock.advance(1650);
    expect(await sending).toMatchObject({ outcome: "accepted", route: "c" });
  });

  it("starts no attempt without time for it, and reports the message as rejected", async () => {
    const [late, next] = [double(), double()];
    const { sms, clock } = set([
      route(
        "a",
        double(() => {
          clock.advance(4900);
          return rejected;
        }),
      ),
      route("b", next, { priority: 2 }),
    ]);
    expect(await sms.send(first(), clocked(clock))).toMatchObject({
      outcome: "rejected",
      route: "a",
      reason: 'no credit; no time was left for route "b"',
      steps: [{ route: "a" }],
    });
    expect(next.got).toEqual([]);
    const other = set([route("a", late)]);
    expect(await other.sms.send(first(), { ...clocked(other.clock), signal: AbortSignal.abort() })).toMatchObject({ outcome: "rejected" });
    expect(late.got).toEqual([]);
  });

  it("uses the time left, even if the verifier's clock differs", async () => {
    const slow = double("never");
    const { sms, clock } = set([route("a", double(rejected)), route("b", slow, { priority: 2 })]);
    for (const verifiers of [Date.UTC(2020, 0, 1), Date.UTC(2050, 0, 1)]) {
      const sending = sms.send(first(), { signal: new AbortController().signal, deadline: verifiers + 5000, timeLeft: 5000 });
      await vi.waitFor(() => expect(slow.contexts.at(-1)).toMatchObject({ deadline: verifiers + 4950, timeLeft: 4950 }));
      clock.advance(4950);
      expect(await sending).toMatchObject({ outcome: "unknown", route: "b", reason: "no response in time" });
      const late = await sms.send(first(), { signal: new AbortController().signal, deadline: verifiers + 149, timeLeft: 149 });
      expect(late).toMatchObject({ outcome: "rejected", reason: "not sent: timed out" });
    }
    const back = sms.send(first(), clocked(clock));
    const { now } = clock;
    clock.now = () => now() - 3_600_000;
    await vi.waitFor(() => expect(slow.contexts).toHaveLength(3));
    expect(slow.contexts[2]?.timeLeft, "a clock that is set back gives no more").toBe(4950);
    clock.advance(4950);
    await back;
  });

  it("stops when the caller aborts", async () => {
    const slow = double("never");
    const { sms, clock } = set([route("a", slow)]);
    const abort = new AbortController();
    const sending = sms.send(first(), { ...clocked(clock), signal: abort.signal });
    abort.abort();
    expect(await sending).toMatchObject({ outcome: "unknown" });
    expect(slow.contexts[0]?.signal.aborted).toBe(true);
  });
});

describe("a retry", () => {
  it("prefers a route not yet used for the authentication, even of a lower priority", async () => {
    const { sms, clock } = set([route("a", double()), route("b", double(), { priority: 2 })]);
    const retry = aMessage({ attempt: 2, routes_tried: ["a"] });
    expect(sms.plan(retry)).toEqual({ route: "b" });
    expect((await sms.send(retry, clocked(clock))).steps).toEqual([{ route: "b", reason: "not used yet, priority 2", outcome: "accepted" }]);
    expect(sms.plan(aMessage({ attempt: 3, routes_tried: ["a", "b"] }))).toEqual({ route: "a" });
  });
});

describe("health", () => {
  it("opens the breaker of a route whose hand-overs fail, for each country apart, and still sends when all are open", async () => {
    const broken = new Set(["US"]);
    const bad = double((message: CodeMessage) => (broken.has(message.country!) ? Promise.reject(new Error("cut")) : { outcome: "accepted" }));
    const good = double();
    const { sms, clock } = set([route("bad", bad), route("good", good, { priority: 2 })]);
    const send = (country: string, i: number) => sms.send(first({ country, authentication_uuid: `${country}${i}` }), clocked(clock));
    for (let i = 0; i < 30; i++) {
      await send("US", i);
      await send("FR", i);
    }
    const state = (country: string, name: string) => sms.health().find((entry) => entry.country === country && entry.route === name)?.breaker;
    expect([state("US", "bad"), state("US", "good"), state("FR", "bad")]).toEqual(["open", "closed", "closed"]);
    expect((await send("US", 99)).route).toBe("good");
    expect((await send("FR", 99)).route).toBe("bad");

    const alone = set([route("bad", bad)]);
    for (let i = 0; i < 30; i++) await alone.sms.send(first({ authentication_uuid: `x${i}` }), clocked(alone.clock));
    expect(alone.sms.health()[0]?.breaker).toBe("open");
    expect(alone.sms.plan(first())).toEqual({ route: "bad" });
  });

  it("probes a half-open route with first messages, closes its breaker when it has recovered, and ignores its old failures", async () => {
    let broken = true;
    const bad = double(() => (broken ? Promise.reject(new Error("cut")) : { outcome: "accepted" }));
    // The smallest draw: the first of equal routes, and a probe wherever one is allowed.
    const { sms, clock } = set([route("bad", bad), route("good", double())], { random: () => 0 });
    const state = () => sms.health().find((entry) => entry.route === "bad")?.breaker;
    let sent = 0;
    const send = () => sms.send(first({ authentication_uuid: `x${sent++}` }), clocked(clock));
    while (state() !== "open") await send();
    expect(sent).toBeLessThanOrEqual(30);
    expect(sms.plan(first())).toEqual({ route: "good" });
    broken = false;
    clock.advance(60_000);
    expect(sms.plan(aMessage({ attempt: 2, routes_tried: ["good"] }))).toEqual({ route: "good" });
    expect(state()).toBe("half-open");
    for (let probe = 0; probe < 20; probe++) expect((await send()).steps).toEqual([{ route: "bad", reason: "probe", outcome: "accepted" }]);
    expect((await send()).route).toBe("good");
    // The probes' slice of 15 s must be over, and each probe must have had its 60 s.
    clock.advance(74_999);
    expect(state()).toBe("half-open");
    clock.advance(1);
    expect(sms.health().find((entry) => entry.route === "bad")).toMatchObject({ breaker: "closed", health: 1 });
    for (let more = 0; more < 30; more++) expect((await send()).route).toBe("bad");
    expect(sms.health().find((entry) => entry.route === "bad")).toMatchObject({ breaker: "closed", health: 1, handOver: { good: 50, all: 50 } });
  });

  it("logs a breaker that opens, with the last reason and the counts, and one that closes, for each country", async () => {
    const carrier = { broken: true };
    const bad = double((message: CodeMessage) => (carrier.broken ? { outcome: "rejected", reason: `HTTP 401 for ${message.to}` } : { outcome: "accepted" }));
    const log = logger();
    const { sms, clock } = set([route("bad", bad), route("good", double())], { random: () => 0, logger: log });
    let sent = 0;
    const send = (country: string) => sms.send(first({ country, authentication_uuid: `x${sent++}` }), clocked(clock));
    for (const country of ["FR", "US"]) for (let message = 0; message < 30; message++) await send(country);
    expect(sms.health().filter(({ breaker }) => breaker === "open")).toHaveLength(2);
    expect(log.lines).toEqual(
      ["FR", "US"].map((country) => ({
        level: "warn",
        fields: expect.objectContaining({ route: "bad", country, reason: "HTTP 401 for +…", handOver: { good: 0, all: expect.any(Number) } }),
        message: "the breaker of a route opened: others carry its messages, as far as they can",
      })),
    );

    carrier.broken = false;
    clock.advance(60_000);
    for (let probe = 0; probe < 20; probe++) await send("FR");
    clock.advance(75_000);
    await send("FR");
    expect(log.lines.slice(2)).toEqual([
      { level: "warn", fields: { route: "bad", country: "FR" }, message: "the breaker of a route closed: it carries its share of the messages again" },
    ]);
  });

  it("sends no more than one round of probes at a time, even if none is answered yet", async () => {
    const carrier = { broken: true };
    const slow = double(() => (carrier.broken ? Promise.reject(new Error("cut")) : new Promise(() => {})));
    const { sms, clock } = set([route("slow", slow), route("good", double())], { random: () => 0 });
    for (let n = 0; n < 30; n++) await sms.send(first({ authentication_uuid: `x${n}` }), clocked(clock));
    carrier.broken = false;
    clock.advance(75_000);
    const before = slow.got.length;
    const sending = Array.from({ length: 50 }, (_, n) => sms.send(first({ authentication_uuid: `y${n}` }), clocked(clock)));
    expect(slow.got.length - before).toBe(20);
    clock.advance(5000);
    await Promise.all(sending);
  });

  it("evaluates a round once it is full, even if the only route keeps sending", async () => {
    const carrier = { broken: true };
    const only = double(() => (carrier.broken ? Promise.reject(new Error("cut")) : { outcome: "accepted" }));
    const { sms, clock } = set([route("only", only)]);
    let sent = 0;
    const pass = async (ms: number) => {
      for (const end = clock.now() + ms; clock.now() < end; clock.advance(1000)) await sms.send(first({ authentication_uuid: `x${sent++}` }), clocked(clock));
    };
    await pass(30_000);
    expect(sms.health()[0]?.breaker).toBe("open");
    carrier.broken = false;
    await pass(75_000);
    expect(sms.health()[0]?.breaker).toBe("half-open");
    await pass(105_000);
    expect(sms.health()[0]?.breaker).toBe("closed");
  });

  it("counts codes and receipts of chosen messages that arrive in time, once all are due, and none of other processes' messages", async () => {
    const sender = double();
    const { sms, clock } = set([route("a", sender), route("b", double(), { priority: 2 })]);
    const sent_at = clock.now();
    for (const id of ["x", "y", "z"]) await sms.send(first({ authentication_uuid: id }), clocked(clock));
    const event = (authentication_uuid: string, what: Feedback["event"], chosen = true, from = "a") =>
      sms.feedback!({ route: from, country: "US", authentication_uuid, attempt: 1, event: what, sent_at, chosen });
    event("x", "validated");
    event("y", "undeliverable");
    event("y", "validated", false);
    event("elsewhere", "validated");
    event("z", "validated", true, "gone");
    clock.advance(60_001);
    event("z", "validated");
    clock.advance(14_998);
    expect(sms.health()[0]).toMatchObject({ conversion: { good: 0, all: 0 }, handOver: { good: 3, all: 3 } });
    clock.advance(1);
    expect(sms.health().map((entry) => entry.route)).toEqual(["a", "b"]);
    expect(sms.health()[0]).toMatchObject({ conversion: { good: 1, all: 3 }, receipts: { good: 0, all: 1 }, latency: { good: 3, all: 3 } });
    expect(sender.heard.map(({ authentication_uuid }) => authentication_uuid)).toEqual(["x", "y", "y", "elsewhere", "z"]);
    clock.advance(3_600_000);
    expect(sms.health()[0]).toMatchObject({ conversion: { good: 0, all: 0 }, handOver: { good: 0, all: 0 } });
  });

  it("stores an hour of counts in stretches, whatever the clock does", async () => {
    const { sms, clock } = set([route("a", double())]);
    for (let minute = 0; minute < 60; minute++) {
      await sms.send(first({ authentication_uuid: `${minute}` }), clocked(clock));
      clock.advance(60_000);
    }
    const known = () => sms.health()[0];
    expect(known()?.handOver.all).toBeGreaterThanOrEqual(55);
    expect(known()?.conversion.all).toBe((known()?.handOver.all ?? 0) - 1);
    clock.advance(1_800_000);
    expect(known()?.handOver.all).toBeGreaterThanOrEqual(25);
    expect(known()?.handOver.all).toBeLessThanOrEqual(30);
    clock.set(clock.now() - 86_400_000);
    await sms.send(first(), clocked(clock));
    expect(known()?.handOver.all, "what lies ahead after a clock was set back is forgotten").toBe(1);
  });

  it("compares like with like: conversion does not include retries, failovers and rejected messages", async () => {
    const { sms, clock } = set([route("a", double(rejected)), route("b", double(), { priority: 2 })]);
    await sms.send(first({ authentication_uuid: "x" }), clocked(clock));
    await sms.send(aMessage({ attempt: 2, routes_tried: ["a"] }), clocked(clock));
    const other = set([route("c", double())]);
    await other.sms.send(first({ planned_route: "gone" }), clocked(other.clock));
    clock.advance(75_000);
    other.clock.advance(75_000);
    expect([...sms.health(), ...other.sms.health()].map(({ conversion }) => conversion.all)).toEqual([0, 0, 0]);
  });

  it("counts slow responses", async () => {
    const { sms, clock } = set([
      route(
        "a",
        double(() => {
          clock.advance(2001);
          return { outcome: "accepted" };
        }),
      ),
    ]);
    await sms.send(first(), clocked(clock));
    expect(sms.health()[0]?.latency).toEqual({ good: 0, all: 1 });
  });
});

it("closes each sender once, even if one fails to close", async () => {
  const [shared, failing] = [double(), double()];
  failing.close = () => Promise.reject(new Error("stuck"));
  const { sms } = set([route("a", failing), route("b", shared), route("c", shared)]);
  await expect(sms.close?.()).rejects.toThrow("stuck");
  expect(shared.closed).toBe(1);
});

it("an option that is explicitly undefined counts as left out", () => {
  const plain = { name: "a", sender: double() };
  const none = (fields: readonly string[]) => Object.fromEntries(fields.map((field) => [field, undefined]));
  const health = {
    ...none(["window", "settle", "slowAfter", "minSample", "probeAfter", "probeShare", "probes"]),
    tolerance: none(["conversion", "handOver", "receipts", "latency"]),
  };
  const options = { ...none(["network", "cheapestFirst", "store", "logger", "random"]), failover: none(["afterUnknown", "maxRoutes"]), health };
  const routes = [{ ...plain, ...none(["countries", "prefixes", "networks", "priority", "weight", "price"]) }];
  const clock = fixedClock();
  const expected = readRouterOptions({ routes: [plain], clock });
  expect(readRouterOptions({ ...options, routes, clock } as RouterOptions)).toEqual(expected);
  expect(readRouterOptions({ ...none(["failover", "health"]), routes: [plain], clock } as RouterOptions)).toEqual(expected);
  expect(expected.health).toMatchObject({ window: 3_600_000, settle: 60_000, tolerance: { conversion: 0.05 } });
  expect(expected.routes[0]!.sender).toBe(plain.sender);
});

describe("invalid options throw at construction, with the option and the fix", () => {
  const good = route("a", double());
  const cases: [options: unknown, fault: string | RegExp][] = [
    [undefined, /^router: options must be \{ routes/],
    [{ routes: [] }, "router: routes must hold at least one route"],
    [{ routes: [good, { ...good }] }, 'router: routes.1.name is "a", as is routes.0.name: give each route its own name'],
    [{ routes: [{ ...good, name: "" }] }, /routes\.0\.name must be 1 to 64 letters/],
    [{ routes: [{ ...good, sender: {} }] }, /routes\.0\.sender must be an SMS sender: an object with the method send/],
    [{ routes: [{ ...good, countries: [] }] }, "router: routes.0.countries must not be empty: leave it out for a route that takes every number"],
    [{ routes: [{ ...good, countries: ["fr"] }] }, /routes\.0\.countries\.0 must be an ISO 3166-1 alpha-2 code in capitals/],
    [{ routes: [{ ...good, countries: "FR" }] }, /routes\.0\.countries must be "all" or a list/],
    [{ routes: [{ ...good, prefixes: ["33"] }] }, /routes\.0\.prefixes\.0 must be the beginning of a number/],
    [{ routes: [{ ...good, prefixes: ["+440"] }] }, /routes\.0\.prefixes\.0 ends with the digits that are dialled before numbers within the country/],
    [{ routes: [{ ...good, networks: ["20801"] }], network: () => undefined }, /routes\.0\.networks\.0 must be MCC or MCC-MNC/],
    [{ routes: [{ ...good, networks: ["208"] }] }, /routes\.0\.networks needs the option network/],
    [{ routes: [{ ...good, weight: 0 }] }, "router: routes.0.weight must be more than 0"],
    [{ routes: [{ ...good, price: -1 }] }, "router: routes.0.price must be 0 or more"],
    [{ routes: [{ ...good, price: { default: -1 } }] }, "router: routes.0.price.default must be 0 or more"],
    [{ routes: [{ ...good, price: { france: 1 } }] }, "routes.0.price.france"],
    [{ routes: [{ ...good, price: "0.05" }] }, "router: routes.0.price must be a number, or one for each country: { default: 0.08, FR: 0.05 }"],
    [{ routes: [good], cheapestFirst: "yes" }, "router: cheapestFirst must be true or false"],
    [{ routes: [good], store: {} }, /store must be a store, for example redisStore/],
    [{ routes: [good], logger: console.log }, /logger must be a logger/],
    [{ routes: [{ ...good, wieght: 1 }] }, "router: routes.0.wieght is not an option: did you mean weight?"],
    [{ routes: [good], failover: { maxRoutes: 0 } }, "router: failover.maxRoutes must be 1 or more"],
    [
      { routes: [good], health: { probeShare: 2, tolerance: { speed: 1 } } },
      /health\.tolerance\.speed is not an option.*; health\.probeShare must be at most 1|health\.probeShare must be at most 1/,
    ],
    [{ routes: [good], health: { window: 100 } }, /health\.settle is 60 and must be at most half of health\.window, which is 100/],
    [{ routes: [good], clock: { now: () => 1 } }, /clock must be a clock/],
  ];
  it.each(cases)("row %#", (options, fault) => {
    expect(() => router(options as RouterOptions)).toThrow(TypeError);
    expect(() => router(options as RouterOptions)).toThrow(fault);
  });
});

describe("the sender contract, on the system's clock", () => {
  for (const { name, run } of senderContract({ behaviours: ["accepts", "refuses", "fails", "garbles", "withholds"] })) {
    it(name, () =>
      run({
        async open(behaviour) {
          const answers: Record<string, Answer> = { refuses: rejected, fails: new Error("500"), garbles: () => "??", withholds: "never" };
          let count = 0;
          const carrier = double(answers[behaviour] ?? (() => ({ outcome: "accepted", messageId: `id-${count++}` })));
          return { sender: router({ routes: [route("only", carrier)] }), received: () => carrier.got };
        },
      }),
    );
  }
});
