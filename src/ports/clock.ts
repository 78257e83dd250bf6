/** The only source of time. Tests pass `fixedClock()` of `phoneproof/testing`. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs `run` once after `ms` milliseconds; the function returned calls that off. */
  after(ms: number, run: () => void): () => void;
}
