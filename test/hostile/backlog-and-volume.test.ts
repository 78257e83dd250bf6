import { expect, onTestFinished, test } from "vitest";
import { numberOf, setUp } from "../support/verifier.js";
import { settled, silentCustomer } from "./backlog-and-volume-kit.js";

const url = "https://hooks.example.com/status";
/** Messages of one test: far more than the lines that it allows. */
const many = 30;

test("an endpoint that answers 410 to a backlog does not log a line for each callback", async () => {
  const { verifier, customer, log } = setUp({ callbacks: { sender: { post: async () => ({ status: 410 }) } } });
  onTestFinished(() => verifier.close());
  for (let index = 0; index < many; index++) {
    await verifier.createAuthentication({ customer_uuid: customer, phone_number: numberOf(index), callback_url: url });
  }
  await settled(async () => (await verifier.deadLetters()).length === many);

  // docs/watching.md#events: "Other errors and rejected messages are logged once a minute".
  const lines = log.lines.filter(({ message }) => message.includes("given up"));
  expect(lines.length).toBe(1);
});

test("a waitUntil that always fails does not log a line for each request", async () => {
  const { verifier, customer, log } = setUp({
    callbacks: {
      sender: { post: async () => ({ status: 204 }) },
      waitUntil() {
        throw new Error("called outside a request scope");
      },
    },
  });
  onTestFinished(() => verifier.close());
  for (let index = 0; index < many; index++) {
    await verifier.createAuthentication({ customer_uuid: customer, phone_number: numberOf(index), callback_url: url });
  }

  // docs/watching.md#events: "Other errors and rejected messages are logged once a minute".
  const lines = log.lines.filter(({ message }) => message.includes("waitUntil"));
  expect(lines.length).toBe(1);
});

const indexesFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);

test("messages fall back in time although the callbacks of their verifications hang", async () => {
  const { create, close, textedAfter } = silentCustomer();
  const indexes = indexesFrom(0, many);
  for (const index of indexes) await create({ phone_number: numberOf(index), callback_url: url });

  // docs/contract.md#fallback-worker: "any worker sends it, up to `pollInterval` (5 s) later", after the 20 s of silence.
  const late = (await textedAfter(60, indexes)).filter((second) => second === "never" || second > 26);
  await close();
  expect(late).toEqual([]);
});

test("messages without a callback fall back in time although other callbacks of the customer hang", async () => {
  const { create, close, textedAfter } = silentCustomer();
  for (const index of indexesFrom(100, 160)) {
    await create({ phone_number: numberOf(index), channel: "sms", callback_url: `https://hooks-${index}.example.com/status` });
  }
  const indexes = indexesFrom(0, 5);
  for (const index of indexes) await create({ phone_number: numberOf(index) });

  // docs/contract.md#fallback-worker: "any worker sends it, up to `pollInterval` (5 s) later", after the 20 s of silence.
  const late = (await textedAfter(60, indexes)).filter((second) => second === "never" || second > 26);
  await close();
  expect(late).toEqual([]);
});
