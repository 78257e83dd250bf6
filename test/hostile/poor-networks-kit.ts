import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** What happens to the bytes of one direction. */
export interface Weather {
  /** Milliseconds before each chunk is passed on. */
  delay: number;
  /** Bytes of each packet; 0: as they came. */
  split: number;
  /** Bytes per second; 0: no limit. */
  rate: number;
  /** Passes nothing on from now on; the connection stays open. What it loses never arrives. */
  swallow: boolean;
  /** Keeps what arrives until it is false again. */
  hold: boolean;
  /** Resets both sides after this many bytes in this direction; -1: never. */
  cutAfter: number;
}

/** A TCP proxy on loopback, with the weather of each direction. */
export interface PoorNetwork {
  readonly port: number;
  readonly up: Weather;
  readonly down: Weather;
  /** New connections are accepted and get no response. */
  blackHole: boolean;
  readonly connections: () => number;
  readonly opened: () => number;
  /** Resets all connections. */
  reset(): void;
  /** Connections that are open now pass nothing on any more, as if the host was gone; new ones work. */
  mute(): void;
  aim(port: number): void;
  close(): Promise<void>;
}

const fair = (): Weather => ({ delay: 0, split: 0, rate: 0, swallow: false, hold: false, cutAfter: -1 });

/** Starts one in front of `port`. */
export async function poorNetwork(port: number, listen = 0): Promise<PoorNetwork> {
  const [up, down] = [fair(), fair()];
  const sockets = new Set<Socket>();
  const muted = new WeakSet<Socket>();
  let opened = 0;
  let target = port;
  const pass = (from: Socket, to: Socket, weather: Weather) => {
    let tail = Promise.resolve();
    let passed = 0;
    let dead = false;
    const wait = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
    from.on("data", (chunk) => {
      tail = tail.then(async () => {
        if (weather.delay > 0) await wait(weather.delay);
        while (weather.hold) await wait(10);
        dead ||= weather.swallow;
        if (dead || muted.has(from)) return;
        const size = weather.split || (weather.rate > 0 ? Math.max(1, Math.floor(weather.rate / 20)) : chunk.length);
        for (let at = 0; at < chunk.length && !to.destroyed; at += size) {
          let part = chunk.subarray(at, at + size);
          const left = weather.cutAfter - passed;
          if (weather.cutAfter >= 0 && part.length >= left) {
            part = part.subarray(0, left);
            if (part.length > 0) await new Promise((done) => to.write(part, done));
            from.resetAndDestroy();
            to.resetAndDestroy();
            return;
          }
          passed += part.length;
          to.write(part);
          if (weather.rate > 0) await wait((1000 * part.length) / weather.rate);
          else if (weather.split > 0) await new Promise((done) => setImmediate(done));
        }
      });
    });
    from.on("end", () => void tail.then(() => !dead && !muted.has(from) && to.end()));
  };
  const network = {
    up,
    down,
    blackHole: false,
    connections: () => sockets.size,
    opened: () => opened,
    reset() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    mute() {
      for (const socket of sockets) muted.add(socket);
    },
    aim(other: number) {
      target = other;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    opened += 1;
    sockets.add(client);
    client.setNoDelay(true);
    client.on("error", () => {}).on("close", () => sockets.delete(client));
    if (network.blackHole) return void client.resume();
    const upstream = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    sockets.add(upstream);
    upstream.on("error", () => client.resetAndDestroy()).on("close", () => sockets.delete(upstream));
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => setImmediate(() => client.destroySoon()));
    pass(client, upstream, up);
    pass(upstream, client, down);
  });
  await new Promise<void>((done) => server.listen(listen, "127.0.0.1", done));
  return Object.assign(network, { port: (server.address() as AddressInfo).port });
}

/** Bytes of the heap that are in use after a garbage collection. */
export function heapUsed(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}
