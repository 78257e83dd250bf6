import { type Coding, gsmCodes, isGsm7 } from "../../../src/domain/gsm.js";

/** The message centre's default alphabet. */
export type Alphabet = "gsm" | "ascii" | "latin1";

/** The highest code of each alphabet with one octet per character. */
const highest = { ascii: 0x7f, latin1: 0xff } as const;

/**
 * The coding of a text: `gsm7` if both GSM 03.38 and the message centre's alphabet have all its characters, else
 * `ucs2`. GSM 03.38 always counts because phones receive the text in it: `ç` is in Latin-1, but not in GSM 03.38.
 */
export function codingOf(text: string, alphabet: Alphabet): Coding {
  const fits = isGsm7(text) && (alphabet === "gsm" || Array.from(text).every((character) => character.charCodeAt(0) <= highest[alphabet]));
  return fits ? "gsm7" : "ucs2";
}

/** Encodes a text: in the message centre's alphabet; in GSM 03.38, one octet per septet; or in UCS-2, big-endian. */
export function octetsOf(text: string, coding: Coding, alphabet: Alphabet): Buffer {
  if (coding === "ucs2") return Buffer.from(text, "utf16le").swap16();
  if (alphabet !== "gsm") return Buffer.from(text, "latin1");
  return Buffer.from(Array.from(text, (character) => gsmCodes(character) ?? []).flat());
}

/**
 * Decodes the text of a receipt. Outside UCS-2 (data_coding 8), its letters, digits and colons are ASCII; other octets
 * are read as Latin-1. Of the signs in ids, only `_` differs in GSM 03.38: 0x11, which is no character elsewhere.
 */
export function decodeText(dataCoding: number, octets: Buffer): string {
  if (dataCoding !== 8) return octets.toString("latin1").replaceAll("\x11", "_");
  return Buffer.from(octets.subarray(0, octets.length & ~1))
    .swap16()
    .toString("utf16le");
}
