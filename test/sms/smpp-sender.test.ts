import { randomInt } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import type { SmppOptions } from "../../adapters/sms/smpp/index.js";
import type { Clock } from "../../src/ports/clock.js";
import type { Receipt } from "../../src/ports/receipts.js";
import { aMessage, eventually, type Peer, type PeerPdu, type PeerSession, password, stoppedClock, systemId, textOf } from "../support/smpp.js";
import { closeBenches, openBench, openPeer } from "../support/smpp-bench.js";

afterEach(closeBenches);

const spaceOf = (peer: Peer) => `smpp:${systemId}@127.0.0.1:${peer.port}`;
const session = (peer: Peer) => peer.sessions[0] as PeerSession;
const withhold = () => {};
const answer = (status: number) => (pdu: PeerPdu, to: PeerSession) => void to.send(pdu.response({ command_status: status }));

describe("bind and submit", () => {
  it("the first send connects, binds as a transceiver and returns the peer's message id", async () => {
    const { peer, sender, send } = await openBench({ systemType: "otp", serviceType: "CMT" });
    expect(sender.status()).toEqual({ state: "idle", queued: 0, outstanding: 0, window: 10, receipts: 0 });
    expect(await send()).toEqual({ outcome: "accepted", messageId: "m1" });
    expect(sender.status()).toEqual({ state: "bound", queued: 0, outstanding: 0, window: 10, receipts: 0 });
    expect(peer.of("bind_transceiver")).toHaveLength(1);
    expect(peer.seen[0]).toMatchObject({ system_id: systemId, password, system_type: "otp", interface_version: 0x34 });
    expect(peer.of("submit_sm")[0]).toMatchObject({
      service_type: "CMT",
      source_addr: "Acme",
      source_addr_ton: 5,
      source_addr_npi: 0,
      destination_addr: "14155552671",
      dest_addr_ton: 1,
      dest_addr_npi: 1,
      registered_delivery: 0,
      data_coding: 0,
    });
  });

  it.each([
    ["Your code is 482913", 0],
    ["Code: {482913} [€] ~^|\\ @£ÅΩ", 0],
    ["Ваш код: 482913", 8],
    ["認証コード 482913 😀", 8],
  ])("the peer reads the text: %s", async (text, coding) => {
    const { peer, send } = await openBench();
    await send(aMessage({ text }));
    expect(peer.of("submit_sm")[0]?.data_coding).toBe(coding);
    expect(textOf(peer.of("submit_sm")[0])).toBe(text);
  });

  it.each([
    [undefined, "", 0, 0],
    ["60777", "60777", 3, 0],
    ["+447400123456", "447400123456", 1, 1],
    [(message: { country?: string }) => (message.country === "US" ? "60777" : "Acme"), "60777", 3, 0],
    [{ US: "+15005550006", default: "Acme" }, "15005550006", 1, 1],
    [{ GB: "+447400123456", default: "Acme" }, "Acme", 5, 0],
  ])("source address, TON and NPI for from %j", async (from, address, ton, npi) => {
    const { peer, send } = await openBench({ from } as Partial<SmppOptions>);
    await send();
    expect(peer.of("submit_sm")[0]).toMatchObject({ source_addr: address, source_addr_ton: ton, source_addr_npi: npi });
  });

  it("uses the TON and NPI in the options", async () => {
    const { peer, send } = await openBench({ fromTon: 0, fromNpi: 9, destinationTon: 2, destinationNpi: 8 });
    await send();
    expect(peer.of("submit_sm")[0]).toMatchObject({ source_addr_ton: 0, source_addr_npi: 9, dest_addr_ton: 2, dest_addr_npi: 8 });
  });

  it("sends before the bind wait for it and share one connection", async () => {
    const { peer, send } = await openBench();
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => send()));
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(Array(5).fill("accepted"));
    expect(peer.of("bind_transceiver")).toHaveLength(1);
  });

  it.each([
    [0x0b, "ESME_RINVDSTADR (0x0000000B)"],
    [0x45, "ESME_RSUBMITFAIL (0x00000045)"],
    [0x08, "ESME_RSYSERR (0x00000008)"],
    [0x0400, "0x00000400"],
  ])("status %i gives `rejected` with the status in the reason", async (status, reason) => {
    const { peer, send } = await openBench();
    peer.on("submit_sm", answer(status));
    expect(await send()).toEqual({ outcome: "rejected", reason });
  });

  it("a response without an id gives `accepted` without a message id", async () => {
    const { peer, send } = await openBench();
    peer.on("submit_sm", (pdu, to) => void to.send(pdu.response()));
    expect(await send()).toEqual({ outcome: "accepted" });
  });

  it.each([
    [3, "ESME_RINVCMDID (0x00000003)"],
    [0, "0x00000000"],
  ])("generic_nack with status %i also gives `rejected`", async (status, reason) => {
    const { peer, send } = await openBench();
    peer.on("submit_sm", (pdu, to) => {
      const nack = Buffer.from("00000010800000000000000000000000", "hex");
      nack.writeUInt32BE(status, 8);
      nack.writeUInt32BE(pdu.sequence_number, 12);
      to.socket.write(nack);
    });
    expect(await send()).toEqual({ outcome: "rejected", reason });
  });

  it("the status ESME_RUNKNOWNERR gives `unknown`", async () => {
    const { peer, send } = await openBench();
    peer.on("submit_sm", answer(0xff));
    expect(await send()).toEqual({ outcome: "unknown", reason: "ESME_RUNKNOWNERR (0x000000FF)" });
  });

  it("a response with the wrong command gives `unknown`", async () => {
    const { peer, send } = await openBench();
    peer.on("submit_sm", (pdu, to) => {
      const strange = Buffer.from("00000010800000150000000000000000", "hex");
      strange.writeUInt32BE(pdu.sequence_number, 12);
      to.socket.write(strange);
    });
    expect(await send()).toMatchObject({ outcome: "unknown", reason: expect.stringContaining("wrong command") });
  });
});

describe("receipts", () => {
  const receiptText = "id:m1 sub:001 dlvrd:001 submit date:2611201200 done date:2611201201 stat:DELIVRD err:000 text:Your code is 4829";

  /** Sends a deliver_sm from the peer and returns the response. */
  const deliver = (peer: Peer, fields: Record<string, unknown>) =>
    new Promise<PeerPdu>((resolve) => session(peer).deliver_sm({ source_addr: "14155552671", destination_addr: "Acme", ...fields }, resolve));

  it.each([
    ["text", { esm_class: 4, short_message: receiptText }],
    ["parameters", { esm_class: 4, receipted_message_id: "m1", message_state: 2 }],
    ["both", { esm_class: 4, short_message: receiptText, receipted_message_id: "m1", message_state: 2 }],
  ])("a receipt from %s is requested, passed on and acknowledged", async (_, fields) => {
    const receipts: Receipt[] = [];
    const { peer, send } = await openBench({ onReceipt: (receipt) => void receipts.push(receipt) });
    const outcome = await send();
    expect(peer.of("submit_sm")[0]?.registered_delivery).toBe(1);
    expect((await deliver(peer, fields)).command_status).toBe(0);
    expect(receipts).toEqual([{ messageId: "m1", idSpace: spaceOf(peer), status: "delivered" }]);
    expect(outcome).toEqual({ outcome: "accepted", messageId: "m1", idSpace: spaceOf(peer) });
  });

  it("receipts are also read from data_sm, and a truncated data_sm gets ESME_RINVCMDLEN", async () => {
    const receipts: Receipt[] = [];
    const { peer, sender, send } = await openBench({ onReceipt: (receipt) => void receipts.push(receipt) });
    await send();
    const fields = { source_addr: "14155552671", destination_addr: "Acme", esm_class: 4 };
    const data = (more: Record<string, unknown>) => new Promise<PeerPdu>((resolve) => session(peer).data_sm({ ...fields, ...more }, resolve));
    expect(await data({ receipted_message_id: "m1", message_state: 2 })).toMatchObject({ command: "data_sm_resp", command_status: 0 });
    expect((await data({ message_payload: "id:m1 stat:UNDELIV err:034" })).command_status).toBe(0);
    expect((await data({ esm_class: 0, message_payload: receiptText })).command_status).toBe(0);
    expect(receipts).toEqual([
      { messageId: "m1", idSpace: spaceOf(peer), status: "delivered" },
      { messageId: "m1", idSpace: spaceOf(peer), status: "undeliverable", error: "UNDELIV 034" },
    ]);
    session(peer).socket.write(Buffer.from("0000001200000103000000000000000741ff", "hex"));
    await eventually(() => expect(peer.of("data_sm_resp").at(-1)).toMatchObject({ command_status: 2, sequence_number: 7 }));
    await sender.close();
  });

  it("a hexadecimal id and the same id in decimal match", async () => {
    const receipts: Receipt[] = [];
    const { peer, send } = await openBench({ onReceipt: (receipt) => void receipts.push(receipt), receiptIds: "decimal-to-hex" });
    peer.on("submit_sm", (pdu, to) => void to.send(pdu.response({ message_id: "00FF" })));
    const outcome = await send();
    await deliver(peer, { esm_class: 4, short_message: "id:255 stat:UNDELIV err:034" });
    expect(receipts).toEqual([{ messageId: "ff", idSpace: spaceOf(peer), status: "undeliverable", error: "UNDELIV 034" }]);
    expect(outcome).toEqual({ outcome: "accepted", messageId: "ff", idSpace: spaceOf(peer) });
  });

  it("ids match despite padding or different case", async () => {
    const receipts: Receipt[] = [];
    const { peer, send } = await openBench({ onReceipt: (receipt) => void receipts.push(receipt) });
    peer.on("submit_sm", (pdu, to) => void to.send(pdu.response({ message_id: "00000A1F" })));
    const outcome = await send();
    await deliver(peer, { esm_class: 4, short_message: "id:a1f stat:DELIVRD" });
    expect(outcome).toMatchObject({ messageId: receipts[0]?.messageId });
  });

  it("outcome and receipt name the space in which the id is unique: the account at this host, or the option `idSpace`", async () => {
    const receipts: Receipt[] = [];
    const onReceipt = (receipt: Receipt) => void receipts.push(receipt);
    const one = await openBench({ onReceipt });
    const other = await openBench({ onReceipt, idSpace: "acme-transactional" });
    expect(await one.send()).toEqual({ outcome: "accepted", messageId: "m1", idSpace: `smpp:${systemId}@127.0.0.1:${one.peer.port}` });
    expect(await other.send()).toEqual({ outcome: "accepted", messageId: "m1", idSpace: "acme-transactional" });
    await deliver(one.peer, { esm_class: 4, short_message: receiptText });
    await deliver(other.peer, { esm_class: 4, short_message: receiptText });
    expect(receipts.map(({ idSpace }) => idSpace)).toEqual([spaceOf(one.peer), "acme-transactional"]);
  });

  it("without `onReceipt` the outcome has no `idSpace`, because the id need not be stored", async () => {
    const { send } = await openBench({ idSpace: "acme-transactional" });
    expect(await send()).toEqual({ outcome: "accepted", messageId: "m1" });
  });

  it("the time of a receipt is read with the offset `receiptOffset`", async () => {
    const receipts: Receipt[] = [];
    const { peer, sender } = await openBench({ onReceipt: (receipt) => void receipts.push(receipt), receiptOffset: "+05:30" });
    await sender.connect();
    await deliver(peer, { esm_class: 4, short_message: receiptText });
    expect(receipts).toMatchObject([{ at: Date.UTC(2026, 10, 20, 6, 31) }]);
  });

  it("the acknowledgement waits for onReceipt", async () => {
    let finish = () => {};
    const { peer, sender } = await openBench({ onReceipt: () => new Promise<void>((resolve) => (finish = resolve)) });
    await sender.connect();
    const acknowledged = deliver(peer, { esm_class: 4, short_message: receiptText });
    const ping = await new Promise<PeerPdu>((resolve) => session(peer).enquire_link({}, resolve));
    expect(ping.command).toBe("enquire_link_resp");
    expect(peer.of("deliver_sm_resp")).toHaveLength(0);
    finish();
    expect((await acknowledged).command_status).toBe(0);
  });

  it("when onReceipt fails, the peer is asked to deliver again (ESME_RX_T_APPN) and the error is logged", async () => {
    const { peer, sender, log } = await openBench({ onReceipt: () => Promise.reject(new Error("the store is down")) });
    await sender.connect();
    expect((await deliver(peer, { esm_class: 4, short_message: receiptText })).command_status).toBe(0x64);
    expect(log.at(-1)).toMatchObject({ level: "error", fields: { messageId: "m1" } });
  });

  it("a message from a phone and a receipt without an id are acknowledged and dropped", async () => {
    const receipts: Receipt[] = [];
    const { peer, sender, log } = await openBench({ onReceipt: (receipt) => void receipts.push(receipt) });
    await sender.connect();
    expect((await deliver(peer, { esm_class: 0, short_message: receiptText })).command_status).toBe(0);
    expect((await deliver(peer, { esm_class: 4, short_message: "stat:DELIVRD" })).command_status).toBe(0);
    expect(receipts).toEqual([]);
    expect(log.filter(({ level }) => level === "warn")).toHaveLength(1);
  });

  it("a truncated deliver_sm gets ESME_RINVCMDLEN, and the connection stays open", async () => {
    const { peer, sender, send } = await openBench({ onReceipt: () => {} });
    await sender.connect();
    session(peer).socket.write(Buffer.from("0000001200000005000000000000000741ff", "hex"));
    await eventually(() => expect(peer.of("deliver_sm_resp")[0]).toMatchObject({ command_status: 2, sequence_number: 7 }));
    expect(await send()).toMatchObject({ outcome: "accepted" });
  });

  it("receipts before the bind (ESME_RINVBNDSTS) and after our unbind (ESME_RX_T_APPN) are not accepted", async () => {
    const receipts: Receipt[] = [];
    const { peer, sender, clock } = await openBench({ onReceipt: (receipt) => void receipts.push(receipt) });
    const fields = { esm_class: 4, short_message: receiptText };
    peer.on("bind_transceiver", (pdu, to) => {
      to.deliver_sm(fields, () => {});
      to.send(pdu.response());
    });
    await sender.connect();
    await eventually(() => expect(peer.of("deliver_sm_resp")[0]?.command_status).toBe(4));
    peer.on("unbind", (_, to) => void to.deliver_sm(fields, () => {}));
    const closed = sender.close();
    await eventually(() => expect(peer.of("deliver_sm_resp")[1]?.command_status).toBe(0x64));
    clock.advance(5_000);
    await closed;
    expect(receipts).toEqual([]);
  });
});

describe("enquire_link and unbind", () => {
  it("responds to the peer's enquire_link", async () => {
    const { peer, sender } = await openBench();
    await sender.connect();
    const pong = await new Promise<PeerPdu>((resolve) => session(peer).enquire_link({}, resolve));
    expect(pong).toMatchObject({ command: "enquire_link_resp", command_status: 0 });
  });

  it("sends enquire_link after every 30 s of silence, and stays bound while it is answered", async () => {
    const { peer, sender, clock } = await openBench();
    await sender.connect();
    clock.advance(29_999);
    clock.advance(1);
    await eventually(() => expect(peer.of("enquire_link")).toHaveLength(1));
    // After this round trip the client has read the response to its probe, so it can send the next one.
    const pong = await new Promise<PeerPdu>((resolve) => session(peer).enquire_link({}, resolve));
    expect(pong.command_status).toBe(0);
    clock.advance(30_000);
    await eventually(() => expect(peer.of("enquire_link")).toHaveLength(2));
    expect(sender.status().state).toBe("bound");
  });

  it("traffic from the peer postpones enquire_link", async () => {
    const { peer, sender, clock, send } = await openBench();
    await sender.connect();
    clock.advance(29_000);
    await send();
    clock.advance(29_999);
    await send();
    expect(peer.of("enquire_link")).toHaveLength(0);
  });

  it("without a response to enquire_link the connection is dropped and opened again", async () => {
    const { peer, sender, clock, send } = await openBench();
    peer.on("enquire_link", withhold);
    await sender.connect();
    clock.advance(30_000);
    clock.advance(10_000);
    expect(sender.status()).toMatchObject({ state: "waiting", error: expect.stringContaining("enquire_link") });
    clock.advance(1_000);
    expect(await send()).toMatchObject({ outcome: "accepted" });
    expect(peer.of("bind_transceiver")).toHaveLength(2);
  });

  it("responds to unbind, disconnects and binds again", async () => {
    const { peer, sender, clock, send } = await openBench();
    await sender.connect();
    const answered = await new Promise<PeerPdu>((resolve) => session(peer).unbind({}, resolve));
    expect(answered.command).toBe("unbind_resp");
    expect(sender.status()).toMatchObject({ state: "waiting", error: "the peer unbound" });
    await eventually(() => expect(peer.sessions).toHaveLength(0));
    clock.advance(1_000);
    expect(await send()).toMatchObject({ outcome: "accepted" });
  });

  it("alert_notification and outbind get no response", async () => {
    const { peer, sender } = await openBench();
    await sender.connect();
    session(peer).socket.write(Buffer.from("00000010000001020000000000000008000000100000000b0000000000000009", "hex"));
    await new Promise<PeerPdu>((resolve) => session(peer).enquire_link({}, resolve));
    expect(peer.seen.map(({ command }) => command)).toEqual(["bind_transceiver", "enquire_link_resp"]);
  });

  it("an unknown command gets generic_nack, and the connection stays open", async () => {
    const { peer, sender, send } = await openBench();
    await sender.connect();
    session(peer).socket.write(Buffer.from("00000010000001ff0000000000000009", "hex"));
    await eventually(() => expect(peer.of("generic_nack")[0]).toMatchObject({ command_status: 3, sequence_number: 9 }));
    expect(await send()).toMatchObject({ outcome: "accepted" });
  });
});

describe("wrong password", () => {
  it("connect rejects, status and log give the reason, sends are rejected at once, and the next bind waits for the pause", async () => {
    const { peer, sender, send, log, clock } = await openBench({ password: "wrong" });
    const reason = expect.stringContaining("ESME_RINVPASWD (0x0000000E): check the options systemId, password");
    await expect(sender.connect()).rejects.toThrow("ESME_RINVPASWD");
    expect(sender.status()).toMatchObject({ state: "refused", error: reason });
    expect(await send()).toEqual({ outcome: "rejected", reason });
    expect(await send()).toEqual({ outcome: "rejected", reason });
    expect(peer.of("bind_transceiver")).toHaveLength(1);
    expect(log).toEqual([{ level: "error", fields: expect.objectContaining({ reason }), message: expect.any(String) }]);
    expect(JSON.stringify(log)).not.toContain("wrong");
    clock.advance(1_000);
    await eventually(() => expect(peer.of("bind_transceiver")).toHaveLength(2));
  });

  it("sends that wait for the bind are rejected at once with the reason, not at their deadline", async () => {
    const { send } = await openBench({ password: "wrong" });
    const outcomes = await Promise.all([send(), send()]);
    expect(outcomes).toEqual(Array(2).fill({ outcome: "rejected", reason: expect.stringContaining("ESME_RINVPASWD") }));
  });

  it.each([
    ["ESME_RALYBND", 0x05, "does another process bind with the same systemId? The sender tries again by itself"],
    ["ESME_RTHROTTLED", 0x58, "the error is temporary, and the sender tries again by itself"],
  ])("after a temporary bind error, sends wait for the next bind, and the status blames no password: %s", async (name, command_status, advice) => {
    const { peer, send, sender, clock } = await openBench();
    let binds = 0;
    peer.on("bind_transceiver", (pdu, to) => void to.send(pdu.response({ command_status: ++binds === 1 ? command_status : 0 })));
    const outcome = send();
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    expect(sender.status().error).toMatch(new RegExp(`${name} .*: ${advice.replace("?", "\\?")}$`));
    clock.advance(1_000);
    expect(await outcome).toMatchObject({ outcome: "accepted" });
  });
});

describe("connections that fail", () => {
  it("a message goes out on the next connection if the first is cut before the bind", async () => {
    const { peer, send, sender, clock } = await openBench();
    const bind = (pdu: PeerPdu, to: PeerSession) => void to.send(pdu.response());
    peer.on("bind_transceiver", (_, to) => {
      peer.on("bind_transceiver", bind);
      to.destroy();
    });
    const outcome = send();
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    expect(sender.status().queued).toBe(1);
    clock.advance(1_000);
    expect(await outcome).toMatchObject({ outcome: "accepted" });
    expect(peer.of("submit_sm")).toHaveLength(1);
  });

  it("a connection cut after the submit gives `unknown`, and the message is not sent again", async () => {
    const { peer, send, sender, clock } = await openBench();
    peer.on("submit_sm", (_, to) => to.destroy());
    expect(await send()).toEqual({ outcome: "unknown", reason: expect.stringContaining("connection lost") });
    clock.advance(1_000);
    await sender.connect();
    expect(peer.of("submit_sm")).toHaveLength(1);
  });

  it("if nothing listens, a message is rejected shortly before its deadline, with the reason", async () => {
    const { peer, send, sender, clock } = await openBench();
    await peer.stop();
    const outcome = send();
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    clock.advance(4_900);
    expect(await outcome).toEqual({ outcome: "rejected", reason: expect.stringContaining("ECONNREFUSED") });
    await expect(sender.connect()).rejects.toThrow("ECONNREFUSED");
  });

  it("a message is rejected at once if the next connection attempt comes after its deadline", async () => {
    const { peer, send, sender } = await openBench({ rebind: { min: 60 } });
    await peer.stop();
    expect(await send()).toEqual({ outcome: "rejected", reason: expect.stringContaining("ECONNREFUSED") });
    expect(sender.status().state).toBe("waiting");
    expect(await send()).toEqual({ outcome: "rejected", reason: expect.stringContaining("ECONNREFUSED") });
  });

  it("an unanswered bind is given up after 10 s, and the message is rejected, because it was never written", async () => {
    const { peer, send, sender, clock } = await openBench();
    peer.on("bind_transceiver", withhold);
    const outcome = send();
    await eventually(() => expect(peer.of("bind_transceiver")).toHaveLength(1));
    clock.advance(4_900);
    expect(await outcome).toMatchObject({ outcome: "rejected" });
    clock.advance(5_100);
    expect(sender.status()).toMatchObject({ state: "waiting", error: expect.stringContaining("within 10 s") });
  });

  it("with another route left, the wait for the bind ends after `rejectAfter`", async () => {
    const { peer, sender, clock } = await openBench();
    peer.on("bind_transceiver", withhold);
    const outcome = sender.send(aMessage(), { ...clock.context(), rejectAfter: 1_000 });
    clock.advance(1_000);
    expect(await outcome).toMatchObject({ outcome: "rejected", reason: "no bind with the SMPP peer in time" });
  });

  it("the abort signal ends the wait for the bind at once", async () => {
    const { peer, sender, clock } = await openBench();
    peer.on("bind_transceiver", withhold);
    const abort = new AbortController();
    const outcome = sender.send(aMessage(), { signal: abort.signal, deadline: clock.now() + 5_000, timeLeft: 5_000 });
    abort.abort();
    expect(await outcome).toMatchObject({ outcome: "rejected" });
    expect(sender.status().queued).toBe(0);
  });

  it("the pause doubles from rebind.min to rebind.max, minus up to half at random, and a bind that lasts rebind.max resets it", async () => {
    const { peer, sender, clock, log } = await openBench({ rebind: { min: 1, max: 8 } });
    peer.on("bind_transceiver", (_, to) => to.destroy());
    await expect(sender.connect()).rejects.toThrow();
    for (const longest of [1_000, 2_000, 4_000, 8_000, 8_000]) {
      const pause = log.at(-1)?.fields["retryInMs"] as number;
      expect(pause).toBeGreaterThanOrEqual(longest / 2);
      expect(pause).toBeLessThanOrEqual(longest);
      const lines = log.length;
      clock.advance(pause + 1);
      await eventually(() => expect(log.length).toBe(lines + 1));
    }
    peer.on("bind_transceiver", (pdu, to) => void to.send(pdu.response()));
    await sender.connect();
    session(peer).destroy();
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    expect(log.at(-1)?.fields["retryInMs"]).toBeGreaterThanOrEqual(4_000);
    expect(log.at(-1)?.fields["reason"]).toMatch(/it was bound for 0 ms only: does another process bind with the same systemId\?$/);
    await sender.connect();
    clock.advance(8_000);
    session(peer).destroy();
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    expect(log.at(-1)?.fields["retryInMs"]).toBeLessThanOrEqual(1_000);
  });

  it("binds again after the peer restarts, without waiting for a send, and sends again", async () => {
    const { peer, send, sender, clock } = await openBench();
    expect(await send()).toMatchObject({ outcome: "accepted" });
    await peer.stop();
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    const again = await openPeer({ port: peer.port });
    clock.advance(1_000);
    await eventually(() => expect(sender.status()).toEqual({ state: "bound", queued: 0, outstanding: 0, window: 10, receipts: 0 }));
    expect(await send()).toMatchObject({ outcome: "accepted" });
    expect(again.of("submit_sm")).toHaveLength(1);
  });
});

describe("missing responses", () => {
  it("a message without a response is unknown at its deadline, and takes up the window until responseTimeout", async () => {
    const { peer, send, sender, clock } = await openBench({ window: 1 });
    peer.on("submit_sm", withhold);
    const first = send();
    await eventually(() => expect(peer.of("submit_sm")).toHaveLength(1));
    clock.advance(5_000);
    expect(await first).toEqual({ outcome: "unknown", reason: expect.stringContaining("deadline") });
    expect(sender.status().outstanding).toBe(1);

    const second = send(aMessage(), 1_000);
    clock.advance(900);
    expect(await second).toEqual({ outcome: "rejected", reason: expect.stringContaining("no room") });
    expect(peer.of("submit_sm")).toHaveLength(1);

    clock.advance(4_100);
    expect(sender.status().outstanding).toBe(0);
  });

  it("a message without a response within responseTimeout is unknown, and the peer gets an enquire_link", async () => {
    const { peer, send, clock } = await openBench({ responseTimeout: 2 });
    peer.on("submit_sm", withhold);
    const outcome = send();
    await eventually(() => expect(peer.of("submit_sm")).toHaveLength(1));
    clock.advance(2_000);
    expect(await outcome).toEqual({ outcome: "unknown", reason: "no response within 2 s" });
    await eventually(() => expect(peer.of("enquire_link")).toHaveLength(1));
  });

  it("a late response is not taken for the response to another message", async () => {
    const { peer, send, clock } = await openBench();
    const held: PeerPdu[] = [];
    peer.on("submit_sm", (pdu) => void held.push(pdu));
    const first = send();
    await eventually(() => expect(held).toHaveLength(1));
    clock.advance(10_000);
    expect(await first).toMatchObject({ outcome: "unknown" });
    peer.on("submit_sm", (pdu, to) => {
      to.send((held[0] as PeerPdu).response({ message_id: "late" }));
      to.send(pdu.response({ message_id: "own" }));
    });
    expect(await send()).toEqual({ outcome: "accepted", messageId: "own" });
  });
});

describe("throttling", () => {
  it.each([
    ["ESME_RTHROTTLED", 0x58],
    ["ESME_RMSGQFUL", 0x14],
  ])("%s rejects the message, halves the window and delays the next messages for the pause", async (name, status) => {
    const { peer, send, sender, clock, log } = await openBench();
    peer.on("submit_sm", answer(status));
    expect(await send()).toEqual({ outcome: "rejected", reason: expect.stringContaining(name) });
    expect(sender.status().window).toBe(5);
    expect(log.at(-1)).toMatchObject({ level: "warn", fields: { window: 5 } });

    peer.on("submit_sm", (pdu, to) => void to.send(pdu.response({ message_id: "x" })));
    const next = send();
    expect(sender.status()).toMatchObject({ queued: 1, outstanding: 0 });
    clock.advance(999);
    expect(sender.status().queued).toBe(1);
    clock.advance(1);
    expect(await next).toMatchObject({ outcome: "accepted" });
    expect(peer.of("submit_sm")).toHaveLength(2);
  });

  it("a message whose deadline falls within the pause is rejected with the reason", async () => {
    const { peer, send, clock } = await openBench({ throttlePause: 10 });
    peer.on("submit_sm", answer(0x58));
    await send();
    const next = send();
    clock.advance(4_900);
    expect(await next).toEqual({ outcome: "rejected", reason: "the SMPP peer throttles" });
  });

  it("a burst of throttled messages halves the window once, and accepted messages open it again", async () => {
    const { peer, send, sender, clock } = await openBench({ window: 4 });
    peer.on("submit_sm", answer(0x58));
    await Promise.all([send(), send(), send(), send()]);
    expect(sender.status().window).toBe(2);
    clock.advance(1_000);
    peer.on("submit_sm", (pdu, to) => void to.send(pdu.response({ message_id: "x" })));
    await send();
    expect(sender.status().window).toBe(2);
    await send();
    expect(sender.status().window).toBe(3);
    for (let sent = 0; sent < 5; sent += 1) await send();
    expect(sender.status().window).toBe(4);
  });

  it("the window never falls below one", async () => {
    const { peer, send, sender, clock } = await openBench({ window: 2 });
    peer.on("submit_sm", answer(0x58));
    for (let round = 0; round < 3; round += 1) {
      expect(await send()).toMatchObject({ outcome: "rejected" });
      clock.advance(1_000);
    }
    expect(sender.status().window).toBe(1);
  });
});

describe("framing of the byte stream", () => {
  it("half a PDU is not read until the other half arrives", async () => {
    const { peer, send, sender } = await openBench();
    let rest: Buffer | undefined;
    peer.on("submit_sm", (pdu, to) => {
      const whole = pdu.response({ message_id: "in two" }).toBuffer();
      rest = whole.subarray(9);
      to.socket.write(whole.subarray(0, 9));
      peer.on("submit_sm", (_, again) => {
        // By now the client has read the first half: it wrote this submit later.
        again.socket.write(rest as Buffer);
      });
    });
    const first = send();
    await eventually(() => expect(rest).toBeDefined());
    void send();
    expect(await first).toEqual({ outcome: "accepted", messageId: "in two" });
    expect(sender.status().state).toBe("bound");
  });

  it("several PDUs in one chunk are all read", async () => {
    const { peer, send } = await openBench();
    const held: PeerPdu[] = [];
    peer.on("submit_sm", (pdu, to) => {
      held.push(pdu);
      if (held.length === 3) to.socket.write(Buffer.concat(held.map((one, index) => one.response({ message_id: `c${index}` }).toBuffer())));
    });
    expect(await Promise.all([send(), send(), send()])).toEqual(["c0", "c1", "c2"].map((messageId) => ({ outcome: "accepted", messageId })));
  });

  it.each([
    ["longer than any PDU", "ffffffff800000040000000000000002"],
    ["shorter than a header", "0000000f800000040000000000000002"],
    ["text of another protocol", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n").toString("hex")],
    ["generic_nack without a sequence number", "00000010800000000000000200000000"],
  ])("an invalid PDU gives `unknown`, and the connection is dropped and bound again (%s)", async (_, hex) => {
    const { peer, send, sender, clock } = await openBench();
    peer.on("submit_sm", (_pdu, to) => void to.socket.write(Buffer.from(hex, "hex")));
    expect(await send()).toMatchObject({ outcome: "unknown", reason: expect.stringContaining("connection lost") });
    expect(sender.status().state).toBe("waiting");
    peer.on("submit_sm", (pdu, to) => void to.send(pdu.response({ message_id: "after" })));
    clock.advance(1_000);
    expect(await send()).toEqual({ outcome: "accepted", messageId: "after" });
  });
});

describe("a thousand submits", () => {
  const numbers = Array.from({ length: 1_000 }, (_, index) => `+1415${String(5_550_000 + index)}`);

  it("never exceed the window, and each gets its own response", async () => {
    const { peer, send, sender } = await openBench();
    const open: PeerPdu[] = [];
    let most = 0;
    peer.on("submit_sm", (pdu, to) => {
      open.push(pdu);
      most = Math.max(most, open.length);
      setImmediate(() => {
        const [one] = open.splice(randomInt(open.length), 1);
        to.send((one as PeerPdu).response({ message_id: one?.destination_addr }));
      });
    });
    const outcomes = await Promise.all(numbers.map((to) => send(aMessage({ to }))));
    expect(outcomes).toEqual(numbers.map((to) => ({ outcome: "accepted", messageId: to.slice(1) })));
    expect(most).toBe(10);
    expect(sender.status()).toMatchObject({ queued: 0, outstanding: 0 });
  });

  it("each get their own response, all in flight in a window of a thousand and answered in reverse", async () => {
    const { peer, send } = await openBench({ window: 1_000 });
    const open: PeerPdu[] = [];
    peer.on("submit_sm", (pdu, to) => {
      open.push(pdu);
      if (open.length === numbers.length) for (const one of open.reverse()) to.send(one.response({ message_id: one.destination_addr }));
    });
    const outcomes = await Promise.all(numbers.map((to) => send(aMessage({ to }))));
    expect(outcomes).toEqual(numbers.map((to) => ({ outcome: "accepted", messageId: to.slice(1) })));
  });

  it("cut in the middle: written messages are unknown, the others go out on the next connection, and none is sent twice", async () => {
    const { peer, send, sender, clock } = await openBench();
    peer.on("submit_sm", (pdu, to) => {
      if (peer.of("submit_sm").length === 500) to.destroy();
      else to.send(pdu.response({ message_id: pdu.destination_addr }));
    });
    const outcomes = Promise.all(numbers.map((to) => send(aMessage({ to }))));
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    clock.advance(1_000);
    const counts = { accepted: 0, unknown: 0, rejected: 0 };
    for (const { outcome } of await outcomes) counts[outcome] += 1;
    expect(counts.rejected).toBe(0);
    expect(counts.unknown).toBeGreaterThan(0);
    expect(counts.unknown).toBeLessThanOrEqual(10);
    const destinations = peer.of("submit_sm").map((pdu) => pdu.destination_addr);
    expect(new Set(destinations).size).toBe(destinations.length);
  });
});

describe("close", () => {
  it("waits for responses, queued messages and receipts in progress, then unbinds", async () => {
    let finish = () => {};
    const { peer, send, sender } = await openBench({ window: 1, onReceipt: () => new Promise<void>((resolve) => (finish = resolve)) });
    await sender.connect();
    const held: PeerPdu[] = [];
    peer.on("submit_sm", (pdu) => void held.push(pdu));
    let acknowledged: number | undefined;
    session(peer).deliver_sm({ esm_class: 4, short_message: "id:1 stat:DELIVRD" }, (pdu) => (acknowledged = pdu.command_status));
    const sends = [send(), send()];
    await eventually(() => expect(held).toHaveLength(1));
    const closed = sender.close();
    /** The number of unbinds, after a round trip. */
    const goodbyes = async () => {
      await new Promise<PeerPdu>((resolve) => session(peer).enquire_link({}, resolve));
      return peer.of("unbind").length;
    };
    expect(await send()).toEqual({ outcome: "rejected", reason: "the sender is closed" });

    session(peer).send((held[0] as PeerPdu).response({ message_id: "a" }));
    await eventually(() => expect(held).toHaveLength(2));
    expect(await goodbyes()).toBe(0);
    session(peer).send((held[1] as PeerPdu).response({ message_id: "b" }));
    expect(await Promise.all(sends)).toEqual([
      { outcome: "accepted", messageId: "a", idSpace: spaceOf(peer) },
      { outcome: "accepted", messageId: "b", idSpace: spaceOf(peer) },
    ]);
    expect(await goodbyes()).toBe(0);
    finish();
    await closed;
    expect(peer.of("unbind")).toHaveLength(1);
    expect(acknowledged).toBe(0);
    expect(sender.status().state).toBe("closed");
    await eventually(() => expect(peer.sessions).toHaveLength(0));
    await sender.close();
  });

  it("does not unbind while a response is outstanding", async () => {
    const { peer, send, sender } = await openBench();
    const held: PeerPdu[] = [];
    peer.on("submit_sm", (pdu) => void held.push(pdu));
    const outcome = send();
    await eventually(() => expect(held).toHaveLength(1));
    const closed = sender.close();
    await new Promise<PeerPdu>((resolve) => session(peer).enquire_link({}, resolve));
    expect(peer.of("unbind")).toHaveLength(0);
    session(peer).send((held[0] as PeerPdu).response({ message_id: "last" }));
    expect(await outcome).toEqual({ outcome: "accepted", messageId: "last" });
    await closed;
  });

  it("waits for messages that are delayed because the peer throttles", async () => {
    const { peer, send, sender, clock } = await openBench({ window: 1 });
    peer.on("submit_sm", (pdu, to) => {
      peer.on("submit_sm", (next, again) => void again.send(next.response({ message_id: "second" })));
      answer(0x58)(pdu, to);
    });
    const sends = [send(), send()];
    expect(await sends[0]).toMatchObject({ outcome: "rejected" });
    const closed = sender.close();
    await new Promise<PeerPdu>((resolve) => session(peer).enquire_link({}, resolve));
    clock.advance(1_000);
    expect(await sends[1]).toEqual({ outcome: "accepted", messageId: "second" });
    await closed;
  });

  it("gives up after drainTimeout: written messages are unknown, the others rejected", async () => {
    const { peer, send, sender, clock } = await openBench({ window: 1, onReceipt: () => new Promise(() => {}) });
    await sender.connect();
    peer.on("submit_sm", withhold);
    session(peer).deliver_sm({ esm_class: 4, short_message: "id:1 stat:DELIVRD" }, () => {});
    const sends = [send(aMessage(), 60_000), send(aMessage(), 60_000)];
    await eventually(() => expect(peer.of("submit_sm")).toHaveLength(1));
    const closed = sender.close();
    clock.advance(5_000);
    await closed;
    expect(await Promise.all(sends)).toEqual([
      { outcome: "unknown", reason: expect.stringContaining("closed before the response arrived") },
      { outcome: "rejected", reason: "the sender is closed" },
    ]);
    expect(sender.status().state).toBe("closed");
  });

  it("rejects messages at once while not bound, and makes no further connection attempt", async () => {
    const { peer, send, sender, clock } = await openBench();
    peer.on("bind_transceiver", (_, to) => to.destroy());
    const outcome = send();
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    await sender.close();
    expect(await outcome).toEqual({ outcome: "rejected", reason: "the sender is closed" });
    clock.advance(60_000);
    expect(sender.status().state).toBe("closed");
    await expect(sender.connect()).rejects.toThrow("closed");
  });

  it("leaves no timer behind, however the connection ended", async () => {
    const clock = stoppedClock();
    const timers = new Set<object>();
    const counting: Clock = {
      now: clock.now,
      after(ms, run) {
        const timer = {};
        timers.add(timer);
        const cancel = clock.after(ms, () => {
          timers.delete(timer);
          run();
        });
        return () => {
          timers.delete(timer);
          cancel();
        };
      },
    };
    const { peer, sender } = await openBench({ clock: counting });
    await sender.connect();
    session(peer).destroy();
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    await sender.connect();
    expect(await sender.send(aMessage(), { signal: new AbortController().signal, deadline: clock.now() + 5_000, timeLeft: 5_000 })).toMatchObject({
      outcome: "accepted",
    });
    await sender.close();
    await eventually(() => expect(timers.size).toBe(0));
  });

  it("rejects messages and connect while connecting", async () => {
    const { peer, send, sender } = await openBench();
    peer.on("bind_transceiver", withhold);
    const outcome = send();
    const connected = sender.connect();
    await sender.close();
    expect(await outcome).toEqual({ outcome: "rejected", reason: "the sender is closed" });
    await expect(connected).rejects.toThrow("closed");
  });

  it("disconnects after drainTimeout if the peer does not answer unbind", async () => {
    const { peer, sender, clock } = await openBench();
    peer.on("unbind", withhold);
    await sender.connect();
    const closed = sender.close();
    await eventually(() => expect(peer.of("unbind")).toHaveLength(1));
    clock.advance(5_000);
    await closed;
    await eventually(() => expect(peer.sessions).toHaveLength(0));
  });

  it("does not reopen a connection that is lost while draining", async () => {
    const { peer, send, sender, clock } = await openBench({ window: 1 });
    peer.on("submit_sm", withhold);
    const sends = [send(), send()];
    await eventually(() => expect(peer.of("submit_sm")).toHaveLength(1));
    const closed = sender.close();
    session(peer).destroy();
    await closed;
    expect((await Promise.all(sends)).map(({ outcome }) => outcome)).toEqual(["unknown", "rejected"]);
    clock.advance(60_000);
    expect(sender.status().state).toBe("closed");
    expect(peer.of("bind_transceiver")).toHaveLength(1);
  });
});

it("no outcome, status or log contains the code or the number", async () => {
  const { peer, send, sender, clock, log } = await openBench();
  const outcomes = [];
  peer.on("submit_sm", answer(0x0b));
  outcomes.push(await send());
  peer.on("submit_sm", (_, to) => to.destroy());
  outcomes.push(await send());
  const last = send();
  clock.advance(400);
  outcomes.push(sender.status());
  clock.advance(4_600);
  outcomes.push(await last, sender.status(), log);
  const said = JSON.stringify(outcomes);
  expect(said).toContain("connection lost");
  expect(said).not.toMatch(/482913|4155552671/);
});
