/** The name that was probably meant: one within two changed, missing, added or swapped letters. */
export function nearest(given: string, names: Iterable<string>): string | undefined {
  const [best] = [...names].map((name) => ({ name, changes: changesBetween(given.toLowerCase(), name.toLowerCase()) })).sort((a, b) => a.changes - b.changes);
  return best !== undefined && best.changes <= Math.min(2, given.length / 2) ? best.name : undefined;
}

/** The optimal string alignment distance. */
function changesBetween(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const swapped = isSwapped ? (rows[i - 2]?.[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min((rows[i - 1]?.[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (rows[i - 1]?.[j - 1] ?? 0) + cost, swapped));
    }
    rows.push(row);
  }
  return rows[one.length]?.[other.length] ?? 0;
}
