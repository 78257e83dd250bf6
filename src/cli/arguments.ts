/** Reads an integer option. Throws a `TypeError` that names the option. */
export function integer(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) throw new TypeError(`${option} takes a whole number from ${least} to ${most}, not "${text}"`);
  return value;
}
