/** The name that was probably meant: one within two letters inserted, deleted or replaced. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const within = (edits: number) => names.find((name) => edits < given.length && isWithin(edits, given.toLowerCase(), name.toLowerCase()));
  return within(1) ?? within(2);
}

function isWithin(edits: number, one: string, other: string): boolean {
  if (edits < 0) return false;
  if (one === "" || other === "") return one.length + other.length <= edits;
  const [rest, otherRest] = [one.slice(1), other.slice(1)];
  if (one[0] === other[0]) return isWithin(edits, rest, otherRest);
  return isWithin(edits - 1, rest, otherRest) || isWithin(edits - 1, rest, other) || isWithin(edits - 1, one, otherRest);
}
