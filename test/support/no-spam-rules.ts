import type { SpamOverride } from "../../src/domain/policy.js";

/** The anti-spam rules off, in tests of other things: their traffic is nobody's. */
export const noSpamRules: SpamOverride = {
  range: { mode: "off" },
  crowd: { mode: "off" },
  country: { mode: "off" },
  newCountries: { mode: "off" },
  address: { mode: "off" },
  strangeNetwork: { mode: "off" },
  signals: { mode: "off" },
};
