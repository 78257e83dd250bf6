import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { twilioSender } from "../../adapters/sms/twilio.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { router } from "../../src/routing/router.js";
import { numberOf, secret, setUp } from "../support/verifier.js";

/** A Twilio sender that records its requests; `answer` gives the response to each conversion. */
function twilio(answer: () => Promise<Response> = async () => Response.json({}, { status: 201 })) {
  const sent: string[] = [];
  const told: string[] = [];
  const sender = twilioSender({
    accountSid: "AC1",
    authToken: "t",
    from: "+15005550006",
    conversions: true,
    fetch: async (url, { body = "" }) => {
      if (url.endsWith("/Feedback.json")) {
        told.push(url.split("/").at(-2) ?? "");
        return answer();
      }
      sent.push(new URLSearchParams(body).get("Body") ?? "");
      return Response.json({ sid: `SM${sent.length}`, status: "queued" }, { status: 201 });
    },
  });
  return { sender, told, code: (at = -1) => /\d{6}/.exec(sent.at(at) ?? "")?.[0] as string };
}

const turns = async () => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

describe("conversions are reported to the carrier off the request path, with the message id stored in the record", () => {
  it("the right code is reported once, for the message that contained it; wrong codes and repeats are not reported", async () => {
    const { sender, told, code } = twilio();
    const { create, check, retry, clock } = setUp({ sender });
    const { authentication_uuid: id } = await create();
    clock.advance(31_000);
    await retry(id);
    expect((await check(id, code(-1) === "000000" ? "111111" : "000000")).status).toBe("invalid");
    expect(told).toEqual([]);
    expect((await check(id, code(0))).status).toBe("valid");
    await turns();
    expect((await check(id, code(0))).status).toBe("already_validated");
    await turns();
    expect(told).toEqual(["SM1"]);
  });

  it("a code is also reported by another process that shares the store, and through a router", async () => {
    const store = memoryStore({ name: randomUUID() });
    const customers = [{ customer_uuid: randomUUID(), keys: ["k".repeat(40)] }];
    const [one, two] = [twilio(), twilio()];
    const make = ({ sender }: ReturnType<typeof twilio>) => setUp({ store, customers, secret, sender: router({ routes: [{ name: "twilio", sender }] }) });
    const [first, second] = [make(one), make(two)];
    const customer_uuid = customers[0]?.customer_uuid as string;
    const { authentication_uuid } = await first.create({ customer_uuid });
    expect(await second.verifier.check({ customer_uuid, authentication_uuid, check_code: one.code() })).toMatchObject({ status: "valid" });
    await turns();
    expect([one.told, two.told]).toEqual([[], ["SM1"]]);
  });

  it("a carrier that hangs, throws or fails does not delay a check; the log has the failure, without code and number", async () => {
    for (const [answer, reason] of [
      [() => new Promise<Response>(() => {}), undefined],
      [() => Promise.reject(new Error("down")), "twilio was not notified of a conversion"],
      [async () => new Response("", { status: 500 }), "twilio responded with HTTP 500 to a conversion"],
    ] as const) {
      const { sender, told, code } = twilio(answer);
      const { create, check, log } = setUp({ sender });
      const { authentication_uuid } = await create();
      expect((await check(authentication_uuid, code())).status).toBe("valid");
      await turns();
      expect(told).toEqual(["SM1"]);
      const errors = log.lines.filter(({ level }) => level === "error").map(({ fields }) => String(fields.err));
      expect(errors).toEqual(reason === undefined ? [] : [expect.stringContaining(reason)]);
      for (const hidden of [code(), numberOf(1).slice(1)]) expect(JSON.stringify([log.lines, errors])).not.toContain(hidden);
    }
  });

  it("an accepted send writes to the store a second time only with conversions", async () => {
    const store = memoryStore({ name: randomUUID() });
    const commits: unknown[] = [];
    const commit = store.commit.bind(store);
    store.commit = (change) => {
      commits.push(change);
      return commit(change);
    };
    const plain = setUp({ store });
    await plain.create();
    expect(commits).toHaveLength(1);
    const { sender } = twilio();
    await setUp({ store, sender }).create();
    expect(commits).toHaveLength(3);
  });
});
