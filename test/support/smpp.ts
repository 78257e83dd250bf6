import { randomUUID } from "node:crypto";
import type { AddressInfo } from "node:net";
import smpp, { type PeerPdu, type PeerSession } from "smpp";
import { vi } from "vitest";
import type { CodeMessage, SendContext } from "../../src/ports/sms-sender.js";
import { type FixedClock, fixedClock } from "../../src/testing/fixed-clock.js";

export type { PeerPdu, PeerSession };

/** What the peer does with a PDU. */
export type Handler = (pdu: PeerPdu, session: PeerSession) => void;

/** The server of npm's `smpp`, which responds as a message centre unless a test replaces that. */
export interface Peer {
  readonly port: number;
  /** Open connections, oldest first. */
  readonly sessions: readonly PeerSession[];
  /** Every PDU received, in order. */
  readonly seen: readonly PeerPdu[];
  /** Every octet received, on all connections, as Latin-1. */
  octets(): string;
  /** Replaces what it does with PDUs of a command. */
  on(command: string, handler: Handler): void;
  of(command: string): readonly PeerPdu[];
  /** Closes every connection and the server. */
  stop(): Promise<void>;
}

export const systemId = "phoneproof";
export const password = "s3cret";

const statuses = { invalidPassword: 0x0e };

/** @param options `port`, default a free one; `key` and `cert` for TLS. */
export async function startPeer(options: { readonly port?: number; readonly key?: string; readonly cert?: string } = {}): Promise<Peer> {
  const { port = 0, ...tls } = options;
  const sessions: PeerSession[] = [];
  const seen: PeerPdu[] = [];
  const chunks: Buffer[] = [];
  let messages = 0;
  const bind: Handler = (pdu, session) =>
    session.send(pdu.response(pdu.password === password ? { system_id: "peer" } : { command_status: statuses.invalidPassword }));
  const handlers = new Map<string, Handler>([
    ...["bind_transceiver", "bind_transmitter", "bind_receiver"].map((command): [string, Handler] => [command, bind]),
    ["submit_sm", (pdu, session) => session.send(pdu.response({ message_id: `m${++messages}` }))],
    ["enquire_link", (pdu, session) => session.send(pdu.response())],
    [
      "unbind",
      (pdu, session) => {
        session.send(pdu.response());
        session.close();
      },
    ],
  ]);
  const server = smpp.createServer(tls, (session) => {
    sessions.push(session);
    session.on("error", () => {});
    session.socket.on("data", (chunk: Buffer) => void chunks.push(chunk));
    session.socket.on("close", () => sessions.splice(sessions.indexOf(session), 1));
    session.on("pdu", (pdu) => {
      seen.push(pdu);
      handlers.get(pdu.command)?.(pdu, session);
    });
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  return {
    port: (server.address() as AddressInfo).port,
    sessions,
    seen,
    octets: () => Buffer.concat(chunks).toString("latin1"),
    on: (command, handler) => void handlers.set(command, handler),
    of: (command) => seen.filter((pdu) => pdu.command === command),
    async stop() {
      const ended = new Promise((done) => server.close(done));
      for (const session of [...sessions]) session.destroy();
      await ended;
    },
  };
}

/** A clock for a sender, and contexts whose deadline depends on it. */
export function stoppedClock(): FixedClock & { context(ms?: number): SendContext } {
  const clock = fixedClock();
  return {
    ...clock,
    context(ms = 5_000) {
      const abort = new AbortController();
      const deadline = clock.now() + ms;
      clock.after(ms, () => abort.abort());
      return { signal: abort.signal, deadline, timeLeft: ms };
    },
  };
}

export function aMessage(change: Partial<CodeMessage> = {}): CodeMessage {
  return {
    to: "+14155552671",
    text: "Your code is 482913",
    code: "482913",
    authentication_uuid: randomUUID(),
    customer_uuid: randomUUID(),
    attempt: 1,
    idempotency_key: randomUUID(),
    country: "US",
    expires_at: Date.UTC(2100, 0, 1),
    ...change,
  };
}

/** Polls until `expectation` does not throw, for data that a socket has not yet delivered. */
export function eventually(expectation: () => void): Promise<void> {
  return vi.waitFor(expectation, { timeout: 60_000, interval: 5 });
}

export function textOf(pdu: PeerPdu | undefined): unknown {
  return pdu?.short_message?.message;
}
