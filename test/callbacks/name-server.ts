import { createSocket } from "node:dgram";

/** A name server on loopback. */
export interface NameServer {
  /** `127.0.0.1:port`. */
  readonly address: string;
  /** The names asked for, once for each address family. */
  readonly asked: string[];
  close(): void;
}

/**
 * The IPv4 and IPv6 addresses of a name; `[]` if it has none; `undefined` to never respond. `family` is the one asked
 * for.
 */
export type Zone = (name: string, family: 4 | 6) => readonly string[] | undefined;

/** Implements as much of RFC 1035 as one question over UDP needs. */
export async function nameServer(zone: Zone): Promise<NameServer> {
  const socket = createSocket("udp4");
  const asked: string[] = [];
  socket.on("message", (query, { port, address }) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] as number; length > 0; length = query[at] as number) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length));
      at += length + 1;
    }
    const name = labels.join(".");
    asked.push(name);
    const type = query.readUInt16BE(at + 1);
    const addresses = zone(name, type === 28 ? 6 : 4);
    if (addresses === undefined) return;
    const answers = addresses.filter((one) => one.includes(":") === (type === 28)).map((one) => answer(type, one));
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    // A response, recursion available; NXDOMAIN if the name has no address at all.
    head.writeUInt16BE(addresses.length === 0 ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(answers.length, 6);
    socket.send(Buffer.concat([head, query.subarray(12, at + 5), ...answers]), port, address);
  });
  await new Promise<void>((ready) => socket.bind(0, "127.0.0.1", ready));
  return { address: `127.0.0.1:${socket.address().port}`, asked, close: () => void socket.close() };
}

/** A resource record for the requested name. IPv6 addresses must be in full, without `::`. */
function answer(type: number, address: string): Buffer {
  const data =
    type === 28
      ? Buffer.from(
          address
            .split(":")
            .map((part) => part.padStart(4, "0"))
            .join(""),
          "hex",
        )
      : Buffer.from(address.split(".").map(Number));
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(0, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
