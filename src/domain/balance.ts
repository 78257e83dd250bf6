/**
 * A credit rule is one sum with one limit: `open ≥ seed + k × verified` is `open − k × verified ≥ seed` (docs/contract.md#open).
 *
 * The sum holds two numbers: this many times the balance, `open − k × verified`, and once for each verified. So one limit holds the balance, and the sum still says how many have verified.
 */
const unit = 1e6;

/** What a cell holds. */
export interface Balance {
  /** Messages that are not verified, less what the verified have earned. */
  readonly balance: number;
  /** Authentications verified. */
  readonly verified: number;
}

export function readBalance(held: number): Balance {
  const balance = Math.floor(held / unit);
  return { balance, verified: held - balance * unit };
}

/** So many messages more. */
export function messagesWeight(messages: number): number {
  return messages * unit;
}

/** A verification takes out its messages, and what it earns besides. */
export function verifiedWeight(messages: number, earned: number): number {
  return 1 - (messages + earned) * unit;
}

/** The limit of a sum whose balance may come to `most`. */
export function balanceLimit(most: number): number {
  return most * unit + unit - 1;
}

/** The floor of a sum whose balance counts as no less than `least`. */
export function balanceFloor(least: number): number {
  return least * unit;
}
