import { VerifierError } from "../../src/errors.js";
import { readOptions } from "../../src/options/options.js";
import type { VerifierOptions } from "../../src/options/types.js";

const never = () => Promise.reject(new Error("no test asks for it"));

/** The options that have no default, with a store and a sender that always fail. */
export const neededOptions: VerifierOptions = {
  store: { find: never, commit: never, members: never, tally: never, lease: never, get: never, put: never, delete: never },
  sender: { send: never },
  secret: "a secret of the tests, long enough to be one",
  countries: ["FR"],
  customers: [{ customer_uuid: "11111111-2222-3333-4444-555555555555", keys: ["k".repeat(40)] }],
};

/** The message of the error that a function throws, or "no error". */
export function errorOf(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    return (error as Error).message;
  }
  return "no error";
}

/** The message with which these options are rejected, along with the needed ones, or "no error". */
export function optionsError(options: object): string {
  try {
    readOptions({ ...neededOptions, ...options });
  } catch (error) {
    if (error instanceof VerifierError && error.code === "invalid_options") return error.message;
    throw error;
  }
  return "no error";
}
