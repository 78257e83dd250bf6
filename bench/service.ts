import { createVerifier, type SmsMessage, type Store, type Verifier, type VerifierOptions } from "phoneproof";

/** Creates that one customer gets under the default policy in a day, with some to spare. */
const perCustomer = 9_000;

/** UUID of customer `index`. */
export function customerOf(index: number): string {
  return `5e1fe9f6-3a0c-4d27-9a3e-${String(index).padStart(12, "0")}`;
}

/** API key of customer `index`. */
export function keyOf(index: number): string {
  return `pp_bench-${String(index).padStart(40, "0")}`;
}

/** A number of its own for every create, a valid French mobile up to 17 million. */
export function numberOf(index: number): string {
  return `+336${12_000_000 + index}`;
}

/** The customer of create `index`: so many that the default caps hold none of them up. */
export function customerFor(index: number): number {
  return Math.floor(index / perCustomer);
}

/** A spend ceiling that nothing here reaches. */
export const highCeiling = { limits: { spend: [{ amount: 1e6, per: "day" as const }] } };

/** The spam rules off: nobody verifies what is measured. */
const off = { mode: "off" as const };
export const noSpamRules = { range: off, crowd: off, country: off, newCountries: off, address: off, strangeNetwork: off, signals: off };

/** A verifier on the default policy but for its spam rules, whose sender keeps the codes and takes no time. */
export function benchVerifier(store: Store, options: Partial<VerifierOptions> = {}): { readonly verifier: Verifier; readonly codes: Map<string, string> } {
  const codes = new Map<string, string>();
  const verifier = createVerifier({
    store,
    sender: {
      async send(message: SmsMessage) {
        codes.set(message.authentication_uuid, message.code);
        return { outcome: "accepted" };
      },
      ...(options.policy?.limits?.spend !== undefined && { plan: () => ({ route: "only", price: 0.05 }) }),
    },
    secret: "a secret of the bench, long enough to be one",
    countries: "all",
    customers: Array.from({ length: 128 }, (_, index) => ({ customer_uuid: customerOf(index), keys: [keyOf(index)] })),
    callbacks: { worker: false },
    ...options,
    policy: { spam: noSpamRules, ...options.policy },
  });
  return { verifier, codes };
}
