import type { DeliveryStatus, Receipt } from "../../../src/ports/receipts.js";
import { type Deliver, readString, tags } from "./pdu.js";
import { decodeText } from "./text.js";

/**
 * How the message ids of receipts are spelt: `same` as in the answers to submits, or in another base than there. With the other two, ids of answers are reported without leading zeros and in lower case,
 * and those of receipts are converted to match: `hex-to-decimal` for hexadecimal receipts and decimal answers, `decimal-to-hex` for decimal receipts and hexadecimal answers.
 */
export type ReceiptIds = "same" | "hex-to-decimal" | "decimal-to-hex";

/** `stat:` of a receipt's text (SMPP 3.4, appendix B, in its usual spellings) → our word. */
const byText: Readonly<Record<string, DeliveryStatus>> = {
  ACCEPTD: "submitted",
  ACCEPTED: "submitted",
  ENROUTE: "in_transit",
  DELIVRD: "delivered",
  DELIVERED: "delivered",
  EXPIRED: "undeliverable",
  DELETED: "undeliverable",
  UNDELIV: "undeliverable",
  REJECTD: "undeliverable",
  REJECTED: "undeliverable",
};

/** message_state (SMPP 3.4, 5.2.28), the values 1 to 8 → its spelling in a receipt's text. */
const states = ["ENROUTE", "DELIVRD", "EXPIRED", "DELETED", "UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD"];

/** Bits of esm_class (5.2.12) that only a message centre sets: its receipt for the final outcome and its intermediate notification. */
const receiptBits = 0x04 | 0x20;

/**
 * Whether a deliver_sm or data_sm is a receipt. A text that looks like one is not enough: anyone with a phone can send us such a text. esm_class and optional parameters are the message centre's own words.
 */
export function isReceipt({ esmClass, parameters }: Deliver): boolean {
  return (esmClass & receiptBits) !== 0 || parameters.has(tags.receiptedMessageId);
}

/**
 * Reads a receipt: from the parameters receipted_message_id and message_state, and from the text `id:… stat:… err:…` what they leave open. `undefined` when neither names a message.
 * The time in the text has no zone, so it is left out.
 */
export function readReceipt(deliver: Deliver, ids: ReceiptIds): Receipt | undefined {
  // What follows `text:` is the start of the message, code perhaps included.
  const text = decodeText(deliver.dataCoding, deliver.text).split(/\btext:/i, 1)[0] as string;
  const field = (name: string) => new RegExp(`(?:^|\\s)${name}:\\s*([^\\s\\0]+)`, "i").exec(text)?.[1];

  const named = deliver.parameters.get(tags.receiptedMessageId);
  const messageId = receiptedId(named && readString(named), field("id"), ids);
  if (messageId === undefined) return undefined;

  const state = deliver.parameters.get(tags.messageState)?.[0];
  const stat = state === undefined ? field("stat")?.toUpperCase() : states[state - 1];
  const status = byText[stat ?? ""] ?? "unknown";
  const error = [stat, field("err")].filter((part) => part !== undefined && /^[\w.-]{1,8}$/.test(part) && !/^0+$/.test(part)).join(" ");
  const failed = status === "undeliverable" || status === "unknown";
  return { messageId, status, ...(failed && error !== "" && { error }) };
}

/** The id of an answer to a submit as it is reported; `undefined` when the peer gave none. */
export function submittedId(id: string, ids: ReceiptIds): string | undefined {
  if (id === "") return undefined;
  if (ids === "hex-to-decimal") return inBase(id, decimal, 10);
  if (ids === "decimal-to-hex") return inBase(id, hexadecimal, 16);
  return id;
}

/** The parameter is by definition the id of the answer, so it is converted only where it repeats the text, whose base is the other one. */
function receiptedId(named: string | undefined, inText: string | undefined, ids: ReceiptIds): string | undefined {
  if (named && named !== inText) return submittedId(named, ids);
  if (inText === undefined) return undefined;
  if (ids === "hex-to-decimal") return inBase(inText, hexadecimal, 10);
  if (ids === "decimal-to-hex") return inBase(inText, decimal, 16);
  return inText;
}

const decimal = { digits: /^\d{1,64}$/, prefix: "" } as const;
const hexadecimal = { digits: /^[\da-f]{1,64}$/i, prefix: "0x" } as const;

/** An id of the given digits in another base; one that has other characters stays as it is. */
function inBase(id: string, { digits, prefix }: { readonly digits: RegExp; readonly prefix: string }, base: 10 | 16): string {
  return digits.test(id) ? BigInt(prefix + id).toString(base) : id;
}
