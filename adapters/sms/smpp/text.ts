import { type Coding, gsmCodes, isGsm7 } from "../../../src/domain/gsm.js";

/** What octets mean to a message centre in its default alphabet. */
export type Alphabet = "gsm" | "ascii" | "latin1";

/** The highest code of the alphabets that have one octet for each character. */
const highest = { ascii: 0x7f, latin1: 0xff } as const;

/**
 * How a text is put: `gsm7` where GSM 03.38 has every character of it and so has the message centre's alphabet, else `ucs2`. GSM 03.38 is asked whatever the alphabet, because the phone gets the text in it: `ç` is in Latin-1,
 * and yet no message of 160 characters can have one.
 */
export function codingOf(text: string, alphabet: Alphabet): Coding {
  const fits = isGsm7(text) && (alphabet === "gsm" || Array.from(text).every((character) => character.charCodeAt(0) <= highest[alphabet]));
  return fits ? "gsm7" : "ucs2";
}

/** A text that `codingOf` puts so: in the message centre's alphabet, in GSM 03.38 with one octet for each septet; or in UCS-2, big-endian. */
export function octetsOf(text: string, coding: Coding, alphabet: Alphabet): Buffer {
  if (coding === "ucs2") return Buffer.from(text, "utf16le").swap16();
  if (alphabet !== "gsm") return Buffer.from(text, "latin1");
  return Buffer.from(Array.from(text, (character) => gsmCodes(character) ?? []).flat());
}

/** The text of a receipt. Outside UCS-2 (data_coding 8) its letters, digits and colons are those of ASCII; what differs from ASCII there is read as Latin-1. */
export function decodeText(dataCoding: number, octets: Buffer): string {
  if (dataCoding !== 8) return octets.toString("latin1");
  return Buffer.from(octets.subarray(0, octets.length & ~1))
    .swap16()
    .toString("utf16le");
}
