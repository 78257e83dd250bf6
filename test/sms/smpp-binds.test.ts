import { afterEach, describe, expect, it } from "vitest";
import type { SmppOptions } from "../../adapters/sms/smpp/index.js";
import type { Receipt } from "../../src/ports/receipts.js";
import { aMessage, eventually, type Peer, type PeerPdu, type PeerSession } from "../support/smpp.js";
import { closeBenches, openBench } from "../support/smpp-bench.js";

afterEach(closeBenches);

const withhold = () => {};

/** Two binds of one sender, and the peer's end of each. */
async function openTwo(change: Partial<SmppOptions> = {}) {
  const receipts: Receipt[] = [];
  const bench = await openBench({ bindType: "transmitter+receiver", onReceipt: (receipt) => void receipts.push(receipt), ...change });
  const ends = new Map<string, PeerSession>();
  for (const command of ["bind_transmitter", "bind_receiver"]) {
    bench.peer.on(command, (pdu, to) => {
      ends.set(command, to);
      to.send(pdu.response());
    });
  }
  return { ...bench, receipts, end: (role: "transmitter" | "receiver") => ends.get(`bind_${role}`) as PeerSession };
}

const deliver = (to: PeerSession, id: string) =>
  new Promise<PeerPdu>((resolve) => to.deliver_sm({ esm_class: 4, short_message: `id:${id} stat:DELIVRD` }, resolve));

const binds = (peer: Peer) => peer.seen.map(({ command }) => command).filter((command) => command.startsWith("bind_"));

describe('bindType "transmitter+receiver": two binds that behave as one sender', () => {
  it("messages go out on one bind, and receipts come in on the other", async () => {
    const { peer, sender, send, end, receipts } = await openTwo();
    expect(await send()).toMatchObject({ outcome: "accepted", messageId: "m1" });
    await sender.connect();
    expect(binds(peer).sort()).toEqual(["bind_receiver", "bind_transmitter"]);
    expect((await deliver(end("receiver"), "m1")).command_status).toBe(0);
    expect(receipts).toMatchObject([{ messageId: "m1", status: "delivered" }]);
    expect(sender.status()).toMatchObject({ state: "bound", receiver: { state: "bound" } });
  });

  it("without `onReceipt` there is only the transmitter bind", async () => {
    const { peer, sender, send } = await openBench({ bindType: "transmitter+receiver" });
    expect(await send()).toMatchObject({ outcome: "accepted" });
    expect(binds(peer)).toEqual(["bind_transmitter"]);
    expect(sender.status()).not.toHaveProperty("receiver");
  });

  it("connect waits for both binds, and rejects if one is rejected", async () => {
    const { peer, sender, clock, send } = await openTwo();
    peer.on("bind_receiver", (pdu, to) => void to.send(pdu.response({ command_status: 0x0e })));
    await expect(sender.connect()).rejects.toThrow("the peer rejected the bind as receiver with ESME_RINVPASWD");
    await eventually(() => expect(sender.status().state).toBe("bound"));
    expect(sender.status()).toMatchObject({ state: "bound", receiver: { state: "refused", error: expect.stringContaining("ESME_RINVPASWD") } });
    expect(await send()).toMatchObject({ outcome: "accepted" });
    peer.on("bind_receiver", (pdu, to) => void to.send(pdu.response()));
    clock.advance(1_000);
    await eventually(() => expect(sender.status().receiver).toEqual({ state: "bound" }));
  });

  it.each(["receiver", "transmitter"] as const)("a lost %s is bound again on its own, and the other bind stays", async (role) => {
    const { peer, sender, clock, send, end, receipts } = await openTwo();
    await sender.connect();
    const state = () => (role === "receiver" ? sender.status().receiver?.state : sender.status().state);
    end(role).destroy();
    await eventually(() => expect(state()).toBe("waiting"));
    if (role === "receiver") expect(await send()).toMatchObject({ outcome: "accepted" });
    else expect((await deliver(end("receiver"), "m1")).command_status).toBe(0);
    clock.advance(1_000);
    await eventually(() => expect(state()).toBe("bound"));
    expect(binds(peer).sort()).toEqual(["bind_receiver", "bind_transmitter", `bind_${role}`].sort());
    expect(await send()).toMatchObject({ outcome: "accepted" });
    expect((await deliver(end("receiver"), "m2")).command_status).toBe(0);
    expect(receipts.at(-1)).toMatchObject({ messageId: "m2" });
  });

  it("each bind gets its own enquire_link", async () => {
    const { peer, sender, clock } = await openTwo();
    await sender.connect();
    clock.advance(30_000);
    await eventually(() => expect(peer.of("enquire_link")).toHaveLength(2));
  });

  it("a rejected transmitter bind rejects messages at once, whatever the receiver does", async () => {
    const { peer, send } = await openTwo();
    peer.on("bind_transmitter", (pdu, to) => void to.send(pdu.response({ command_status: 0x0e })));
    expect(await send()).toEqual({ outcome: "rejected", reason: expect.stringContaining("as transmitter with ESME_RINVPASWD") });
  });

  it("close waits for responses on one bind and receipts on the other, then unbinds both", async () => {
    let finish = () => {};
    const { peer, sender, send, end } = await openTwo({ onReceipt: () => new Promise<void>((resolve) => (finish = resolve)) });
    await sender.connect();
    const held: PeerPdu[] = [];
    peer.on("submit_sm", (pdu) => void held.push(pdu));
    const outcome = send();
    await eventually(() => expect(held).toHaveLength(1));
    const acknowledged = deliver(end("receiver"), "m1");
    await eventually(() => expect(sender.status().receipts).toBe(1));
    const closed = sender.close();
    end("transmitter").send((held[0] as PeerPdu).response({ message_id: "last" }));
    expect(await outcome).toMatchObject({ outcome: "accepted", messageId: "last" });
    await new Promise<PeerPdu>((resolve) => end("transmitter").enquire_link({}, resolve));
    expect(peer.of("unbind")).toHaveLength(0);
    finish();
    expect((await acknowledged).command_status).toBe(0);
    await closed;
    expect(peer.of("unbind")).toHaveLength(2);
    expect(sender.status()).toMatchObject({ state: "closed", receiver: { state: "closed" } });
    await eventually(() => expect(peer.sessions).toHaveLength(0));
  });

  it("a flood of receipts blocks only its own connection, and submits are answered at once", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const { sender, send, end } = await openTwo({ onReceipt: () => gate });
    await sender.connect();
    let acknowledged = 0;
    for (let receipt = 0; receipt < 5_000; receipt += 1)
      end("receiver").deliver_sm({ esm_class: 4, short_message: `id:${receipt} stat:DELIVRD` }, () => void (acknowledged += 1));
    await eventually(() => expect(sender.status().receipts).toBeGreaterThan(1_000));
    expect(await send()).toMatchObject({ outcome: "accepted" });
    expect(acknowledged).toBe(0);
    open();
    await eventually(() => expect(acknowledged).toBe(5_000));
  });
});

describe("a message centre that does not support the bind type", () => {
  it.each([
    ["ESME_RINVCMDID", 0x03],
    ["ESME_RINVBNDSTS", 0x04],
    ["ESME_RBINDFAIL", 0x0d],
  ])("rejects a transceiver with %s: status, log and outcome name the option `bindType` and its fix", async (name, command_status) => {
    const { peer, sender, send, log } = await openBench();
    peer.on("bind_transceiver", (pdu, to) => void to.send(pdu.response({ command_status })));
    const said = expect.stringMatching(new RegExp(`rejected the bind as transceiver with ${name}.*bindType, for it may take "transmitter\\+receiver" alone`));
    expect(await send()).toEqual({ outcome: "rejected", reason: said });
    expect(sender.status()).toMatchObject({ state: "refused", error: said });
    expect(log).toEqual([{ level: "error", fields: expect.objectContaining({ reason: said, bind: "transceiver" }), message: expect.any(String) }]);
  });

  it.each([0x03, 0x00])("may reject a transceiver by generic_nack with status %i", async (status) => {
    const { peer, send } = await openBench();
    peer.on("bind_transceiver", (pdu, to) => {
      const nack = Buffer.from("00000010800000000000000000000000", "hex");
      nack.writeUInt32BE(status, 8);
      nack.writeUInt32BE(pdu.sequence_number, 12);
      to.socket.write(nack);
    });
    expect(await send()).toEqual({ outcome: "rejected", reason: expect.stringContaining("rejected the bind as transceiver") });
  });

  it("a rejected transmitter suggests the transceiver; a wrong password suggests no bind type", async () => {
    const { peer, send } = await openBench({ bindType: "transmitter+receiver" });
    peer.on("bind_transmitter", (pdu, to) => void to.send(pdu.response({ command_status: 0x0d })));
    expect(await send()).toMatchObject({ reason: expect.stringContaining('bindType, for it may take "transceiver" alone') });
    const other = await openBench({ password: "wrong" });
    expect(await other.send()).toMatchObject({ reason: expect.not.stringContaining("bindType") });
  });
});

it("a receiver bind that is never answered does not delay messages", async () => {
  const { peer, send, clock, sender } = await openTwo();
  peer.on("bind_receiver", withhold);
  expect(await send(aMessage())).toMatchObject({ outcome: "accepted" });
  clock.advance(10_000);
  expect(sender.status()).toMatchObject({ state: "bound", receiver: { state: "waiting", error: "no bind within 10 s" } });
});
