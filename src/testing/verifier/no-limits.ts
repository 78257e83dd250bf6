import type { PolicyOverride, SpamOverride } from "../../domain/policy.js";

/** Turns the anti-spam rules off. */
export const noSpamRules: SpamOverride = {
  range: { mode: "off" },
  crowd: { mode: "off" },
  country: { mode: "off" },
  newCountries: { mode: "off" },
  address: { mode: "off" },
  calls: { mode: "off" },
  strangeNetwork: { mode: "off" },
  signals: { mode: "off" },
};

/** Adds caps that are never reached, and no anti-spam rules, to the caller's policy, which takes precedence. */
export function withoutLimits({ limits, spam, ...policy }: PolicyOverride = {}): PolicyOverride {
  return {
    maxGuessOdds: 1,
    ...policy,
    limits: {
      perNumber: [{ limit: 1_000, window: 86_400 }],
      perDevice: [],
      numbersPerDevice: [],
      perCustomer: [],
      lookups: [],
      callsPerNumber: [],
      ...limits,
    },
    spam: { ...noSpamRules, ...spam },
  };
}
