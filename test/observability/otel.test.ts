import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, type ContextManager, context, metrics as metricsApi, ROOT_CONTEXT, SpanStatusCode } from "@opentelemetry/api";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTelemetry } from "../../adapters/otel/index.js";
import type { CodeMessage, ConfirmRequest, DeliverRequest, Telemetry } from "../../src/index.js";
import { errorCode, numberOf, setUp } from "../support/verifier.js";

/** What an SDK registers so that spans have their parents. */
class Contexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active = () => this.#storage.getStore() ?? ROOT_CONTEXT;
  with: ContextManager["with"] = (active, run, self, ...args) => this.#storage.run(active, () => run.call(self as never, ...args));
  bind: ContextManager["bind"] = (_context, target) => target;
  enable = () => this;
  disable = () => this;
}

beforeAll(() => void context.setGlobalContextManager(new Contexts()));
afterAll(() => context.disable());

function setUpMeters() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meters = new MeterProvider({ readers: [reader] });
  const metrics = async () => {
    await meters.forceFlush();
    return (exporter.getMetrics().at(-1)?.scopeMetrics ?? []).flatMap((scope) => scope.metrics);
  };
  return { meters, metrics, close: () => meters.shutdown() };
}

function setUpTraced(options: Parameters<typeof setUp>[0] = {}) {
  const spans = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const { meters, metrics, close } = setUpMeters();
  const set = setUp({ ...options, telemetry: openTelemetry({ tracer: provider.getTracer("t"), meter: meters.getMeter("t") }) });
  return { ...set, finished: () => spans.getFinishedSpans(), metrics, close };
}

/** Two verifiers, the first of which has no carrier, and what the meter that they share shows for these labels. */
function setUpTwo(telemetry: (meters: MeterProvider) => Telemetry) {
  const { meters, metrics, close } = setUpMeters();
  const [down, up] = [setUp({ telemetry: telemetry(meters) }), setUp({ telemetry: telemetry(meters) })];
  down.box.answer = () => Promise.reject(new Error("no carrier"));
  const values = async (name: string, labels: Record<string, string>) => {
    const points = (await metrics()).find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? [];
    return points.filter(({ attributes }) => Object.entries(labels).every(([label, value]) => attributes[label] === value)).map(({ value }) => value);
  };
  return { down, up, values, close };
}
const ownMeter = (meters: MeterProvider) => openTelemetry({ meter: meters.getMeter("t") });

it.each([{ meter: 1 }, { tracer: {} }])("rejects what is not of OpenTelemetry: %j", (options) => {
  expect(() => openTelemetry(options as never)).toThrow(/^openTelemetry: option (meter|tracer) is not a (meter|tracer) of OpenTelemetry/);
});

const globalMeter = (meters: MeterProvider) => {
  metricsApi.setGlobalMeterProvider(meters);
  return openTelemetry();
};

const parentOf = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId;

describe("phoneproof/otel", () => {
  it("records a span for each operation, with those of store and carrier as its children", async () => {
    const set = setUpTraced();
    const { authentication_uuid: id } = await set.create();
    await set.check(id, set.box.code());
    const create = set.finished().find(({ name }) => name === "phoneproof create");
    const check = set.finished().find(({ name }) => name === "phoneproof check");
    expect(create?.attributes).toEqual({ "phoneproof.result": "pending" });
    expect(check?.attributes).toEqual({ "phoneproof.result": "valid" });
    const children = set.finished().filter((span) => parentOf(span) === create?.spanContext().spanId);
    expect(children.map(({ name, attributes }) => [name, attributes["phoneproof.result"]])).toEqual([
      ["phoneproof store commit", "done"],
      ["phoneproof carrier send", "accepted"],
    ]);
    expect(
      set
        .finished()
        .filter((span) => parentOf(span) === check?.spanContext().spanId)
        .map(({ name }) => name),
    ).toContain("phoneproof store commit");
    await set.close();
  });

  it("records a span for a delivery and its confirmation", async () => {
    const set = setUpTraced({ customers: undefined, conversion: "reported" });
    await set.verifier.deliver({ phone_number: numberOf(1), code: "482913", purpose: "mfa" } as DeliverRequest);
    await set.verifier.confirm({ phone_number: numberOf(1) } as ConfirmRequest);
    const operations = set.finished().filter((span) => parentOf(span) === undefined);
    expect(operations.map(({ name, attributes }) => [name, attributes["phoneproof.result"]])).toEqual([
      ["phoneproof deliver", "sent"],
      ["phoneproof confirm", "confirmed"],
    ]);
    await set.close();
  });

  it("an error is the span's status, with its code and class but without its message", async () => {
    const set = setUpTraced();
    (set.store as { commit: unknown }).commit = async () => Promise.reject(new Error("a key is gone"));
    expect(await errorCode(set.create())).toBe("unavailable");
    const store = set.finished().find(({ name }) => name === "phoneproof store commit");
    const create = set.finished().at(-1);
    expect(store).toMatchObject({ status: { code: SpanStatusCode.ERROR, message: "error" } });
    expect(create).toMatchObject({ status: { code: SpanStatusCode.ERROR, message: "unavailable" }, attributes: { "error.type": "VerifierError" } });
    await set.close();
  });

  it.each([
    ["a class", (_: CodeMessage) => ({ name: "TimeoutError" }), "TimeoutError"],
    ["a name with the number and the code", ({ to, code }: CodeMessage) => ({ name: `Failed(${to}, ${code})` }), "Error"],
    ["a name that ends in the code", ({ code }: CodeMessage) => ({ name: `Failed${code}` }), "Error"],
    ["a VerifierError whose code is the user's", ({ code }: CodeMessage) => ({ name: "VerifierError", code }), "VerifierError"],
  ])("the type of an error that a sender throws is the name of its class, without a code or a number: %s", async (_what, fields, type) => {
    const set = setUpTraced();
    set.box.answer = (message) => Promise.reject(Object.assign(new Error("failed"), fields(message)));
    await set.create();
    const sent = set.finished().find(({ name }) => name === "phoneproof carrier send");
    expect(sent?.attributes["error.type"]).toBe(type);
    expect(JSON.stringify([sent?.attributes, sent?.status, sent?.events])).not.toContain(set.box.code());
    await set.close();
  });

  it("spans and metrics contain no number, code, id or key", async () => {
    const set = setUpTraced();
    set.box.answer = async ({ text, to }) => Promise.reject(new Error(`${text} ${to}`));
    const { authentication_uuid: id } = await set.create();
    await set.check(id, set.box.code());
    const all = JSON.stringify([set.finished().map(({ name, attributes, status, events }) => [name, attributes, status, events]), await set.metrics()]);
    for (const secret of [numberOf(1).slice(1), set.box.code(), id, set.customer, set.apiKey]) expect(all).not.toContain(secret);
    await set.close();
  });

  it("records the counters and gauges of verifier.metrics(), and a histogram of the steps", async () => {
    const set = setUpTraced();
    await set.create();
    const metrics = await set.metrics();
    const named = (name: string) => metrics.find(({ descriptor }) => descriptor.name === name)?.dataPoints;
    expect(named("phoneproof.operations")).toMatchObject([{ value: 1, attributes: { operation: "create", result: "pending" } }]);
    expect(named("phoneproof.outage")).toHaveLength(5);
    expect(named("phoneproof.step.duration")?.map(({ attributes }) => attributes)).toEqual(
      expect.arrayContaining([
        { kind: "operation", name: "create", result: "pending" },
        { kind: "store", name: "commit", result: "done" },
        { kind: "carrier", name: "send", result: "accepted" },
      ]),
    );
    const counters = new Set(
      set.verifier
        .metrics()
        .match(/^# TYPE (\S+) (counter|gauge)$/gm)
        ?.map((line) => (line.split(" ")[2] as string).replace(/_total$/, "").replaceAll("_", ".")),
    );
    expect(new Set(metrics.map(({ descriptor }) => descriptor.name).filter((name) => name !== "phoneproof.step.duration"))).toEqual(
      new Set([...counters].filter((name) => named(name) !== undefined)),
    );
    await set.close();
  });

  it.each([
    ["of their own", ownMeter],
    ["that is global", globalMeter],
  ])("counts of two verifiers with one meter %s are added up, and stay the same while nothing happens", async (_, telemetry) => {
    const { down, up, values, close } = setUpTwo(telemetry);
    await down.create();
    down.box.answer = async () => ({ outcome: "accepted" });
    for (const set of [down, up, up]) await set.create();
    for (const collection of [1, 2, 3]) {
      expect(await values("phoneproof.messages", { outcome: "accepted" }), `collection ${collection}`).toEqual([3]);
      expect(await values("phoneproof.messages", { outcome: "unknown" }), `collection ${collection}`).toEqual([1]);
    }
    metricsApi.disable();
    await close();
  });

  it("an outage of one of two verifiers with one meter shows until that verifier is closed, and its counts stay", async () => {
    const { down, up, values, close } = setUpTwo(ownMeter);
    for (const set of [down, up]) await set.create();
    expect(await values("phoneproof.outage", { part: "sender" })).toEqual([1]);
    await down.verifier.close();
    expect(await values("phoneproof.outage", { part: "sender" })).toEqual([0]);
    expect(await values("phoneproof.faults", { part: "sender" })).toEqual([1]);
    expect(await values("phoneproof.operations", { operation: "create" })).toEqual([2]);
    await close();
  });

  it("without an SDK nothing is recorded, and everything works", async () => {
    const set = setUp({ telemetry: openTelemetry() });
    const { authentication_uuid: id } = await set.create();
    expect((await set.check(id, set.box.code())).status).toBe("valid");
  });

  const boom = () => {
    throw new Error("down");
  };
  it.each<[string, Telemetry["step"]]>([
    ["fails before the work", boom],
    ["fails after it", (_, work) => work().then(boom)],
    ["begins the work twice", (_, work) => work().then(work)],
    ["returns something else", async () => "other" as never],
    ["never ends", () => new Promise(() => {})],
    ["hides the work's error", async (_, work) => work().catch(() => undefined as never)],
  ])("telemetry that %s changes no outcome, and the work runs once", async (_, step) => {
    const set = setUp({ telemetry: { step, metrics: boom } });
    const { authentication_uuid: id, status } = await set.create();
    expect([status, set.box.messages.length, (await set.check(id, set.box.code())).status]).toEqual(["pending", 1, "valid"]);
    expect(await errorCode(set.create({ phone_number: "+3312" }))).toBe("invalid_phone_number");
    expect(new Set(set.log.lines.map(({ message }) => message))).toEqual(new Set(["telemetry failed; requests are not affected"]));
    expect(set.log.lines).toHaveLength(1);
  });

  it.each<[string, Telemetry["step"]]>([
    ["before the work", boom],
    ["after it", (_, work) => work().then(boom)],
  ])("telemetry that fails %s of a step is logged", async (_, step) => {
    const set = setUp({ telemetry: { step, metrics() {} } });
    await set.create();
    expect(set.log.lines).toMatchObject([{ message: "telemetry failed; requests are not affected", fields: { err: expect.stringContaining("down") } }]);
  });

  it("operations return and throw the same as without it", async () => {
    const set = setUpTraced();
    expect(await errorCode(set.create({ phone_number: "+3312" }))).toBe("invalid_phone_number");
    expect(await errorCode(set.check("11111111-2222-3333-4444-555555555555", "1"))).toBe("invalid_auth_uuid");
    expect(await set.verifier.ping()).toMatchObject({ ok: true, store: { kind: "memory" } });
    await set.close();
  });
});
