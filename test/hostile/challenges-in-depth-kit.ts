import type { CreateAuthenticationRequest } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { createTestVerifier, type TestVerifier, type TestVerifierOptions } from "phoneproof/testing";

const address = "203.0.113.9";

/** A mobile number in a range of its own. */
const numberAt = (index: number): string => `+3361${2_000_000 + index * 10_007}`;

/** The create of a user who solved the challenge, from the address that the rules block. */
export const solved: CreateAuthenticationRequest = { phone_number: numberAt(1), ip: address, proof: "the token of the widget" };

/** Runs everything that is ready. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** How many messages went to that user. */
export const messagesTo = (test: TestVerifier): number => test.inbox.messages.filter(({ to }) => to === solved.phone_number).length;

/**
 * A provider that accepts each token once, as siteverify does ("timeout-or-duplicate"). Like a real one, it may say
 * "used" before the first response has arrived: that one waits until `release` is called, if `held`.
 */
export function provider({ held = false } = {}) {
  const used = new Set<string>();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const asked: string[] = [];
  return {
    asked,
    release,
    challenge: {
      async verify(proof: string): Promise<boolean> {
        asked.push(proof);
        if (used.has(proof)) return false;
        used.add(proof);
        if (held) await released;
        return true;
      },
    },
  };
}

/** A store whose commits can be made to fail. */
export function breakableStore() {
  const store = memoryStore();
  const state = { isDown: false };
  const commit: typeof store.commit = (...args) => (state.isDown ? Promise.reject(new Error("connection refused")) : store.commit(...args));
  return { state, store: new Proxy(store, { get: (target, name) => (name === "commit" ? commit : Reflect.get(target, name).bind(target)) }) };
}

/** A verifier whose rule for addresses blocks every create from the address, unless a proof waives it. */
export async function blocking(options: TestVerifierOptions): Promise<TestVerifier> {
  const test = createTestVerifier({
    countries: ["FR"],
    policy: { spam: { address: { seed: 1 } } },
    logger: { info() {}, warn() {}, error() {} },
    ...options,
  });
  await test.verifier.createAuthentication({ phone_number: numberAt(70), ip: address });
  return test;
}
