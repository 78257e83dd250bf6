/**
 * Child process that plays the clients: raw HTTP/1.1 over connections that stay open, each with one request under way at a time.
 *
 * It never sleeps while it waits. A server on the same machine pays for waking its client in its own write call: a fast server, whose client is never done, would
 * seldom pay, and a slower one always (measured: 12 µs a write against 40).
 */
import { connect, type Socket } from "node:net";
import { answerCalls } from "./processes.js";

/** A batch of POST requests. */
export interface Batch {
  readonly port: number;
  readonly path: string;
  readonly connections: number;
  /** API key and JSON body of each. */
  readonly requests: readonly { readonly key: string; readonly body: string }[];
}

/** Bodies of the answers in the order of the requests, how long each took, and all of them, in milliseconds. */
export interface Fired {
  readonly took: number;
  readonly answers: readonly string[];
  readonly times: readonly number[];
}

answerCalls({
  async fire(batch: Batch): Promise<Fired> {
    const answers: string[] = new Array(batch.requests.length).fill("");
    const times: number[] = new Array(batch.requests.length).fill(0);
    let next = 0;
    const client = async () => {
      const connection = await open(batch.port);
      for (let at = next++; at < batch.requests.length; at = next++) {
        const { key, body } = batch.requests[at] as Batch["requests"][number];
        const started = performance.now();
        answers[at] = await connection.exchange(
          `POST ${batch.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
        );
        times[at] = performance.now() - started;
      }
      connection.close();
    };
    const started = performance.now();
    let waiting = true;
    const stayAwake = () => void (waiting && setImmediate(stayAwake));
    stayAwake();
    try {
      await Promise.all(Array.from({ length: batch.connections }, client));
    } finally {
      waiting = false;
    }
    return { answers, times, took: performance.now() - started };
  },
});

interface Connection {
  exchange(request: string): Promise<string>;
  close(): void;
}

async function open(port: number): Promise<Connection> {
  const socket: Socket = connect(port, "127.0.0.1");
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  socket.setNoDelay(true);
  socket.setEncoding("latin1");
  let text = "";
  let resolve: (body: string) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const fail = (error: Error) => reject(error);
  socket.on("error", fail);
  socket.on("close", () => fail(new Error("the server closed the connection")));
  socket.on("data", (chunk: string) => {
    text += chunk;
    const head = text.indexOf("\r\n\r\n");
    if (head === -1) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
    if (length === undefined) return fail(new Error(`an answer without content-length: ${text}`));
    const body = text.slice(head + 4);
    if (body.length < Number(length)) return;
    const status = text.slice(9, 12);
    text = "";
    if (status === "200") resolve(body);
    else fail(new Error(`answered ${status}: ${body}`));
  });
  return {
    exchange: (request) =>
      new Promise((done, failed) => {
        resolve = done;
        reject = failed;
        socket.write(request);
      }),
    close: () => socket.end(),
  };
}
