import { type Meter, metrics as metricsApi, type Observable, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { MetricReading, Step, Telemetry } from "../../src/ports/telemetry.js";
import { onlyOptions, optionError } from "../kit/option-error.js";
import { has } from "../kit/store.js";

export interface OpenTelemetryOptions {
  /** Default: the global provider's tracer named `phoneproof`. */
  readonly tracer?: Tracer | undefined;
  /** Default: the global provider's meter named `phoneproof`. */
  readonly meter?: Meter | undefined;
}

/** Upper bounds of the histogram buckets, in seconds. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type Read = () => readonly MetricReading[];
type Sample = MetricReading["samples"][number];

/** The verifiers of a meter share its instruments: of two values with the same labels, a meter shows one. */
const verifiersOf = new WeakMap<Meter, Set<Read>>();

const kinds = { operation: SpanKind.INTERNAL, store: SpanKind.CLIENT, carrier: SpanKind.CLIENT } as const;

/**
 * Spans and metrics for OpenTelemetry, through its API only (`@opentelemetry/api`, an optional peer): `createVerifier({
 * …, telemetry: openTelemetry() })`. Register your SDK first; without an SDK nothing is recorded.
 *
 * Spans: `phoneproof create`, `retry`, `check` and `lookup`, children of the active span (your framework's); under them
 * `phoneproof store <method>` and `phoneproof carrier send`. Attributes: `phoneproof.result`; for sends
 * `phoneproof.attempt` and `phoneproof.country`. A failed step has the status ERROR and the error's class, never its
 * message, which may contain a number.
 *
 * Metrics: the counters and gauges of `verifier.metrics()`, with dots for underscores and without `_total`, read when
 * the SDK collects, and added up for all verifiers of the meter; and the histogram `phoneproof.step.duration`, in
 * seconds, by `kind`, `name` and `result`.
 *
 * @throws TypeError for an invalid option; the message names it and the fix.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  onlyOptions("openTelemetry", options, { tracer: true, meter: true });
  for (const [option, method] of [
    ["tracer", "startActiveSpan"],
    ["meter", "createHistogram"],
  ] as const)
    if (options[option] !== undefined && !has(options[option], method))
      throw optionError("openTelemetry", option, `is not a ${option} of OpenTelemetry`, "Leave it out for the global provider's.");
  const tracer = options.tracer ?? trace.getTracer("phoneproof");
  const meter = options.meter ?? metricsApi.getMeter("phoneproof");
  const durations = meter.createHistogram("phoneproof.step.duration", {
    unit: "s",
    description: "How long operations, store calls and sends took.",
    advice: { explicitBucketBoundaries: bounds },
  });

  return {
    step: ({ kind, name, facts }: Step, work, result) =>
      tracer.startActiveSpan(
        kind === "operation" ? `phoneproof ${name}` : `phoneproof ${kind} ${name}`,
        { kind: kinds[kind], attributes: Object.fromEntries(Object.entries(facts).map(([fact, value]) => [`phoneproof.${fact}`, value])) },
        async (span) => {
          const began = performance.now();
          let outcome = "";
          try {
            const answer = await work();
            outcome = result(answer);
            return answer;
          } catch (error) {
            outcome = failed(span, error);
            throw error;
          } finally {
            span.setAttribute("phoneproof.result", outcome);
            span.end();
            durations.record((performance.now() - began) / 1000, { kind, name, result: outcome });
          }
        },
      ),

    metrics(read) {
      const verifiers = verifiersOf.get(meter) ?? observeAll(meter, read());
      verifiersOf.set(meter, verifiers.add(read));
    },
  };
}

/** Creates the instruments of a meter, which observe what the verifiers in the returned set have counted together. */
function observeAll(meter: Meter, readings: readonly MetricReading[]): Set<Read> {
  const verifiers = new Set<Read>();
  const instruments = new Map<string, Observable>();
  for (const { name, help, kind } of readings) {
    const called = name.replace(/_total$/, "").replaceAll("_", ".");
    const described = { description: help };
    instruments.set(name, kind === "counter" ? meter.createObservableCounter(called, described) : meter.createObservableGauge(called, described));
  }
  meter.addBatchObservableCallback(
    (observed) => {
      const all = [...verifiers].flatMap((read) => read());
      for (const [name, instrument] of instruments) {
        const together = name === "phoneproof_outage" ? Math.max : (one: number, other: number) => one + other;
        const totals = new Map<string, Sample>();
        for (const { labels, value } of all.flatMap((reading) => (reading.name === name ? reading.samples : []))) {
          const key = JSON.stringify(labels);
          totals.set(key, { labels, value: together(value, totals.get(key)?.value ?? 0) });
        }
        for (const { labels, value } of totals.values()) observed.observe(instrument, value, labels);
      }
    },
    [...instruments.values()],
  );
  return verifiers;
}

/** The name of a class, or one of our codes; with four digits in a row, it could hold a user's code or number. */
const plainName = /^(?!.*\d{4})[A-Za-z_$][\w$]{0,63}$/;

/** Marks the span as failed, with the code of our error (`unavailable`, `bad_request`) or the error's class. */
function failed(span: Span, error: unknown): string {
  const { code, name } = (typeof error === "object" && error !== null ? error : {}) as { code?: unknown; name?: unknown };
  const word = name === "VerifierError" && typeof code === "string" && plainName.test(code) ? code : "error";
  span.setStatus({ code: SpanStatusCode.ERROR, message: word });
  if (typeof name === "string") span.setAttribute("error.type", plainName.test(name) ? name : "Error");
  return word;
}
