import { segmentsOf } from "../../../src/domain/gsm.js";
import { emptyBody, tags, userDataHeader } from "./pdu.js";
import type { Settings } from "./settings.js";
import { codingOf, octetsOf } from "./text.js";

/** What a text contributes to one submit_sm. */
export interface Part {
  readonly esmClass: number;
  readonly dataCoding: number;
  /** Up to 254 octets. */
  readonly shortMessage: Buffer;
  readonly parameters: readonly (readonly [tag: number, value: Buffer])[];
}

/** data_coding of UCS-2 (5.2.19). */
const ucs2 = 8;
/** Maximum number of parts that headers and parameters can count. */
const mostParts = 255;

/**
 * Splits a text into parts, in order; returns `undefined` if it is too long.
 *
 * @param reference A number shared by the parts of this text, 0 to 65535.
 */
export function partsOf(
  text: string,
  { alphabet, dataCoding, longMessages }: Pick<Settings, "alphabet" | "dataCoding" | "longMessages">,
  reference: number,
): readonly Part[] | undefined {
  const coding = codingOf(text, alphabet);
  const segments = segmentsOf(text, coding);
  const octets = (part: string) => octetsOf(part, coding, alphabet);
  const plain = { esmClass: 0, dataCoding: coding === "ucs2" ? ucs2 : dataCoding, shortMessage: emptyBody, parameters: [] };

  if (segments.length === 1) return [{ ...plain, shortMessage: octets(text) }];
  if (segments.length > mostParts) return undefined;
  if (longMessages === "payload") return [{ ...plain, parameters: [[tags.messagePayload, octets(text)]] }];
  return segments.map((segment, index): Part => {
    if (longMessages === "udh")
      return { ...plain, esmClass: userDataHeader, shortMessage: Buffer.concat([header(reference, segments.length, index + 1), octets(segment)]) };
    return {
      ...plain,
      shortMessage: octets(segment),
      parameters: [
        [tags.sarReference, Buffer.of(reference >> 8, reference & 0xff)],
        [tags.sarTotal, Buffer.of(segments.length)],
        [tags.sarNumber, Buffer.of(index + 1)],
      ],
    };
  });
}

/** The header of a part, with an 8-bit reference: every phone supports it (3GPP TS 23.040, 9.2.3.24.1). */
function header(reference: number, total: number, number: number): Buffer {
  return Buffer.of(5, 0, 3, reference & 0xff, total, number);
}
