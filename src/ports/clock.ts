/** The only source of time. In tests, pass `fixedClock()` from `phoneproof/testing`. */
export interface Clock {
  /** Milliseconds since the epoch. Fractions are dropped: the verifier decides and stores in whole milliseconds. */
  now(): number;
  /**
   * Runs `run` once after `ms` milliseconds. Returns a function that cancels it. `background`: the timer must not keep
   * the process alive.
   */
  after(ms: number, run: () => void, kind?: "background"): () => void;
  /** Monotonic milliseconds since an arbitrary moment, unaffected by changes of the system time. Default: `now`. */
  elapsed?(): number;
}
