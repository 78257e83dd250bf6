import { memoryStore } from "phoneproof/memory";
import { runAlone } from "./processes.js";
import { median, number, type Part } from "./report.js";
import { benchVerifier, customerFor, customerOf, highCeiling, numberOf } from "./service.js";

const rounds = 7;
const perRound = 4_000;

/** Operations by direct calls on the memory store, one after another. */
export const enginePart: Part = {
  name: "engine",
  title: "Operations by direct calls, memory store, one after another; medians of rounds",
  async measure() {
    const costs = await runAlone<Record<string, number>>("./engine.ts", "measureOperations");
    return Object.entries(costs).map(([figure, micros]) => ({
      figure,
      measured: `${number(Math.round(1e6 / micros))} per second of CPU (${number(micros)} µs each)`,
    }));
  },
};

/** Microseconds of CPU of each operation. */
export async function measureOperations(): Promise<Record<string, number>> {
  const { verifier, codes } = benchVerifier(memoryStore());
  const paid = benchVerifier(memoryStore({ name: "paid" }), { policy: highCeiling });
  let index = 0;
  const costs: Record<string, number[]> = {};

  async function timed<R>(name: string, inputs: readonly R[], run: (input: R) => Promise<unknown>): Promise<void> {
    const before = process.cpuUsage();
    for (const input of inputs) await run(input);
    const { user, system } = process.cpuUsage(before);
    (costs[name] ??= []).push((user + system) / inputs.length);
  }

  for (let round = 0; round <= rounds; round++) {
    const creates = Array.from({ length: perRound }, () => ({ customer_uuid: customerOf(customerFor(index)), phone_number: numberOf(index++) }));
    const made: { readonly customer_uuid: string; readonly authentication_uuid: string; readonly check_code: string }[] = [];
    await timed("create", creates, async (request) => {
      const { authentication_uuid } = await verifier.createAuthentication(request);
      made.push({ customer_uuid: request.customer_uuid, authentication_uuid, check_code: "" });
    });
    await timed("create under a spend ceiling", creates, (request) => paid.verifier.createAuthentication(request));
    paid.codes.clear();
    const wrong = made.map((each) => ({ ...each, check_code: codes.get(each.authentication_uuid) === "000000" ? "111111" : "000000" }));
    const right = made.map((each) => ({ ...each, check_code: codes.get(each.authentication_uuid) ?? "" }));
    const same = made.map(({ customer_uuid, authentication_uuid }) => ({ customer_uuid, authentication_uuid }));
    codes.clear();
    await timed("check, wrong code", wrong, async (request) => expectStatus(await verifier.check(request), "invalid"));
    await timed("retry, denied", same, async (request) => expectStatus(await verifier.retry(request), "denied"));
    await timed("check, right code", right, async (request) => expectStatus(await verifier.check(request), "valid"));
    await timed("lookup", creates, (request) => verifier.lookup(request));
  }
  await Promise.all([verifier.close(), paid.verifier.close()]);
  // The first round warms up.
  return Object.fromEntries(Object.entries(costs).map(([name, each]) => [name, median(each.slice(1))]));
}

function expectStatus(result: { readonly status: string }, status: string): void {
  if (result.status !== status) throw new Error(`expected ${status}, got ${result.status}`);
}
