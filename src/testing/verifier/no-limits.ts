import type { PolicyOverride, SpamOverride } from "../../domain/policy.js";
import { defaultSpamPolicy } from "../../domain/spam-policy.js";

const { trust: _, ...rules } = defaultSpamPolicy;

/** Turns the anti-spam rules off. */
export const noSpamRules: SpamOverride = Object.fromEntries(Object.keys(rules).map((rule) => [rule, { mode: "off" as const }]));

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
