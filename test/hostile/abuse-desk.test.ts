import { type SpamRule, VerifierError, type VerifierEvent } from "phoneproof";
import { createTestVerifier, type TestVerifierOptions } from "phoneproof/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import { moduleWith, numberOf, phoneproof } from "./abuse-desk-kit.js";

/** A test verifier that records its events and logs. */
function watched(options: TestVerifierOptions = {}) {
  const events: VerifierEvent[] = [];
  const lines: string[] = [];
  const log = (_: object, message: string) => void lines.push(message);
  const tested = createTestVerifier({ limits: false, logger: { info: log, warn: log, error: log }, onEvent: (event) => void events.push(event), ...options });
  onTestFinished(() => tested.close());
  return { ...tested, events, lines };
}

test("a rule with both judge and cell is rejected, or its judge is asked", async () => {
  const judge = vi.fn(() => ({ reason: "a known fraudster" }));
  const rule = { name: "model", judge, cell: () => "a model", seed: 20 } satisfies SpamRule;
  let refused: unknown;
  try {
    await watched({ spamRules: [rule] }).verifier.createAuthentication({ phone_number: numberOf(1) });
  } catch (error) {
    refused = error;
  }
  expect(refused instanceof VerifierError || judge.mock.calls.length > 0).toBe(true);
});

test("why does not describe a rule of one's own as the built-in rule of the same name", async () => {
  const module = moduleWith(`spamRules: [{ name: "country", judge: () => ({ reason: "odd" }) }],`, numberOf(1));
  onTestFinished(() => module.remove());
  const printed = await phoneproof("why", numberOf(1), module.file);
  expect(printed).not.toContain("Too many codes sent to the number's country were not entered");
});
