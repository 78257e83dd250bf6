import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy in front of a server, which can simulate network errors. */
export interface Proxy {
  readonly port: number;
  readonly url: string;
  /** Delays every chunk by this many milliseconds, in both directions. */
  delay(ms: number): void;
  /** From now on, closes a connection instead of passing on a response: the server has done the work. */
  cutAnswers(cut: boolean): void;
  /** From now on, closes a connection instead of passing on a request: the server does not receive it. */
  cutRequests(cut: boolean): void;
  /** Existing connections stay open but pass on no more requests, as if the host was gone; new ones work. */
  mute(): void;
  /** From now on, connects to another port. Existing connections stay open. */
  redirect(port: number): void;
  /** The same, and closes existing connections. */
  aim(port: number): void;
  close(): Promise<void>;
}

/** Starts a proxy for `port` on loopback. `listen`: its own port; default: any. */
export async function startProxy(port: number, listen = 0): Promise<Proxy> {
  let wait = 0;
  let [cutting, deaf] = [false, false];
  let target = port;
  const sockets = new Set<Socket>();
  const muted = new WeakSet<Socket>();
  const later = (run: () => void) => (wait === 0 ? run() : setTimeout(run, wait));

  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.on("data", (chunk) => {
      if (deaf) client.destroy();
      else if (!muted.has(client)) later(() => upstream.write(chunk));
    });
    upstream.on("data", (chunk) => {
      if (cutting) client.destroy();
      else later(() => client.write(chunk));
    });
  });
  await new Promise<void>((done) => server.listen(listen, "127.0.0.1", done));
  const { port: own } = server.address() as AddressInfo;
  return {
    port: own,
    url: `redis://127.0.0.1:${own}`,
    delay(ms) {
      wait = ms;
    },
    cutAnswers(cut) {
      cutting = cut;
    },
    cutRequests(cut) {
      deaf = cut;
    },
    mute() {
      for (const socket of sockets) muted.add(socket);
    },
    redirect(port) {
      target = port;
    },
    aim(port) {
      target = port;
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}
