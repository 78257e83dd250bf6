import { setTimeout as wait } from "node:timers/promises";
import type { Store, Verifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { number, type Part, type Row } from "./report.js";
import { benchVerifier, customerOf, highCeiling, numberOf } from "./service.js";

/** What the processes do together for some seconds, each call of the store taking `latency` milliseconds. */
interface Run {
  readonly processes: number;
  readonly latency: number;
  readonly perSecond: number;
}

const runs: readonly Run[] = [
  { processes: 300, latency: 20, perSecond: 80 },
  { processes: 200, latency: 4, perSecond: 300 },
];

const seconds = 10;

/** Many processes that spend of one customer's money at once: "no 503, no overspend, p99 within one round trip of the run without a ceiling". */
export const spendPart: Part = {
  name: "spend",
  title: "A spend ceiling under contention: verifiers on one store behind a network, one customer",
  async measure() {
    const rows: Row[] = [];
    for (const run of runs) {
      const { processes, latency, perSecond } = run;
      const name = `${processes} processes, ${latency} ms, ${perSecond} creates/s`;
      const [free, held] = [await measureRun(run, undefined), await measureRun(run, Number.POSITIVE_INFINITY)];
      const tight = await measureRun(run, (seconds * perSecond) / 2);
      rows.push(
        { figure: `${name}: p99 without a ceiling`, measured: `${number(free.p99)} ms` },
        {
          figure: `${name}: p99 under a ceiling`,
          measured: `${number(held.p99)} ms`,
          target: `≤ ${number(free.p99 + latency)} ms`,
          reached: held.p99 <= free.p99 + latency,
        },
        { figure: `${name}: answered 503`, measured: `${held.failed + tight.failed}`, target: "0", reached: held.failed + tight.failed === 0 },
        {
          figure: `${name}: sent where half is paid for`,
          measured: `${tight.sent} of ${tight.asked}`,
          target: `${tight.asked / 2}`,
          reached: tight.sent === tight.asked / 2,
        },
      );
    }
    return rows;
  },
};

/** `messages`: how many the ceiling pays for; absent: there is none. */
async function measureRun({ processes, latency, perSecond }: Run, messages: number | undefined) {
  const store = behindNetwork(memoryStore({ name: `spend ${processes} ${messages}` }), latency);
  const policy =
    messages === undefined
      ? {}
      : { policy: messages === Number.POSITIVE_INFINITY ? highCeiling : { limits: { spend: [{ amount: messages * 0.05, per: "day" as const }] } } };
  const verifiers: Verifier[] = Array.from({ length: processes }, () => benchVerifier(store, policy).verifier);
  const [times, statuses]: [number[], Record<string, number>] = [[], {}];
  const asked = seconds * perSecond;
  const started = performance.now();
  const creates: Promise<void>[] = [];
  for (let index = 0; index < asked; index++) {
    const due = started + (index * 1000) / perSecond;
    if (due > performance.now()) await wait(due - performance.now());
    const began = performance.now();
    const request = { customer_uuid: customerOf(0), phone_number: numberOf(index) };
    const made = (verifiers[index % processes] as Verifier).createAuthentication(request).then(
      ({ status }) => status,
      (error: { code?: string }) => error.code ?? "failed",
    );
    creates.push(
      made.then((status) => {
        times.push(performance.now() - began);
        statuses[status] = (statuses[status] ?? 0) + 1;
      }),
    );
  }
  await Promise.all(creates);
  await Promise.all(verifiers.map((verifier) => verifier.close()));
  const { pending: sent = 0, rate_limited: refused = 0 } = statuses;
  return { p99: times.sort((a, b) => a - b)[Math.floor(asked * 0.99)] as number, sent, failed: asked - sent - refused, asked };
}

/** A store that is `latency` milliseconds away, half of it on each way. */
function behindNetwork(store: Store, latency: number): Store {
  const far = <A extends unknown[], R>(method: (...args: A) => Promise<R>) => {
    return async (...args: A): Promise<R> => {
      await wait(latency / 2);
      const result = await method.apply(store, args);
      await wait(latency / 2);
      return result;
    };
  };
  return {
    find: far(store.find),
    commit: far(store.commit),
    members: far(store.members),
    tally: far(store.tally),
    lease: far(store.lease),
    get: far(store.get),
    put: far(store.put),
    forget: far(store.forget),
  };
}
