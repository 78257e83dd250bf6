import { expect, it } from "vitest";
import { inboxSender } from "../../adapters/sms/inbox.js";
import { aMessage, inTime } from "../support/carriers/messages.js";

it("stores messages in order, finds the newest for a number, and can be cleared", async () => {
  const inbox = inboxSender();
  expect(await inbox.send(aMessage({ code: "1" }), inTime())).toEqual({ outcome: "accepted", messageId: "inbox-1" });
  await inbox.send(aMessage({ code: "2" }), inTime());
  await inbox.send(aMessage({ code: "3", to: "+447400123456" }), inTime());
  expect(inbox.messages.map(({ code }) => code)).toEqual(["1", "2", "3"]);
  expect(inbox.last("+14155552671")?.code).toBe("2");
  expect(inbox.last("+33612345678")).toBeUndefined();
  inbox.clear();
  expect(inbox.messages).toEqual([]);
});

it("accepts an outcome or a function; stores messages that are unknown, but not rejected ones", async () => {
  const rejecting = inboxSender({ outcome: { outcome: "rejected", reason: "no" } });
  expect(await rejecting.send(aMessage(), inTime())).toEqual({ outcome: "rejected", reason: "no" });
  expect(rejecting.messages).toEqual([]);
  const ruled = inboxSender({ outcome: async ({ attempt }) => (attempt === 1 ? { outcome: "rejected" } : { outcome: "unknown" }) });
  expect(await ruled.send(aMessage({ attempt: 1 }), inTime())).toEqual({ outcome: "rejected" });
  expect(await ruled.send(aMessage({ attempt: 2 }), inTime())).toEqual({ outcome: "unknown" });
  expect(ruled.messages.map(({ attempt }) => attempt)).toEqual([2]);
});

it("stores only the newest messages up to its limit, and rejects invalid options", async () => {
  const inbox = inboxSender({ limit: 2 });
  for (const code of ["1", "2", "3"]) await inbox.send(aMessage({ code }), inTime());
  expect(inbox.messages.map(({ code }) => code)).toEqual(["2", "3"]);
  for (const limit of [0, -1, 1.5, Number.NaN]) expect(() => inboxSender({ limit })).toThrow(/option limit must be a whole number above 0/);
  for (const outcome of ["rejected", null, {}]) expect(() => inboxSender({ outcome } as never)).toThrow(/option outcome must be an outcome/);
});
