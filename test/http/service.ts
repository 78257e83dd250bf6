import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier, type Verifier } from "../../src/create-verifier.js";
import { generateApiKey } from "../../src/engine/door/account.js";
import type { SmsMessage } from "../../src/ports/sms-sender.js";
import type { Store } from "../../src/ports/store.js";
import { noSpamRules } from "../support/no-spam-rules.js";

export interface Caller {
  readonly customer_uuid: string;
  readonly key: string;
}

/** What a test may see and turn from outside of a verifier that may live in another process. */
export interface Service {
  readonly customer: Caller;
  readonly other: Caller;
  /** Every message that went to the carrier. */
  sent(): Promise<readonly SmsMessage[]>;
  /** What the verifier told the operator. */
  logged(): Promise<readonly string[]>;
  /** While it is broken, every call of the store rejects. */
  breakStore(broken: boolean): Promise<void>;
}

/** A real verifier on the memory store, with two customers, and a carrier that keeps what it is given. */
export function createService(): Service & { readonly verifier: Verifier } {
  const customer = caller();
  const other = caller();
  const sent: SmsMessage[] = [];
  const logged: string[] = [];
  let broken = false;
  const log = (_fields: unknown, message: string) => void logged.push(message);
  const verifier = createVerifier({
    store: breakable(memoryStore(), () => broken),
    sender: {
      async send(message) {
        sent.push(message);
        return { outcome: "accepted" };
      },
    },
    secret: "a secret of the tests, at least 32 characters",
    countries: ["FR"],
    policy: { spam: noSpamRules },
    customers: [customer, other].map(({ customer_uuid, key }) => ({ customer_uuid, keys: [key] })),
    logger: { info: log, warn: log, error: log },
  });
  return {
    verifier,
    customer,
    other,
    sent: async () => sent,
    logged: async () => logged,
    breakStore: async (value) => {
      broken = value;
    },
  };
}

function caller(): Caller {
  return { customer_uuid: crypto.randomUUID(), key: generateApiKey().key };
}

function breakable(store: Store, isBroken: () => boolean): Store {
  return new Proxy(store, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) =>
        isBroken() ? Promise.reject(new Error("connect ECONNREFUSED 10.0.0.7:6379 password=hunter2")) : Reflect.apply(value, target, args);
    },
  });
}
