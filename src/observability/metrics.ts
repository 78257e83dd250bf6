import { deliveryStatuses } from "../contract/callback.js";
import type { Channel } from "../contract/channel.js";
import { getOrPut } from "../core/collections.js";
import type { Way } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import type { Alarm } from "../ports/events.js";
import type { MetricReading } from "../ports/telemetry.js";
import { type Outages, outsideParts } from "./outages.js";

/** Upper bounds of the buckets, in seconds. */
const bucketBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, Number.POSITIVE_INFINITY];

const outcomes = ["accepted", "rejected", "unknown"] as const;
const modes = ["enforce", "shadow"] as const;
const deliveries = ["delivered", "failed", "dead"] as const;
const alarms = ["country", "crowd", "customer_cap", "spend", "wrong_codes", "shadow", "no_conversion"] as const satisfies readonly Alarm["alarm"][];

/** Counts since the process started. */
export type Metrics = ReturnType<typeof createMetrics>;

/** The value of a label that is unknown or does not apply. */
const none = "none";

/** `waiting`: callbacks in this process's queue. */
export function createMetrics(outages: Outages, waiting: () => number) {
  const operations = counter("phoneproof_operations_total", "Operations, by result: a status or an error code.", ["operation", "result"]);
  const http = counter("phoneproof_http_answers_total", "HTTP responses of /v1.", ["route", "status"]);
  const messages = counter("phoneproof_messages_total", "Messages handed to each route, by outcome.", ["country", "route", "channel"], "outcome", outcomes);
  const verified = counter("phoneproof_verified_total", "Right codes, by country, route and channel of the message.", ["country", "route", "channel"]);
  const rules = counter("phoneproof_rules_fired_total", "Caps and rules that blocked it (enforce) or would have (shadow).", ["rule"], "mode", modes);
  const receipts = counter("phoneproof_receipts_total", "Delivery receipts with a new status.", ["route"], "status", deliveryStatuses);
  const callbacks = counter("phoneproof_callbacks_total", "Callbacks posted, by outcome; dead: given up.", [], "outcome", deliveries);
  const raised = counter("phoneproof_alarms_total", "Alarms raised.", [], "alarm", alarms);
  const operationTimes = histogram("phoneproof_operation_seconds", "How long operations took that returned a result.", "operation");
  const sendTimes = histogram("phoneproof_message_seconds", "How long the sender took for a message, by route.", "route");
  // Alerts need a 0 before the first event: Prometheus sees no increase in a series that starts at 1.
  callbacks.touch([]);
  raised.touch([]);
  let read = false;

  const byPart = (ask: (part: (typeof outsideParts)[number]) => number) => outsideParts.map((part) => ({ labels: { part }, value: ask(part) }));
  const readings = (): MetricReading[] => {
    read = true;
    return [
      ...[operations, http, messages, verified, rules, receipts, callbacks, raised].map(({ reading }) => reading()),
      { name: "phoneproof_faults_total", help: "Failures of external parts.", kind: "counter", samples: byPart((part) => outages[part].failures) },
      { name: "phoneproof_outage", help: "1 while the part fails.", kind: "gauge", samples: byPart((part) => Number(outages[part].on)) },
      { name: "phoneproof_callbacks_waiting", help: "Callbacks in this process's queue.", kind: "gauge", samples: [{ labels: {}, value: waiting() }] },
    ];
  };

  return {
    isRead: () => read,
    operation(operation: string, result: string, ms: number | undefined): void {
      operations.add([operation, result]);
      if (ms !== undefined) operationTimes.observe(operation, ms);
    },
    http: (route: string, status: number): void => http.add([route, String(status)]),
    message(country = none, route = none, channel: Channel = "sms", outcome: (typeof outcomes)[number]): void {
      messages.add([country, route, channel], outcome);
      // Countries without verifications need a 0, so that the share of correct codes can be computed.
      verified.touch([country, route, channel]);
    },
    took: (route = none, ms: number): void => sendTimes.observe(route, ms),
    verified: (country = none, { route = none, channel = "sms" }: Way = {}): void => verified.add([country, route, channel]),
    /** The rules that fired for one request. */
    fired(decisions: readonly Decision[]): void {
      for (const mode of modes) {
        // Only `perNumber` of `perNumber 5/600s`: customers may have their own limits.
        const names = decisions.filter((decision) => decision.mode === mode).map(({ rule }) => rule.replace(/ \d.*$/, ""));
        for (const name of new Set(names)) rules.add([name], mode);
      }
    },
    receipt: (route = none, status: (typeof deliveryStatuses)[number]): void => receipts.add([route], status),
    callback: (outcome: (typeof deliveries)[number]): void => callbacks.add([], outcome),
    alarm: (alarm: Alarm["alarm"]): void => raised.add([], alarm),
    /** Counters and gauges. */
    readings,
    /** All metrics, in Prometheus' text format 0.0.4. */
    text: (): string => [...readings().map(textOf), operationTimes.text(), sendTimes.text()].join(""),
  };
}

/** `column`: a label with known values; each row holds a number for each. */
function counter<Column extends string = never>(name: string, help: string, labels: readonly string[], column?: string, columns: readonly Column[] = []) {
  const { rows, add } = createFamily(columns.length || 1);
  const labelsOf = (values: readonly string[], at: number) => ({
    ...Object.fromEntries(labels.map((label, place) => [label, values[place] as string])),
    ...(column !== undefined && { [column]: columns[at] as string }),
  });
  return {
    add: (values: readonly string[], value?: Column): void => add(values, value && columns.indexOf(value)),
    /** Creates the row with 0. */
    touch: (values: readonly string[]): void => add(values, 0, 0),
    reading(): MetricReading {
      const samples = [...rows.values()].flatMap(({ values, numbers }) => numbers.map((value, at) => ({ labels: labelsOf(values, at), value })));
      return { name, help, kind: "counter", samples };
    },
  };
}

/** A row holds a count for each bucket, and the sum in milliseconds. */
function histogram(name: string, help: string, label: string) {
  const { rows, add } = createFamily(bucketBounds.length + 1);
  return {
    observe(value: string, ms: number): void {
      const bucket = bucketBounds.findIndex((bound) => ms <= bound * 1000);
      add([value], bucket);
      add([value], bucketBounds.length, ms);
    },
    text(): string {
      let text = head(name, help, "histogram");
      for (const { values, numbers } of rows.values()) {
        const labels = { [label]: values[0] as string };
        let count = 0;
        for (const [at, bound] of bucketBounds.entries()) {
          count += numbers[at] as number;
          text += line(`${name}_bucket`, { ...labels, le: Number.isFinite(bound) ? String(bound) : "+Inf" }, count);
        }
        text += line(`${name}_sum`, labels, (numbers.at(-1) as number) / 1000) + line(`${name}_count`, labels, count);
      }
      return text;
    },
  };
}

const head = (name: string, help: string, kind: string) => `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`;

const textOf = ({ name, help, kind, samples }: MetricReading) =>
  head(name, help, kind) + samples.map(({ labels, value }) => line(name, labels, value)).join("");

/** "the backslash, double-quote, and line feed characters have to be escaped" (Prometheus, Text-based format). */
function line(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`);
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}\n`;
}

/** Values of a label; further ones become `other` (docs/contract.md#metric-labels). */
export const mostValues = 300;

/** Rows of a family; further ones share the row `other`. */
export const mostRows = 5_000;

const other = "other";
const longestValue = 64;

/** Numbers, ids and addresses, which route names may contain (docs/contract.md#metric-labels). */
const personal = /\d{6}|@|\d+\.\d+\.\d+\.\d+|[0-9a-f]{4}:[0-9a-f]{0,4}:|[0-9a-f]{8}-[0-9a-f]{4}/i;

interface Row {
  readonly values: readonly string[];
  readonly numbers: number[];
}

/** Rows of `width` numbers, initially 0, by label values. */
export function createFamily(width: number) {
  const rows = new Map<string, Row>();
  const seen: Set<string>[] = [];

  const bounded = (value: string, label: number): string => {
    const known = (seen[label] ??= new Set());
    if (known.has(value)) return value;
    if (known.size >= mostValues || value.length > longestValue || personal.test(value)) return other;
    known.add(value);
    return value;
  };

  const boundedRow = (given: readonly string[]) => {
    const labels = given.map(bounded);
    const values = rows.size < mostRows || rows.has(labels.join("\0")) ? labels : labels.map(() => other);
    return getOrPut(rows, values.join("\0"), () => ({ values, numbers: new Array<number>(width).fill(0) }));
  };

  return {
    rows: rows as ReadonlyMap<string, Readonly<Row>>,
    /** Adds to the number at `column`. Creates the row if it is missing. */
    add(values: readonly string[], column = 0, by = 1): void {
      const { numbers } = rows.get(values.join("\0")) ?? boundedRow(values);
      numbers[column] = (numbers[column] as number) + by;
    },
  };
}
