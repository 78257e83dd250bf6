import { describe, expect, it } from "vitest";
import { meetsChallenge } from "../../src/access/challenge.js";
import { CreateAuthenticationRequest } from "../../src/contract/authentication.js";
import { readOptions } from "../../src/options/options.js";
import type { Challenge } from "../../src/ports/challenge.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { neededOptions } from "../support/options.js";
import { errorCode, logger, setUp as verifierWith } from "../support/verifier.js";

function setUp(verify?: Challenge["verify"]) {
  const clock = fixedClock();
  const log = logger();
  const settings = readOptions({ ...neededOptions, ...(verify && { challenge: { verify } }) });
  return { clock, log, meets: (proof?: string, ip?: string) => meetsChallenge({ settings, clock, monitor: { throttledLog: log } }, proof, ip) };
}

describe("A wrong or late proof is not an error: the rules simply apply", () => {
  it("without a challenge or without a proof, no provider is called and the challenge is not met", async () => {
    let asked = 0;
    expect(await setUp().meets("a proof")).toBe(false);
    expect(await setUp(async () => ++asked > 0).meets(undefined, "192.0.2.1")).toBe(false);
    expect(asked).toBe(0);
  });

  it("the challenge decides; it gets the proof unchanged, and the address if there is one", async () => {
    const seen: unknown[] = [];
    const { meets, log } = setUp(async (proof, { ip, signal }) => {
      seen.push([proof, ip, signal.aborted]);
      return proof === " right ";
    });
    expect([await meets(" right ", "192.0.2.1"), await meets("wrong")]).toEqual([true, false]);
    expect(seen).toEqual([
      [" right ", "192.0.2.1", false],
      ["wrong", undefined, false],
    ]);
    expect(log.lines).toEqual([]);
  });

  it("after 2 s the signal is aborted, the failure is logged, and a late result is ignored", async () => {
    let signal: AbortSignal | undefined;
    let answer: (holds: boolean) => void = () => {};
    const { meets, clock, log } = setUp((_, context) => {
      signal = context.signal;
      return new Promise((resolve) => (answer = resolve));
    });
    const met = meets("a proof");
    clock.advance(1999);
    expect(signal?.aborted).toBe(false);
    clock.advance(1);
    expect(await met).toBe(false);
    answer(true);
    expect(signal?.aborted).toBe(true);
    expect(log.lines).toEqual([
      { level: "error", fields: { reason: "TimedOut: no response within 2000 ms" }, message: "the challenge failed; the spam rules apply" },
    ]);
  });

  it("a result at the last moment still counts", async () => {
    let answer: (holds: boolean) => void = () => {};
    const { meets, clock, log } = setUp(() => new Promise((resolve) => (answer = resolve)));
    const met = meets("a proof");
    clock.advance(1999);
    answer(true);
    expect(await met).toBe(true);
    clock.advance(10_000);
    expect(log.lines).toEqual([]);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("bad token tok/en.+ at tok/en.+");
      },
      "Error: bad token … at …",
    ],
    ["rejects", () => Promise.reject(new TypeError("fetch failed")), "TypeError: fetch failed"],
    ["rejects with no error", () => Promise.reject({ proof: "tok/en.+" }), "no error was thrown, but something else"],
    ["answers nonsense", async () => "true", "TypeError: a challenge must return true or false"],
    ["answers nothing", () => undefined, "TypeError: a challenge must return true or false"],
  ])("a challenge that %s is logged without the proof, and is not met", async (_, verify, reason) => {
    const { meets, log } = setUp(verify as never);
    expect(await meets("tok/en.+")).toBe(false);
    expect(log.lines).toEqual([{ level: "error", fields: { reason }, message: "the challenge failed; the spam rules apply" }]);
  });
});

describe("create accepts an optional proof", () => {
  it.each([["x"], ["x".repeat(8192)], [undefined]])("of 1 to 8,192 characters: row %#", async (proof) => {
    expect(CreateAuthenticationRequest.parse({ customer_uuid: "11111111-2222-3333-4444-555555555555", phone_number: "+33612345678", proof }).proof).toBe(proof);
  });

  it.each([[""], ["x".repeat(8193)], [5], [null], [["x"]], [true]])("anything else is bad_request: row %#", async (proof) => {
    expect(await errorCode(verifierWith().create({ proof }))).toBe("bad_request");
  });
});
