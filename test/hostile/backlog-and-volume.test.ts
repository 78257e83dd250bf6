import { expect, onTestFinished, test } from "vitest";
import { numberOf, setUp } from "../support/verifier.js";
import { settled } from "./backlog-and-volume-kit.js";

const url = "https://hooks.example.com/status";
/** Messages of one test: far more than the lines that it allows. */
const many = 40;

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
