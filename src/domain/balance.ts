/**
 * A credit rule is one sum with one limit: `open ≥ seed + k × verified` equals `open − k × verified ≥ seed`
 * (docs/contract.md#open). The sum holds two numbers: this unit times the balance, `open − k × verified`, plus one per
 * verification. So one limit applies to the balance, and the sum still shows how many have verified.
 */
const unit = 1e6;

/**
 * What a cell holds. `balance`: messages that are not verified, minus what verifications have earned; `verified`: the
 * authentications verified.
 */
export function readBalance(held: number): { readonly balance: number; readonly verified: number } {
  const balance = Math.floor(held / unit);
  return { balance, verified: held - balance * unit };
}

/** The weight of this many messages. */
export function messagesWeight(messages: number): number {
  return messages * unit;
}

/** A verification removes its messages, plus what it earns. */
export function verifiedWeight(messages: number, earned: number): number {
  return 1 - (messages + earned) * unit;
}

/** The limit of a sum whose balance may reach `most`. */
export function balanceLimit(most: number): number {
  return most * unit + unit - 1;
}

/** The floor of a sum whose balance counts as at least `least`. */
export function balanceFloor(least: number): number {
  return least * unit;
}
