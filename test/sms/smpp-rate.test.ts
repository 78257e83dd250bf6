import { afterEach, describe, expect, it } from "vitest";
import { evenPace } from "../../adapters/sms/smpp/window.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { aMessage, eventually, type PeerPdu, type PeerSession } from "../support/smpp.js";
import { closeBenches, openBench } from "../support/smpp-bench.js";

afterEach(closeBenches);

describe("`messagesPerSecond`", () => {
  it("messages are written evenly: the first at once, then one every tenth of a second", async () => {
    const { peer, clock, sender, send } = await openBench({ messagesPerSecond: 10 });
    await sender.connect();
    const outcomes = Promise.all(Array.from({ length: 5 }, () => send()));
    for (let written = 1; written <= 5; written += 1) {
      await eventually(() => expect(peer.of("submit_sm")).toHaveLength(written));
      expect(sender.status().queued).toBe(5 - written);
      clock.advance(99);
      expect(sender.status().queued).toBe(5 - written);
      clock.advance(1);
    }
    expect((await outcomes).map(({ outcome }) => outcome)).toEqual(Array(5).fill("accepted"));
  });

  it("a pause or a new connection is followed by no burst", async () => {
    const { peer, clock, sender, send } = await openBench({ messagesPerSecond: 10, rebind: { min: 10, max: 10 } });
    await send();
    (peer.sessions[0] as PeerSession).destroy();
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    const outcomes = [send(aMessage(), 60_000), send(aMessage(), 60_000), send(aMessage(), 60_000)];
    clock.advance(10_000);
    await outcomes[0];
    expect(sender.status().queued).toBe(2);
    clock.advance(100);
    await outcomes[1];
    expect(sender.status().queued).toBe(1);
  });

  it("a message waits for both the rate and the window", async () => {
    const { peer, clock, sender, send } = await openBench({ messagesPerSecond: 10, window: 1 });
    const held: PeerPdu[] = [];
    peer.on("submit_sm", (pdu) => void held.push(pdu));
    const outcomes = [send(), send()];
    await eventually(() => expect(held).toHaveLength(1));
    clock.advance(1_000);
    expect(sender.status()).toMatchObject({ queued: 1, outstanding: 1 });
    (peer.sessions[0] as PeerSession).send((held[0] as PeerPdu).response({ message_id: "a" }));
    await outcomes[0];
    expect(sender.status()).toMatchObject({ queued: 0, outstanding: 1 });
  });

  it("a message that gets no turn before its deadline is rejected, with the option's name", async () => {
    const { clock, sender, send } = await openBench({ messagesPerSecond: 0.1 });
    expect(await send()).toMatchObject({ outcome: "accepted" });
    const late = send();
    clock.advance(4_900);
    expect(await late).toEqual({ outcome: "rejected", reason: expect.stringContaining("messagesPerSecond") });
    expect(sender.status().queued).toBe(0);
  });

  it("each part of a long message counts", async () => {
    const { clock, sender, send } = await openBench({ messagesPerSecond: 10, longMessages: "udh" });
    const outcome = send(aMessage({ text: "x".repeat(200) }));
    await eventually(() => expect(sender.status()).toMatchObject({ state: "bound", queued: 1, outstanding: 0 }));
    clock.advance(99);
    expect(sender.status().queued).toBe(1);
    clock.advance(1);
    expect(await outcome).toMatchObject({ outcome: "accepted", messageId: "m2" });
  });
});

describe("evenPace", () => {
  it.each([1, 3, 7, 250, 1_000])("allows up to %i starts in any second, and no fewer over ten seconds", (perSecond) => {
    const clock = fixedClock();
    const starts: number[] = [];
    const take = evenPace(perSecond, clock, () => start());
    const start = () => {
      while (take()) starts.push(clock.now());
    };
    start();
    clock.advance(10_000);
    for (const [index, at] of starts.entries())
      expect(starts.filter((other) => other >= at && other < at + 999).length, `${index}`).toBeLessThanOrEqual(perSecond);
    expect(starts.length).toBeGreaterThanOrEqual(10 * perSecond);
  });

  it("a late timer is made up for by one extra start only", () => {
    const clock = fixedClock();
    const timers: (() => void)[] = [];
    const starts: number[] = [];
    const after = (_: number, run: () => void) => {
      timers.push(run);
      return () => {};
    };
    const take = evenPace(10, { now: clock.now, after }, () => start());
    const start = () => {
      while (take()) starts.push(clock.now() - Date.UTC(2026, 0, 1));
    };
    start();
    clock.advance(1_000);
    timers.shift()?.();
    expect(starts).toEqual([0, 1_000, 1_000]);
    clock.advance(150);
    timers.shift()?.();
    clock.advance(50);
    timers.shift()?.();
    expect(starts).toEqual([0, 1_000, 1_000, 1_150, 1_200]);
  });
});
