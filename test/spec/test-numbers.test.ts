import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { defaultPolicy } from "../../src/domain/policy.js";
import type { SpamRule } from "../../src/index.js";
import { numberOf, setUp } from "../support/verifier.js";

const number = "+447700900123";
const code = "424242";
const day = 86_400_000;
/** Sends per day × checks of the default policy. */
const guesses = 50;

const setUpTest = (options: Parameters<typeof setUp>[0] = {}) => setUp({ testNumbers: [{ number, code }], policy: { spam: defaultPolicy.spam }, ...options });

describe("test numbers that are never sent to are exempt from caps and from our spam rules", () => {
  it("a hundred creates from one device and one address are all `pending`, and ten retries `approved`", async () => {
    const set = setUpTest({ policy: { limits: { perIp: [{ limit: 1, window: 60 }] } } });
    for (let turn = 0; turn < 100; turn++) {
      const { status, authentication_uuid } = await set.create({ phone_number: number, device_id: "one", ip: "192.0.2.1" });
      expect(status).toBe("pending");
      if (turn % 10 > 0) continue;
      set.clock.advance(30_000);
      expect((await set.retry(authentication_uuid)).status).toBe("approved");
      expect((await set.check(authentication_uuid, code)).status).toBe("valid");
    }
    expect(set.box.messages).toEqual([]);
  });

  it("their sends and verifications count in no cap", async () => {
    const limits = { perCustomer: [{ limit: 1, window: 86_400, perVerified: 1 }], perDevice: [{ limit: 1, window: 3_600 }] };
    const set = setUpTest({ policy: { limits } });
    for (let turn = 0; turn < 3; turn++) {
      const { authentication_uuid } = await set.create({ phone_number: number, device_id: "one" });
      expect((await set.check(authentication_uuid, code)).status).toBe("valid");
    }
    expect((await set.create({ device_id: "one" })).status).toBe("pending");
    expect((await set.create({ phone_number: numberOf(2) })).status).toBe("rate_limited");
  });

  it("history and erasure find them, although no cap counts their sends", async () => {
    const set = setUpTest();
    const ids: string[] = [];
    for (let turn = 0; turn < 12; turn++) ids.push((await set.create({ phone_number: number })).authentication_uuid);
    const named = { customer_uuid: set.customer, phone_number: number };
    expect((await set.verifier.history(named)).map(({ authentication_uuid }) => authentication_uuid)).toEqual(ids.reverse());
    await set.verifier.erase(named);
    expect(await set.verifier.history(named)).toEqual([]);
  });

  it("the operator's own rules, block lists and cool-downs still apply", async () => {
    const rule: SpamRule = { name: "mine", judge: ({ device_id }) => (device_id === "bad" ? { reason: "it is bad" } : undefined) };
    const set = setUpTest({ spamRules: [rule], lists: { block: { devices: ["blocked"] } } });
    for (const device_id of ["bad", "blocked"]) expect((await set.create({ phone_number: number, device_id })).status).toBe("spam_detected");
    const { authentication_uuid } = await set.create({ phone_number: number });
    expect((await set.retry(authentication_uuid)).status).toBe("denied");
  });

  it("one given as a string gets real messages, and caps apply to it as to any other number", async () => {
    const set = setUp({ testNumbers: [number] });
    for (let send = 0; send < 5; send++) await set.create({ phone_number: number });
    expect((await set.create({ phone_number: number })).status).toBe("rate_limited");
    expect(set.box.messages).toHaveLength(5);
  });
});

describe("guesses of the fixed code of a test number are limited over all its authentications", () => {
  /** Enters `many` wrong codes, five in each authentication. */
  const guess = async (set: ReturnType<typeof setUp>, many: number) => {
    const statuses: string[] = [];
    while (statuses.length < many) {
      const { authentication_uuid } = await set.create({ phone_number: number });
      for (let check = 0; check < 5 && statuses.length < many; check++) statuses.push((await set.check(authentication_uuid, "000000")).status);
    }
    return statuses;
  };

  it("five wrong codes in each authentication", async () => {
    const set = setUpTest();
    const { authentication_uuid } = await set.create({ phone_number: number });
    for (let check = 0; check < 5; check++) expect((await set.check(authentication_uuid, "000000")).status).toBe("invalid");
    expect((await set.check(authentication_uuid, code)).status).toBe("rate_limited");
  });

  it("50 wrong codes are evaluated within a day; then even the right one returns `rate_limited`, for up to a day and a half", async () => {
    const set = setUpTest();
    expect(new Set(await guess(set, guesses - 1))).toEqual(new Set(["invalid"]));
    const open = await set.create({ phone_number: number });
    expect((await set.check(open.authentication_uuid, code)).status, "the right one before the last").toBe("valid");
    expect(await guess(set, 1)).toEqual(["invalid"]);
    const { authentication_uuid } = await set.create({ phone_number: number });
    expect((await set.check(authentication_uuid, "000000")).status).toBe("rate_limited");
    expect((await set.check(authentication_uuid, code)).status).toBe("rate_limited");
    set.clock.advance(day + day / 2);
    expect(await guess(set, 1)).toEqual(["invalid"]);
    expect((await set.check((await set.create({ phone_number: number })).authentication_uuid, code)).status).toBe("valid");
  });

  it("50 of a thousand concurrent wrong codes are evaluated, on two hundred authentications in four processes", async () => {
    const store = memoryStore({ name: randomUUID() });
    const customers = [{ customer_uuid: randomUUID(), keys: ["k".repeat(40)] }];
    const processes = Array.from({ length: 4 }, () => setUpTest({ store, customers }));
    const customer_uuid = customers[0]?.customer_uuid as string;
    const ids = await Promise.all(
      Array.from({ length: 200 }, async (_, at) => {
        const { authentication_uuid } = await (processes[at % 4] as (typeof processes)[0]).verifier.createAuthentication({
          customer_uuid,
          phone_number: number,
        });
        return authentication_uuid;
      }),
    );
    const checks = ids.flatMap((authentication_uuid) =>
      Array.from({ length: 5 }, (_, at) =>
        (processes[at % 4] as (typeof processes)[0]).verifier
          .check({ customer_uuid, authentication_uuid, check_code: String(at).repeat(6) })
          .then(({ status }) => status),
      ),
    );
    const statuses = await Promise.all(checks);
    expect(statuses.filter((status) => status === "invalid")).toHaveLength(guesses);
    expect(statuses.filter((status) => status === "rate_limited")).toHaveLength(1_000 - guesses);
  });
});
