import { type IncomingHttpHeaders, request } from "node:http";
import { connect, type Socket } from "node:net";

/** One call. A body that is a list goes out chunked, one piece after the other; any other has a content-length. */
export interface Call {
  readonly method: string;
  /** Sent as it is. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array | readonly (string | Uint8Array)[];
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Makes a call over a connection of its own. Rejects when no whole answer has come within ten seconds. */
export function send(port: number, call: Call): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let answered = false;
    const outgoing = request({
      host: "127.0.0.1",
      port,
      method: call.method,
      path: call.path,
      headers: call.headers as Record<string, string | string[]>,
      agent: false,
      timeout: 10_000,
    });
    outgoing.on("response", (response) => {
      answered = true;
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() }));
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer to ${call.method} ${call.path}`)));
    // A server may answer and close while the body is still on its way.
    outgoing.on("error", (error) => answered || reject(error));
    if (Array.isArray(call.body)) {
      outgoing.setHeader("transfer-encoding", "chunked");
      for (const piece of call.body) outgoing.write(piece);
      outgoing.end();
    } else {
      outgoing.end(call.body as string | Uint8Array | undefined);
    }
  });
}

/** Sends these bytes and nothing after, and takes what comes back until `enough` says so or the server ends. Rejects after ten seconds. */
export function exchange(port: number, bytes: string, enough: (received: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    const finish = () => {
      socket.destroy();
      resolve(received);
    };
    socket.setTimeout(10_000, () => {
      socket.destroy();
      reject(new Error(`nothing more came after ${JSON.stringify(received)}`));
    });
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      if (enough(received)) finish();
    });
    socket.on("end", finish);
    socket.on("error", reject);
  });
}

/** A connection that a test writes to as it likes. */
export interface Line {
  readonly socket: Socket;
  /** What came back so far. */
  received(): string;
  /** Waits until `enough` says so; rejects after ten seconds, and when the server ends before. */
  until(enough: (received: string) => boolean): Promise<string>;
  /** Waits until the server closes or resets the connection; rejects after ten seconds. */
  readonly closed: Promise<void>;
}

/** Opens a connection and sends these bytes. */
export function dial(port: number, bytes: string): Line {
  let received = "";
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => socket.write(bytes));
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
  });
  // The other end may reset it; its end is what is waited for.
  socket.on("error", () => undefined);
  socket.setTimeout(10_000, () => socket.destroy(new Error("ten seconds")));
  const ended = new Promise<void>((resolve) => {
    socket.once("end", resolve);
    socket.once("close", resolve);
  });
  return {
    socket,
    received: () => received,
    until: (enough) =>
      new Promise((resolve, reject) => {
        const look = () => enough(received) && resolve(received);
        socket.on("data", look);
        void ended.then(() => (enough(received) ? resolve(received) : reject(new Error(`the server ended after ${JSON.stringify(received)}`))));
        look();
      }),
    closed: ended.then(() => {
      if (socket.errored?.message === "ten seconds") throw socket.errored;
      socket.destroy();
    }),
  };
}

/** Whether a whole answer is there, with a content-length or chunked. */
export function isWhole(received: string): boolean {
  const end = received.indexOf("\r\n\r\n");
  if (/^transfer-encoding: chunked\r$/im.test(received)) return received.endsWith("\r\n0\r\n\r\n");
  const length = /content-length: (\d+)/i.exec(received)?.[1];
  return end !== -1 && length !== undefined && received.length >= end + 4 + Number(length);
}
