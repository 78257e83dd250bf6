import { randomInt } from "node:crypto";
import type { CodeMessage } from "../../../src/ports/sms-sender.js";
import { type Part, partsOf } from "./parts.js";
import { type Address, addressField, cString, parameter } from "./pdu.js";
import type { Settings } from "./settings.js";

/** Builds the body of a queued submit_sm at the time it is written, in milliseconds since the epoch. */
export type BodyAt = (now: number) => Buffer;

/** Returns a function: a message's submit_sms in order, at least one, or a sentence on what is wrong with it. */
export function submissions(settings: Settings): (message: CodeMessage) => readonly BodyAt[] | string {
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
            ...part,
            serviceType: settings.serviceType,
            source,
            destination,
            validityPeriod: validityPeriod(settings.validityPeriod, message.expires_at, now),
            // Only the last part requests a receipt: parts arrive in any order, but a message has one receipt.
            registeredDelivery: settings.onReceipt !== undefined && index === parts.length - 1 ? 1 : 0,
            parameters: new Map([...parameters, ...part.parameters]),
          }),
    );
  };
}

interface Submit extends Omit<Part, "parameters"> {
  readonly serviceType: string;
  readonly source: Address;
  readonly destination: Address;
  /** In the format of 7.1; empty for the message centre's default. */
  readonly validityPeriod: string;
  /** 1: request a receipt for the final outcome; 0: none. */
  readonly registeredDelivery: 0 | 1;
  /** Optional parameters by tag, up to 65,535 octets each. */
  readonly parameters: ReadonlyMap<number, Buffer>;
}

/** Builds the body of submit_sm (4.4.1). */
export function submitBody(submit: Submit): Buffer {
  return Buffer.concat([
    cString(submit.serviceType),
    addressField(submit.source),
    addressField(submit.destination),
    // protocol_id, priority_flag: none; schedule_delivery_time: at once.
    Buffer.of(submit.esmClass, 0, 0, 0),
    cString(submit.validityPeriod),
    // replace_if_present_flag and sm_default_msg_id: none.
    Buffer.of(submit.registeredDelivery, 0, submit.dataCoding, 0, submit.shortMessage.length),
    submit.shortMessage,
    ...Array.from(submit.parameters, ([tag, value]) => parameter(tag, value)),
  ]);
}

/** The shortest useful validity, in milliseconds: a validity_period is in whole seconds. */
export const leastValidity = 1000;
/** The longest validity sent, in milliseconds: 30 days. Beyond it message centres apply their own limits. */
const longestValidity = 30 * 86_400_000;

/**
 * Returns validity_period (SMPP 3.4, 7.1.1: `YYMMDDhhmmsstnnp`), in whole seconds, rounded down.
 *
 * @param expiresAt When the message expires, like `now` in milliseconds since the epoch.
 */
export function validityPeriod(form: Settings["validityPeriod"], expiresAt: number, now: number): string {
  const left = Math.max(leastValidity, Math.min(expiresAt - now, longestValidity));
  if (form === "absolute") return `${digits(now + left)}000+`;
  if (form === "none") return "";
  const days = Math.floor(left / 86_400_000);
  return `0000${String(days).padStart(2, "0")}${digits(left).slice(6)}000R`;
}

/** Formats a UTC time as `YYMMDDhhmmss`. */
function digits(ms: number): string {
  return new Date(ms).toISOString().slice(2, 19).replace(/\D/g, "");
}
