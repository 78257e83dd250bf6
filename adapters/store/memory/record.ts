import type { StoredRecord } from "../../../src/ports/store.js";
import { lengthAt, numberAt, numberWidth, packed, packedLength } from "./pack.js";

/** What is kept of a record. Its customer and id are in its key. */
export interface Kept extends Pick<StoredRecord, "tokens" | "data" | "keepUntil"> {
  readonly wakeAt?: number | undefined;
  /** The slot in which it ends. */
  readonly end: number;
}

const tokensAt = 3 * numberWidth + 1;
/** Set in the character that tells how many tokens there are, when there is a wake time. */
const wakes = 0x80;

/** Of a record that is packed, in a list that is used over and over. */
const parts: string[] = [];

/** `end`: the slot in which it ends. */
export function packRecord({ tokens, data, keepUntil }: Pick<StoredRecord, "tokens" | "data" | "keepUntil">, wakeAt: number | undefined, end: number): string {
  parts.length = 5 + 2 * tokens.length;
  parts[0] = packed(end);
  parts[1] = packed(keepUntil);
  parts[2] = packed(wakeAt ?? 0);
  parts[3] = String.fromCharCode(tokens.length | (wakeAt === undefined ? 0 : wakes));
  let at = 4;
  for (const token of tokens) {
    parts[at++] = packedLength(token);
    parts[at++] = token;
  }
  parts[at] = data;
  return parts.join("");
}

export function unpackRecord(row: string): Kept {
  let place = tokensAt;
  const tokens = Array.from({ length: row.charCodeAt(tokensAt - 1) & ~wakes }, () => {
    const from = place + 2;
    place = from + lengthAt(row, place);
    return row.slice(from, place);
  });
  return { end: numberAt(row, 0), keepUntil: numberAt(row, numberWidth), wakeAt: wakeAtOf(row), tokens, data: row.slice(place) };
}

/** Whether a token is that of a packed record's last write. */
export function isNewest(token: string, row: string): boolean {
  return lengthAt(row, tokensAt) === token.length && row.startsWith(token, tokensAt + 2);
}

/** The wake time of a packed record, or `undefined`. */
export function wakeAtOf(row: string | undefined): number | undefined {
  return row === undefined || (row.charCodeAt(tokensAt - 1) & wakes) === 0 ? undefined : numberAt(row, 2 * numberWidth);
}
