import { describe, expect, it } from "vitest";
import type { VerifierEvent, VerifierOptions } from "../../src/index.js";
import { inbox, numberOf, onePerTenMinutes, setUp } from "../support/verifier.js";

const turn = () => new Promise(setImmediate);

function listening(options: Partial<VerifierOptions> = {}) {
  const events: VerifierEvent[] = [];
  const set = setUp({ onEvent: (event) => void events.push(event), ...options });
  const about = (id: string) => ({ at: set.clock.now(), customer_uuid: set.customer, authentication_uuid: id, phone_number: "+33612****01", country: "FR" });
  return { ...set, events, about };
}

describe("typed events, with masked numbers", () => {
  it("created and sent: with the route, the duration, and the reason for a rejection", async () => {
    const set = listening();
    set.box.answer = async () => {
      set.clock.advance(120);
      return { outcome: "accepted", route: "one" };
    };
    const { authentication_uuid: id } = await set.create();
    expect(set.events).toEqual([
      { type: "created", ...set.about(id), at: set.clock.now() - 120 },
      { type: "sent", attempt: 1, outcome: "accepted", route: "one", took: 120, ...set.about(id) },
    ]);
    set.events.length = 0;
    set.box.answer = async ({ to, code }) => ({ outcome: "rejected", reason: `no ${to} for ${code}` });
    set.clock.advance(60_000);
    await set.retry(id);
    expect(set.events).toEqual([{ type: "sent", attempt: 2, outcome: "rejected", took: 0, reason: "no +33612****01 for ******", ...set.about(id) }]);
  });

  it("refused: a create and a retry blocked by a cap, with value and threshold", async () => {
    const set = listening({ policy: onePerTenMinutes });
    const { authentication_uuid: id } = await set.create();
    const refused = await set.create();
    set.clock.advance(60_000);
    await set.retry(id);
    const rules = [{ rule: "perNumber 1/600s", mode: "enforce", value: 1, threshold: 1 }];
    expect(set.events.slice(2)).toEqual([
      { type: "refused", operation: "create", status: "rate_limited", rules, ...set.about(refused.authentication_uuid), at: set.clock.now() - 60_000 },
      { type: "refused", operation: "retry", status: "rate_limited", rules, ...set.about(id) },
    ]);
  });

  it("refused: by a rule of your own, with its reason; a repeat under the same key emits no event", async () => {
    const set = listening({ spamRules: [{ name: "mine", judge: () => ({ reason: "too many", value: 3 }) }] });
    await set.create({}, { idempotencyKey: "k" });
    await set.create({}, { idempotencyKey: "k" });
    expect(set.events).toMatchObject([{ type: "refused", status: "spam_detected", rules: [{ rule: "mine", mode: "enforce", reason: "too many", value: 3 }] }]);
  });

  it("checked: every status; a repeat under the same key emits no event", async () => {
    const set = listening();
    const { authentication_uuid: id } = await set.create();
    await set.check(id, set.wrong());
    await set.check(id, set.box.code(), { idempotencyKey: "k" });
    await set.check(id, set.box.code(), { idempotencyKey: "k" });
    await set.check(id, set.box.code());
    expect(set.events.slice(2)).toEqual([
      { type: "checked", status: "invalid", wrong_codes: 1, ...set.about(id) },
      { type: "checked", status: "valid", wrong_codes: 1, ...set.about(id) },
      { type: "checked", status: "already_validated", wrong_codes: 1, ...set.about(id) },
    ]);
  });

  it("receipt: repeated receipts emit one event", async () => {
    const set = listening({
      sender: Object.assign(inbox(), { answer: async () => ({ outcome: "accepted", messageId: "m", idSpace: "s", route: "r" }) }) as never,
    });
    const { authentication_uuid: id } = await set.create();
    for (let twice = 0; twice < 2; twice++) await set.verifier.settleReceipts([{ messageId: "m", idSpace: "s", status: "undeliverable", error: "30003" }]);
    expect(set.events.slice(2)).toEqual([{ type: "receipt", attempt: 1, status: "undeliverable", route: "r", error: "30003", ...set.about(id) }]);
  });

  it("callback: delivered, failed, dead", async () => {
    const answers = [{ status: 500 }, { status: 204 }, { status: 410 }];
    const set = listening({ callbacks: { worker: false, sender: { post: async () => answers.shift() ?? { failed: "none left" } } } });
    const { authentication_uuid: id } = await set.create({ callback_url: "https://example.com/hook" });
    await set.verifier.flush();
    set.clock.advance(10_000);
    await set.verifier.flush();
    await set.create({ phone_number: numberOf(2), callback_url: "https://example.com/hook" });
    await set.verifier.flush();
    const told = set.events.filter(({ type }) => type === "callback");
    expect(told).toMatchObject([
      { outcome: "failed", status: "submitted", sequence: 1, reason: "answered 500", authentication_uuid: id },
      { outcome: "delivered", status: "submitted", sequence: 1, authentication_uuid: id },
      { outcome: "dead", reason: "answered 410 Gone" },
    ]);
    expect(set.verifier.metrics()).toContain('phoneproof_callbacks_total{outcome="dead"} 1');
  });

  it("no event contains a whole number, a code or a key", async () => {
    const set = listening({ policy: onePerTenMinutes });
    set.box.answer = async ({ to, code, text }) => {
      throw new Error(`could not send ${text} (${code}) to ${to}`);
    };
    const { authentication_uuid: id } = await set.create();
    await set.check(id, set.box.code());
    await set.create();
    const all = JSON.stringify([set.events, set.log.lines, set.verifier.metrics()]);
    expect(all).not.toContain(numberOf(1).slice(1));
    expect(all).not.toContain(set.box.code());
    expect(all).not.toContain(set.apiKey);
  });
});

describe("handlers that throw, reject or hang do not affect requests", () => {
  it.each([
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    [
      "rejects",
      async () => {
        throw new Error("no");
      },
    ],
    [
      "answers a thenable that throws",
      () =>
        ({
          // biome-ignore lint/suspicious/noThenProperty: this case is about a thenable.
          get then() {
            throw new Error("no");
          },
        }) as never,
    ],
  ] as const)("one that %s is logged once, however many events follow", async (_what, onEvent) => {
    const set = setUp({ onEvent: onEvent as never, policy: { limits: { perCustomer: [] } } });
    for (let index = 0; index < 100; index++) expect((await set.create({ phone_number: numberOf(index) })).status).toBe("pending");
    await turn();
    expect(set.log.lines.filter(({ message }) => message.includes("onEvent"))).toHaveLength(1);
    expect(set.verifier.metrics()).toContain('phoneproof_faults_total{part="events"} 200');
  });

  it("one that hangs", async () => {
    const set = setUp({ onEvent: () => new Promise(() => {}) });
    const { authentication_uuid: id } = await set.create();
    expect((await set.check(id, set.box.code())).status).toBe("valid");
    expect(set.log.lines).toEqual([]);
  });

  it("one that calls the verifier again", async () => {
    const set: ReturnType<typeof setUp> = setUp({
      onEvent: async (event) => {
        if (event.type === "created") await set.verifier.explain({ customer_uuid: event.customer_uuid, authentication_uuid: event.authentication_uuid });
      },
    });
    expect((await set.create()).status).toBe("pending");
    await turn();
    expect(set.log.lines).toEqual([]);
  });
});
