/** Words and figures beside a span; none of them a number, an id or an address. */
export type SpanFacts = Readonly<Record<string, string | number | boolean>>;

/** One step of the verifier's work. */
export interface Step {
  /** `operation`: one of the four, and what else is asked of the verifier; `store`: a call of the store; `carrier`: a message handed over. */
  readonly kind: "operation" | "store" | "carrier";
  /** `create`, `retry`, `check`, `lookup`; the store's method; `send`. */
  readonly name: string;
  readonly facts: SpanFacts;
}

/** A counter or gauge, as it stands. */
export interface MetricReading {
  readonly name: string;
  readonly help: string;
  readonly kind: "counter" | "gauge";
  readonly samples: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

/** Where spans and metrics go: `openTelemetry()` of `phoneproof/otel` is one. */
export interface Telemetry {
  /** Does the work of a step, and answers what it answers; its children are the steps that it begins meanwhile. `result`: what the answer comes to, in a word. It must not throw of its own. */
  step<T>(step: Step, work: () => Promise<T>, result: (answer: T) => string): Promise<T>;
  /** Where to read the verifier's counters and gauges, whenever they are wanted. */
  metrics(read: () => readonly MetricReading[]): void;
}
