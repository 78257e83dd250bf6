import { describe, expect, it, onTestFinished } from "vitest";
import { blocking, breakableStore, messagesTo, provider, solved, turns } from "./challenges-in-depth-kit.js";

describe("a solved challenge", () => {
  it("lets a create through that is sent twice under one key, whichever check ends first (docs/contract.md#challenge)", async () => {
    const { challenge, asked, release } = provider({ held: true });
    const test = await blocking({ challenge });
    onTestFinished(() => test.close());
    const create = () => test.verifier.createAuthentication(solved, { idempotencyKey: "one click" });
    const first = create();
    await expect.poll(() => asked.length).toBe(1);
    const second = create();
    await turns(); // the second create ends, unless it waits for the first
    release();
    expect((await Promise.all([first, second, create()])).map(({ status }) => status)).toEqual(["pending", "pending", "pending"]);
    expect(messagesTo(test)).toBe(1);
  });

  it("gives both starts under one key the same result (docs/contract.md#repeated-starts)", async () => {
    const { challenge, asked, release } = provider({ held: true });
    const test = await blocking({ challenge });
    onTestFinished(() => test.close());
    const start = () => test.verifier.verifications.start(solved, { idempotencyKey: "one click" });
    const first = start();
    await expect.poll(() => asked.length).toBe(1);
    const second = start();
    await turns();
    release();
    expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual(["pending", "pending"]);
    expect(messagesTo(test)).toBe(1);
  });

  it("still counts when the create is repeated after a 503 (docs/contract.md#retry-after-503)", async () => {
    const { challenge } = provider();
    const { store, state } = breakableStore();
    const test = await blocking({ challenge, store });
    onTestFinished(() => test.close());
    const create = () => test.verifier.createAuthentication(solved, { idempotencyKey: "one click" });
    state.isDown = true;
    await expect(create()).rejects.toMatchObject({ code: "unavailable", status: 503 });
    state.isDown = false;
    expect((await create()).status).toBe("pending");
    expect(messagesTo(test)).toBe(1);
  });

  it.each(["a create", "a start"])("never waives the rules for two: %s under another key or without one (docs/contract.md#challenge)", async (kind) => {
    const { challenge, asked } = provider();
    const test = await blocking({ challenge });
    onTestFinished(() => test.close());
    const call = async (idempotencyKey?: string, scope?: string) => {
      if (kind === "a create") return (await test.verifier.createAuthentication(solved, { idempotencyKey })).status;
      return (await test.verifier.verifications.start(solved, { idempotencyKey, scope })).status;
    };
    expect(await call("one click")).toBe("pending");
    expect(await call("one click")).toBe("pending");
    expect(asked.length).toBe(1);
    expect(await Promise.all([call("another", "two"), call(undefined, "three"), call("one click", "four")])).toEqual(
      kind === "a create" ? ["spam_detected", "spam_detected", "pending"] : ["spam_detected", "spam_detected", "spam_detected"],
    );
    expect(messagesTo(test)).toBe(1);
  });

  it("never waives the rules for two: a start under a key that the slot no longer holds (docs/contract.md#challenge)", async () => {
    const { challenge } = provider();
    const test = await blocking({ challenge });
    onTestFinished(() => test.close());
    const { start, cancel } = test.verifier.verifications;
    const { phone_number } = solved;
    expect((await start(solved, { idempotencyKey: "one click" })).status).toBe("pending");
    await cancel({ phone_number });
    test.clock.advance(60_000);
    expect((await start({ phone_number }, { idempotencyKey: "another" })).status).toBe("pending");
    await cancel({ phone_number });
    test.clock.advance(60_000);
    expect((await start(solved, { idempotencyKey: "one click" })).status).toBe("spam_detected");
  });

  it("waives the rules for one of two simultaneous creates without a key (docs/contract.md#challenge)", async () => {
    const { challenge } = provider();
    const test = await blocking({ challenge });
    onTestFinished(() => test.close());
    const create = () => test.verifier.createAuthentication(solved);
    expect((await Promise.all([create(), create()])).map(({ status }) => status)).toEqual(["pending", "spam_detected"]);
    expect(messagesTo(test)).toBe(1);
  });

  it("is checked again under the same key if the provider rejected or could not check it (docs/contract.md#challenge)", async () => {
    const results = [() => false, () => Promise.reject(new Error("unreachable")), () => true];
    const { store, state } = breakableStore();
    const test = await blocking({ challenge: { verify: async () => results.shift()?.() ?? false }, store });
    onTestFinished(() => test.close());
    const create = () => test.verifier.createAuthentication(solved, { idempotencyKey: "one click" });
    state.isDown = true;
    for (let repeat = 0; repeat < 2; repeat++) await expect(create()).rejects.toMatchObject({ code: "unavailable" });
    state.isDown = false;
    expect((await create()).status).toBe("pending");
  });
});
