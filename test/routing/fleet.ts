import type { Store } from "../../src/ports/store.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { seeded } from "./simulation.js";
import { tallyStore } from "./tally-store.js";

export interface Fleet {
  readonly processes: number;
  /** Number of first messages of each process in two seconds. */
  readonly messages: number;
  /** How long messages are sent. */
  readonly seconds: number;
  readonly countries: readonly string[];
  /** Probability that a code is entered. */
  readonly conversion: number;
  /** The store behind the one that counts the traffic. */
  readonly behind?: Store;
}

export interface FleetReport {
  readonly sent: number;
  /** The share of all hand-overs that is known to the process that knows least. */
  readonly known: number;
  /** The share of the codes that were entered. */
  readonly typed: number;
  /** The same share as the processes counted it: the lowest and the highest. */
  readonly conversion: readonly [number, number];
  /** Of all processes together, after they have started. */
  readonly bytesPerSecond: number;
  readonly callsPerSecond: number;
  readonly namesPerCall: number;
  /** Of one process that starts after the others have run this long, until it knows what they know. */
  readonly bytesAtStart: number;
}

const stepsASecond = 20;

/** Runs the processes on one store, on a clock that stands still between events; a code is entered at any process. */
export async function runFleet({ processes, messages, seconds, countries, conversion, behind }: Fleet): Promise<FleetReport> {
  const clock = fixedClock();
  const random = seeded(1);
  const store = tallyStore(behind);
  const sender = { send: async () => ({ outcome: "accepted" as const }) };
  const routes = ["a", "b", "c"].map((name) => ({ name, sender }));
  const make = () => router({ routes, clock, random, store });
  const fleet = Array.from({ length: processes }, make);
  const any = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]!;
  const due = new Map<number, (() => void)[]>();
  let [sent, typed, step] = [0, 0, 0];

  const rest = async () => {
    do await new Promise(setImmediate);
    while (store.traffic.open > 0);
  };
  const destination = (country: string) => ({ to: "+4915112345678", authentication_uuid: `${sent}`, customer_uuid: "c", attempt: 1, country });
  const send = async (by: ReturnType<typeof make>) => {
    sent += 1;
    const to = destination(any(countries));
    const planned_route = by.plan(to)!.route;
    const sent_at = clock.now();
    const message = { ...to, text: "Your code is 493817.", code: "493817", idempotency_key: `${sent}`, expires_at: sent_at + 600_000, planned_route };
    const { route = "" } = await by.send(message, { signal: new AbortController().signal, deadline: sent_at + 5000, timeLeft: 5000 });
    if (random() >= conversion) return;
    typed += 1;
    const at = step + Math.ceil((4 - 9 * Math.log(1 - 0.99 * random())) * stepsASecond);
    const hear = () => any(fleet).feedback!({ ...to, route, event: "validated", sent_at, chosen: true });
    due.set(at, [...(due.get(at) ?? []), hear]);
  };
  /** Each process sends its messages, or only requests plans, spread over two seconds. */
  const pass = async (time: number, work: (by: ReturnType<typeof make>, count: number) => Promise<unknown> | unknown, count: number) => {
    for (const end = step + time * stepsASecond; step < end; step++) {
      clock.advance(1000 / stepsASecond);
      for (const hear of due.get(step) ?? []) hear();
      due.delete(step);
      for (const [index, one] of fleet.entries()) {
        for (let k = 0; k < count; k++) if ((step + index + Math.floor((k * 2 * stepsASecond) / count)) % (2 * stepsASecond) === 0) await work(one, k);
      }
      await rest();
    }
  };
  const seen = () => ({ ...store.traffic });

  await pass(10, send, messages);
  const before = seen();
  await pass(seconds - 10, send, messages);
  const after = seen();
  await pass(84, (by, k) => by.plan(destination(countries[k]!)), countries.length);

  const started = seen();
  const late = make();
  for (let exchange = 0; exchange < 2; exchange++) {
    for (const country of countries) late.plan(destination(country));
    await rest();
    clock.advance(2000);
    await rest();
  }
  const ended = seen();
  const totals = [...fleet, late].map((one) => {
    const sum = (of: (health: ReturnType<typeof one.health>[number]) => number) => one.health().reduce((all, health) => all + of(health), 0);
    return { known: sum(({ handOver }) => handOver.all) / sent, conversion: sum((health) => health.conversion.good) / sum((health) => health.conversion.all) };
  });
  return {
    sent,
    known: Math.min(...totals.map(({ known }) => known)),
    typed: typed / sent,
    conversion: [Math.min(...totals.map((one) => one.conversion)), Math.max(...totals.map((one) => one.conversion))],
    bytesPerSecond: (after.bytes - before.bytes) / (seconds - 10),
    callsPerSecond: (after.calls - before.calls) / (seconds - 10),
    namesPerCall: (after.names - before.names) / (after.calls - before.calls),
    bytesAtStart: ended.bytes - started.bytes,
  };
}
