/** Returns the UUID of 32 hexadecimal digits. */
export function uuidOfHex(hex: string): string {
  // `join` makes one flat string; a template would keep its five parts in memory.
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
