import { randomInt } from "node:crypto";
import type { CodeMessage } from "../../../src/ports/sms-sender.js";
import { partsOf } from "./parts.js";
import type { Settings } from "./settings.js";
import { submitBody } from "./submit.js";
import { validityPeriod } from "./validity.js";

/** Builds the body of a queued submit_sm at the time it is written, in milliseconds since the epoch. */
export type BodyAt = (now: number) => Buffer;

/**
 * Returns the submit_sms of a message in order, at least one, or a sentence that explains what is wrong with the
 * message.
 */
export type SubmissionOf = (message: CodeMessage) => readonly BodyAt[] | string;

export function submissions(settings: Settings): SubmissionOf {
  /**
   * Reference of the parts of one text. It starts at random, so that two processes rarely send a phone the same one.
   */
  let reference = randomInt(0x10000);

  return (message) => {
    if (!/^\+\d{5,15}$/.test(message.to)) return "the destination is not in E.164";
    const source = settings.sources.of(message);
    if (typeof source === "string") return source;
    const parameters = settings.parameters(message);
    if (typeof parameters === "string") return parameters;
    reference = (reference + 1) & 0xffff;
    const parts = partsOf(message.text, settings, reference);
    if (parts === undefined) return "the text is too long";

    const destination = { ...settings.destination, address: message.to.slice(1) };
    return parts.map(
      (part, index): BodyAt =>
        (now) =>
          submitBody({
            serviceType: settings.serviceType,
            source,
            destination,
            esmClass: part.esmClass,
            validityPeriod: validityPeriod(settings.validityPeriod, message.expires_at, now),
            // Only the last part requests a receipt: parts arrive in any order, but a message has one receipt.
            registeredDelivery: settings.onReceipt !== undefined && index === parts.length - 1 ? 1 : 0,
            dataCoding: part.dataCoding,
            shortMessage: part.shortMessage,
            parameters: new Map([...parameters, ...part.parameters]),
          }),
    );
  };
}
