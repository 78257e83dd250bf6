/** Framing and bodies of the SMPP 3.4 PDUs that a transceiver needs. Section numbers are those of the SMPP 3.4 specification, issue 1.2. */

/** command_id (5.1.2.1). */
export const commands = {
  submitSm: 0x04,
  deliverSm: 0x05,
  unbind: 0x06,
  bindTransceiver: 0x09,
  outbind: 0x0b,
  enquireLink: 0x15,
  alertNotification: 0x102,
  dataSm: 0x103,
  genericNack: 0x80000000,
} as const;

/** Set in the command_id of every answer. */
export const responseBit = 0x80000000;

/** Tags of optional parameters (5.3.2). */
export const tags = { receiptedMessageId: 0x001e, messagePayload: 0x0424, messageState: 0x0427 } as const;

/** Octets of a header: command_length, command_id, command_status, sequence_number, four octets each. */
const headerLength = 16;
/** No PDU that a peer sends to a transceiver is longer: its largest parameter, message_payload, ends at 64 KiB. */
const longest = 70_000;
/** Octets that fit in short_message as one segment: 160 septets of one octet each, or 70 UCS-2 units. */
const segmentOctets = { default: 160, ucs2: 140 } as const;

export interface Pdu {
  readonly command: number;
  readonly status: number;
  readonly sequence: number;
  readonly body: Buffer;
}

export const emptyBody: Buffer = Buffer.alloc(0);

export function encodePdu({ command, status, sequence, body }: Pdu): Buffer {
  const pdu = Buffer.alloc(headerLength + body.length);
  pdu.writeUInt32BE(pdu.length, 0);
  pdu.writeUInt32BE(command, 4);
  pdu.writeUInt32BE(status, 8);
  pdu.writeUInt32BE(sequence, 12);
  body.copy(pdu, headerLength);
  return pdu;
}

/** Cuts a byte stream into PDUs, however its chunks fall. A `fault` is for good: where the next PDU would begin is lost. */
export function pduReader(): (chunk: Buffer) => { readonly pdus: readonly Pdu[]; readonly fault?: string } {
  let rest = emptyBody;
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const pdus: Pdu[] = [];
    while (rest.length >= 4) {
      const length = rest.readUInt32BE(0);
      if (length < headerLength || length > longest) return { pdus, fault: `the peer announced a PDU of ${length} octets` };
      if (rest.length < length) break;
      pdus.push({
        command: rest.readUInt32BE(4),
        status: rest.readUInt32BE(8),
        sequence: rest.readUInt32BE(12),
        body: rest.subarray(headerLength, length),
      });
      rest = rest.subarray(length);
    }
    return { pdus };
  };
}

/** An address with its type of number and numbering plan (5.2.5, 5.2.6). */
export interface Address {
  readonly ton: number;
  readonly npi: number;
  readonly address: string;
}

/** Body of bind_transceiver (4.1.5), for interface version 3.4 and every address. */
export function bindBody(systemId: string, password: string, systemType: string): Buffer {
  return Buffer.concat([cString(systemId), cString(password), cString(systemType), Buffer.of(0x34, 0, 0), cString("")]);
}

export interface Submit {
  readonly serviceType: string;
  readonly source: Address;
  readonly destination: Address;
  /** 1: a receipt for the final outcome is wanted; 0: none. */
  readonly registeredDelivery: 0 | 1;
  /** 0: the default alphabet; 8: UCS-2. */
  readonly dataCoding: 0 | 8;
  readonly text: Buffer;
}

/**
 * Body of submit_sm (4.4.1). A text of more than one segment travels as message_payload, which the message centre splits: how much of a longer short_message arrives differs from one centre to the next.
 */
export function submitBody({ serviceType, source, destination, registeredDelivery, dataCoding, text }: Submit): Buffer {
  const long = text.length > (dataCoding === 8 ? segmentOctets.ucs2 : segmentOctets.default);
  const short = long ? emptyBody : text;
  return Buffer.concat([
    cString(serviceType),
    addressField(source),
    addressField(destination),
    // esm_class, protocol_id, priority_flag; schedule_delivery_time and validity_period: the centre's own.
    Buffer.of(0, 0, 0, 0, 0),
    // replace_if_present_flag and sm_default_msg_id: none.
    Buffer.of(registeredDelivery, 0, dataCoding, 0, short.length),
    short,
    long ? parameter(tags.messagePayload, text) : emptyBody,
  ]);
}

/** What a receipt is read from. */
export interface Deliver {
  readonly esmClass: number;
  readonly dataCoding: number;
  /** message_payload where short_message is empty. */
  readonly text: Buffer;
  readonly parameters: ReadonlyMap<number, Buffer>;
}

/** Reads the body of data_sm (4.7.1); `undefined` when it is cut short. */
export function readData(body: Buffer): Deliver | undefined {
  const at = afterAddresses(body);
  const [esmClass, , dataCoding] = body.subarray(at, at + 3); // esm_class, registered_delivery, data_coding
  if (esmClass === undefined || dataCoding === undefined) return undefined;
  const parameters = readParameters(body.subarray(at + 3));
  return { esmClass, dataCoding, text: parameters.get(tags.messagePayload) ?? emptyBody, parameters };
}

/** Reads the body of deliver_sm (4.6.1); `undefined` when it is cut short. */
export function readDeliver(body: Buffer): Deliver | undefined {
  let at = afterAddresses(body);
  const skipString = () => {
    at = afterString(body, at);
  };
  const esmClass = body[at];
  at += 3; // esm_class, protocol_id, priority_flag
  skipString(); // schedule_delivery_time
  skipString(); // validity_period
  const dataCoding = body[at + 2];
  const length = body[at + 4];
  at += 5; // registered_delivery, replace_if_present_flag, data_coding, sm_default_msg_id, sm_length
  if (esmClass === undefined || dataCoding === undefined || length === undefined || at + length > body.length) return undefined;
  const parameters = readParameters(body.subarray(at + length));
  const text = length === 0 ? (parameters.get(tags.messagePayload) ?? emptyBody) : body.subarray(at, at + length);
  return { esmClass, dataCoding, text, parameters };
}

/** Where service_type, source and destination have ended, with which both bodies begin. */
function afterAddresses(body: Buffer): number {
  let at = afterString(body, 0);
  for (let address = 0; address < 2; address += 1) at = afterString(body, at + 2); // ton, npi
  return at;
}

function afterString(body: Buffer, at: number): number {
  const end = body.indexOf(0, at);
  return end === -1 ? body.length + 1 : end + 1;
}

/** The octets up to the first NUL, or all of them, as Latin-1. */
export function readString(octets: Buffer): string {
  const end = octets.indexOf(0);
  return octets.toString("latin1", 0, end === -1 ? octets.length : end);
}

export function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`, "latin1");
}

function addressField({ ton, npi, address }: Address): Buffer {
  return Buffer.concat([Buffer.of(ton, npi), cString(address)]);
}

function parameter(tag: number, value: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt16BE(tag, 0);
  head.writeUInt16BE(value.length, 2);
  return Buffer.concat([head, value]);
}

/** Optional parameters by tag; one that is cut short ends them. */
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
