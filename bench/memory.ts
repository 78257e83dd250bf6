import { memoryStore } from "phoneproof/memory";
import { runAlone } from "./processes.js";
import { atMost, number, type Part } from "./report.js";
import { claimsOf, recordOf, writeOne } from "./written.js";

const million = 1_000_000;

/** Bytes. */
interface Grown {
  readonly heap: number;
  readonly rss: number;
}

/** Memory of a million pending authentications, and of the windows that their creates fill. */
export const memoryPart: Part = {
  name: "memory",
  title: "Memory of 1,000,000 pending authentications in the memory store (a number, one code, no callback): heap and external after gc",
  async measure() {
    const records = await runAlone<Grown>("./memory.ts", "measureRecords");
    const windows = await runAlone<Grown>("./memory.ts", "measureWindows");
    const rss = ({ rss: bytes }: Grown) => ` (resident ${number(Math.round(bytes / 1e6))} MB)`;
    return [
      atMost("authentications", Math.round(records.heap / 1e6), 600, " MB", rss(records)),
      { figure: "their windows, every number another", measured: `${number(Math.round(windows.heap / 1e6))} MB${rss(windows)}` },
    ];
  },
};

export async function measureRecords(): Promise<Grown> {
  const written = await writeOne();
  return grownBy(async (store) => {
    for (let index = 0; index < million; index++) await store.compareAndSwap(recordOf(written, index), null);
  });
}

export async function measureWindows(): Promise<Grown> {
  const written = await writeOne();
  return grownBy(async (store) => {
    for (let index = 0; index < million; index++) {
      const result = await store.reserve(claimsOf(written, index));
      if (!result.granted) throw new Error("a window was full");
    }
  });
}

async function grownBy(fill: (store: ReturnType<typeof memoryStore>) => Promise<void>): Promise<Grown> {
  const store = memoryStore();
  const before = measure();
  await fill(store);
  const after = measure();
  await store.close?.();
  return { heap: after.heap - before.heap, rss: after.rss - before.rss };
}

/** Array buffers are among the external bytes. */
function measure(): Grown {
  for (let turn = 0; turn < 3; turn++) (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed + external, rss };
}
