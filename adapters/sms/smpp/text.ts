import { gsmCodes, isGsm7 } from "../../../src/domain/gsm.js";

/** A text in the default alphabet, one octet per septet (data_coding 0), where every character is in it; else in UCS-2, big-endian (data_coding 8). */
export function encodeText(text: string): { readonly dataCoding: 0 | 8; readonly text: Buffer } {
  if (!isGsm7(text)) return { dataCoding: 8, text: Buffer.from(text, "utf16le").swap16() };
  return { dataCoding: 0, text: Buffer.from(Array.from(text, (character) => gsmCodes(character) ?? []).flat()) };
}

/** The text of a receipt. In data_coding 0 its letters, digits and colons are those of ASCII; what differs from ASCII there is read as Latin-1. */
export function decodeText(dataCoding: number, octets: Buffer): string {
  if (dataCoding !== 8) return octets.toString("latin1");
  return Buffer.from(octets.subarray(0, octets.length & ~1))
    .swap16()
    .toString("utf16le");
}
