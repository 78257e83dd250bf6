/** Framing and fields of SMPP 3.4 PDUs. Section numbers refer to the SMPP 3.4 specification, issue 1.2. */

/** command_id (5.1.2.1). */
export const commands = {
  submitSm: 0x04,
  deliverSm: 0x05,
  unbind: 0x06,
  outbind: 0x0b,
  enquireLink: 0x15,
  alertNotification: 0x102,
  dataSm: 0x103,
  genericNack: 0x80000000,
} as const;

/** Set in the command_id of every response. */
export const responseBit = 0x80000000;

/** Tags of optional parameters (5.3.2). */
export const tags = {
  receiptedMessageId: 0x001e,
  sarReference: 0x020c,
  sarTotal: 0x020e,
  sarNumber: 0x020f,
  networkErrorCode: 0x0423,
  messagePayload: 0x0424,
  messageState: 0x0427,
} as const;

/** Bit of esm_class (5.2.12): the text begins with a user data header, whose first octet is the length of the rest. */
export const userDataHeader = 0x40;

/** Octets of a header: command_length, command_id, command_status and sequence_number, four octets each. */
const headerLength = 16;
/** The longest PDU accepted from a peer: its largest parameter, message_payload, ends at 64 KiB. */
const longest = 70_000;

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

/** Splits a byte stream into PDUs, however it is chunked. A `problem` is permanent: the start of the next PDU is lost. */
export function pduReader(): (chunk: Buffer) => { readonly pdus: readonly Pdu[]; readonly problem?: string } {
  let rest = emptyBody;
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const pdus: Pdu[] = [];
    while (rest.length >= 4) {
      const length = rest.readUInt32BE(0);
      if (length < headerLength || length > longest) return { pdus, problem: `the peer announced a PDU of ${length} octets` };
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

/** command_id of the bind for each role (4.1). */
export const bindCommands = { transmitter: 0x02, receiver: 0x01, transceiver: 0x09 } as const;

/** What a connection is bound for: messages, receipts or both. */
export type BindRole = keyof typeof bindCommands;

/** Body of a bind of any role (4.1), for interface version 3.4 and all addresses. */
export function bindBody(systemId: string, password: string, systemType: string): Buffer {
  return Buffer.concat([cString(systemId), cString(password), cString(systemType), Buffer.of(0x34, 0, 0), cString("")]);
}

/** The octets up to the first NUL, or all of them, as Latin-1. */
export function readString(octets: Buffer): string {
  const end = octets.indexOf(0);
  return octets.toString("latin1", 0, end === -1 ? octets.length : end);
}

export function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`, "latin1");
}

export function addressField({ ton, npi, address }: Address): Buffer {
  return Buffer.concat([Buffer.of(ton, npi), cString(address)]);
}

export function parameter(tag: number, value: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt16BE(tag, 0);
  head.writeUInt16BE(value.length, 2);
  return Buffer.concat([head, value]);
}
