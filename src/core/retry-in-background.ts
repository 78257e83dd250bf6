import type { Clock } from "../ports/clock.js";

/** Milliseconds between attempts: they take back what an outage left counted, soon after it ends. */
const waits = [0, 1_000, 4_000, ...Array<number>(8).fill(5_000)];

/** Concurrent attempts in this process; others wait. */
const atOnce = 64;

/** Retries that may wait; beyond that, work is given up at once. */
const mostWaiting = 50_000;

let underWay = 0;
const waiting: (() => void)[] = [];

/** Retries for 45 s plus queueing time, then rejects with the last error. `first`: attempts already made. */
export async function retryInBackground(clock: Clock, work: () => Promise<unknown>, first = 0): Promise<void> {
  for (let at = first; ; at++) {
    const wait = waits[at] as number;
    if (wait > 0) await new Promise<void>((resolve) => clock.after(wait, resolve, "background"));
    try {
      return await inTurn(work);
    } catch (error) {
      // The error is dropped: in an outage, thousands of these wait.
      if (at + 1 >= waits.length) throw error;
    }
  }
}

async function inTurn(work: () => Promise<unknown>): Promise<void> {
  if (underWay >= atOnce) {
    if (waiting.length >= mostWaiting) throw new Error(`${mostWaiting} such tasks are waiting already`);
    await new Promise<void>((resolve) => waiting.push(resolve));
  }
  underWay++;
  try {
    await work();
  } finally {
    underWay--;
    waiting.shift()?.();
  }
}
