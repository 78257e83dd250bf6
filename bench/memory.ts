import { randomBytes, randomUUID } from "node:crypto";
import type { Change, PolicyOverride, RecordWrite, Store } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { runAlone } from "./processes.js";
import { atMost, median, number, type Part, type Row } from "./report.js";
import { benchVerifier, customerOf, numberOf } from "./service.js";

const million = 1_000_000;
/** The tables grow in steps: here they are as full as with a million, which take longer. */
const fewer = 125_000;

/** Fields of create `index`, and how many bytes it may take. */
export const shapes = {
  "number only": { most: 450, fieldsOf: () => ({}) },
  "with ip and device": {
    most: 1_200,
    fieldsOf: (index: number) => ({ ip: `198.18.${(index >> 8) & 255}.${index & 255}`, device_id: `device ${index}`, device_type: "ANDROID" as const }),
  },
};

export type Shape = keyof typeof shapes;

/** Limits that nothing here reaches: a million creates of one customer and one country are counted by every rule, and none is refused. */
const far = 1e9;
export const farLimits: PolicyOverride = {
  limits: { perCustomer: [{ limit: far, window: 86_400 }] },
  spam: {
    range: { seeds: [far, far, far] },
    crowd: { messages: far },
    country: { seed: far },
    newCountries: { seed: far },
    address: { seed: far },
    strangeNetwork: { base: far },
  },
};

/** Bytes for each authentication, and microseconds for a create beside a thousand and beside all. */
interface Grown {
  readonly heap: number;
  readonly rss: number;
  readonly besideFew: number;
  readonly besideAll: number;
}

/** The memory of pending authentications of one customer, with all that their creates count. */
export async function memoryRows(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const shape of Object.keys(shapes) as Shape[]) {
    const { heap } = await runAlone<Grown>("./memory.ts", "measureGrowth", { shape, count: fewer, rounds: 0 });
    rows.push(atMost(`bytes of a pending authentication with its windows and sums in the memory store: ${shape}`, Math.round(heap), shapes[shape].most, ""));
  }
  return rows;
}

/** One customer of a million. */
export const memoryPart: Part = {
  name: "memory",
  title:
    "1,000,000 pending authentications of one customer in the memory store, with their windows and sums: the time of a create; heap after gc, and what is resident",
  async measure() {
    const rows: Row[] = [];
    for (const shape of Object.keys(shapes) as Shape[]) {
      const { heap, rss, besideFew, besideAll } = await runAlone<Grown>("./memory.ts", "measureGrowth", { shape, count: million, rounds: 60 });
      const times = ` (${number(besideAll)} µs against ${number(besideFew)})`;
      rows.push(atMost(`${shape}, a create beside ${number(million)} against one beside 1,000`, besideAll / besideFew, 1.3, " ×", times));
      rows.push({ figure: `${shape}, bytes of each`, measured: `${number(Math.round(heap))} heap, ${number(Math.round(rss))} resident` });
    }
    return rows;
  },
};

export async function measureGrowth({ shape, count, rounds }: { readonly shape: Shape; readonly count: number; readonly rounds: number }): Promise<Grown> {
  const changeOf = await changesOf(shape, farLimits);
  const [all, few] = [memoryStore({ name: "all", maxRecords: 2 * million }), memoryStore({ name: "few" })];
  for (let index = 0; index < 1_000; index++) await few.commit(changeOf(index));
  const before = measure();
  for (let index = 0; index < count; index++) if (!(await all.commit(changeOf(index))).done) throw new Error("a window was full");
  const after = measure();
  const [besideAll, besideFew] = [creates(all, shape, count), creates(few, shape, count)];
  for (let turn = 0; turn < rounds; turn++) {
    await besideAll.run();
    await besideFew.run();
  }
  for (const store of [all, few]) await store.close?.();
  return { heap: (after.heap - before.heap) / count, rss: (after.rss - before.rss) / count, besideAll: besideAll.typical(), besideFew: besideFew.typical() };
}

/** Creates in batches, and the microseconds that one takes in the middle batch. */
function creates(store: Store, shape: Shape, first: number) {
  const { verifier } = benchVerifier(store, { policy: farLimits });
  const times: number[] = [];
  let index = first;
  return {
    async run() {
      const started = performance.now();
      for (let left = 100; left > 0; left--) {
        const { status } = await verifier.createAuthentication({
          customer_uuid: customerOf(0),
          phone_number: numberOf(index),
          ...shapes[shape].fieldsOf(index++),
        });
        if (status !== "pending") throw new Error(`expected pending, got ${status}`);
      }
      times.push((performance.now() - started) * 10);
    },
    typical: () => (times.length === 0 ? Number.NaN : median(times)),
  };
}

/** What the engine commits for a create, and for others like it: each with an id, a number, a device and an address of its own, all from the same country and range. */
export async function changesOf(shape: Shape, policy: PolicyOverride = {}): Promise<(index: number) => Change & { readonly record: RecordWrite }> {
  const memory = memoryStore({ name: randomUUID() });
  const committed: Change[] = [];
  const store: Store = {
    find: (customer, id) => memory.find(customer, id),
    commit(change) {
      committed.push(change);
      return memory.commit(change);
    },
    members: (window, limit) => memory.members(window, limit),
    tally: (adds, reads) => memory.tally(adds, reads),
    lease: (until, limit, leaseUntil) => memory.lease(until, limit, leaseUntil),
    get: (key) => memory.get(key),
    put: (key, value, life) => memory.put(key, value, life),
    forget: (what) => memory.forget(what),
  };
  const { verifier } = benchVerifier(store, { policy });
  await verifier.createAuthentication({ customer_uuid: customerOf(0), phone_number: numberOf(0), ...shapes[shape].fieldsOf(0) });
  await memory.close?.();
  const change = committed[0];
  if (change?.record === undefined) throw new Error("nothing was written");
  const text = JSON.stringify(change);
  const own = new Set(Array.from(text.matchAll(/:(?:n|d|dn|a):([\w-]{11,})/g), ([, mask]) => mask as string));
  const pattern = new RegExp([change.record.id, numberOf(0).replace("+", "\\+"), ...own].join("|"), "g");
  return (index) => {
    const others = new Map([...own].map((mask) => [mask, randomBytes(mask.length).toString("base64url").slice(0, mask.length)]));
    others.set(change.record?.id as string, randomUUID()).set(numberOf(0), numberOf(index));
    return JSON.parse(text.replace(pattern, (found) => others.get(found) as string));
  };
}

/** Array buffers are among the external bytes. */
function measure(): { readonly heap: number; readonly rss: number } {
  for (let turn = 0; turn < 3; turn++) (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed + external, rss };
}
