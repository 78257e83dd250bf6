import { describe, expect, it, vi } from "vitest";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore } from "../store/plain-store.js";
import type { CarrierScript, Reply, SeenRequest } from "../support/carriers/server.js";
import { carriersOf, leaks, make, run, scriptOf } from "./carrier-kit.js";
import { drive, ending, eventually, fates, rigged, service, turns, wide } from "./kit.js";

const isConversion = ({ url, headers }: SeenRequest) =>
  url.pathname.endsWith("/Feedback.json") || url.pathname.startsWith("/conversions/") || headers["x-amz-target"]?.endsWith("PutMessageFeedback") === true;
const idIn = ({ url, body }: SeenRequest) =>
  url.searchParams.get("message-id") ?? /Messages\/(\w+)\/Feedback/.exec(url.pathname)?.[1] ?? /"MessageId":"([^"]+)"/.exec(body)?.[1] ?? "";
const ok: Reply = { status: 200, body: "{}" };
const listeners = ["twilio", "vonage", "aws"];

/** A carrier that takes messages and conversions; `reply` is its response to a conversion. */
async function listener(name: string, reply: Reply = ok) {
  const script = scriptOf(name);
  let messages = 0;
  const both: CarrierScript = {
    ...script,
    take: (request, index) => {
      if (isConversion(request)) return { reply };
      messages++;
      return script.take(request, index);
    },
  };
  const carrier = await run(both);
  return { carrier, conversions: () => carrier.requests.filter(isConversion), messages: () => messages };
}

async function world(name: string, reply?: Reply, more: object = {}) {
  const { carrier, conversions } = await listener(name, reply);
  const store = rigged(new PlainStore());
  const clock = fixedClock(Date.UTC(2027, 0, 1));
  const process = (customer?: string) =>
    service({
      store,
      clock,
      sender: make(name, { conversions: true, baseUrl: carrier.url, ...more }) as never,
      policy: { limits: wide },
      ...(customer !== undefined && { customer }),
    });
  const first = process();
  return { carrier, conversions, store, clock, first, beside: () => process(first.customer) };
}
/** The code in the text of a message. */
const codeIn = (text: string) => /\d{6}/.exec(text)?.[0] ?? "";

describe.each(listeners)("%s: conversions", (name) => {
  it("a right code is reported once, a wrong one never, and a repeated check not again", async () => {
    const { first, carrier, conversions } = await world(name);
    const { authentication_uuid: id } = await first.create("+14155552671");
    const code = codeIn(carrier.taken[0]?.text ?? "");
    const wrong = code === "000000" ? "111111" : "000000";
    expect((await first.check(id, wrong)).status).toBe("invalid");
    await turns();
    expect(conversions()).toEqual([]);
    expect((await first.check(id, code, { idempotencyKey: "k" })).status).toBe("valid");
    await eventually("it is told", () => conversions().length > 0);
    expect((await first.check(id, code, { idempotencyKey: "k" })).status).toBe("valid");
    expect((await first.check(id, code)).status).toBe("already_validated");
    await turns();
    expect(conversions()).toHaveLength(1);
  });

  it("concurrent checks are reported once, with the message whose code was entered: the first of two", async () => {
    const { first, carrier, conversions, clock } = await world(name);
    const { authentication_uuid: id } = await first.create("+14155552671");
    clock.advance(31_000);
    await first.retry(id);
    const typed = codeIn(carrier.taken[0]?.text ?? "");
    const answers = await Promise.all(Array.from({ length: 20 }, () => first.check(id, typed)));
    expect(answers.filter(({ status }) => status === "valid")).toHaveLength(1);
    await eventually("it is told", () => conversions().length > 0);
    await turns();
    expect(conversions()).toHaveLength(1);
    // Message ids of the test's carriers end with the number of the request.
    expect(idIn(conversions()[0] as SeenRequest)).toMatch(/1$/);
  });

  it("the process that handled the check reports it, even if another one sent the message", async () => {
    const { first, carrier, conversions, beside } = await world(name);
    const { authentication_uuid: id } = await first.create("+14155552671");
    expect((await beside().check(id, codeIn(carrier.taken[0]?.text ?? ""))).status).toBe("valid");
    await eventually("it is told", () => conversions().length > 0);
    expect(idIn(conversions()[0] as SeenRequest)).toMatch(/1$/);
  });

  it("an expired code is not reported", async () => {
    const { first, carrier, conversions, clock } = await world(name);
    const { authentication_uuid: id } = await first.create("+14155552671");
    clock.advance(600_000);
    expect((await first.check(id, codeIn(carrier.taken[0]?.text ?? ""))).status).toBe("expired_auth");
    await turns();
    expect(conversions()).toEqual([]);
  });

  it.each<[string, Reply]>([
    ["fails", { status: 500, body: "{}" }],
    ["refuses, and repeats what it was told", { status: 400, body: '{"message":"+14155552671"}' }],
    ["redirects", { status: 302, body: "" }],
    ["garbles", { status: 200, body: "<html>" }],
  ])("a carrier that %s: the check returns as usual, the report is tried once, and the log has no number, code or key", async (_, reply) => {
    const { first, carrier, conversions } = await world(name, reply);
    const { authentication_uuid: id } = await first.create("+14155552671");
    const code = codeIn(carrier.taken[0]?.text ?? "");
    expect((await first.check(id, code)).status).toBe("valid");
    await eventually("it is told", () => conversions().length > 0);
    if (reply.status >= 300) await eventually("it is logged", () => first.log.length > 0);
    const log = JSON.stringify(first.log, (_key, value: unknown) => (value instanceof Error ? [value.message, value.stack] : value)).replaceAll(id, "");
    expect(leaks(log, { code, to: "+14155552671" })).toBe(false);
    expect(log).not.toMatch(/auth-token|api-secret|wJalrX|Basic |AWS4/);
    expect(conversions()).toHaveLength(1);
  });

  it("a carrier that hangs does not delay the check", async () => {
    const withheld: Promise<Response>[] = [];
    let sending = true;
    const { carrier } = await listener(name);
    const one = service({
      policy: { limits: wide },
      sender: make(name, {
        conversions: true,
        baseUrl: carrier.url,
        fetch: (url: string, init: RequestInit) => {
          if (sending) return fetch(url, init);
          const never = new Promise<Response>(() => {});
          withheld.push(never);
          return never;
        },
      }) as never,
    });
    const { authentication_uuid: id } = await one.create("+14155552671");
    sending = false;
    const started = performance.now();
    expect((await one.check(id, codeIn(carrier.taken[0]?.text ?? ""))).status).toBe("valid");
    expect(performance.now() - started).toBeLessThan(9_000);
    await eventually("it is told", () => withheld.length > 0);
    expect(withheld).toHaveLength(1);
    await one.verifier.close();
  });

  it("nothing is reported and no carrier's id is stored without `conversions` (docs/contract.md#round-trips)", async () => {
    const { first, carrier, conversions, store } = await world(name, ok, { conversions: false });
    const { authentication_uuid: id } = await first.create("+14155552671");
    await turns();
    expect(store.count("commit")).toBe(1);
    expect((await first.check(id, codeIn(carrier.taken[0]?.text ?? ""))).status).toBe("valid");
    await turns();
    expect(conversions()).toEqual([]);
  });

  it("a check is reported at most once, and only if it returned `valid`, whatever the store does to it", async () => {
    for (const fate of fates.filter((one) => one !== "late"))
      for (let step = 1; step <= 3; step++) {
        const { first, carrier, conversions, store, clock } = await world(name);
        const { authentication_uuid: id } = await first.create("+14155552671");
        const code = codeIn(carrier.taken[0]?.text ?? "");
        const before = store.count();
        store.fate = () => (store.count() - before === step ? fate : "done");
        const check = () => drive(clock, ending(first.check(id, code)));
        const answers = [await check()];
        store.fate = () => "done";
        await store.release();
        answers.push(await check());
        await turns(30);
        expect(conversions().length, `${fate} ${step}`).toBeLessThanOrEqual(answers.includes("valid") ? 1 : 0);
      }
  });
});

describe("many conversions", () => {
  const told = { event: "validated", authentication_uuid: "a", attempt: 1, sent_at: 0, chosen: true } as const;

  it.each(listeners)("%s: of ten thousand to a carrier that hangs, at most a hundred are in progress", async (name) => {
    let under = 0;
    const sender = make(name, {
      conversions: true,
      fetch: () => {
        under++;
        return new Promise(() => {});
      },
    });
    for (let i = 0; i < 10_000; i++) void sender.feedback?.({ ...told, messageId: `m${i}` })?.catch?.(() => undefined);
    await turns(20);
    expect(under).toBeLessThanOrEqual(100);
    expect(under).toBeGreaterThan(0);
  });

  it.each(listeners)("%s: a carrier that responds gets all that come one after another", async (name) => {
    let asked = 0;
    const sender = make(name, {
      conversions: true,
      fetch: async () => {
        asked++;
        return new Response("{}", { status: asked % 2 ? 200 : 500 });
      },
    });
    for (let i = 0; i < 500; i++) await sender.feedback?.({ ...told, messageId: `m${i}` })?.catch?.(() => undefined);
    expect(asked).toBe(500);
  });

  it("aws: conversions are reported again once a credentials() that hung has recovered", async () => {
    let hang = true;
    let asked = 0;
    const sender = make("aws", {
      conversions: true,
      credentials: () => (hang ? new Promise(() => {}) : carriersOf["aws"]!.needs["credentials"]),
      fetch: async () => {
        asked++;
        return new Response("{}");
      },
    });
    // Each one has timed out as it begins.
    const time = vi.spyOn(AbortSignal, "timeout").mockReturnValue(AbortSignal.abort());
    for (let i = 0; i < 150; i++) void sender.feedback?.({ ...told, messageId: `m${i}` })?.catch?.(() => undefined);
    await turns();
    time.mockRestore();
    hang = false;
    await sender.feedback?.({ ...told, messageId: "later" });
    expect(asked).toBeGreaterThan(0);
  });
});
