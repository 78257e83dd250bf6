export const conversions = ["reported", "late", "unknown"] as const;

/**
 * Whether `confirm` reports that users got in: `reported` within minutes, `late` within 24 hours, or `unknown`: never
 * (docs/contract.md#unknown-conversion).
 */
export type Conversion = (typeof conversions)[number];
