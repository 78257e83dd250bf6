import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Store } from "phoneproof";

export const commands = {
  bind_receiver: 1,
  bind_transmitter: 2,
  submit_sm: 4,
  deliver_sm: 5,
  unbind: 6,
  bind_transceiver: 9,
  enquire_link: 0x15,
  submit_sm_resp: 0x80000004,
  response: 0x80000000,
} as const;

interface Pdu {
  readonly command: number;
  readonly status: number;
  readonly sequence: number;
  readonly body: Buffer;
}

function pdu(command: number, status: number, sequence: number, body: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(16);
  head.writeUInt32BE(16 + body.length, 0);
  head.writeUInt32BE(command >>> 0, 4);
  head.writeUInt32BE(status, 8);
  head.writeUInt32BE(sequence, 12);
  return Buffer.concat([head, body]);
}

export const cString = (text: string): Buffer => Buffer.from(`${text}\0`, "latin1");

export function tlv(tag: number, value: string | Uint8Array): Buffer {
  const octets = typeof value === "string" ? Buffer.from(value, "latin1") : Buffer.from(value);
  const head = Buffer.alloc(4);
  head.writeUInt16BE(tag, 0);
  head.writeUInt16BE(octets.length, 2);
  return Buffer.concat([head, octets]);
}

/** Body of a deliver_sm. */
export function delivery(text: string | Uint8Array, more: { readonly tlvs?: readonly Buffer[] } = {}): Buffer {
  const octets = typeof text === "string" ? Buffer.from(text, "latin1") : Buffer.from(text);
  return Buffer.concat([
    cString(""),
    Buffer.from([1, 1]),
    cString("33612000001"),
    Buffer.from([5, 0]),
    cString("Acme"),
    Buffer.from([4, 0, 0]),
    cString(""),
    cString(""),
    Buffer.from([0, 0, 0, 0, octets.length]),
    octets,
    ...(more.tlvs ?? []),
  ]);
}

/** The text form of a receipt, as in Appendix B. */
export const receiptText = (id: string, stat = "DELIVRD"): string =>
  `id:${id} sub:001 dlvrd:001 submit date:2603011200 done date:2603011201 stat:${stat} err:000 text:Your code`;

interface Link {
  readonly socket: Socket;
  send(command: number, body?: Uint8Array, status?: number, sequence?: number): number;
  /** The response to a PDU that `send` wrote. */
  answer(sequence: number): Promise<Pdu>;
}

type Handler = (pdu: Pdu, link: Link) => void;

interface Centre {
  readonly port: number;
  readonly links: Link[];
  on(command: number, handler: Handler): void;
  stop(): Promise<void>;
}

/** A message centre that reads and writes octets itself. */
export async function startCentre(): Promise<Centre> {
  const links: Link[] = [];
  let messages = 0;
  const reply =
    (body: () => Buffer): Handler =>
    ({ command, sequence }, { socket }) =>
      void socket.write(pdu((command | commands.response) >>> 0, 0, sequence, body()));
  const handlers = new Map<number, Handler>([
    ...[1, 2, 9].map((command): [number, Handler] => [command, reply(() => cString("centre"))]),
    [commands.submit_sm, reply(() => cString(`m${++messages}`))],
    [commands.enquire_link, reply(() => Buffer.alloc(0))],
    [
      commands.unbind,
      (request, link) => {
        reply(() => Buffer.alloc(0))(request, link);
        link.socket.end();
      },
    ],
  ]);
  const server = createServer((socket) => {
    const waiting = new Map<number, (answer: Pdu) => void>();
    const answers = new Map<number, Pdu>();
    let next = 1;
    const link: Link = {
      socket,
      send(command, body, status = 0, sequence = next++) {
        socket.write(pdu(command, status, sequence, body));
        return sequence;
      },
      answer: (sequence) => {
        const known = answers.get(sequence);
        return known ? Promise.resolve(known) : new Promise((done) => void waiting.set(sequence, done));
      },
    };
    links.push(link);
    socket.on("error", () => {});
    socket.on("close", () => links.splice(links.indexOf(link), 1));
    let rest = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 16 && rest.length >= rest.readUInt32BE(0)) {
        const length = rest.readUInt32BE(0);
        const one: Pdu = { command: rest.readUInt32BE(4), status: rest.readUInt32BE(8), sequence: rest.readUInt32BE(12), body: rest.subarray(16, length) };
        rest = rest.subarray(length);
        if (one.command >= commands.response) {
          answers.set(one.sequence, one);
          waiting.get(one.sequence)?.(one);
        } else handlers.get(one.command)?.(one, link);
      }
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as AddressInfo).port,
    links,
    on: (command, handler) => void handlers.set(command, handler),
    async stop() {
      const ended = new Promise((done) => server.close(done));
      for (const { socket } of [...links]) socket.destroy();
      await ended;
    },
  };
}

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

export function listLogger() {
  const lines: Line[] = [];
  const at = (level: string) => (fields: Record<string, unknown>, message: string) => void lines.push({ level, message, fields });
  return { lines, info: at("info"), warn: at("warn"), error: at("error") };
}

/** A store that rejects everything while `down` is set. */
export function switchedStore(store: Store) {
  const control = { down: false };
  const proxy = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => (control.down ? Promise.reject(new Error("ECONNREFUSED")) : value.apply(target, args));
    },
  });
  return { store: proxy, control };
}

/** Options of a sender for this message centre. */
export const account = (centre: Centre) => ({ host: "127.0.0.1", port: centre.port, systemId: "acme", password: "secret" });
