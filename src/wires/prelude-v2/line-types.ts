import type { LineType } from "../../contract/lookup.js";

/** The line types of this API by the verifier's. */
export const lineTypes = {
  FixedLine: "fixed_line",
  Mobile: "mobile",
  Pager: "pager",
  PremiumRate: "premium_rate",
  Service: "service",
  SharedCost: "shared_cost",
  TollFree: "toll_free",
  UniversalAccess: "universal_access",
  Unknown: "unknown",
  VoiceMail: "voice_mail",
  Voip: "voip",
} as const satisfies Readonly<Record<LineType, string>>;
