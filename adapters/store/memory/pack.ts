/*
 * What is kept is packed into single strings where it can be: an object for each would take more memory than what it holds. Strings are joined by `join`, which makes one piece: `+` makes ropes,
 * which keep their parts alive.
 */

/** What is joined, in a list that is used over and over. */
const two = ["", ""];
const three = ["", "", ""];

export function joined(one: string, other: string, third?: string): string {
  const parts = third === undefined ? two : three;
  parts[0] = one;
  parts[1] = other;
  if (third !== undefined) parts[2] = third;
  return parts.join("");
}

/** The same text in one piece. */
export function inOnePiece(text: string): string {
  return joined(text.slice(0, 1), text.slice(1));
}

/** Characters of a packed number. */
export const numberWidth = 7;

/** A whole number of at most 2^53, also below 0, as seven characters of one byte each. */
export function packed(value: number): string {
  const high = Math.floor(value / 0x1_0000_0000);
  return String.fromCharCode((high >> 16) & 255, (high >> 8) & 255, high & 255, value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255);
}

/** The number that was packed at a place of a text. */
export function numberAt(text: string, place: number): number {
  const high = (text.charCodeAt(place) << 24) | (text.charCodeAt(place + 1) << 16) | (text.charCodeAt(place + 2) << 8);
  const low = (text.charCodeAt(place + 3) << 24) | (text.charCodeAt(place + 4) << 16) | (text.charCodeAt(place + 5) << 8) | text.charCodeAt(place + 6);
  return (high >> 8) * 0x1_0000_0000 + (low >>> 0);
}

/** A length below 65,536 as two characters. */
export function packedLength({ length }: string): string {
  return String.fromCharCode(length >> 8, length & 255);
}

export function lengthAt(text: string, place: number): number {
  return (text.charCodeAt(place) << 8) | text.charCodeAt(place + 1);
}
