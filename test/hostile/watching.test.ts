import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { inspect } from "node:util";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor, type SpanProcessor } from "@opentelemetry/sdk-trace-base";
import { describe, expect, it } from "vitest";
import { openTelemetry } from "../../adapters/otel/index.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { SpamRule, Store, VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/index.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { dumpOfMemory, spellingsOf, spellingsOfId, traces } from "../support/dump.js";
import { address, number, numberAt, samplesOf, secret, spellings, watched } from "./watching-kit.js";

const root = join(import.meta.dirname, "../..");
const boom = (): never => {
  throw new Error("down");
};
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index);

describe("a full number", () => {
  it("in the reason of a custom rule is in no event and in no record (docs/contract.md#logs, docs/privacy.md)", async () => {
    const store = memoryStore({ name: randomUUID() });
    const rules: SpamRule[] = [
      { name: "shadow", mode: "shadow", judge: ({ phone_number }) => ({ reason: `${phone_number} is on our list` }) },
      { name: "device", judge: ({ device_id, phone_number }) => (device_id === "bad" ? { reason: `seen with ${phone_number}` } : undefined) },
    ];
    const { verifier, messages, told } = watched({ store, spamRules: rules });
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number: number });
    expect((await verifier.check({ authentication_uuid, check_code: messages[0]?.code ?? "" })).status).toBe("valid");
    expect((await verifier.createAuthentication({ phone_number: number, device_id: "bad" })).status).toBe("spam_detected");
    await verifier.close();
    const leaks = { told: spellings(number).filter((one) => told().includes(one)), stored: traces(dumpOfMemory(store), spellings(number)).length };
    expect(leaks).toEqual({ told: [], stored: 0 });
  });

  it("in a carrier's reason is shown in no spelling, not even the national one (docs/contract.md#logs)", async () => {
    for (const form of spellings(number)) {
      const { verifier, told } = watched({ answer: async () => ({ outcome: "rejected", reason: `no route to ${form} today` }) });
      expect((await verifier.createAuthentication({ phone_number: number })).status).toBe("pending");
      expect(told(), form).not.toContain(form);
    }
  });

  it("in the error of a list function is not logged (docs/contract.md#logs)", async () => {
    const broken = async () => {
      throw new Error(`block.csv, line 3 is not valid: ${number};spam`);
    };
    const { verifier, told } = watched({ lists: { block: broken } });
    expect((await verifier.createAuthentication({ phone_number: numberAt(1) })).status).toBe("pending");
    for (const one of spellings(number)) expect(told()).not.toContain(one);
  });
});

describe("the log", () => {
  const flooded: Record<string, [Partial<VerifierOptions>, string]> = {
    "a challenge": [{ challenge: { verify: boom } }, "the challenge failed; the spam rules apply"],
    "an own rule": [{ spamRules: [{ name: "mine", judge: boom }] }, "a spam rule failed; the attempt was allowed"],
    "a list": [{ lists: { block: boom } }, "the list could not be loaded; it counts as empty until it can"],
    "the sender": [{ answer: boom } as Partial<VerifierOptions>, "the sender failed"],
    "an event handler": [{ onEvent: boom }, "onEvent failed"],
  };

  it("has one line a minute about a failure that repeats with each request (docs/watching.md#events)", async () => {
    const counts: Record<string, object> = {};
    for (const [what, [options]] of Object.entries(flooded)) {
      const { verifier, lines } = watched({ ...options, clock: fixedClock(Date.UTC(2026, 2, 1)) });
      for (const index of range(0, 30)) await verifier.createAuthentication({ phone_number: numberAt(index), proof: "a proof" });
      counts[what] = lines();
    }
    expect(counts).toEqual(Object.fromEntries(Object.entries(flooded).map(([what, [, line]]) => [what, { [line]: 1 }])));
  });

  it("gives the reason of a failure to a logger that writes JSON too (docs/watching.md#events, observability/alerts.yml)", async () => {
    const written: string[] = [];
    const write = (facts: object, message: string) => void written.push(JSON.stringify({ ...facts, message }));
    const fails = () => Promise.reject(new Error("connection refused"));
    const store: Store = { find: fails, commit: fails, members: fails, tally: fails, lease: fails, get: fails, put: fails, delete: fails };
    const { verifier } = watched({ store, lists: { block: fails }, onEvent: fails, logger: { info: write, warn: write, error: write } });
    await verifier.createAuthentication({ phone_number: number }).catch(() => {});
    await turn();
    expect(written.length).toBeGreaterThan(2);
    expect(written.filter((line) => !line.includes("connection refused"))).toEqual([]);
  });

  it("loses no request and no line to a logger that throws, rejects, needs `this` or changes what it gets (docs/contract.md#listeners)", async () => {
    class Own {
      readonly lines: string[] = [];
      private keep = (message: string) => void this.lines.push(message);
      info(_facts: object, message: string) {
        this.keep(message);
      }
      warn(facts: Record<string, unknown>, message: string) {
        for (const name of Object.keys(facts)) facts[name] = { toJSON: boom };
        this.keep(message);
      }
      error(_facts: object, message: string) {
        this.keep(message);
      }
    }
    const own = new Own();
    const fails = { info: boom, warn: boom, error: async () => boom() };
    for (const logger of [own, fails, { info: boom, warn: boom, error: boom }]) {
      const answer = async () => ({ outcome: "rejected" as const, reason: "no" });
      const { verifier, events } = watched({ logger, answer, lookup: { price: 0, lookup: boom }, lookupBeforeSend: true });
      expect((await verifier.createAuthentication({ phone_number: number })).status).toBe("pending");
      expect(events.find(({ type }) => type === "sent")).toMatchObject({ outcome: "rejected", reason: "no" });
    }
    await turn();
    expect(own.lines.length).toBe(2);
  });
});

describe("OpenTelemetry", () => {
  it("affects no request when a span processor throws (docs/contract.md#listeners)", async () => {
    const statusOf = async (call: () => Promise<{ status: string }>) => {
      try {
        return (await call()).status;
      } catch (error) {
        return String(error);
      }
    };
    const statuses: Record<string, string[]> = {};
    for (const where of ["onStart", "onEnd"] as const) {
      let on = false;
      const fails = () => {
        if (on) boom();
      };
      const processor: SpanProcessor = { onStart() {}, onEnd() {}, forceFlush: async () => {}, shutdown: async () => {}, [where]: fails };
      const tracer = new BasicTracerProvider({ spanProcessors: [processor] }).getTracer("app");
      const { verifier, messages } = watched({ telemetry: openTelemetry({ tracer }) });
      const { authentication_uuid } = await verifier.createAuthentication({ phone_number: number });
      on = true;
      const request = { authentication_uuid, check_code: messages[0]?.code ?? "" };
      statuses[where] = [await statusOf(() => verifier.check(request)), await statusOf(() => verifier.createAuthentication({ phone_number: numberAt(2) }))];
    }
    expect(statuses, "a check with the right code, and a create").toEqual({ onStart: ["valid", "pending"], onEnd: ["valid", "pending"] });
  });
});

describe("metrics", () => {
  it("are valid text with bounded labels, whatever names callers and options contain (docs/watching.md#metrics)", async () => {
    const customer_uuid = randomUUID();
    const names = [`a"b\\c\nd{e} 1`, "user@example.com", address, "2001:db8::1", randomUUID(), ...range(0, 400).map((index) => `rule-${index}`)];
    const spamRules: SpamRule[] = names.map((name) => ({ name, judge: () => ({ reason: "always" }) }));
    const { verifier } = watched({ customers: [{ customer_uuid, keys: ["k".repeat(40)] }], spamRules });
    for (const index of range(0, 3)) await verifier.createAuthentication({ customer_uuid, phone_number: numberAt(index), ip: address });
    const header = (name: string) => ({ "x-api-key": "k".repeat(40), "customer-uuid": customer_uuid })[name];
    for (const path of [`/v1/lookup/${number}`, `/v1/${number}`, `/${customer_uuid}`, '/v1/check"}\n1', "/v1/check"])
      for (const method of ["GET", "POST", `FOO${number}`, "__proto__"])
        await verifier.http.handle({ method, path, header, body: async () => ({ kind: "text", text: "{}" }) });
    const samples = samplesOf(verifier.metrics());
    const values = samples.flatMap(({ labels }) => Object.values(labels));
    for (const name of names.slice(1, 5)) expect(values, name).not.toContain(name);
    for (const one of [customer_uuid, address, ...spellings(number).slice(0, 4)]) expect(verifier.metrics()).not.toContain(one);
    const rules = samples.filter(({ name }) => name === "phoneproof_rules_fired_total").map(({ labels }) => labels.rule);
    expect(new Set(rules).size).toBeLessThanOrEqual(301);
    expect(rules).toContain("other");
    expect(samples.filter(({ name }) => name === "phoneproof_http_answers_total").length).toBeLessThan(12);
  });

  it("have each name and label that the alerts and the dashboard use, from the first scrape on (docs/watching.md#metrics)", async () => {
    const { verifier, messages } = watched();
    const first = new Set(samplesOf(verifier.metrics()).map(({ name, labels }) => name + JSON.stringify(labels)));
    for (const part of ["store", "customers"]) expect(first).toContain(`phoneproof_outage${JSON.stringify({ part })}`);
    expect(first).toContain(`phoneproof_callbacks_total${JSON.stringify({ outcome: "dead" })}`);
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number: number });
    await verifier.check({ authentication_uuid, check_code: messages[0]?.code ?? "" });
    const labels = new Map<string, Set<string>>();
    for (const sample of samplesOf(verifier.metrics())) {
      const known = labels.get(sample.name) ?? new Set();
      labels.set(sample.name, known);
      for (const label of Object.keys(sample.labels)) known.add(label);
    }
    const types = new Set([...verifier.metrics().matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
    const alerts = readFileSync(join(root, "observability/alerts.yml"), "utf8");
    const used = alerts + readFileSync(join(root, "observability/dashboard.json"), "utf8");
    for (const [name] of used.matchAll(/phoneproof_[a-z_]+/g)) expect(types, name).toContain(name.replace(/_bucket$/, ""));
    for (const [, by, , name] of alerts.matchAll(/by \(([a-z, ]+)\) \(((?!by).)*?(phoneproof_[a-z_]+)/g))
      for (const label of (by ?? "").split(", ")) expect([...(labels.get(name ?? "") ?? [])], `${name} by ${label}`).toContain(label);
  });

  it("count a test number neither as sent nor as verified, so that verified is a share of sent (docs/watching.md#statistics)", async () => {
    const { verifier } = watched({ testNumbers: [{ number: "+33699999999", code: "123456" }] });
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number: "+33699999999" });
    expect((await verifier.check({ authentication_uuid, check_code: "123456" })).status).toBe("valid");
    const samples = samplesOf(verifier.metrics());
    const total = (of: string) => samples.filter(({ name }) => name === of).reduce((sum, { value }) => sum + value, 0);
    expect({ sent: total("phoneproof_messages_total"), verified: total("phoneproof_verified_total") }).toEqual({ sent: 0, verified: 0 });
    await verifier.close();
    const stats = await verifier.stats({ from: new Date(Date.now() - 60_000), to: new Date() });
    expect(stats).toMatchObject({ sends: 0, verified: 0, cost: 0 });
  });
});

describe("a custom rule in shadow mode", () => {
  const rules: Record<string, SpamRule> = {
    judge: { name: "night", mode: "shadow", judge: () => ({ reason: "nobody signs up at night" }) },
    cell: { name: "night", mode: "shadow", cell: () => "all", seed: 0 },
  };

  it("is in the metrics and raises an alarm (docs/watching.md#metrics, docs/fraud.md#how-the-rules-work)", async () => {
    const seen: Record<string, object> = {};
    for (const [kind, rule] of Object.entries(rules)) {
      const clock = fixedClock(Date.UTC(2026, 2, 1, 2));
      const { verifier, events } = watched({ clock, spamRules: [rule], store: memoryStore({ name: randomUUID(), now: () => clock.now() }) });
      for (const index of range(0, 300)) {
        expect((await verifier.createAuthentication({ phone_number: numberAt(index) })).status).toBe("pending");
        if (index % 100 === 99) clock.advance(10_000);
        await turn();
      }
      const fired = samplesOf(verifier.metrics()).find(({ labels }) => labels.rule === "night" && labels.mode === "shadow");
      seen[kind] = { fired: fired?.value, alarms: events.flatMap((event) => (event.type === "alarm" ? [event.alarm] : [])) };
    }
    const all = { fired: 300, alarms: ["shadow"] };
    expect(seen).toEqual({ judge: all, cell: all });
  });
});

describe("a busy session with errors", () => {
  it("shows no number, code, key or secret in logs, events, metrics and traces (docs/privacy.md, docs/contract.md#logs)", async () => {
    const key = "k".repeat(40);
    const customer_uuid = randomUUID();
    const spans = new InMemorySpanExporter();
    const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).getTracer("app");
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e6 });
    const meter = new MeterProvider({ readers: [reader] }).getMeter("app");
    let turnOf = 0;
    const { verifier, messages, told, events } = watched({
      customers: [{ customer_uuid, keys: [key] }],
      telemetry: openTelemetry({ tracer, meter }),
      spamRules: [{ name: "mine", judge: ({ phone_number }) => Promise.reject(new Error(`judged ${phone_number}`)) }],
      ipInfo: (ip) => Promise.reject(new Error(`${ip} of ${number}`)),
      lookup: { price: 0, lookup: ({ phone_number }) => Promise.reject(new Error(`HLR ${phone_number}, ${phone_number.slice(1)}`)) },
      lookupBeforeSend: true,
      message: { text: ({ code }) => (code.startsWith("1") ? `the code ${code} `.repeat(20) : `Code ${code}`) },
      policy: { limits: { perDevice: [], numbersPerDevice: [] } },
      async answer({ to, text, code }) {
        turnOf += 1;
        if (turnOf % 3 === 1) throw new Error(`POST https://sms.example/send?to=${encodeURIComponent(to)}&text=${encodeURIComponent(text)} failed`);
        if (turnOf % 3 === 2) return { outcome: "rejected", reason: `${to} (${to.slice(1)}, tel:${to}) may not get "${text}", code ${code}` };
        return { outcome: "accepted" };
      },
    });
    const numbers = range(0, 12).map(numberAt);
    for (const phone_number of numbers) {
      const { authentication_uuid } = await verifier.createAuthentication({ customer_uuid, phone_number, ip: address, device_id: "a-device" });
      const of = { customer_uuid, authentication_uuid };
      const { code = "" } = messages.findLast((one) => one.authentication_uuid === authentication_uuid) ?? {};
      await verifier.check({ ...of, check_code: code === "000000" ? "111111" : "000000" });
      await verifier.check({ ...of, check_code: code || "222222" });
      await verifier.lookup({ customer_uuid, phone_number });
      await verifier.verifications.start({ customer_uuid, phone_number });
      await verifier.history({ customer_uuid, phone_number });
    }
    await verifier.createAuthentication({ customer_uuid, phone_number: "+3312" }).catch(() => {});
    await verifier.erase({ customer_uuid, phone_number: numbers[0] ?? "" });
    await reader.forceFlush();
    await verifier.close();
    expect(new Set(events.map(({ type }) => type))).toEqual(
      new Set(["created", "sent", "checked", "outage", ...(events.some(({ type }) => type === "refused") ? ["refused"] : [])]),
    );
    const deep = { depth: 12, maxArrayLength: null, maxStringLength: null };
    const traced = inspect([spans.getFinishedSpans().map(({ name, attributes, status }) => [name, attributes, status]), exporter.getMetrics()], deep);
    // A UUID may hold the digits of a code by chance.
    const all = (told() + traced).replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "a UUID");
    const codes = messages.map(({ code }) => new RegExp(`(?<![\\d.])${code}(?!\\d)`)).filter((code) => code.test(all));
    const found = [secret, key, ...numbers.flatMap(spellings), ...spellings(number)].filter((one) => all.includes(one));
    expect([found, codes]).toEqual([[], []]);
  });
});

describe("an operator's calls", () => {
  it("erase leaves no trace of the number or its authentications, its lookup included (docs/privacy.md#erase)", async () => {
    const store = memoryStore({ name: randomUUID() });
    const { verifier, messages } = watched({
      store,
      lookup: { price: 0, lookup: async () => ({ carrier: "A rare carrier", mcc: "208", mnc: "01" }) },
      lists: { block: { devices: ["bad"] } },
    });
    await verifier.lookup({ phone_number: number });
    const made = await verifier.createAuthentication({ phone_number: number, callback_url: "https://receiver.example/hook" });
    await verifier.check({ authentication_uuid: made.authentication_uuid, check_code: messages[0]?.code ?? "" }, { idempotencyKey: "key" });
    const refused = await verifier.createAuthentication({ phone_number: number, device_id: "bad" }, { idempotencyKey: "other" });
    const started = await verifier.verifications.start({ phone_number: number });
    const ids = [made, refused, started].flatMap(({ authentication_uuid }) => spellingsOfId(authentication_uuid));
    const texts = [...spellingsOf(number, "+33612****78"), "A rare carrier"];
    expect(traces(dumpOfMemory(store), texts).length).toBeGreaterThan(0);
    expect((await verifier.erase({ phone_number: number })).erased).toBe(3);
    expect(traces(dumpOfMemory(store), texts)).toEqual([]);
    expect(traces(dumpOfMemory(verifier), [number, "A rare carrier"])).toEqual([]);
    expect(await verifier.history({ phone_number: number })).toEqual([]);
    expect(await verifier.refusals({ phone_number: number })).toEqual([]);
    for (const { authentication_uuid } of [made, refused, started])
      await expect(verifier.explain({ authentication_uuid })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
    // Random ids may stay in the windows of caps (docs/privacy.md#erase), with nothing that links them to the number.
    expect(traces(dumpOfMemory(store), ids).every((one) => one.length < 80)).toBe(true);
  });

  it.each(["hangs", "fails"])("ping and diagnose return, and neither reject nor send, when everything outside %s (docs/contract.md#ping)", async (how) => {
    const call = () => (how === "hangs" ? new Promise<never>(() => {}) : Promise.reject(new Error("connection refused")));
    const store: Store = { find: call, commit: call, members: call, tally: call, lease: call, get: call, put: call, delete: call };
    const { verifier, messages } = watched({
      store,
      storeTimeout: 0.2,
      customers: { find: call, findByKeyDigest: call },
      lookup: { lookup: call, price: 0 },
      challenge: { verify: call },
      lists: { block: call },
    });
    expect(await verifier.ping()).toMatchObject({ ok: false, callbacks: { waiting: 0 } });
    expect(await verifier.ping({ brief: true })).toMatchObject({ ok: false });
    const findings = await verifier.diagnose();
    for (const { fix, message } of findings) expect([fix.length > 0, message.length > 0]).toEqual([true, true]);
    expect(findings.filter(({ level }) => level === "fault").map(({ about }) => about)).toEqual(expect.arrayContaining(["store", "customers", "countries"]));
    expect(messages.length).toBe(0);
  });

  it("stats, events and metrics agree about what was sent, verified and refused (docs/watching.md#statistics)", async () => {
    const store = memoryStore({ name: randomUUID() });
    const codes = new Map<string, string>();
    const sender = router({
      store,
      routes: [
        {
          name: "only",
          price: 0.05,
          sender: {
            async send({ authentication_uuid, code, to }) {
              codes.set(authentication_uuid, code);
              return to === numberAt(3) ? { outcome: "rejected", reason: "no" } : { outcome: "accepted" };
            },
          },
        },
      ],
    });
    const perNumber = [
      { limit: 2, window: 600 },
      { limit: 10, window: 86_400 },
    ];
    const { verifier, events } = watched({ store, sender, policy: { spam: noSpamRules, limits: { perNumber } } });
    for (const index of [1, 1, 1, 2, 3]) {
      const { authentication_uuid } = await verifier.createAuthentication({ phone_number: numberAt(index) });
      if (index === 2) await verifier.check({ authentication_uuid, check_code: codes.get(authentication_uuid) ?? "" });
    }
    await verifier.close();
    const stats = await verifier.stats({ from: new Date(Date.now() - 60_000), to: new Date() });
    expect(stats).toMatchObject({ sends: 3, verified: 1, refused: 1, cost: 0.15 });
    const of = (type: string) => events.filter((event) => event.type === type).length;
    expect([of("sent"), of("checked"), of("refused")]).toEqual([4, 1, 1]);
    const samples = samplesOf(verifier.metrics());
    const value = (name: string, labels: object) =>
      samples.find((one) => one.name === name && Object.entries(labels).every(([key, text]) => one.labels[key] === text))?.value;
    expect(value("phoneproof_messages_total", { outcome: "accepted", route: "only", country: "FR" })).toBe(3);
    expect(value("phoneproof_messages_total", { outcome: "rejected" })).toBe(1);
    expect(value("phoneproof_verified_total", { route: "only" })).toBe(1);
    expect(value("phoneproof_operations_total", { operation: "create", result: "rate_limited" })).toBe(1);
  });
});
