import type { VerifierOptions } from "../../src/index.js";

const off = { mode: "off" } as const;

/** Lets one customer send to as many numbers of one range as a test needs. */
export const unlimited: NonNullable<VerifierOptions["policy"]> = {
  limits: { perCustomer: [] },
  spam: { range: off, crowd: off, country: off, newCountries: off, address: off, strangeNetwork: off },
};
