/** Child process that is another client of the same Redis: sends PINGs, one after another, until stopped. */
import { connect, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { Latency } from "./load.js";
import { answerCalls } from "./processes.js";
import { latencyOf } from "./report.js";

let socket: Socket;
let times: number[] = [];
let pinging: Promise<void>;
let over = false;

answerCalls({
  async start(port: number) {
    socket = connect(port, "127.0.0.1").setNoDelay(true);
    await new Promise((done) => socket.once("connect", done));
    times = [];
    over = false;
    pinging = ping();
  },
  async stop(): Promise<Latency> {
    over = true;
    await pinging;
    socket.destroy();
    return latencyOf(times);
  },
});

async function ping(): Promise<void> {
  while (!over) {
    const sent = performance.now();
    socket.write("PING\r\n");
    await new Promise((done) => socket.once("data", done));
    times.push(performance.now() - sent);
    await wait(2);
  }
}
