/** Attributes of a span; they never hold a number, an id or an address. */
export type SpanFacts = Readonly<Record<string, string | number | boolean>>;

/** One step of the verifier's work. */
export interface Step {
  /** `operation`: a call of the verifier; `store`: a call of the store; `carrier`: a message handed over. */
  readonly kind: "operation" | "store" | "carrier";
  /** `create`, `start`, `retry`, `check`, `deliver`, `confirm`, `lookup`; the store's method; `send`. */
  readonly name: string;
  readonly facts: SpanFacts;
}

/** The current value of a counter or gauge. */
export interface MetricReading {
  readonly name: string;
  readonly help: string;
  readonly kind: "counter" | "gauge";
  readonly samples: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

/** Receives spans and metrics, for example `openTelemetry()` from `phoneproof/otel`. */
export interface Telemetry {
  /**
   * Runs a step and returns its result. Steps that begin during it are its children. `result`: reduces the result to
   * one word. It calls `work` before it returns its promise; otherwise the work runs outside the step. Its own errors
   * are logged, and never reach the work or its caller.
   */
  step<T>(step: Step, work: () => Promise<T>, result: (answer: T) => string): Promise<T>;
  /** Registers a function that reads the verifier's counters and gauges on demand; once it is closed, only counters. */
  metrics(read: () => readonly MetricReading[]): void;
}
