import { spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { type SmppOptions, smppSender } from "../../adapters/sms/smpp/index.js";
import type { Receipt } from "../../src/ports/receipts.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { aMessage, eventually, type PeerPdu, type PeerSession, password, systemId } from "../support/smpp.js";
import { closeBenches, openBench, openPeer } from "../support/smpp-bench.js";

afterEach(closeBenches);

/** A bound sender, and its peer. */
async function setUp(onReceipt: (receipt: Receipt) => Promise<void>, change: Partial<SmppOptions> = {}) {
  const bench = await openBench({ onReceipt, ...change });
  const { peer, sender } = bench;
  await sender.connect();
  const statuses: number[] = [];
  /** Sends receipts without waiting for responses, like a message centre that comes back after hours. */
  const flood = (count: number) => {
    for (let receipt = 0; receipt < count; receipt += 1) {
      const fields = { esm_class: 4, short_message: `id:r${receipt} stat:DELIVRD` };
      (peer.sessions[0] as PeerSession).deliver_sm(fields, ({ command_status }) => void statuses.push(command_status));
    }
  };
  return { ...bench, statuses, flood };
}

/** Runs the event loop, so that data in a socket is read unless reading is paused. */
async function goRound(times = 100): Promise<void> {
  for (let time = 0; time < times; time += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** The queue, the calls in progress, and what one more read of the socket (64 KiB) may add. */
const bound = 1_000 + 16 + 65_536 / 50;

describe("a peer that does not read its responses", () => {
  const many = Buffer.concat(Array.from({ length: 4_096 }, () => Buffer.from("00000010000000150000000000000001", "hex")));

  /** A bound sender, and its peer's side of the connection, which is not read. */
  async function bound() {
    let socket: Socket | undefined;
    const server = createServer((opened) => {
      socket = opened;
      opened.once("data", (bind: Buffer) => {
        const answer = Buffer.concat([bind.subarray(0, 16), Buffer.from("x\0")]);
        answer.writeUInt32BE(18, 0);
        answer.writeUInt32BE((bind.readUInt32BE(4) | 0x80000000) >>> 0, 4);
        opened.write(answer);
        opened.pause();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const clock = fixedClock(0);
    const sender = smppSender({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, systemId, password, from: "x", clock });
    await sender.connect();
    const peer = socket as Socket;
    const close = async () => {
      peer.destroy();
      await sender.close?.();
      server.close();
    };
    return { sender, clock, peer, close };
  }

  /** Sends enquire_link for as long as it is read, and returns the number of bytes. */
  async function pour(peer: Socket, patience = 20_000): Promise<number> {
    let written = 0;
    for (let isTaken = true; isTaken && written < 100_000_000; written += many.length) {
      if (peer.write(many)) continue;
      isTaken = await Promise.race([new Promise<true>((resolve) => peer.once("drain", () => resolve(true))), goRound(patience).then(() => false)]);
    }
    return written;
  }

  it("gets no more responses than its socket buffers, and is disconnected after it has read none for responseTimeout", async () => {
    const { sender, clock, peer, close } = await bound();
    expect(await pour(peer)).toBeLessThan(100_000_000);
    expect(sender.status().state).toBe("bound");
    // What the system's buffers hold may still be on its way.
    for (let size = -1; size !== peer.writableLength; await goRound(50_000)) size = peer.writableLength;
    clock.advance(10_000);
    await eventually(() => expect(sender.status()).toMatchObject({ state: "waiting", error: expect.stringContaining("has not read its responses") }));
    await close();
  });

  it("keeps its session if it reads again, and the pause leaves no listener behind", async () => {
    const opened: Socket[] = [];
    const onOpen = (message: unknown) => opened.push((message as { socket: Socket }).socket);
    subscribe("net.client.socket", onOpen);
    const { sender, clock, peer, close } = await bound();
    unsubscribe("net.client.socket", onOpen);
    const [ours] = opened as [Socket];
    const before = ours.listenerCount("close");
    await pour(peer, 1_000);
    expect(ours.listenerCount("close")).toBe(before + 1);
    peer.resume();
    await eventually(() => expect(ours.listenerCount("close")).toBe(before));
    clock.advance(10_000);
    expect(sender.status().state).toBe("bound");
    await close();
  });
});

describe("many receipts at once", () => {
  it("are passed on in order and acknowledged, with up to 16 calls of `onReceipt` at a time", async () => {
    const taken: string[] = [];
    let running = 0;
    let most = 0;
    const { statuses, flood } = await setUp(async ({ messageId = "" }) => {
      most = Math.max(most, (running += 1));
      taken.push(messageId);
      await goRound(1);
      running -= 1;
    });
    flood(5_000);
    await eventually(() => expect(statuses).toHaveLength(5_000));
    expect(most).toBe(16);
    expect(new Set(statuses)).toEqual(new Set([0]));
    expect(taken).toEqual(Array.from({ length: 5_000 }, (_, receipt) => `r${receipt}`));
  });

  it("pause the connection while a thousand are waiting, until there is room again", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const { sender, statuses, flood } = await setUp(() => gate);
    flood(20_000);
    await eventually(() => expect(sender.status().receipts).toBeGreaterThan(1_000));
    await goRound();
    expect(sender.status().receipts).toBeLessThanOrEqual(bound);
    open();
    await eventually(() => expect(statuses).toHaveLength(20_000));
    expect(new Set(statuses)).toEqual(new Set([0]));
  });

  it("are rejected (ESME_RX_T_APPN) while `onReceipt` hangs for 3 s or more, submits still work, and receipts are accepted again afterwards", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const taken = new Set<string | undefined>();
    const { peer, clock, sender, log, statuses, flood } = await setUp(({ messageId }) => {
      taken.add(messageId);
      return gate;
    });
    flood(20_000);
    await eventually(() => expect(sender.status().receipts).toBeGreaterThan(1_000));
    const outcome = sender.send(aMessage(), clock.context());
    await eventually(() => expect(peer.of("submit_sm")).toHaveLength(1));
    await goRound();
    expect(sender.status().outstanding).toBe(1);

    clock.advance(2_999);
    await goRound();
    expect(statuses).toEqual([]);
    clock.advance(1);
    expect(await outcome).toMatchObject({ outcome: "accepted" });
    await eventually(() => expect(statuses).toHaveLength(20_000));
    expect(new Set(statuses)).toEqual(new Set([0x64]));
    // The first calls, and those that got their places.
    expect(taken.size).toBe(32);
    expect(sender.status().receipts).toBe(16);
    expect(log.filter(({ level }) => level === "warn").map(({ message }) => message)).toEqual([
      expect.stringContaining("receipts wait too long for onReceipt"),
    ]);

    open();
    await eventually(() => expect(sender.status().receipts).toBe(0));
    flood(100);
    await eventually(() => expect(statuses).toHaveLength(20_100));
    expect(new Set(statuses.slice(20_000))).toEqual(new Set([0]));
  });

  it("are rejected after waiting 3 s for a slow `onReceipt`, while the others are accepted, and none is answered twice", async () => {
    const gates: (() => void)[] = [];
    const { peer, clock, sender, statuses, flood } = await setUp(() => new Promise((resolve) => gates.push(resolve)));
    flood(32);
    await eventually(() => expect(sender.status().receipts).toBe(32));
    expect(gates).toHaveLength(16);
    clock.advance(2_000);
    for (const open of gates.splice(0)) open();
    await eventually(() => expect(statuses).toHaveLength(16));
    clock.advance(1_000);
    await eventually(() => expect(statuses).toHaveLength(32));
    expect(statuses.filter((status) => status === 0x64)).toHaveLength(16);
    for (const open of gates.splice(0)) open();
    flood(1);
    await eventually(() => expect(gates).toHaveLength(1));
    gates[0]?.();
    await eventually(() => expect(statuses).toHaveLength(33));
    expect(statuses.at(-1)).toBe(0);
    expect(peer.of("deliver_sm_resp")).toHaveLength(33);
  });

  it("are passed on again after 16 calls of `onReceipt` that never end, and `close` does not wait for those", async () => {
    let broker: "hangs" | "works" = "hangs";
    const taken: (string | undefined)[] = [];
    const { clock, sender, statuses, flood } = await setUp(({ messageId }) => {
      if (broker === "hangs") return new Promise((_, reject) => void clock.after(10_000, () => reject(new Error("given up"))));
      taken.push(messageId);
      return Promise.resolve();
    });
    flood(16);
    await eventually(() => expect(sender.status().receipts).toBe(16));
    clock.advance(3_000);
    await eventually(() => expect(statuses).toEqual(Array(16).fill(0x64)));
    broker = "works";
    flood(1);
    await eventually(() => expect(statuses).toHaveLength(17));
    expect(statuses.at(-1)).toBe(0);
    expect(taken).toEqual(["r0"]);
    // The calls that were given up fail: none is answered twice, and no rejection is unhandled.
    clock.advance(7_000);
    await goRound();
    expect(statuses).toHaveLength(17);
    expect(sender.status().receipts).toBe(0);
    await sender.close();
  });

  it("that `onReceipt` rejects are logged once a minute, with the number of lines omitted", async () => {
    const { clock, log, statuses, flood } = await setUp(() => Promise.reject(new Error("down")), { enquireLinkAfter: 3_600 });
    flood(60);
    await eventually(() => expect(statuses).toEqual(Array(60).fill(0x64)));
    clock.advance(60_000);
    flood(1);
    await eventually(() => expect(statuses).toHaveLength(61));
    const errors = log.filter(({ level }) => level === "error");
    expect(errors).toMatchObject([{ fields: { err: expect.stringContaining("down") } }, { fields: { left_out: 59 } }]);
  });

  it("that name no message are logged once a minute, with what to do", async () => {
    const { peer, log } = await setUp(async () => {});
    const answers: number[] = [];
    for (let receipt = 0; receipt < 60; receipt += 1)
      peer.sessions[0]?.deliver_sm({ esm_class: 4, short_message: "msgid=1 state=ok" }, ({ command_status }) => void answers.push(command_status));
    await eventually(() => expect(answers).toEqual(Array(60).fill(0)));
    expect(log.filter(({ level }) => level === "warn").map(({ message }) => message)).toEqual([
      expect.stringContaining("ask the carrier for the form of SMPP 3.4, Appendix B"),
    ]);
  });

  it("do not make a paused connection count as dead", async () => {
    const { clock, sender, peer, flood } = await setUp(() => new Promise(() => {}), { responseTimeout: 2 });
    flood(20_000);
    await eventually(() => expect(sender.status().receipts).toBeGreaterThan(1_000));
    const outcome = sender.send(aMessage(), clock.context(60_000));
    await eventually(() => expect(peer.of("submit_sm")).toHaveLength(1));
    clock.advance(2_000);
    expect(await outcome).toMatchObject({ outcome: "unknown" });
    await eventually(() => expect(peer.of("enquire_link")).toHaveLength(1));
    clock.advance(2_000);
    expect(sender.status().state).toBe("bound");
  });
});

const adapter = new URL("../../adapters/sms/smpp/index.ts", import.meta.url).href;
const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * A module for a separate process, whose memory is the sender's alone. It takes `count` receipts slowly,
 * sends a message for every thousandth, and prints what it saw.
 */
const taker = (port: number, count: number) => `
  import { smppSender } from ${JSON.stringify(adapter)};
  const seen = new Set();
  const submits = [];
  const heap = () => (gc(), process.memoryUsage().heapUsed);
  let running = 0, most = 0, mostQueued = 0, mostHeap = 0, answered = 0, answeredMeanwhile = 0;
  const sender = smppSender({
    ...${JSON.stringify({ host: "127.0.0.1", port, systemId, password })},
    async onReceipt({ messageId }) {
      most = Math.max(most, ++running);
      mostQueued = Math.max(mostQueued, sender.status().receipts);
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
      running--;
      seen.add(messageId);
      if (seen.size % 1000 === 0) submit();
      if (seen.size % 5000 === 0) mostHeap = Math.max(mostHeap, heap());
      if (seen.size === ${count}) void finish();
    },
  });
  function submit() {
    const message = { to: "+14155552671", text: "Hello", code: "1", authentication_uuid: "a", customer_uuid: "c", attempt: 1, idempotency_key: "k", expires_at: Date.now() + 600_000 };
    const sent = sender.send(message, { signal: new AbortController().signal, deadline: Date.now() + 60_000, timeLeft: 60_000 });
    void sent.then(() => { answered++; if (seen.size < ${count}) answeredMeanwhile++; });
    submits.push(sent);
  }
  async function finish() {
    const outcomes = (await Promise.all(submits)).map(({ outcome }) => outcome);
    await sender.close();
    console.log(JSON.stringify({ most, mostQueued, grown: mostHeap - before, outcomes, answeredMeanwhile }));
  }
  await sender.connect();
  const before = heap();
  console.log("bound");`;

it("50,000 receipts for a slow `onReceipt`: none is lost, calls and memory stay bounded, and submits are answered in the meantime", async () => {
  const count = 50_000;
  const peer = await openPeer();
  const module = taker(peer.port, count);
  const child = spawn(process.execPath, ["--expose-gc", "--import", "tsx", "--input-type=module", "-e", module], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe("bound");

    // A message centre with a window five times the size of the queue, which repeats rejected receipts.
    const session = peer.sessions[0] as PeerSession;
    const waiting = Array.from(
      { length: count },
      (_, receipt) => `id:${receipt} sub:001 dlvrd:001 submit date:2611201200 done date:2611201201 stat:DELIVRD err:000`,
    );
    const deliver = () => {
      const short_message = waiting.pop();
      if (short_message === undefined) return;
      const answered = ({ command_status }: PeerPdu) => {
        if (command_status !== 0) waiting.push(short_message);
        deliver();
      };
      session.deliver_sm({ esm_class: 4, source_addr: "14155552671", destination_addr: "Acme", short_message }, answered);
    };
    for (let outstanding = 0; outstanding < 5_000; outstanding += 1) deliver();

    const { most, mostQueued, grown, outcomes, answeredMeanwhile } = JSON.parse((await lines.next()).value as string);
    expect(most).toBe(16);
    expect(mostQueued).toBeGreaterThan(900);
    expect(mostQueued).toBeLessThanOrEqual(bound);
    expect(outcomes).toEqual(Array(50).fill("accepted"));
    expect(answeredMeanwhile).toBeGreaterThan(40);
    expect(grown).toBeLessThan(32 * 2 ** 20);
  } finally {
    child.kill();
  }
});
