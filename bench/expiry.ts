import { PerformanceObserver } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { StoredRecord } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { changesOf } from "./memory.js";
import { runAlone } from "./processes.js";
import { atMost, number, type Part } from "./report.js";

const million = 1_000_000;
/** Milliseconds. */
const quiet = 5_000;
const patience = 90_000;

/** Milliseconds. */
interface Holds {
  readonly longest: number;
  readonly longestGc: number;
  readonly above20: number;
  readonly took: number;
}

interface Swept {
  readonly quiet: Holds;
  readonly sweeping: Holds;
  readonly done: boolean;
}

/** How long the sweeps of the memory store hold the event loop when everything ends at once. */
export const expiryPart: Part = {
  name: "expiry",
  title: "1,000,000 authentications and their windows ending at one time in the memory store: holds of the event loop, by a heartbeat",
  async measure() {
    const { quiet: before, sweeping, done } = await runAlone<Swept>("./expiry.ts", "measureSweeps");
    const took = done ? `all forgotten after ${number(Math.round(sweeping.took / 1000))} s` : `not done after ${number(Math.round(sweeping.took / 1000))} s`;
    return [
      atMost(
        "longest hold while sweeping",
        sweeping.longest,
        20,
        " ms",
        ` (${sweeping.above20} holds above 20 ms; longest gc ${number(sweeping.longestGc)} ms; ${took})`,
      ),
      {
        figure: `longest hold in ${quiet / 1000} s before`,
        measured: `${number(before.longest)} ms (${before.above20} holds above 20 ms; longest gc ${number(before.longestGc)} ms): the machine's own share`,
      },
    ];
  },
};

export async function measureSweeps(): Promise<Swept> {
  let ahead = 0;
  const store = memoryStore({ now: () => performance.now() + ahead });
  const changeOf = await changesOf("number only");
  const records: StoredRecord[] = [];
  const windows: string[] = [];
  for (let index = 0; index < million; index++) {
    const change = changeOf(index);
    await store.commit(change);
    if (index % 5_000 !== 0) continue;
    records.push(change.record);
    windows.push(...(change.claims ?? []).flatMap((claim) => ("window" in claim ? [claim.window] : [])));
  }

  async function isEmpty(): Promise<boolean> {
    for (const { customer, id } of records) if ((await store.find(customer, id)) !== undefined) return false;
    for (const window of windows) if ((await store.members(window, 1)).length > 0) return false;
    return true;
  }

  (globalThis as { gc?: () => void }).gc?.();
  const before = await watch(quiet, async () => false);
  // From here on there is everything to forget.
  ahead = 7 * 86_400_000;
  const sweeping = await watch(patience, isEmpty);
  const done = await isEmpty();
  await store.close?.();
  return { quiet: before, sweeping, done };
}

/** Turns of the event loop until `done` says so, looked at twice a second, or for `ms`. */
async function watch(ms: number, done: () => Promise<boolean>): Promise<Holds> {
  let longestGc = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestGc = Math.max(longestGc, duration);
  });
  observer.observe({ entryTypes: ["gc"] });
  const started = performance.now();
  let last = started;
  let looked = started;
  let longest = 0;
  let above20 = 0;
  while (last - started < ms) {
    await nextTurn();
    const now = performance.now();
    longest = Math.max(longest, now - last);
    if (now - last > 20) above20++;
    last = now;
    if (now - looked < 500) continue;
    looked = now;
    if (await done()) break;
    last = performance.now();
  }
  observer.disconnect();
  return { longest, longestGc, above20, took: last - started };
}
