import { memoryStore } from "phoneproof/memory";
import { handmadeInMemory } from "./handmade.js";
import { runAlone } from "./processes.js";
import { median, number, type Part } from "./report.js";
import { multiple } from "./rounds.js";
import { benchVerifier, customer_uuid, expect, visit } from "./service.js";
import { visitors, wrongCode } from "./traffic.js";

const rounds = 12;
const warmUp = 4;
const flowsPerRound = 3_000;
const pending = 5_000;

/** The cost of the library alone. */
export const directPart: Part = {
  name: "direct",
  title: "Direct calls, one after another, memory store, all fields; by hand: maps with a timer for each entry",
  async measure() {
    const { ours, byHand } = await runAlone<Cpu>("./direct.ts", "measureCpu");
    const ratios = ours.map((micros, round) => micros / (byHand[round] as number));
    const bytes = await runAlone<number>("./direct.ts", "measurePending");
    return [
      multiple("CPU of a flow × by hand", ratios, `${number(median(ours))} µs against ${number(median(byHand))}`, { most: 4 }),
      { figure: "heap of a pending authentication, its share of what is counted included", measured: `${number(Math.round(bytes))} bytes` },
    ];
  },
};

/** Microseconds per flow, in each round. */
interface Cpu {
  readonly ours: readonly number[];
  readonly byHand: readonly number[];
}

/** Runs in a separate process. */
export async function measureCpu(): Promise<Cpu> {
  const codes = new Map<string, string>();
  const keep = (phone: string, code: string) => codes.set(phone, code);
  const verifier = benchVerifier(memoryStore(), keep);
  const backend = handmadeInMemory(keep);
  const next = visitors(0);
  const round = async (run: (visitor: ReturnType<typeof next>) => Promise<void>): Promise<number> => {
    const people = Array.from({ length: flowsPerRound }, next);
    const before = process.cpuUsage();
    for (const visitor of people) await run(visitor);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / flowsPerRound;
  };
  const [ours, byHand]: [number[], number[]] = [[], []];
  for (let turn = 0; turn < rounds; turn++) {
    ours.push(await round((visitor) => visit({ verifier, codes }, visitor)));
    byHand.push(
      await round(async ({ fields, typing }) => {
        const { authentication_uuid, status } = (await backend.create({ customer_uuid, ...fields })) as { authentication_uuid: string; status: string };
        expect(status, "pending");
        const code = codes.get(fields.phone_number) ?? "";
        codes.delete(fields.phone_number);
        const check = async (check_code: string) => ((await backend.check({ customer_uuid, authentication_uuid, check_code })) as { status: string }).status;
        if (typing === "wrong first") expect(await check(wrongCode(code)), "invalid");
        if (typing !== "nothing") expect(await check(code), "valid");
      }),
    );
  }
  await verifier.close();
  return { ours: ours.slice(warmUp), byHand: byHand.slice(warmUp) };
}

/** Runs in a separate process. */
export async function measurePending(): Promise<number> {
  const codes = new Map<string, string>();
  const verifier = benchVerifier(memoryStore(), (phone, code) => codes.set(phone, code));
  const next = visitors(0);
  for (let index = 0; index < 2 * pending; index++) await visit({ verifier, codes }, next());
  codes.clear();
  const before = heap();
  for (let index = 0; index < pending; index++) {
    expect((await verifier.createAuthentication({ customer_uuid, ...next().fields })).status, "pending");
    codes.clear();
  }
  const bytes = (heap() - before) / pending;
  await verifier.close();
  return bytes;
}

/** The bytes in use. External bytes include array buffers. */
function heap(): number {
  for (let turn = 0; turn < 3; turn++) (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
