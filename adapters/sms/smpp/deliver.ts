import { emptyBody, tags, userDataHeader } from "./pdu.js";

/** The fields that a receipt is read from. */
export interface Deliver {
  readonly esmClass: number;
  readonly dataCoding: number;
  /** message_payload if short_message is empty; without a user data header. */
  readonly text: Buffer;
  readonly parameters: ReadonlyMap<number, Buffer>;
}

/** Reads the body of data_sm (4.7.1); returns `undefined` if it is truncated. */
export function readData(body: Buffer): Deliver | undefined {
  const at = afterAddresses(body);
  const [esmClass, , dataCoding] = body.subarray(at, at + 3); // esm_class, registered_delivery, data_coding
  if (esmClass === undefined || dataCoding === undefined) return undefined;
  const parameters = readParameters(body.subarray(at + 3));
  return { esmClass, dataCoding, text: textOf(esmClass, parameters.get(tags.messagePayload) ?? emptyBody), parameters };
}

/** Reads the body of deliver_sm (4.6.1); returns `undefined` if it is truncated. */
export function readDeliver(body: Buffer): Deliver | undefined {
  let at = afterAddresses(body);
  const esmClass = body[at];
  at += 3; // esm_class, protocol_id, priority_flag
  at = afterString(body, at); // schedule_delivery_time
  at = afterString(body, at); // validity_period
  const dataCoding = body[at + 2];
  const length = body[at + 4];
  at += 5; // registered_delivery, replace_if_present_flag, data_coding, sm_default_msg_id, sm_length
  if (esmClass === undefined || dataCoding === undefined || length === undefined || at + length > body.length) return undefined;
  const parameters = readParameters(body.subarray(at + length));
  const text = length === 0 ? (parameters.get(tags.messagePayload) ?? emptyBody) : body.subarray(at, at + length);
  return { esmClass, dataCoding, text: textOf(esmClass, text), parameters };
}

function textOf(esmClass: number, userData: Buffer): Buffer {
  return (esmClass & userDataHeader) === 0 ? userData : userData.subarray(1 + (userData[0] ?? 0));
}

/** The offset after service_type, source and destination, with which both bodies begin. */
function afterAddresses(body: Buffer): number {
  let at = afterString(body, 0);
  for (let address = 0; address < 2; address += 1) at = afterString(body, at + 2); // ton, npi
  return at;
}

function afterString(body: Buffer, at: number): number {
  const end = body.indexOf(0, at);
  return end === -1 ? body.length + 1 : end + 1;
}

/** Reads optional parameters by tag, up to the first truncated one. */
function readParameters(octets: Buffer): Map<number, Buffer> {
  const parameters = new Map<number, Buffer>();
  let at = 0;
  while (at + 4 <= octets.length) {
    const end = at + 4 + octets.readUInt16BE(at + 2);
    if (end > octets.length) break;
    parameters.set(octets.readUInt16BE(at), octets.subarray(at + 4, end));
    at = end;
  }
  return parameters;
}
