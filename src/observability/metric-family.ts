import { getOrPut } from "../core/get-or-put.js";

/** Values of a label; further ones become `other` (docs/contract.md#metric-labels). */
export const mostValues = 300;

/** Rows of a family; further ones share the row `other`. */
export const mostRows = 5_000;

const other = "other";
const longestValue = 64;

/** Numbers, ids and addresses, which route names may contain (docs/contract.md#metric-labels). */
const personal = /\d{6}|@|\d+\.\d+\.\d+\.\d+|[0-9a-f]{4}:[0-9a-f]{0,4}:|[0-9a-f]{8}-[0-9a-f]{4}/i;

interface Row {
  readonly values: readonly string[];
  readonly numbers: number[];
}

/** Rows of `width` numbers, initially 0, by label values. */
export function createFamily(width: number) {
  const rows = new Map<string, Row>();
  const seen: Set<string>[] = [];

  const bounded = (value: string, label: number): string => {
    const known = (seen[label] ??= new Set());
    if (known.has(value)) return value;
    if (known.size >= mostValues || value.length > longestValue || personal.test(value)) return other;
    known.add(value);
    return value;
  };

  const boundedRow = (given: readonly string[]) => {
    const labels = given.map(bounded);
    const values = rows.size < mostRows || rows.has(labels.join("\0")) ? labels : labels.map(() => other);
    return getOrPut(rows, values.join("\0"), () => ({ values, numbers: new Array<number>(width).fill(0) }));
  };

  return {
    rows: rows as ReadonlyMap<string, Readonly<Row>>,
    /** Adds to the number at `column`. Creates the row if it is missing. */
    add(values: readonly string[], column = 0, by = 1): void {
      const { numbers } = rows.get(values.join("\0")) ?? boundedRow(values);
      numbers[column] = (numbers[column] as number) + by;
    },
  };
}
