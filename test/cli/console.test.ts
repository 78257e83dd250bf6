import { afterEach, expect, test, vi } from "vitest";
import { consoleSender } from "../../adapters/sms/console.js";
import type { CodeMessage } from "../../src/ports/sms-sender.js";

const context = { signal: new AbortController().signal, deadline: 0, timeLeft: 0 };
const message = (text: string): CodeMessage => ({
  to: "+14155552671",
  text,
  code: "123456",
  authentication_uuid: "2f0e6f5c-3b7a-4d58-9c1e-6a1b2c3d4e5f",
  customer_uuid: "0b7a5e0c-1f7e-4b58-8f3c-2d1e0f9a8b7c",
  attempt: 1,
  idempotency_key: "k",
  expires_at: 600_000,
});

afterEach(() => vi.unstubAllEnvs());

test("prints each message in a box and accepts it", async () => {
  const printed: string[] = [];
  const outcome = await consoleSender({ write: (text) => printed.push(text) }).send(message("Your code is 123456\n\n@localhost #123456"), context);
  expect(outcome).toEqual({ outcome: "accepted" });
  expect(printed.join("")).toBe(
    ["┌ SMS to +14155552671 ─┐", "│ Your code is 123456  │", "│                      │", "│ @localhost #123456   │", "└──────────────────────┘", ""].join("\n"),
  );
});

test("prints the spoken text of a call in the language of the number or of the request, and rejects an unknown channel", async () => {
  const printed: string[] = [];
  const sender = consoleSender({ channel: "voice", write: (text) => printed.push(text) });
  expect(sender.channel).toBe("voice");
  await sender.send({ ...message("Your code is 123456"), country: "US" }, context);
  await sender.send({ ...message("Your code is 123456"), country: "US", locale: "fr" }, context);
  expect(printed.map((one) => one.split("\n").slice(0, 2).join(""))).toEqual([
    expect.stringMatching(/^┌ Call to \+14155552671 ─+┐│ Your verification code is: 1, 2, 3, 4, 5, 6\. +│$/),
    expect.stringMatching(/^┌ Call to \+14155552671 ─+┐│ Votre code de vérification est : 1, 2, 3, 4, 5, 6\. +│$/),
  ]);
  expect(() => consoleSender({ channel: "telegram" as never })).toThrow('consoleSender: option channel must be "voice". Leave it out for SMS.');
});

test("long lines wrap at spaces, and words that do not fit are split", async () => {
  const printed: string[] = [];
  await consoleSender({ write: (text) => printed.push(text) }).send(message(`${"word ".repeat(20)}${"x".repeat(120)}`), context);
  const lines = printed.join("").trimEnd().split("\n");
  expect(new Set(lines.map((line) => line.length)).size).toBe(1);
  expect(lines[0]?.length).toBeLessThanOrEqual(60);
  expect(printed.join("").replace(/[^wordx]/g, "")).toContain("x".repeat(120));
});

test("control characters never reach the terminal", async () => {
  const printed: string[] = [];
  await consoleSender({ write: (text) => printed.push(text) }).send(message("a\u001b[2Jb\u009bc\u202ed"), context);
  expect(printed.join("")).toContain("a?[2Jb?c?d");
});

test("refuses to run in production, unless allowed by an option", async () => {
  vi.stubEnv("NODE_ENV", "production");
  expect(() => consoleSender()).toThrow(/NODE_ENV is production.*allowInProduction: true/);
  expect(() => consoleSender({ allowInProduction: false })).toThrow();
  const printed: string[] = [];
  await consoleSender({ allowInProduction: true, write: (text) => printed.push(text) }).send(message("123456"), context);
  expect(printed.join("")).toContain("123456");
});
