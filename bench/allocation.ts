import { createHook } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { getHeapSpaceStatistics } from "node:v8";
import type { Verifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { farLimits, shapes } from "./memory.js";
import { runAlone } from "./processes.js";
import { atMost, number, type Row } from "./report.js";
import { benchVerifier, customerOf, noSpamRules, numberOf } from "./service.js";

/** What each operation makes: bytes on the heap, and promises. */
export type Made = Readonly<Record<string, { readonly bytes: number; readonly promises: number }>>;

const warmUp = 12;
/** Rounds that count: in some of them tables double, in others not. */
const counted = 4;
const perRound = 1_000;

/** A young generation that holds a whole round: nothing is collected meanwhile, so that what is used more is what was allocated. */
const flags = ["--expose-gc", "--min-semi-space-size=128", "--max-semi-space-size=128"];

/** Direct calls on the memory store. `perRound` operations of each kind in turn, after rounds that let V8 compile what it will; the mean of the last four counts. */
export async function allocationRows(): Promise<Row[]> {
  const plain = await runAlone<Made>("./allocation.ts", "measureMade", { spamRules: false }, flags);
  const ruled = await runAlone<Made>("./allocation.ts", "measureMade", { spamRules: true }, flags);
  const rows: Row[] = [];
  for (const [name, bytes, promises] of [
    ["create, all fields", 18, 20],
    ["check, wrong code", 6, 9],
  ] as const) {
    const made = plain[name] as Made[string];
    rows.push(atMost(`bytes allocated: ${name}`, made.bytes / 1024, bytes, " KB"), atMost(`promises: ${name}`, made.promises, promises, ""));
  }
  for (const name of Object.keys(ruled)) {
    const { bytes, promises } = ruled[name] as Made[string];
    rows.push({ figure: `with the spam rules on: ${name}`, measured: `${number(bytes / 1024)} KB, ${number(promises)} promises` });
  }
  return rows;
}

/** Run in a process of its own. */
export async function measureMade({ spamRules }: { readonly spamRules: boolean }): Promise<Made> {
  const { verifier, codes } = benchVerifier(memoryStore(), { policy: spamRules ? farLimits : { ...farLimits, spam: noSpamRules } });
  const { fieldsOf } = shapes["with ip and device"];
  let index = 0;
  let round = 0;
  const customer_uuid = customerOf(0);
  const requests = (shape: "all" | "number") =>
    Array.from({ length: perRound }, () => {
      const number = { customer_uuid, phone_number: numberOf(index) };
      const more = {
        ...fieldsOf(index++),
        app_realm: "FA+9qCX9VSu",
        app_version: "1.2.3",
        os_version: "14",
        device_model: "Pixel 8",
        is_returning_user: false,
      };
      return shape === "all" ? { ...number, ...more } : number;
    });
  const made: Record<string, { bytes: number; promises: number }> = {};

  /** The operations of one kind; promises are counted in a round of their own, the last: who counts them slows down all that comes after. */
  async function count<I, R>(name: string, inputs: readonly I[], run: (input: I) => Promise<R>): Promise<R[]> {
    const results = new Array<R>(inputs.length);
    if (round === warmUp + counted) {
      let at = 0;
      const promises = await promisesOf(inputs, async (input) => void (results[at++] = await run(input)));
      made[name] = { bytes: 0, ...made[name], promises };
      return results;
    }
    if (round >= warmUp) (globalThis as { gc?: () => void }).gc?.();
    const before = heapUsed();
    // Nothing is between the operation and the loop: a function that waits for it would be counted with it.
    for (let at = 0; at < inputs.length; at++) results[at] = await run(inputs[at] as I);
    const bytes = (heapUsed() - before) / inputs.length;
    if (round >= warmUp) made[name] = { promises: 0, bytes: (made[name]?.bytes ?? 0) + bytes / counted };
    return results;
  }

  type Created = Awaited<ReturnType<Verifier["createAuthentication"]>>;
  const check = ({ authentication_uuid }: Created, check_code: string) => verifier.check({ customer_uuid, authentication_uuid, check_code });
  for (; round <= warmUp + counted; round++) {
    await count("create, number only", requests("number"), (request) => verifier.createAuthentication(request));
    const created = await count("create, all fields", requests("all"), (request) => verifier.createAuthentication(request));
    await count("check, wrong code", created, (one) => check(one, "wrong"));
    const verdicts = await count("check, right code, its credit beside included", created, (one) => check(one, codes.get(one.authentication_uuid) ?? ""));
    if (!verdicts.every(({ status }) => status === "valid")) throw new Error("a right code was refused");
    codes.clear();
  }
  await verifier.close();
  return made;
}

/** Bytes in the young generation: what a table of a hundred thousand takes when it doubles, once, is told by the bytes of what is kept. */
function heapUsed(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.space_used_size ?? Number.NaN;
}

/** Promises that async hooks tell of for each, what runs on beside the answer included, less those of the loop itself. */
async function promisesOf<I>(inputs: readonly I[], run: (input: I) => Promise<void>): Promise<number> {
  const counted = async (work: (input: I) => Promise<void>) => {
    let promises = 0;
    const hook = createHook({ init: (_id, type) => void (type === "PROMISE" && promises++) }).enable();
    for (const input of inputs) await work(input);
    await nextTurn();
    hook.disable();
    return promises;
  };
  const nothing = Promise.resolve();
  const own = await counted(async () => void (await nothing));
  return ((await counted(run)) - own) / inputs.length;
}
