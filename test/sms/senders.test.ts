import { expect, it } from "vitest";
import { consoleSender } from "../../adapters/sms/console.js";
import { inboxSender } from "../../adapters/sms/inbox.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { senderContract } from "../../src/testing/sender-contract.js";
import { carriers } from "../support/carriers/all.js";
import { inTime } from "../support/carriers/messages.js";
import { startCarrier, subjectOf } from "../support/carriers/server.js";

for (const carrier of carriers) {
  for (const { name, run } of senderContract()) it(`${carrier.name}: ${name}`, () => run(subjectOf(carrier)));
}

for (const { name, run } of senderContract({ behaviours: ["accepts", "refuses", "throttles", "fails"] })) {
  it(`inbox: ${name}`, () =>
    run({
      async open(behaviour) {
        const sender = inboxSender(behaviour === "accepts" ? {} : { outcome: { outcome: behaviour === "fails" ? "unknown" : "rejected" } });
        return { sender, received: () => sender.messages };
      },
    }));
}

it("console: meets the cases of the sender contract that apply to it", async () => {
  for (const { run } of senderContract({ behaviours: ["accepts"] }).filter(
    ({ name }) => !name.includes("arrive unchanged") && !name.includes("under its own id"),
  )) {
    await run({
      async open() {
        const boxes: string[] = [];
        const received = () => boxes.map((box) => ({ to: /\+\d+/.exec(box)?.[0] ?? "", text: box }));
        return { sender: consoleSender({ write: (box) => void boxes.push(box) }), received };
      },
    });
  }
});

/** Senders that each break one rule of the contract, and the case that must detect it. */
const broken: readonly (readonly [string, (sound: SmsSender) => SmsSender])[] = [
  ["refuses", () => ({ send: async () => ({ outcome: "unknown" }) })],
  ["fails", () => ({ send: async () => ({ outcome: "rejected" }) })],
  ["fails", (sound) => ({ send: async (message, context) => (await sound.send(message, context)) && sound.send(message, context) })],
  ["garbles", () => ({ send: async () => ({ outcome: "accepted" }) })],
  ["withholds", (sound) => ({ send: (message, { deadline, timeLeft }) => sound.send(message, { deadline, timeLeft, signal: new AbortController().signal }) })],
  ["cuts", () => ({ send: () => Promise.reject(new Error("socket hang up")) })],
  ["unreachable", () => ({ send: async (message) => ({ outcome: "rejected", reason: `cannot send ${message.code}` }) })],
  ["refuses", () => ({ send: async (message) => ({ outcome: "rejected", reason: `${message.to} is barred` }) })],
  ["accepts", () => ({ send: async () => ({ outcome: "accepted" }) })],
  ["arrive unchanged", (sound) => ({ send: (message, context) => sound.send({ ...message, text: message.text.trim().replaceAll("😀", "?") }, context) })],
  ["under its own id", (sound) => ({ send: async (message, context) => ({ ...(await sound.send(message, context)), messageId: "1" }) })],
  [
    "times out",
    (sound) => ({ send: (message, context) => sound.send(message, inTime()).then((sent) => (context.signal.aborted ? { outcome: "rejected" } : sent)) }),
  ],
];

it.each(broken)("the sender contract detects a sender that breaks: %s", async (part, breaks) => {
  const [carrier] = carriers;
  const cases = senderContract({ patience: 0.5 }).filter(
    ({ name }) => (name.startsWith(`${part}: `) && !name.startsWith("accepts: of")) || name.includes(part),
  );
  expect(cases.length).toBeGreaterThan(0);
  const results = await Promise.allSettled(
    cases.map(({ run }) =>
      run({
        async open(behaviour) {
          const running = await startCarrier(carrier!, behaviour);
          return { sender: breaks(carrier!.sender(running.url)), received: () => running.taken, close: running.close };
        },
      }),
    ),
  );
  expect(results.map(({ status }) => status)).toContain("rejected");
});
