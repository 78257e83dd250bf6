import { type IncomingHttpHeaders, request } from "node:http";
import { connect } from "node:net";

/** One request. A body that is a list is sent chunked, one piece after the other; any other has a content-length. */
export interface Call {
  readonly method: string;
  /** Sent unchanged. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array | readonly (string | Uint8Array)[];
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/**
 * Sends a request over a new connection. Rejects if the connection is idle for a minute without a complete response.
 */
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
      timeout: 60_000,
    });
    outgoing.on("response", (response) => {
      answered = true;
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() }));
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer to ${call.method} ${call.path}`)));
    // A server may respond and close while the body is still being sent.
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

/**
 * Sends these bytes only, and collects the response until `enough` returns true or the server ends the connection.
 * Rejects after ten idle seconds.
 */
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

/** A connection that a test can write to freely. */
export interface Line {
  write(bytes: string): void;
  /**
   * Sends chunks of a chunked body as long as they are accepted, up to 16 MB; the function returned gives the number
   * left.
   */
  pour(): () => number;
  /** Waits for a response; rejects if the server ends the connection first. */
  answer(): Promise<{ readonly status: number; readonly body: Record<string, unknown> }>;
  /** Waits until the server ends or resets the connection; rejects after ten idle seconds. */
  closed(): Promise<void>;
  close(): void;
}

/** Opens a connection and sends these bytes. */
export function dial(port: number, bytes: string): Line {
  let received = "";
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.write(bytes);
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
  });
  // A server may reset the connection, which is an end too.
  socket.on("error", () => undefined);
  socket.setTimeout(10_000, () => socket.destroy(new Error(`nothing more came after ${JSON.stringify(received)}`)));
  const ended = new Promise<void>((resolve) => void socket.once("end", resolve).once("close", resolve));
  return {
    write: (more) => void socket.write(more),
    pour() {
      const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
      let left = 256;
      const more = () => {
        while (left > 0 && socket.writable && socket.write(chunk)) left--;
      };
      socket.on("drain", more);
      more();
      return () => left;
    },
    answer: () =>
      new Promise((resolve, reject) => {
        const look = () => {
          const end = received.indexOf("\r\n\r\n") + 4;
          if (!isWhole(received)) return;
          socket.off("data", look);
          resolve({ status: Number(received.slice(9, 12)), body: JSON.parse(/\{.*\}/s.exec(received.slice(end))?.[0] ?? "{}") });
          received = "";
        };
        socket.on("data", look);
        void ended.then(() => reject(socket.errored ?? new Error(`the server ended after ${JSON.stringify(received)}`)));
        look();
      }),
    async closed() {
      await ended;
      if (socket.errored?.message.startsWith("nothing more")) throw socket.errored;
      socket.destroy();
    },
    close: () => void socket.destroy(),
  };
}

/** Whether a complete response has arrived, with a content-length or chunked. */
export function isWhole(received: string): boolean {
  const end = received.indexOf("\r\n\r\n");
  if (/^transfer-encoding: chunked\r$/im.test(received)) return received.endsWith("\r\n0\r\n\r\n");
  const length = /content-length: (\d+)/i.exec(received)?.[1];
  return end !== -1 && length !== undefined && received.length >= end + 4 + Number(length);
}
