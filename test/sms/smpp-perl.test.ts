import { afterEach, describe, expect, it } from "vitest";
import { type SmppOptions, type SmppSender, smppSender } from "../../adapters/sms/smpp/index.js";
import type { Receipt } from "../../src/ports/receipts.js";
import { aMessage, eventually, password, stoppedClock, systemId } from "../support/smpp.js";
import { netSmppIsInstalled, type PerlPdu, type PerlPeer, startPerlPeer } from "../support/smpp-perl.js";

const peers: PerlPeer[] = [];
const senders: SmppSender[] = [];

afterEach(async () => {
  for (const sender of senders.splice(0)) await sender.close();
  for (const peer of peers.splice(0)) await peer.stop();
});

async function setUp(change: Partial<SmppOptions> = {}) {
  const peer = await startPerlPeer(password);
  peers.push(peer);
  const clock = stoppedClock();
  const receipts: Receipt[] = [];
  const onReceipt = (receipt: Receipt) => void receipts.push(receipt);
  const sender = smppSender({ host: "127.0.0.1", port: peer.port, systemId, password, from: "Acme", clock, onReceipt, ...change });
  senders.push(sender);
  return { peer, clock, receipts, sender, send: (to = "+14155552677", text = "Your code is 482913") => sender.send(aMessage({ to, text }), clock.context()) };
}

/** The submits, once `count` have arrived: the peer reports them on another stream than its responses. */
async function submits(peer: PerlPeer, count: number): Promise<readonly PerlPdu[]> {
  await eventually(() => expect(peer.of("submit_sm")).toHaveLength(count));
  return peer.of("submit_sm");
}

const ascii = (hex: string | number | undefined) => Buffer.from(String(hex), "hex").toString("latin1");

describe.runIf(netSmppIsInstalled("SMPP against Perl's Net::SMPP"))("against Perl's Net::SMPP", () => {
  it("binds and responds to the peer's enquire_link", async () => {
    const { peer, sender } = await setUp();
    await sender.connect();
    await eventually(() => expect(peer.of("enquire_link_resp")).toHaveLength(1));
    const bind = peer.of("bind_transceiver")[0] as PerlPdu;
    expect([ascii(bind["system_id"]), ascii(bind["password"]), bind["interface_version"]]).toEqual([systemId, password, 0x34]);
  });

  it("sends a text in the default alphabet, octet for octet", async () => {
    const { peer, send } = await setUp();
    expect(await send(undefined, "Code {482913} @ £5 €")).toMatchObject({ outcome: "accepted", messageId: "perl-1" });
    const [submit] = await submits(peer, 1);
    expect(submit).toMatchObject({
      source_addr: Buffer.from("Acme").toString("hex"),
      source_addr_ton: 5,
      source_addr_npi: 0,
      destination_addr: Buffer.from("14155552677").toString("hex"),
      dest_addr_ton: 1,
      dest_addr_npi: 1,
      registered_delivery: 1,
      data_coding: 0,
    });
    expect(submit?.["short_message"]).toBe(`${Buffer.from("Code ").toString("hex")}1b28${Buffer.from("482913").toString("hex")}1b29200020013520${"1b65"}`);
  });

  it("sends a text in UCS-2", async () => {
    const { peer, send } = await setUp();
    await send(undefined, "Код 482913");
    const [submit] = await submits(peer, 1);
    expect(submit?.["data_coding"]).toBe(8);
    expect(Buffer.from(String(submit?.["short_message"]), "hex").swap16().toString("utf16le")).toBe("Код 482913");
  });

  it("sends the code's validity and the ids of a registered text", async () => {
    const { peer, clock, sender } = await setUp();
    const registered = { entity: "1701158019811140068", template: "1707160000000000001" };
    await sender.send(aMessage({ to: "+14155552677", expires_at: clock.now() + 600_000, registered }), clock.context());
    const [submit] = await submits(peer, 1);
    expect([submit?.["validity_period"], submit?.[0x1400], submit?.[0x1401]].map(ascii)).toEqual(["000000001000000R", registered.entity, registered.template]);
  });

  it("sends a long text in parts with a header", async () => {
    const { peer, send } = await setUp({ longMessages: "udh" });
    expect(await send(undefined, "x".repeat(200))).toMatchObject({ outcome: "accepted", messageId: "perl-2" });
    const parts = await submits(peer, 2);
    expect(parts.map((part) => part["esm_class"])).toEqual([0x40, 0x40]);
    expect(parts.map((part) => ascii(part["short_message"]).slice(6).length)).toEqual([153, 47]);
  });

  it.each([
    ["its text", "+14155552675", "UNDELIV 034"],
    ["its parameters", "+14155552676", "UNDELIV"],
    ["both", "+14155552677", "UNDELIV 034"],
  ])("a receipt from %s is passed on and acknowledged", async (_, to, error) => {
    const { peer, send, receipts } = await setUp();
    await send(to);
    await eventually(() => expect(peer.of("deliver_sm_resp")[0]).toMatchObject({ status: 0 }));
    expect(receipts).toMatchObject([{ messageId: "perl-1", status: "undeliverable", error }]);
  });

  it.each([
    ["+14155550001", { outcome: "rejected", reason: "ESME_RINVDSTADR (0x0000000B)" }],
    ["+14155550002", { outcome: "rejected", reason: "ESME_RTHROTTLED (0x00000058)" }],
    ["+14155550004", { outcome: "unknown", reason: expect.stringContaining("connection lost") }],
  ])("a rejection, throttling or a cut connection gives the right outcome: %s", async (to, outcome) => {
    const { send } = await setUp();
    expect(await send(to)).toEqual(outcome);
  });

  it("a message without a response is unknown, and the peer gets an enquire_link", async () => {
    const { peer, send, sender, clock } = await setUp({ responseTimeout: 2 });
    const outcome = send("+14155550003");
    await eventually(() => expect(peer.of("submit_sm")).toHaveLength(1));
    clock.advance(2_000);
    expect(await outcome).toMatchObject({ outcome: "unknown" });
    await eventually(() => expect(peer.of("enquire_link")).toHaveLength(1));
    expect(sender.status().state).toBe("bound");
  });

  it("a wrong password rejects connect and the message", async () => {
    const { sender, send } = await setUp({ password: "wrong" });
    await expect(sender.connect()).rejects.toThrow("ESME_RINVPASWD");
    expect(await send()).toMatchObject({ outcome: "rejected", reason: expect.stringContaining("ESME_RINVPASWD") });
  });

  it("binds again after the peer is killed and restarted", async () => {
    const { peer, sender, send, clock } = await setUp();
    expect(await send()).toMatchObject({ outcome: "accepted" });
    await peer.stop();
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    peers.push(await startPerlPeer(password, peer.port));
    clock.advance(1_000);
    expect(await send()).toMatchObject({ outcome: "accepted" });
  });

  it("five hundred messages in a window of fifty each get an id and a receipt, and close unbinds", async () => {
    const { peer, sender, send, receipts } = await setUp({ window: 50 });
    const outcomes = await Promise.all(Array.from({ length: 500 }, (_, index) => send(`+1415555${1000 + index}`)));
    expect(new Set(outcomes.map((outcome) => (outcome.outcome === "accepted" ? outcome.messageId : outcome.outcome))).size).toBe(500);
    await eventually(() => expect(new Set(receipts.map(({ messageId }) => messageId)).size).toBe(500));
    await sender.close();
    await eventually(() => expect(peer.of("unbind")).toHaveLength(1));
  });
});
