import { memoryStore } from "phoneproof/memory";
import { farLimits } from "./memory.js";
import { runAlone } from "./processes.js";
import { atMost, type Row } from "./report.js";
import { benchVerifier, customerOf, noSpamRules, numberOf } from "./service.js";

const pending = 100_000;

/** Calls of the store for a check in the process that made the authentication, which holds many others. */
export async function rememberedRows(): Promise<Row[]> {
  return [
    atMost(
      `round trips: check, the process that created it and ${pending.toLocaleString("en")} others since`,
      await runAlone("./remembered.ts", "measureCalls"),
      1,
      "",
    ),
  ];
}

/** The mean over the first thousand made, in a process of its own. */
export async function measureCalls(): Promise<number> {
  const memory = memoryStore();
  let calls = 0;
  const store = new Proxy(memory, {
    get(target, name) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        calls++;
        return method.apply(target, args);
      };
    },
  });
  const { verifier, codes } = benchVerifier(store, { policy: { ...farLimits, spam: noSpamRules } });
  const customer_uuid = customerOf(0);
  const made: string[] = [];
  for (let index = 0; index < pending + 1_000; index++) {
    const { authentication_uuid } = await verifier.createAuthentication({ customer_uuid, phone_number: numberOf(index) });
    if (made.length < 1_000) made.push(authentication_uuid);
    codes.clear();
  }
  calls = 0;
  for (const authentication_uuid of made) await verifier.check({ customer_uuid, authentication_uuid, check_code: "wrong" });
  await memory.close?.();
  return calls / made.length;
}
