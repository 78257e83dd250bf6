import { deliveryStatuses } from "../contract/callback.js";
import type { Alarm } from "../ports/events.js";
import type { MetricReading } from "../ports/telemetry.js";
import { Family } from "./metric-family.js";
import { type Outages, outsideParts } from "./outages.js";

/** Upper bounds of the buckets, in seconds. */
export const bucketBounds: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const outcomes = ["accepted", "rejected", "unknown"] as const;
const modes = ["enforce", "shadow"] as const;
const deliveries = ["delivered", "failed", "dead"] as const;
const alarms = ["country", "crowd", "customer_cap", "spend", "wrong_codes", "shadow"] as const satisfies readonly Alarm["alarm"][];

/** Counts, of this process, since it began. */
export interface Metrics {
  /** Whether anybody has asked for them yet. */
  readonly read: boolean;
  operation(operation: string, result: string, ms: number | undefined): void;
  http(route: string, status: number): void;
  message(country: string | undefined, route: string | undefined, outcome: (typeof outcomes)[number], ms: number): void;
  verified(country: string | undefined, route: string | undefined): void;
  fired(rule: string, mode: (typeof modes)[number]): void;
  receipt(route: string | undefined, status: (typeof deliveryStatuses)[number]): void;
  callback(outcome: (typeof deliveries)[number]): void;
  alarm(alarm: Alarm["alarm"]): void;
  /** Counters and gauges. */
  readings(): readonly MetricReading[];
  /** Everything, in Prometheus' text format 0.0.4. */
  text(): string;
}

/** What a family is called, and what its rows and columns stand for. */
interface Described {
  readonly name: string;
  readonly help: string;
  readonly kind: MetricReading["kind"];
  /** Of the rows. */
  readonly labels: readonly string[];
  /** Of the columns, where there is more than one. */
  readonly column?: { readonly label: string; readonly values: readonly string[] };
}

interface Counted extends Described {
  readonly family: Family;
}

/** What is unknown, or does not apply. */
const none = "none";

/** `waiting`: callbacks that this process has in line. */
export function createMetrics(outages: Outages, waiting: () => number): Metrics {
  const counted = (described: Omit<Described, "kind">): Counted => ({
    ...described,
    kind: "counter",
    family: new Family(described.column?.values.length ?? 1),
  });
  const operations = counted({
    name: "phoneproof_operations_total",
    help: "Operations, by what was answered: a status, or the code of a fault.",
    labels: ["operation", "result"],
  });
  const http = counted({ name: "phoneproof_http_answers_total", help: "Answers over HTTP.", labels: ["route", "status"] });
  const messages = counted({
    name: "phoneproof_messages_total",
    help: "Messages handed to the sender, by what became of that.",
    labels: ["country", "route"],
    column: { label: "outcome", values: outcomes },
  });
  const verified = counted({
    name: "phoneproof_verified_total",
    help: "Right codes, by the country of the number and the route of the message.",
    labels: ["country", "route"],
  });
  const rules = counted({
    name: "phoneproof_rules_fired_total",
    help: "Caps and rules that refused a message (enforce), or would have (shadow).",
    labels: ["rule"],
    column: { label: "mode", values: modes },
  });
  const receipts = counted({
    name: "phoneproof_receipts_total",
    help: "Delivery receipts that told something new.",
    labels: ["route"],
    column: { label: "status", values: deliveryStatuses },
  });
  const callbacks = counted({
    name: "phoneproof_callbacks_total",
    help: "Callbacks posted, by outcome; dead: given up.",
    labels: [],
    column: { label: "outcome", values: deliveries },
  });
  const raised = counted({ name: "phoneproof_alarms_total", help: "Alarms raised.", labels: [], column: { label: "alarm", values: alarms } });
  const counters = [operations, http, messages, verified, rules, receipts, callbacks, raised];
  // What alerts ask for is there before it first happens: an increase from nothing is none.
  callbacks.family.row("", "");
  raised.family.row("", "");
  const operationTimes = histogram("phoneproof_operation_seconds", "How long operations that were answered took.", "operation");
  const sendTimes = histogram("phoneproof_message_seconds", "How long the sender took for a message, by its route.", "route");
  let read = false;

  const readings = (): MetricReading[] => {
    read = true;
    const byPart = (value: (part: (typeof outsideParts)[number]) => number) => outsideParts.map((part) => ({ labels: { part }, value: value(part) }));
    return [
      ...counters.map(reading),
      { name: "phoneproof_faults_total", help: "Failures of what is outside.", kind: "counter", samples: byPart((part) => outages[part].failures) },
      { name: "phoneproof_outage", help: "1 while it fails.", kind: "gauge", samples: byPart((part) => Number(outages[part].on)) },
      { name: "phoneproof_callbacks_waiting", help: "Callbacks that this process has in line.", kind: "gauge", samples: [{ labels: {}, value: waiting() }] },
    ];
  };

  return {
    get read() {
      return read;
    },
    operation(operation, result, ms) {
      add(operations.family.row(operation, result), 0);
      if (ms !== undefined) operationTimes.observe(operation, ms);
    },
    http: (route, status) => add(http.family.row(route, String(status)), 0),
    message(country = none, route = none, outcome, ms) {
      add(messages.family.row(country, route), outcomes.indexOf(outcome));
      // A country in which nobody verifies has its 0, so that a share of it can be told.
      verified.family.row(country, route);
      sendTimes.observe(route, ms);
    },
    verified: (country = none, route = none) => add(verified.family.row(country, route), 0),
    // Of `perNumber 5/600s` the name: customers may have figures of their own.
    fired: (rule, mode) => add(rules.family.row(rule.replace(/ \d.*$/, ""), ""), modes.indexOf(mode)),
    receipt: (route = none, status) => add(receipts.family.row(route, ""), deliveryStatuses.indexOf(status)),
    callback: (outcome) => add(callbacks.family.row("", ""), deliveries.indexOf(outcome)),
    alarm: (alarm) => add(raised.family.row("", ""), alarms.indexOf(alarm)),
    readings,
    text: () => [...readings().map(textOf), operationTimes.text(), sendTimes.text()].join(""),
  };
}

function add(row: number[], at: number): void {
  row[at] = (row[at] ?? 0) + 1;
}

function reading({ name, help, kind, labels: [first, second], column, family }: Counted): MetricReading {
  const samples: { labels: Record<string, string>; value: number }[] = [];
  for (const [a, b, row] of family.rows()) {
    for (const [at, value] of row.entries())
      samples.push({
        labels: {
          ...(first !== undefined && { [first]: a }),
          ...(second !== undefined && { [second]: b }),
          ...(column !== undefined && { [column.label]: column.values[at] as string }),
        },
        value,
      });
  }
  return { name, help, kind, samples };
}

interface Histogram {
  observe(value: string, ms: number): void;
  text(): string;
}

/** Of each label value a count for each bucket and one for what is beyond, then the sum in milliseconds. */
function histogram(name: string, help: string, label: string): Histogram {
  const family = new Family(bucketBounds.length + 2);
  return {
    observe(value, ms) {
      const row = family.row(value, "");
      let bucket = 0;
      while (bucket < bucketBounds.length && ms > (bucketBounds[bucket] as number) * 1000) bucket++;
      add(row, bucket);
      row[bucketBounds.length + 1] = (row[bucketBounds.length + 1] as number) + ms;
    },
    text() {
      let text = head(name, help, "histogram");
      for (const [value, , row] of family.rows()) {
        let count = 0;
        for (let at = 0; at <= bucketBounds.length; at++) {
          count += row[at] as number;
          text += line(`${name}_bucket`, { [label]: value, le: at === bucketBounds.length ? "+Inf" : String(bucketBounds[at]) }, count);
        }
        text += line(`${name}_sum`, { [label]: value }, (row[bucketBounds.length + 1] as number) / 1000) + line(`${name}_count`, { [label]: value }, count);
      }
      return text;
    },
  };
}

function textOf({ name, help, kind, samples }: MetricReading): string {
  return head(name, help, kind) + samples.map(({ labels, value }) => line(name, labels, value)).join("");
}

function head(name: string, help: string, kind: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`;
}

/** "label_value can be any sequence of UTF-8 characters, but the backslash, double-quote, and line feed characters have to be escaped" (Prometheus, Text-based format). */
function line(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`);
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}\n`;
}
