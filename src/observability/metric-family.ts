/** How many values a label has at most; all that come later are `other`. */
export const mostValues = 300;

/** How many rows a family has at most; the next ones are one row of `other`. */
export const mostRows = 5_000;

/** What stands for values beyond the bound, and for those that might tell of somebody. */
export const other = "other";

/** Labels never hold numbers, ids or addresses (docs/contract.md#metric-labels): whatever a sender or a rule is called, such a name is not told. */
const tells = /\d{6}|@|\d+\.\d+\.\d+\.\d+|[0-9a-f]{4}:[0-9a-f]{0,4}:|[0-9a-f]{8}-[0-9a-f]{4}/i;

/** Characters of a value. */
const longest = 64;

/** A row of numbers for each pair of label values, found without making anything. A family with fewer labels is asked with `""` for those it has not. */
export class Family {
  readonly #rows = new Map<string, Map<string, number[]>>();
  readonly #seen: readonly [Set<string>, Set<string>] = [new Set(), new Set()];
  #size = 0;

  /** @param width Numbers in a row, all 0 at first. */
  constructor(readonly width: number) {}

  row(first: string, second: string): number[] {
    return this.#rows.get(first)?.get(second) ?? this.#bounded(this.#label(first, 0), this.#label(second, 1));
  }

  /** All rows, with the values they stand under. */
  *rows(): Generator<readonly [first: string, second: string, row: readonly number[]]> {
    for (const [first, inner] of this.#rows) for (const [second, row] of inner) yield [first, second, row];
  }

  #bounded(first: string, second: string): number[] {
    const known = this.#rows.get(first)?.get(second);
    if (known !== undefined) return known;
    return this.#size < mostRows ? this.#add(first, second) : (this.#rows.get(other)?.get(other) ?? this.#add(other, other));
  }

  #add(first: string, second: string): number[] {
    const row = new Array<number>(this.width).fill(0);
    const inner = this.#rows.get(first);
    if (inner === undefined) this.#rows.set(first, new Map([[second, row]]));
    else inner.set(second, row);
    this.#size++;
    return row;
  }

  #label(value: string, place: 0 | 1): string {
    const seen = this.#seen[place];
    if (seen.has(value)) return value;
    if (seen.size >= mostValues || value.length > longest || tells.test(value)) return other;
    seen.add(value);
    return value;
  }
}
