/** The only source of time. Tests pass `fixedClock()` of `phoneproof/testing`. */
export interface Clock {
  /** Milliseconds since the epoch. The verifier drops fractions: what it decides and stores is in whole milliseconds. */
  now(): number;
  /** Runs `run` once after `ms` milliseconds; the function returned calls that off. `background`: waiting for it must not keep the process alive. */
  after(ms: number, run: () => void, kind?: "background"): () => void;
  /** Milliseconds since some moment, which go on evenly when the system's time is changed. Default: `now`. */
  elapsed?(): number;
}
