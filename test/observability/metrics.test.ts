import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fetchHandler } from "../../adapters/http/fetch.js";
import { nextHandlers } from "../../adapters/http/next.js";
import { createFamily, mostRows, mostValues } from "../../src/observability/metrics.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { router } from "../../src/routing/router.js";
import { send } from "../http/client.js";
import { mountings } from "../http/hosts.js";
import { inbox, numberOf, onePerTenMinutes, setUp } from "../support/verifier.js";
import { parseText, sumOf } from "./prometheus.js";

/** A sender with the given route names. */
function routed(routeOf: (index: number) => string) {
  let sent = 0;
  return Object.assign(inbox(), { answer: async () => ({ outcome: "accepted", route: routeOf(sent++) }) }) as never;
}

/** A sender of a channel that no number is on. */
const wa = { channel: "whatsapp", send: async () => ({ outcome: "rejected", unreachable: true }) } as const satisfies SmsSender;

const wide = { policy: { limits: { perCustomer: [] } } };

describe("metrics as Prometheus text", () => {
  it("counts operations, messages, right codes, rules and responses", async () => {
    const set = setUp({ policy: onePerTenMinutes });
    const { authentication_uuid: id } = await set.create();
    await set.create();
    await set.check(id, set.wrong());
    await set.check(id, set.box.code());
    await set.create({ phone_number: "+3312" }).catch(() => undefined);
    await set.http("POST", "/v1/check", { customer_uuid: set.customer, authentication_uuid: id, check_code: "1" });
    await set.http("GET", "/v1/nothing");
    const text = set.verifier.metrics();
    for (const line of [
      'phoneproof_operations_total{operation="create",result="pending"} 1',
      'phoneproof_operations_total{operation="create",result="rate_limited"} 1',
      'phoneproof_operations_total{operation="create",result="invalid_phone_number"} 1',
      'phoneproof_operations_total{operation="check",result="already_validated"} 1',
      'phoneproof_messages_total{country="FR",route="none",channel="sms",outcome="accepted"} 1',
      'phoneproof_messages_total{country="FR",route="none",channel="sms",outcome="rejected"} 0',
      'phoneproof_verified_total{country="FR",route="none",channel="sms"} 1',
      'phoneproof_rules_fired_total{rule="perNumber",mode="enforce"} 1',
      'phoneproof_http_answers_total{route="check",status="200"} 1',
      'phoneproof_http_answers_total{route="none",status="404"} 1',
      'phoneproof_operation_seconds_bucket{operation="create",le="+Inf"} 2',
      'phoneproof_operation_seconds_count{operation="create"} 2',
      'phoneproof_outage{part="store"} 0',
      'phoneproof_alarms_total{alarm="spend"} 0',
    ])
      expect(text.split("\n")).toContain(line);
  });

  it("a message counts for each route that was tried, with its outcome", async () => {
    const main = Object.assign(inbox(), { answer: async () => ({ outcome: "rejected", reason: "HTTP 401" }) as const });
    const routes = [
      { name: "wa", sender: wa, priority: 0 },
      { name: "main", sender: main, priority: 1 },
      { name: "second", sender: inbox(), priority: 2 },
    ];
    const set = setUp({ ...wide, sender: router({ routes }) });
    for (let index = 0; index < 3; index++) await set.create({ phone_number: numberOf(index) });
    const text = set.verifier.metrics();
    const messages = parseText(text).filter(({ name, value }) => name === "phoneproof_messages_total" && value > 0);
    expect(messages.map(({ labels, value }) => [labels["route"], labels["channel"], labels["outcome"], value])).toEqual([
      ["main", "sms", "rejected", 3],
      ["second", "sms", "accepted", 3],
    ]);
    expect(text).toContain('phoneproof_message_seconds_count{route="second"} 3\n');
  });

  it("a number that is not on the channel of the only route counts as rejected", async () => {
    const set = setUp({ sender: router({ routes: [{ name: "wa", sender: wa }] }) });
    await set.create();
    expect(set.verifier.metrics()).toContain('phoneproof_messages_total{country="FR",route="wa",channel="whatsapp",outcome="rejected"} 1\n');
  });

  it("durations are counted in the right buckets, in seconds", async () => {
    const set = setUp();
    set.box.answer = async () => {
      set.clock.advance(300);
      return { outcome: "accepted" };
    };
    await set.create();
    const text = set.verifier.metrics();
    expect(text).toContain('phoneproof_message_seconds_bucket{route="none",le="0.25"} 0\n');
    expect(text).toContain('phoneproof_message_seconds_bucket{route="none",le="0.5"} 1\n');
    expect(text).toContain('phoneproof_message_seconds_sum{route="none"} 0.3\n');
  });

  it("two verifiers in one process count separately", async () => {
    const [one, two] = [setUp(), setUp()];
    await one.create();
    expect(sumOf(one.verifier.metrics(), "phoneproof_operations_total")).toBe(1);
    expect(sumOf(two.verifier.metrics(), "phoneproof_operations_total")).toBe(0);
  });

  it("a hundred scrapes during requests are each complete, and are not counted as operations", async () => {
    const set = setUp(wide);
    const creates = Array.from({ length: 100 }, (_, index) => set.create({ phone_number: numberOf(index) }));
    const scrapes = await Promise.all(
      Array.from({ length: 100 }, () =>
        set.verifier.metricsHandler.handle({ method: "GET", path: "/metrics", header: () => undefined, body: async () => ({ kind: "text", text: "" }) }),
      ),
    );
    await Promise.all(creates);
    for (const { status, body } of scrapes) {
      expect(status).toBe(200);
      expect(() => parseText(body)).not.toThrow();
    }
    expect(sumOf(set.verifier.metrics(), "phoneproof_operations_total")).toBe(100);
  });
});

it("docs/watching.md: the table of metrics lists exactly the metrics that exist, with their labels", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/watching.md"), "utf8");
  const table = /<!-- metrics:.*?-->([\s\S]*?)<!-- \/metrics -->/.exec(page)?.[1] ?? "";
  const rows = [...table.matchAll(/^\| `(phoneproof_\w+)` \| (.*?) ?\|/gm)].map(([, name, labels]) => [
    name,
    [...(labels ?? "").matchAll(/`(\w+)`/g)].map(([, label]) => label),
  ]);
  const text = setUp().verifier.metrics();
  expect(rows.map(([name]) => name).sort()).toEqual([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name).sort());
  for (const { name, labels } of parseText(text)) expect(rows).toContainEqual([name, Object.keys(labels)]);
});

describe("labels are bounded and contain no personal data", () => {
  it("of 2,000 routes a few hundred are labels, the rest are counted as other", async () => {
    const set = setUp({ sender: routed((index) => `route-${index.toString(36)}`), ...wide });
    for (let index = 0; index < 2_000; index++) await set.create({ phone_number: numberOf(index) });
    const routes = new Set(
      parseText(set.verifier.metrics())
        .filter(({ name }) => name === "phoneproof_messages_total")
        .map(({ labels }) => labels["route"]),
    );
    expect(routes.size).toBeLessThanOrEqual(mostValues + 1);
    expect(routes).toContain("other");
    expect(sumOf(set.verifier.metrics(), "phoneproof_messages_total")).toBe(2_000);
  });

  it("a family never exceeds its number of rows", () => {
    const family = createFamily(1);
    for (let first = 0; first < 250; first++) for (let second = 0; second < 250; second++) family.add([`c${first}`, `r${second}`]);
    const rows = [...family.rows.values()];
    expect(rows.length).toBeLessThanOrEqual(mostRows + 1);
    expect(rows.find(({ values }) => values.join() === "other,other")?.numbers).toEqual([250 * 250 - mostRows]);
  });

  it.each(["enforce", "shadow"] as const)("a rule with several levels or limits counts once for each request, in mode %s", async (mode) => {
    const set = setUp({ policy: { limits: { perCustomer: [] }, spam: { range: { mode, seeds: [0, 0, 0] } } } });
    for (let index = 0; index < 10; index++) await set.create({ phone_number: numberOf(index) });
    expect(set.verifier.metrics()).toContain(`phoneproof_rules_fired_total{rule="range",mode="${mode}"} 10\n`);
  });

  it("a rule with a number in its name is counted under its first word", async () => {
    const set = setUp({ spamRules: [{ name: "mine 7", judge: () => ({ reason: "no" }) }] });
    await set.create();
    expect(set.verifier.metrics()).toContain('phoneproof_rules_fired_total{rule="mine",mode="enforce"} 1');
  });

  it.each(["+33612345678", "612345678", "a@b.example", "203.0.113.7", "2001:db8::7", "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", "x".repeat(65)])(
    "a route called %s is counted as other",
    async (route) => {
      const set = setUp({ sender: routed(() => route) });
      await set.create();
      const text = set.verifier.metrics();
      expect(text).not.toContain(route);
      expect(text).toContain('route="other"');
    },
  );

  it("quotes, backslashes and line breaks in a label are escaped", async () => {
    const route = 'a"} 1\nphoneproof_faked_total{b="\\';
    const set = setUp({ sender: routed(() => route) });
    await set.create();
    const samples = parseText(set.verifier.metrics());
    expect(samples.some(({ name }) => name === "phoneproof_faked_total")).toBe(false);
    expect(samples.find(({ name, labels }) => name === "phoneproof_messages_total" && labels["route"] === route)).toBeDefined();
  });
});

describe("verifier.metricsHandler, in every framework", () => {
  // Hono's mountings, and those with /v1 in their names, only handle the paths named there.
  it.each(mountings.filter(({ name, direct }) => !direct && !name.startsWith("Hono") && !name.includes("/v1")))("$name", async ({ start }) => {
    const set = setUp();
    const host = await start(set.verifier.metricsHandler);
    try {
      const path = `${host.prefix}/metrics`;
      const { status, headers, text } = await send(host.port as number, { method: "GET", path });
      expect([status, headers["content-type"], text]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8", set.verifier.metrics()]);
      expect((await send(host.port as number, { method: "POST", path, body: "{}" })).status).toBe(405);
    } finally {
      await host.close();
    }
  });

  it("as a fetch handler and in Next.js", async () => {
    const set = setUp();
    for (const handler of [fetchHandler(set.verifier.metricsHandler), nextHandlers(set.verifier.metricsHandler).GET]) {
      const response = await handler(new Request("http://localhost/metrics"));
      expect([response.status, await response.text()]).toEqual([200, set.verifier.metrics()]);
      expect((await handler(new Request("http://localhost/else"))).status).toBe(404);
    }
  });
});
