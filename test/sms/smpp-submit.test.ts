import { afterEach, describe, expect, it } from "vitest";
import { validityPeriod } from "../../adapters/sms/smpp/submission.js";
import { aMessage, eventually, type PeerPdu, type PeerSession } from "../support/smpp.js";
import { closeBenches, openBench } from "../support/smpp-bench.js";

afterEach(closeBenches);

const withhold = () => {};
const minute = 60_000;

describe("`expires_at`: a code does not arrive after it expires", () => {
  it.each([
    [undefined, "000000001000000R\0"],
    ["relative", "000000001000000R\0"],
    ["absolute", "260101001000000+\0"],
  ] as const)("validityPeriod %s: the peer receives %j", async (validityPeriod, told) => {
    const { peer, clock, send } = await openBench(validityPeriod && { validityPeriod });
    expect(await send(aMessage({ expires_at: clock.now() + 10 * minute }))).toMatchObject({ outcome: "accepted" });
    expect(peer.octets()).toContain(told);
  });

  it("npm smpp reads an absolute period as the code's expiry", async () => {
    const { peer, clock, send } = await openBench({ validityPeriod: "absolute" });
    await send(aMessage({ expires_at: clock.now() + 10 * minute }));
    expect(peer.of("submit_sm")[0]?.validity_period).toEqual(new Date(clock.now() + 10 * minute));
  });

  it('validityPeriod "none": no period is sent, for message centres that reject it', async () => {
    const { peer, clock, send } = await openBench({ validityPeriod: "none" });
    await send(aMessage({ expires_at: clock.now() + 10 * minute }));
    expect(peer.of("submit_sm")[0]?.validity_period).toBe("");
  });

  it.each([
    [1_000, "000000000001000R"],
    [1_999, "000000000001000R"],
    [86_399_999, "000000235959000R"],
    [86_400_000, "000001000000000R"],
    [90 * 86_400_000, "000030000000000R"],
  ])("a relative period has whole seconds, rounded down, up to 30 days: %i ms", (left, told) => {
    expect(validityPeriod("relative", left, 0)).toBe(told);
  });

  it("the period is the time left when the message is written, not when it was queued", async () => {
    const { peer, clock, send } = await openBench({ window: 1 });
    const held: PeerPdu[] = [];
    peer.on("submit_sm", (pdu) => void held.push(pdu));
    const first = send();
    await eventually(() => expect(held).toHaveLength(1));
    const second = send(aMessage({ expires_at: clock.now() + 10 * minute }));
    clock.advance(3_000);
    (peer.sessions[0] as PeerSession).send((held[0] as PeerPdu).response({ message_id: "a" }));
    await first;
    await eventually(() => expect(held).toHaveLength(2));
    (peer.sessions[0] as PeerSession).send((held[1] as PeerPdu).response({ message_id: "b" }));
    await second;
    expect(peer.octets()).toContain("000000000957000R\0");
  });

  it.each([0, -1, 999])("a message with %i ms left is rejected and not sent", async (left) => {
    const { clock, sender, send } = await openBench();
    expect(await send(aMessage({ expires_at: clock.now() + left }))).toEqual({ outcome: "rejected", reason: "the code has ended" });
    expect(sender.status().state).toBe("idle");
  });

  it("a message whose code runs out while it waits is rejected and not sent", async () => {
    const { peer, clock, send, sender } = await openBench();
    peer.on("bind_transceiver", withhold);
    const outcome = send(aMessage({ expires_at: clock.now() + 3_000 }));
    await eventually(() => expect(peer.of("bind_transceiver")).toHaveLength(1));
    clock.advance(2_000);
    expect(await outcome).toMatchObject({ outcome: "rejected" });
    expect(sender.status().queued).toBe(0);
  });
});

describe("`registered` (India's DLT) and further parameters", () => {
  const registered = { entity: "1701158019811140068", template: "1707160000000000001" };

  it("the ids are sent as octet strings in 0x1400 and 0x1401", async () => {
    const { peer, send } = await openBench();
    await send(aMessage({ registered }));
    await send(aMessage({ registered: { template: "7" } }));
    await send();
    const [both, one, none] = peer.of("submit_sm");
    expect([both?.[0x1400], both?.[0x1401]]).toEqual([Buffer.from(registered.entity), Buffer.from(registered.template)]);
    expect([one?.[0x1400], one?.[0x1401]]).toEqual([undefined, Buffer.from("7")]);
    expect([none?.[0x1400], none?.[0x1401]]).toEqual([undefined, undefined]);
  });

  const list = [
    { tag: 0x1402, value: "a hash\0" },
    { tag: 0x1500, value: Uint8Array.of(1, 255) },
  ];
  it.each([
    ["a list", list],
    ["one for each country", { US: list, default: [] }],
    ["one for each country, the default", { GB: [], default: list }],
    ["a function", ({ country }: { country?: string | undefined }) => (country === "US" ? list : [])],
  ])("parameters: %s", async (_, parameters) => {
    const { peer, send } = await openBench({ parameters });
    expect(await send(aMessage({ registered }))).toMatchObject({ outcome: "accepted" });
    const [pdu] = peer.of("submit_sm");
    expect([pdu?.[0x1402], pdu?.[0x1500], pdu?.[0x1400]]).toEqual([Buffer.from("a hash\0"), Buffer.of(1, 255), Buffer.from(registered.entity)]);
  });

  it("a country without parameters gets none, and a function may return nothing", async () => {
    const { peer, send } = await openBench({ parameters: { IN: list } });
    const other = await openBench({ parameters: () => undefined });
    expect(await send()).toMatchObject({ outcome: "accepted" });
    expect(await other.send()).toMatchObject({ outcome: "accepted" });
    expect([peer.of("submit_sm")[0]?.[0x1402], other.peer.of("submit_sm")[0]?.[0x1402]]).toEqual([undefined, undefined]);
  });

  it("`parameters` override `registered`, for a message centre that needs the ids in another form", async () => {
    const { peer, send } = await openBench({ parameters: ({ registered: ids }) => [{ tag: 0x1400, value: `${ids?.entity}\0` }] });
    await send(aMessage({ registered }));
    expect(peer.of("submit_sm")[0]?.[0x1400]).toEqual(Buffer.from(`${registered.entity}\0`));
  });
});

describe("`alphabet`: what data_coding 0 means to the message centre", () => {
  const text = "482913 is your code\n\n@example.com #482913";

  it.each([
    [undefined, 0, "\0example.com"],
    ["gsm", 0, "\0example.com"],
    ["ascii", 0, "@example.com"],
    ["latin1", 0, "@example.com"],
  ] as const)("the WebOTP line in %s: data_coding %i, %j", async (alphabet, coding, octets) => {
    const { peer, send } = await openBench(alphabet && { alphabet });
    await send(aMessage({ text }));
    expect(peer.of("submit_sm")[0]?.data_coding).toBe(coding);
    expect(peer.octets()).toContain(octets);
  });

  it.each([
    ["ascii", 1, "Your code: {482913} @ $5"],
    ["latin1", 3, "Votre numéro : {482913} @ £5 à §"],
  ] as const)("an explicit `dataCoding` is sent with the alphabet's octets: %s, %i", async (alphabet, dataCoding, words) => {
    const { peer, send } = await openBench({ alphabet, dataCoding });
    await send(aMessage({ text: alphabet === "ascii" ? words.replace("@", "at") : words }));
    const [pdu] = peer.of("submit_sm");
    expect(pdu?.data_coding).toBe(dataCoding);
    expect(peer.octets()).toContain(alphabet === "ascii" ? "{482913} at $5" : words);
  });

  it("a text with a character outside the alphabet is sent in UCS-2, whatever the `dataCoding`", async () => {
    const { peer, send } = await openBench({ alphabet: "latin1", dataCoding: 3 });
    await send(aMessage({ text: "482913 €" }));
    expect(peer.of("submit_sm")[0]).toMatchObject({ data_coding: 8, short_message: { message: "482913 €" } });
  });
});

describe("`longMessages`", () => {
  const text = `Your code is 482913. ${"x".repeat(300)}`;

  it.each(["udh", "sar"] as const)("%s: sends one submit for each part, in order; the id and the receipt come from the last part", async (longMessages) => {
    const { peer, send } = await openBench({ longMessages, onReceipt: () => {} });
    expect(await send(aMessage({ text }))).toMatchObject({ outcome: "accepted", messageId: "m3" });
    const submits = peer.of("submit_sm");
    expect(submits.map((pdu) => pdu.short_message?.message).join("")).toBe(text);
    expect(submits.map((pdu) => pdu.registered_delivery)).toEqual([0, 0, 1]);
    if (longMessages === "sar") expect(submits.map((pdu) => [pdu.sar_total_segments, pdu.sar_segment_seqnum])).toEqual([1, 2, 3].map((part) => [3, part]));
    const references = submits.map((pdu) => (longMessages === "sar" ? pdu.sar_msg_ref_num : pdu.short_message?.udh?.[0]?.[2]));
    expect(new Set(references).size).toBe(1);
    await send(aMessage({ text }));
    const next = peer.of("submit_sm")[3];
    expect(longMessages === "sar" ? next?.sar_msg_ref_num : next?.short_message?.udh?.[0]?.[2]).not.toBe(references[0]);
  });

  it("payload, the default: sends the whole text in one submit", async () => {
    const { peer, send } = await openBench();
    expect(await send(aMessage({ text }))).toMatchObject({ outcome: "accepted", messageId: "m1" });
    expect(peer.of("submit_sm")[0]?.message_payload?.message).toBe(text);
  });

  /** A peer that answers each submit with the next of these statuses. */
  async function refusing(statuses: readonly number[]) {
    const bench = await openBench({ longMessages: "udh" });
    const left = [...statuses];
    bench.peer.on("submit_sm", (pdu, to) => void to.send(pdu.response({ command_status: left.shift() ?? 0, message_id: "x" })));
    return bench;
  }

  it("an error for the first part rejects the message, and no other part is sent", async () => {
    const { peer, send } = await refusing([0x0b]);
    expect(await send(aMessage({ text }))).toEqual({ outcome: "rejected", reason: "ESME_RINVDSTADR (0x0000000B)" });
    expect(peer.of("submit_sm")).toHaveLength(1);
  });

  it("an error for a later part gives `unknown`, because the first part was accepted, and no other part is sent", async () => {
    const { peer, send } = await refusing([0, 0x58]);
    expect(await send(aMessage({ text }))).toEqual({ outcome: "unknown", reason: "part 2 of 3: ESME_RTHROTTLED (0x00000058)" });
    expect(peer.of("submit_sm")).toHaveLength(2);
  });

  it("a deadline that passes between parts gives `unknown`", async () => {
    const { peer, clock, send } = await openBench({ longMessages: "udh", window: 1, responseTimeout: 60 });
    peer.on("submit_sm", (pdu, to) => {
      if (peer.of("submit_sm").length === 1) to.send(pdu.response({ message_id: "x" }));
    });
    const outcome = send(aMessage({ text }));
    await eventually(() => expect(peer.of("submit_sm")).toHaveLength(2));
    clock.advance(5_000);
    expect(await outcome).toEqual({ outcome: "unknown", reason: "part 2 of 3: no response from the SMPP peer before the deadline" });
  });

  it("only the first part must be written within `rejectAfter`", async () => {
    const { peer, sender, clock } = await openBench({ longMessages: "udh", window: 1, responseTimeout: 60 });
    const held: PeerPdu[] = [];
    peer.on("submit_sm", (pdu) => void held.push(pdu));
    const outcome = sender.send(aMessage({ text }), { ...clock.context(), rejectAfter: 1_000 });
    const late = sender.send(aMessage(), { ...clock.context(), rejectAfter: 1_000 });
    await eventually(() => expect(held).toHaveLength(1));
    clock.advance(1_000);
    expect(await late).toEqual({ outcome: "rejected", reason: "no room in time: the window of 1 unanswered messages stayed full" });
    for (let part = 1; part <= 3; part += 1) {
      await eventually(() => expect(held).toHaveLength(part));
      (peer.sessions[0] as PeerSession).send((held[part - 1] as PeerPdu).response({ message_id: `p${part}` }));
    }
    expect(await outcome).toMatchObject({ outcome: "accepted" });
  });

  it("the parts of a started message go before other messages", async () => {
    const { peer, send } = await openBench({ longMessages: "udh", window: 1 });
    await Promise.all([send(aMessage({ text, to: "+14155552671" })), send(aMessage({ to: "+14155552672" })), send(aMessage({ to: "+14155552673" }))]);
    expect(peer.of("submit_sm").map((pdu) => pdu.destination_addr?.at(-1))).toEqual(["1", "1", "1", "2", "3"]);
  });

  it("close waits for the parts of a started message", async () => {
    const { peer, send, sender } = await openBench({ longMessages: "udh" });
    const held: PeerPdu[] = [];
    peer.on("submit_sm", (pdu) => void held.push(pdu));
    const outcome = send(aMessage({ text }));
    await eventually(() => expect(held).toHaveLength(1));
    const closed = sender.close();
    for (let part = 1; part <= 3; part += 1) {
      await eventually(() => expect(held).toHaveLength(part));
      (peer.sessions[0] as PeerSession).send((held[part - 1] as PeerPdu).response({ message_id: `p${part}` }));
    }
    expect(await outcome).toEqual({ outcome: "accepted", messageId: "p3" });
    await closed;
    expect(peer.of("unbind")).toHaveLength(1);
  });

  it("a text of more than 255 parts is rejected and not sent", async () => {
    const { send, sender } = await openBench();
    expect(await send(aMessage({ text: "x".repeat(40_000) }))).toEqual({ outcome: "rejected", reason: "the text is too long" });
    expect(sender.status().state).toBe("idle");
  });
});
