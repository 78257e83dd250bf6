import type { Clock } from "../../ports/clock.js";

/** Milliseconds between the tries. */
const waits = [0, 1_000, 4_000, 10_000, 30_000];

/** Work that is insisted on at a time, in this process; what comes beyond is given up at once. */
const most = 1_000;

let underWay = 0;

/** Tries until it works, for up to 45 s, beside the requests. Rejects with the last failure. `first`: how many of the tries were made before. */
export async function insist(clock: Clock, work: () => Promise<unknown>, first = 0): Promise<void> {
  if (underWay >= most) throw new Error(`${most} such tries are under way already`);
  underWay++;
  let failed: unknown;
  try {
    for (const wait of waits.slice(first)) {
      if (wait > 0) await new Promise<void>((resolve) => clock.after(wait, resolve, "background"));
      try {
        await work();
        return;
      } catch (err) {
        failed = err;
      }
    }
  } finally {
    underWay--;
  }
  throw failed;
}
