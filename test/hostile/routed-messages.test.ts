import { expect, onTestFinished, test, vi } from "vitest";
import { company, draws, french, signed, spanish } from "./routed-messages-kit.js";

const second = 1000;
const minute = 60 * second;
const rejected = { outcome: "rejected", reason: "HTTP 400, code 7" } as const;

test.each([
  ["takes a route that no earlier message used", ["a", "b", "c", "d", "e"]],
  ["is not sent if earlier messages have used every route", ["a", "b", "c", "d"]],
])("a fallback after three retries %s", async (_what, routes) => {
  const it = company(
    routes.map((name, priority) => ({ name, priority })),
    { fallback: { on: ["undeliverable"] } },
  );
  onTestFinished(it.close);
  const { authentication_uuid } = await it.create();
  for (let retry = 0; retry < 3; retry++) {
    it.clock.advance(2 * minute);
    await it.verifier.retry({ authentication_uuid });
  }
  await it.receipt("undeliverable");
  it.clock.advance(6 * second);
  await it.flush();
  expect(it.routes()).toEqual(routes);
});

test("the fourth retry prefers the fifth route, which was not used, to the first one", async () => {
  const it = company(["a", "b", "c", "d", "e"].map((name, priority) => ({ name, priority })));
  onTestFinished(it.close);
  const { authentication_uuid } = await it.create();
  for (let retry = 0; retry < 4; retry++) {
    it.clock.advance(3 * minute - 35 * second);
    await it.verifier.retry({ authentication_uuid });
  }
  expect(it.routes()).toEqual(["a", "b", "c", "d", "e"]);
});

test("a breaker stays open until a probe has succeeded, however few messages there are", async () => {
  let draw = 0.25;
  const it = company([{ name: "down", answer: () => rejected }, { name: "up" }], { random: () => draw });
  onTestFinished(it.close);
  for (let index = 0; index < 60; index++) {
    draw = index % 2 ? 0.25 : 0.75;
    await it.create(french(index));
    it.clock.advance(second);
  }
  expect(it.breakers()).toEqual(["opened FR"]);
  draw = 0.99; // by chance, no message is a probe
  const before = it.handed.length;
  for (let index = 0; index < 70; index++) {
    it.clock.advance(minute);
    await it.create(french(100 + index));
  }
  expect(it.breakers()).toEqual(["opened FR"]);
  expect(it.routes().slice(before)).not.toContain("down");
  draw = 0.4; // every second message may be a probe, as one is overdue
  for (let index = 0; index < 5; index++) {
    await it.create(french(200 + index));
    it.clock.advance(minute);
  }
  expect(
    it
      .routes()
      .slice(before)
      .filter((route) => route === "down"),
  ).toHaveLength(1);
  expect(it.sender.health().find(({ route }) => route === "down")?.breaker).not.toBe("closed");
});

test("the reason of a breaker that opens is of the failures that opened it, not of an earlier day", async () => {
  let first = true;
  const it = company([{ name: "silent", answer: () => (first ? rejected : { outcome: "accepted" }) }, { name: "up" }], { random: draws() });
  onTestFinished(it.close);
  while (first) {
    await it.create(); // the only rejection, days before
    first = !it.routes().includes("silent");
  }
  it.clock.advance(3 * 24 * 60 * minute);
  for (let index = 1; index < 200 && !it.breakers().length; index++) {
    const { authentication_uuid } = await it.create(french(index));
    const newest = it.handed.at(-1);
    if (newest?.route === "up") await it.verifier.check({ authentication_uuid, check_code: newest.message.code });
    it.clock.advance(5 * second);
  }
  const opened = it.lines.find(({ message }) => message.includes("opened"))?.fields ?? {};
  const { handOver } = opened as { handOver?: { good: number; all: number } };
  expect(opened).toMatchObject({ route: "silent", country: "FR" });
  expect(handOver?.good).toBe(handOver?.all); // every hand-over was accepted
  expect(opened).not.toMatchObject({ reason: "HTTP 400, code 7" });
});

test("the log names the breaker of each country, also if two open within a minute", async () => {
  let draw = 0.25;
  const it = company([{ name: "down", answer: () => rejected }, { name: "up" }], { random: () => draw });
  onTestFinished(it.close);
  for (let index = 0; index < 120; index++) {
    draw = index % 4 < 2 ? 0.25 : 0.75;
    await it.create((index % 2 ? french : spanish)(index));
    it.clock.advance(second / 2);
  }
  const states = it.sender.health().filter(({ route, breaker }) => route === "down" && breaker !== "closed");
  expect(states.map(({ country }) => country).sort()).toEqual(["ES", "FR"]);
  it.clock.advance(2 * minute);
  await it.create(french(999));
  const text = JSON.stringify(it.lines.filter(({ message }) => message.includes("breaker")));
  expect(text).toContain("ES");
  expect(text).toContain("FR");
});

test("a network function that throws is logged", async () => {
  const it = company([{ name: "orange", networks: ["208-01"], priority: 0 }, { name: "rest" }], {
    network: () => {
      throw new Error("the table of networks is not loaded");
    },
  });
  onTestFinished(it.close);
  await it.create();
  expect(it.routes()).toEqual(["rest"]);
  expect(JSON.stringify(it.lines)).toContain("the table of networks is not loaded");
});

test("a network function that returns a promise is reported", async () => {
  const network = (async () => ({ mcc: "208", mnc: "01" })) as unknown as () => undefined;
  const it = company([{ name: "orange", networks: ["208-01"], priority: 0 }, { name: "rest" }], { network });
  onTestFinished(it.close);
  await it.create();
  expect(JSON.stringify(it.lines)).toMatch(/network/);
});

test("a receipt of the carrier that may have sent the message too is not taken for one of the carrier that took it", async () => {
  const it = company(
    [
      { name: "a", priority: 0, answer: () => ({ outcome: "unknown", reason: "HTTP 500" }), sender: { receiptProviders: ["acme"] } },
      { name: "b", priority: 1, sender: { receiptProviders: ["best"] } },
    ],
    { failover: { afterUnknown: true } },
    { receipts: { baseUrl: "https://api.example", sources: [signed("acme"), signed("best")] } },
  );
  onTestFinished(it.close);
  const { authentication_uuid } = await it.create();
  expect(it.routes()).toEqual(["a", "b"]);
  const [byA, byB] = it.handed;
  expect((await it.post("acme", byA?.message, "undeliverable")).status).toBe(200);
  expect((await it.post("best", byB?.message, "delivered")).status).toBe(200);
  const { sends } = await it.verifier.explain({ authentication_uuid });
  expect(sends.find(({ route }) => route === "b")).toMatchObject({ delivery: "delivered" });
});

test("a signed receipt counts while the route that took the message is not known", async () => {
  const it = company(
    [
      { name: "a", priority: 0, answer: () => rejected, sender: { receiptProviders: ["acme"] } },
      { name: "b", priority: 1, answer: () => new Promise<never>(() => {}), sender: { receiptProviders: ["best"] } },
    ],
    {},
    { receipts: { baseUrl: "https://api.example", sources: [signed("acme"), signed("best")] } },
  );
  onTestFinished(it.close);
  const creating = it.create();
  await vi.waitFor(() => expect(it.routes()).toEqual(["a", "b"]));
  it.clock.advance(minute);
  const { authentication_uuid } = await creating;
  await it.post("best", it.handed[1]?.message, "delivered");
  const { sends } = await it.verifier.explain({ authentication_uuid });
  expect(sends.at(-1)).toMatchObject({ delivery: "delivered" });
});

test("a signed receipt of a provider that belongs to no route counts", async () => {
  const answer = () => ({ outcome: "unknown", reason: "HTTP 500" }) as const;
  const routes = [
    { name: "a", priority: 0, answer },
    { name: "b", priority: 1, sender: { receiptProviders: ["best"] } },
  ];
  const sources = [signed("best"), signed("own")];
  const it = company(routes, { failover: { afterUnknown: true } }, { receipts: { baseUrl: "https://api.example", sources } });
  onTestFinished(it.close);
  const { authentication_uuid } = await it.create();
  await it.post("own", it.handed[1]?.message, "delivered");
  const { sends } = await it.verifier.explain({ authentication_uuid });
  expect(sends.at(-1)).toMatchObject({ route: "b", delivery: "delivered" });
});

test("a fallback does not take the route that may have sent the message already", async () => {
  const it = company(
    [
      { name: "a", priority: 0, answer: () => ({ outcome: "unknown", reason: "HTTP 500" }) },
      { name: "b", priority: 1 },
      { name: "c", priority: 2 },
    ],
    { failover: { afterUnknown: true }, fallback: { on: ["undeliverable"] } },
  );
  onTestFinished(it.close);
  await it.create();
  expect(it.routes()).toEqual(["a", "b"]);
  await it.receipt("undeliverable");
  it.clock.advance(6 * second);
  await it.flush();
  expect(it.routes()).toEqual(["a", "b", "c"]);
});

test("a message has no fallback if the only other route may have sent it already", async () => {
  const it = company(
    [
      { name: "a", priority: 0, answer: () => ({ outcome: "unknown", reason: "HTTP 500" }) },
      { name: "b", priority: 1, sender: { confirms: true } },
    ],
    { failover: { afterUnknown: true }, fallback: { on: ["silent"] } },
  );
  onTestFinished(it.close);
  const { authentication_uuid } = await it.create();
  it.clock.advance(30 * second);
  await it.flush();
  const { decisions } = await it.verifier.explain({ authentication_uuid });
  expect(decisions.map(({ rule }) => rule)).toEqual(["a", "b"]);
});

test("explain does not give the response of one carrier as that of another one", async () => {
  const it = company(
    [
      { name: "a", priority: 0, answer: () => ({ outcome: "unknown", reason: "HTTP 500" }) },
      { name: "b", priority: 1 },
    ],
    { failover: { afterUnknown: true } },
  );
  onTestFinished(it.close);
  const { authentication_uuid } = await it.create();
  const { sends } = await it.verifier.explain({ authentication_uuid });
  const accepted = sends.find(({ route }) => route === "b");
  expect(accepted).toMatchObject({ state: "accepted" });
  expect(accepted?.reason).toBeUndefined();
});

test("a backup that was idle gets the messages when the four first carriers return nothing but errors", async () => {
  const broken = () => ({ outcome: "unknown", reason: "HTTP 500" }) as const;
  const it = company(
    [
      { name: "first", priority: 0, answer: broken },
      { name: "second", priority: 0, answer: broken },
      { name: "third", priority: 0, answer: broken },
      { name: "fourth", priority: 0, answer: broken },
      { name: "backup", priority: 1 },
    ],
    { random: draws() },
  );
  onTestFinished(it.close);
  for (let index = 0; index < 200; index++) {
    await it.create(french(index));
    it.clock.advance(5 * second);
  }
  expect(it.routes().filter((route) => route === "backup").length).toBeGreaterThan(50);
});

test("a backup gets the messages when the three carriers before it begin to reject all of them", async () => {
  let down = false;
  const answer = () => (down ? rejected : ({ outcome: "accepted" } as const));
  const it = company([...["a", "b", "c"].map((name) => ({ name, priority: 0, answer })), { name: "backup", priority: 1 }], { random: draws() });
  onTestFinished(it.close);
  for (let index = 0; index < 250; index++) {
    down = index >= 100;
    await it.create(french(index));
    it.clock.advance(5 * second);
  }
  expect(it.routes()).toContain("backup");
});

test("the reason of a call that no route makes is about calls, if messages have a route", async () => {
  const it = company([{ name: "sms" }, { name: "call", lines: ["FixedLine"], sender: { channel: "voice", callsFixedLines: () => true } }]);
  onTestFinished(it.close);
  const { authentication_uuid } = await it.verifier.createAuthentication({ phone_number: french(0), channel: "voice" });
  const { sends } = await it.verifier.explain({ authentication_uuid });
  expect(sends[0]?.reason).toMatch(/voice|call/);
});

test("the error about silence names a fix to those who did not set fallback.on", () => {
  expect(() => company([{ name: "a" }, { name: "b" }], { fallback: { after: 20 } })).toThrow(/on: \[|set fallback\.on/);
});
