import type { VerifierOptions } from "../../src/options/types.js";

const never = () => Promise.reject(new Error("no test asks for it"));

/** The options that have no default, with nothing behind them. */
export const neededOptions: VerifierOptions = {
  store: { find: never, commit: never, members: never, tally: never, lease: never, get: never, put: never, delete: never },
  sender: { send: never },
  secret: "a secret of the tests, long enough to be one",
  countries: ["FR"],
  customers: [{ customer_uuid: "11111111-2222-3333-4444-555555555555", keys: ["k".repeat(40)] }],
};
