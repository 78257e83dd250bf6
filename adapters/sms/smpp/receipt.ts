import type { Receipt } from "../../../src/ports/receipts.js";
import { statusWords } from "../kit/report.js";
import type { Deliver } from "./deliver.js";
import { receiptedId } from "./ids.js";
import { readString, tags } from "./pdu.js";
import type { Settings } from "./settings.js";
import { decodeText } from "./text.js";

/** message_state 0 to 9 (SMPP 3.4, 5.2.28; SMPP 5.0, 4.7.15, adds the first and the last) as spelt in a receipt. */
const states = ["SCHEDLD", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED", "UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD", "SKIPPED"];

/** Our status for each `stat:` of a receipt: as in SMPP 3.4, appendix B, in full, and as message centres vary it. */
const byWord = statusWords({
  submitted: ["ACCEPTD", "ACCEPTED", "SCHEDLD", "SCHEDULED", "SUBMITD", "SUBMITTED", "ENQUEUD", "STAGED"],
  in_transit: ["ENROUTE", "BUFFRED", "BUFFERED", "SENT"],
  delivered: ["DELIVRD", "DELIVERED", "DELIVERD", "DLIVRD"],
  undeliverable: [
    ...["UNDELIV", "UNDELIVERABLE", "UNDELIVERED", "UNDELIVRD", "UNDLIVRD", "FAILED", "FAIL", "SYSERR", "NOROUTE", "NOCRED"],
    ...["EXPIRED", "EXPIRD", "DELETED", "CANCELLED", "CANCELED", "REJECTD", "REJECTED", "REJECT", "BLIST", "SKIPPED"],
  ],
});

/** Bits of esm_class (5.2.12) that only a message centre sets: a final receipt, and an intermediate notification. */
const receiptBits = 0x04 | 0x20;

/**
 * Whether a deliver_sm or data_sm is a receipt. The text is not enough, because anyone with a phone can send such a
 * text. Only the message centre sets esm_class and optional parameters.
 */
export function isReceipt({ esmClass, parameters }: Deliver): boolean {
  return (esmClass & receiptBits) !== 0 || parameters.has(tags.receiptedMessageId);
}

/** The longest id that a verifier takes; SMPP has 64 octets. */
const longestId = 256;

/**
 * Reads a receipt from the parameters receipted_message_id and message_state, and, for what they lack, from the text
 * `id:… done date:… stat:… err:…`; for `err`, network_error_code is next. Returns `undefined` if neither names a
 * message, or if its id is too long for one.
 * An unknown status word becomes `unknown`, which is not final: a later receipt can still report the outcome.
 */
export function readReceipt(
  deliver: Deliver,
  { receiptIds, receiptOffset, idSpace }: Pick<Settings, "receiptIds" | "receiptOffset" | "idSpace">,
): Receipt | undefined {
  // The text after `text:` is the start of the message and may contain the code.
  const text = decodeText(deliver.dataCoding, deliver.text).split(/\btext:/i, 1)[0] as string;
  const field = (name: string) => new RegExp(`(?:^|\\s)${name}:\\s*([^\\s\\0]+)`, "i").exec(text)?.[1];

  const named = deliver.parameters.get(tags.receiptedMessageId);
  const messageId = receiptedId(named && readString(named), field("id"), receiptIds);
  if (messageId === undefined || messageId.length > longestId) return undefined;

  const state = deliver.parameters.get(tags.messageState)?.[0];
  const stat = states[state ?? -1] ?? field("stat")?.toUpperCase();
  const status = byWord.get(stat ?? "") ?? "unknown";
  const at = receiptOffset === undefined ? undefined : timeOf(field("done date"), receiptOffset);
  const code = sayable(field("err"), /^[\w.-]{1,8}$/) ?? networkError(deliver.parameters.get(tags.networkErrorCode));
  const error = [sayable(stat, /^[A-Z][\w.-]{0,15}$/), code].filter((part) => part !== undefined).join(" ");
  const failed = status === "undeliverable" || status === "unknown";
  return { messageId, idSpace, status, ...(at !== undefined && { at }), ...(failed && error !== "" && { error }) };
}

/** The error in a network_error_code (5.3.2.31), which is a type of network and two octets; 0 means no error. */
function networkError(octets: Buffer | undefined): string | undefined {
  const error = octets?.length === 3 ? octets.readUInt16BE(1) : 0;
  return error === 0 ? undefined : String(error);
}

/** A word from the message centre; `undefined` if it is all zeros or may contain more than a word. */
function sayable(word: string | undefined, form: RegExp): string | undefined {
  return word !== undefined && form.test(word) && !/^0+$/.test(word) ? word : undefined;
}

/**
 * Parses `YYMMDDhhmm`, with or without seconds (SMPP 3.4, appendix B), at an offset from UTC into milliseconds since
 * the epoch.
 */
function timeOf(date: string | undefined, offset: number): number | undefined {
  const parts = /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?$/.exec(date ?? "");
  if (parts === null) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1).map((part = "00") => part);
  const at = Date.parse(`20${year}-${month}-${day}T${hour}:${minute}:${second}Z`) - offset;
  return Number.isNaN(at) ? undefined : at;
}
