import { describe, expect, it } from "vitest";
import type { List, PolicyOverride } from "../../src/index.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { errorCode, numberOf, setUp } from "../support/verifier.js";

const french = (index: number) => `+3361200${String(index).padStart(4, "0")}`;
const turn = () => new Promise(setImmediate);

/** Rules that block the sixth message to a range, and the eleventh by the crowd rule. */
const strict: NonNullable<PolicyOverride["spam"]> = { ...noSpamRules, range: { mode: "enforce" }, crowd: { mode: "enforce", messages: 10 } };

/** Fills the range's seed. */
async function filled(options: Parameters<typeof setUp>[0] = {}) {
  const set = setUp({ ...options, policy: { spam: strict, ...options?.policy } });
  for (let index = 0; index < 5; index++) expect((await set.create({ phone_number: french(index) })).status).toBe("pending");
  expect((await set.create({ phone_number: french(10) })).status).toBe("spam_detected");
  return set;
}

describe("lists: block and safe, which may change while the verifier runs", () => {
  it("a blocked number is `blocked_number`, a blocked address or device `spam_detected`, and explain shows no more than a range (docs/contract.md#lists)", async () => {
    const set = setUp({
      lists: { block: { numbers: [numberOf(1), "+44*"], cidrs: ["203.0.113.0/24", "192.0.2.7", "192.0.2.8/32", "2001:db8::/32"], devices: ["bad"] } },
    });
    expect(await errorCode(set.create())).toBe("blocked_number");
    expect(await errorCode(set.create({ phone_number: "+447400123456" }))).toBe("blocked_number");
    for (const [fields, reason] of [
      [{ ip: "203.0.113.9" }, "the address is on the block list: 203.0.113.0/24"],
      [{ ip: "2001:db8:7::1" }, "the address is on the block list: 2001:db8::/32"],
      [{ ip: "192.0.2.7" }, "the address is on the block list"],
      [{ ip: "192.0.2.8" }, "the address is on the block list"],
      [{ device_id: "bad" }, "the device is on the block list"],
    ] as const) {
      const { authentication_uuid, status } = await set.create({ phone_number: numberOf(2), ...fields });
      expect(status).toBe("spam_detected");
      const { decisions } = await set.verifier.explain({ customer_uuid: set.customer, authentication_uuid });
      expect(decisions).toMatchObject([{ rule: "blockList", mode: "enforce", reason }]);
    }
    expect((await set.create({ phone_number: numberOf(2), ip: "198.51.100.1", device_id: "good" })).status).toBe("pending");
    expect(set.box.messages).toHaveLength(1);
  });

  it("if the number is blocked after create, retry is `rate_limited` and nothing is sent", async () => {
    let block: List = {};
    const set = setUp({ lists: { block: () => block, refresh: 1 } });
    const { authentication_uuid } = await set.create();
    block = { numbers: [numberOf(1)] };
    set.clock.advance(30_000);
    expect((await set.create({ phone_number: numberOf(2) })).status).toBe("pending");
    await turn();
    expect((await set.retry(authentication_uuid)).status).toBe("rate_limited");
    expect(set.box.messages).toHaveLength(2);
  });

  it("safe beats rules, never caps; block beats safe", async () => {
    const set = await filled({ lists: { safe: { numbers: [`${french(0).slice(0, -4)}90*`], devices: ["mine"] }, block: { devices: ["stolen"] } } });
    expect((await set.create({ phone_number: french(9_001) })).status).toBe("pending");
    expect((await set.create({ phone_number: french(11), device_id: "mine" })).status).toBe("pending");
    expect((await set.create({ phone_number: french(9_002), device_id: "stolen" })).status).toBe("spam_detected");
    const statuses = [];
    for (let send = 0; send < 5; send++) statuses.push((await set.create({ phone_number: french(9_001) })).status);
    expect(statuses).toEqual(["pending", "pending", "pending", "pending", "rate_limited"]);
  });

  it("an authentication whose device was on the safe list is exempt on retry too", async () => {
    const set = setUp({ lists: { safe: { devices: ["mine"] } }, policy: { spam: strict } });
    const { authentication_uuid } = await set.create({ phone_number: french(50), device_id: "mine" });
    for (let index = 0; index < 6; index++) await set.create({ phone_number: french(index) });
    set.clock.advance(30_000);
    expect((await set.retry(authentication_uuid)).status).toBe("approved");
  });
});

describe("the caller's own `judge` rules (docs/contract.md#lists, docs/contract.md#challenge)", () => {
  const never = { name: "never", judge: () => ({ reason: "never" }) };

  it("do not apply to a create, start, retry or deliver that is on the safe list, and are not recorded", async () => {
    const set = setUp({ spamRules: [never, { ...never, name: "observed", mode: "shadow" }], lists: { safe: { devices: ["mine"] } } });
    const { authentication_uuid, status } = await set.create({ phone_number: french(1), device_id: "mine" });
    expect(status).toBe("pending");
    const customer_uuid = set.customer;
    expect((await set.verifier.verifications.start({ customer_uuid, phone_number: french(2), device_id: "mine" })).status).toBe("pending");
    const delivery = { customer_uuid, phone_number: french(3), device_id: "mine", code: "123456", purpose: "sign-in", conversion: "reported" } as const;
    expect((await set.verifier.deliver(delivery)).status).toBe("sent");
    set.clock.advance(30_000);
    // The record stores that it is safe; a retry has no device.
    expect((await set.retry(authentication_uuid)).status).toBe("approved");
    expect((await set.verifier.explain({ customer_uuid, authentication_uuid })).decisions).toEqual([]);
    expect((await set.create({ phone_number: french(1) })).status).toBe("spam_detected");
  });

  it("do not apply to a create with a valid proof, but to its retry", async () => {
    const set = setUp({ spamRules: [never], challenge: { verify: async (proof: string) => proof === "right" } });
    const { authentication_uuid, status } = await set.create({ proof: "right" });
    expect(status).toBe("pending");
    expect((await set.create({ proof: "wrong" })).status).toBe("spam_detected");
    set.clock.advance(30_000);
    expect((await set.retry(authentication_uuid)).status).toBe("rate_limited");
  });
});

describe("challenge: create takes an optional `proof`", () => {
  const challenge = { verify: async (proof: string) => proof === "right" };

  it("a valid one waives the spam rules for that request", async () => {
    const set = await filled({ challenge });
    expect((await set.create({ phone_number: french(11), proof: "right" })).status).toBe("pending");
    expect((await set.create({ phone_number: french(12) })).status, "for that request").toBe("spam_detected");
  });

  it("a valid one waives neither the crowd rule nor the caps", async () => {
    const set = await filled({ challenge });
    const statuses = [];
    for (let index = 0; index < 8; index++) statuses.push((await set.create({ phone_number: french(20 + index), proof: "right" })).status);
    expect(statuses).toEqual([...Array(5).fill("pending"), ...Array(3).fill("spam_detected")]);
    const capped = setUp({ challenge, policy: { spam: strict, limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
    expect([(await capped.create({ proof: "right" })).status, (await capped.create({ proof: "right" })).status]).toEqual(["pending", "rate_limited"]);
  });

  it("one that is wrong, late or cannot be checked is not an error: the rules simply apply", async () => {
    const set = await filled({
      challenge: {
        verify: async (proof) => {
          if (proof === "broken") throw new Error("down");
          return proof === "slow" ? new Promise<boolean>(() => undefined) : false;
        },
      },
    });
    expect((await set.create({ phone_number: french(11), proof: "wrong" })).status).toBe("spam_detected");
    expect((await set.create({ phone_number: french(11), proof: "broken" })).status).toBe("spam_detected");
    const slow = set.create({ phone_number: french(12), proof: "slow" });
    await turn();
    set.clock.advance(2000);
    expect((await slow).status).toBe("spam_detected");
    expect((await set.create({ phone_number: `+3361277${"0001"}`, proof: "wrong" })).status, "where no rule refuses it goes").toBe("pending");
  });

  it("without a challenge a proof has no effect; one of a wrong type or length is `bad_request`", async () => {
    const set = await filled();
    expect((await set.create({ phone_number: french(11), proof: "right" })).status).toBe("spam_detected");
    for (const proof of [7, "", null, {}, "x".repeat(8_193)]) expect(await errorCode(set.create({ proof }))).toBe("bad_request");
  });

  it("Idempotency-Key: a repeat with a fresh proof is the same request", async () => {
    const set = setUp({ challenge });
    const first = await set.create({ proof: "right" }, { idempotencyKey: "k" });
    expect(await set.create({ proof: "another" }, { idempotencyKey: "k" })).toEqual(first);
    expect(await set.create({}, { idempotencyKey: "k" })).toEqual(first);
  });
});
