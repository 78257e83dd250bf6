import { randomUUID } from "node:crypto";
import { type CodeMessage, createVerifier, generateApiKey, type Verifier, type VerifierOptions } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { type FixedClock, fixedClock } from "phoneproof/testing";

const off = { mode: "off" } as const;

/** No spam rules and no cap per customer: these tests are about other things. */
const open: NonNullable<VerifierOptions["policy"]> = {
  limits: { perCustomer: [] },
  spam: { range: off, crowd: off, country: off, newCountries: off, address: off, calls: off, strangeNetwork: off, signals: off },
};

export interface Service {
  readonly verifier: Verifier;
  readonly clock: FixedClock;
  readonly sent: readonly CodeMessage[];
}

/** A service on its own memory store, whose carrier accepts everything unless `options` have another. */
export function service(options: Partial<VerifierOptions> = {}): Service {
  const sent: CodeMessage[] = [];
  const clock = fixedClock(Date.parse("2026-03-01T12:00:00.000Z"));
  const verifier = createVerifier({
    store: memoryStore({ now: () => clock.now() }),
    secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6",
    countries: "all",
    statistics: false,
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    sender: {
      async send(message) {
        sent.push(message);
        return { outcome: "accepted" };
      },
    },
    ...options,
    clock,
    policy: options.policy ?? open,
    callbacks: { worker: false, ...options.callbacks },
  });
  return { verifier, clock, sent };
}

/** Valid mobile numbers of France, each in another range of 10,000. */
export const numberAt = (index: number): string => `+336${String(12_000_000 + (index % 3_000) * 10_000 + Math.floor(index / 3_000)).padStart(8, "0")}`;

export const tenant = () => ({ customer_uuid: randomUUID() as string, keys: [generateApiKey().key] });
