import { timingSafeEqual } from "node:crypto";
import type { Keyring } from "../core/keyring.js";
import { uuidOfHex } from "../domain/ids.js";

/** The message that a receipt belongs to. */
export interface ReceiptTarget {
  readonly customer: string;
  readonly id: string;
  readonly attempt: number;
}

/** Two UUIDs and an attempt, in bytes. */
const nameBytes = 34;
/** The same in base64url characters. */
const nameLength = Math.ceil((nameBytes * 4) / 3);

/**
 * The signed reference of a message: customer, authentication and attempt with their keyed digest, as 68 letters,
 * digits, `-` and `_`. Only this library can create one.
 */
export function referenceOf(keyring: Keyring, target: ReceiptTarget): string {
  const name = nameOf(target);
  return name + keyring.fingerprints("receipt", name)[0];
}

/** The message of a reference; `undefined` if it is not one of ours. */
export function readReference(keyring: Keyring, reference: string): ReceiptTarget | undefined {
  const name = reference.slice(0, nameLength);
  const theirs = Buffer.from(reference.slice(nameLength));
  const ours = keyring.fingerprints("receipt", name).map((each) => Buffer.from(each));
  if (!ours.some((each) => each.length === theirs.length && timingSafeEqual(each, theirs))) return undefined;
  const bytes = Buffer.from(name, "base64url");
  return { customer: uuidAt(bytes, 0), id: uuidAt(bytes, 16), attempt: bytes.readUInt16BE(32) };
}

/** The URL for the message's receipts. The sender replaces `{provider}` with the name of its provider. */
export function receiptUrl(base: string, reference: string): string {
  return `${base}/receipts/{provider}?r=${reference}`;
}

/** The message of a receipt's URL; `undefined` without a reference of ours, such as one under a retired secret. */
export function readReceiptUrl(keyring: Keyring, query: string): ReceiptTarget | undefined {
  return readReference(keyring, new URLSearchParams(query).get("r") ?? "");
}

function nameOf({ customer, id, attempt }: ReceiptTarget): string {
  const bytes = Buffer.alloc(nameBytes);
  bytes.write(customer.replaceAll("-", ""), 0, 16, "hex");
  bytes.write(id.replaceAll("-", ""), 16, 16, "hex");
  bytes.writeUInt16BE(attempt, 32);
  return bytes.toString("base64url");
}

function uuidAt(bytes: Buffer, at: number): string {
  return uuidOfHex(bytes.toString("hex", at, at + 16));
}
