/**
 * Verifications of one number, customer and scope share one stored record, its slot: a UUID of version 8 whose last
 * eight digits are 0. Each verification's own id is the slot with other digits there (docs/contract.md#slot).
 */
export function slotOf(id: string): string {
  return id[14] === "8" ? `${id.slice(0, -8)}00000000` : id;
}

/** Whether an authentication was started by number. */
export function isInSlot(id: string): boolean {
  return slotOf(id) !== id;
}

/** Whether an id is a slot's own, which names no authentication. */
export function isSlot(id: string): boolean {
  return id[14] === "8" && id.endsWith("00000000");
}
