import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net";
import type { SmsSender, Verifier, VerifierOptions } from "phoneproof";
import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { router } from "phoneproof/router";
import { httpSender } from "phoneproof/senders/http";

export const secret = "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6";
const silent = { info: () => {}, warn: () => {}, error: () => {} };

export interface Carrier {
  readonly url: string;
  /** Every request, oldest first. */
  readonly requests: readonly { readonly url: string; readonly body: string }[];
  stop(): Promise<void>;
}

/** A carrier's HTTP API. By default it accepts every message. */
export async function startCarrier(respond: (response: ServerResponse, request: IncomingMessage) => void = (response) => response.end("OK")): Promise<Carrier> {
  const requests: { url: string; body: string }[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => void chunks.push(chunk));
    incoming.on("end", () => {
      requests.push({ url: incoming.url ?? "", body: Buffer.concat(chunks).toString() });
      respond(response, incoming);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

export function senderTo(carrier: Pick<Carrier, "url">): SmsSender {
  return httpSender({ url: `${carrier.url}/send?to={to}&text={text}`, receipts: false });
}

export interface MessageCentre {
  readonly port: number;
  stop(): Promise<void>;
}

/** A message centre that binds everyone, or no one, and responds to no message. */
export async function startMessageCentre(binds: boolean): Promise<MessageCentre> {
  const sockets = new Set<Socket>();
  const server = createSocketServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (pdu: Buffer) => {
      // bind_transceiver comes alone, because nothing may be sent before its response.
      if (!binds || pdu.readUInt32BE(4) !== 0x9) return;
      const response = Buffer.alloc(17);
      response.writeUInt32BE(17, 0);
      response.writeUInt32BE(0x80000009, 4);
      response.writeUInt32BE(pdu.readUInt32BE(12), 12);
      socket.write(response);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((done) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => done());
      }),
  };
}

function verifierOf(sender: SmsSender, options: Partial<VerifierOptions> = {}): Verifier {
  return createVerifier({ store: memoryStore(), sender, secret, countries: ["FR"], logger: silent, sendTimeout: 1, ...options });
}

/** A verifier whose messages go to `first`, and to `second` if `first` did not send them. */
export function verifierWithFailover(first: SmsSender, second: SmsSender): Verifier {
  return verifierOf(
    router({
      routes: [
        { name: "first", sender: first, priority: 0 },
        { name: "second", sender: second },
      ],
      logger: silent,
    }),
  );
}
