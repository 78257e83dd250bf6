import type { SmsMessage } from "../../src/ports/sms-sender.js";

/** The name of one send, for carriers that echo a word of ours in their receipts: `<authentication_uuid>/<attempt>`. */
export function referenceOf(message: SmsMessage): string {
  return `${message.authentication_uuid}/${message.attempt}`;
}

/** Reads `referenceOf` back; nothing when the text is not one of ours. */
export function readReference(text: unknown): { authentication_uuid?: string; attempt?: number } {
  const found = typeof text === "string" ? /^([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\/([1-9]\d{0,3})$/.exec(text) : null;
  return found === null ? {} : { authentication_uuid: found[1] as string, attempt: Number(found[2]) };
}
