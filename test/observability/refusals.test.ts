import { describe, expect, it } from "vitest";
import type { VerifierOptions } from "../../src/index.js";
import { errorCode, numberOf, setUp, start } from "../support/verifier.js";

const hour = 3_600_000;
const landline = "+33142685300";
const listed = numberOf(7);

const options: Partial<VerifierOptions> = { countries: ["FR"], lists: { block: { numbers: [listed] } } };

function setUpRefusing(more: Partial<VerifierOptions> = {}) {
  const set = setUp({ ...options, ...more });
  const of = (phone_number: string) => ({ customer_uuid: set.customer, phone_number });
  return {
    ...set,
    of,
    refused: (phone_number: string) => errorCode(set.create({ phone_number })),
    refusals: (phone_number: string) => set.verifier.refusals(of(phone_number)),
  };
}

describe("requests rejected by country, line type or block list (docs/contract.md#uncreated)", () => {
  it.each([
    ["unsupported_region", "+447400123456"],
    ["invalid_line", landline],
    ["blocked_number", listed],
  ])("%s is counted by hour, and creates no authentication", async (code, number) => {
    const set = setUpRefusing();
    expect(await set.refused(number)).toBe(code);
    set.clock.advance(1);
    expect(await set.refused(number)).toBe(code);
    expect(await set.refusals(number)).toEqual([{ code, hour: new Date(start).toISOString(), count: 2, last_at: new Date(start + 1).toISOString() }]);
    set.clock.advance(hour);
    expect(await set.refused(number)).toBe(code);
    expect((await set.refusals(number)).map(({ count }) => count)).toEqual([1, 2]);
    expect(await set.verifier.history(set.of(number))).toEqual([]);
    expect(set.box.messages).toEqual([]);
    expect(await set.refusals(numberOf(9))).toEqual([]);
    set.clock.advance(24 * hour);
    expect(await set.refusals(number)).toEqual([]);
  });

  it("are counted by number too, and after a lookup before the send", async () => {
    const set = setUpRefusing({ lookupBeforeSend: true, lookup: { lookup: async () => ({ line_type: "FixedLine" }) } });
    expect(await errorCode(set.verifier.verifications.start(set.of(numberOf(1))))).toBe("invalid_line");
    expect(await set.refusals(numberOf(1))).toMatchObject([{ code: "invalid_line", count: 1 }]);
  });

  it("are counted up to twenty an hour for a number, even within one millisecond", async () => {
    const set = setUpRefusing();
    for (let index = 0; index < 30; index++) await set.refused(landline);
    expect(await set.refusals(landline)).toMatchObject([{ count: 20 }]);
  });

  it("are counted up to 500 an hour for a customer, separately from its blocked creates", async () => {
    const set = setUpRefusing({ policy: { limits: { perCustomer: [{ limit: 1, window: 86_400 }] } } });
    const others = (index: number) => `+4474001${String(10_000 + index)}`;
    for (let index = 0; index < 501; index++) expect(await set.refused(others(index))).toBe("unsupported_region");
    expect(await set.refusals(others(499))).toHaveLength(1);
    expect(await set.refusals(others(500))).toEqual([]);
    await set.create();
    set.clock.advance(1);
    await set.create();
    expect((await set.verifier.history(set.of(numberOf(1)))).map(({ status }) => status)).toEqual(["rate_limited", "pending"]);
  });

  it("do not include other errors, and a customer sees only its own", async () => {
    const set = setUpRefusing();
    expect(await errorCode(set.create({ phone_number: landline, app_realm: "short" }))).toBe("invalid_app_realm");
    expect(await set.refusals(landline)).toEqual([]);
    await set.refused(landline);
    const other = setUpRefusing({ store: set.store, clock: set.clock });
    expect(await other.refusals(landline)).toEqual([]);
  });

  it("are deleted by an erasure", async () => {
    const set = setUpRefusing();
    await set.refused(landline);
    expect(await set.verifier.erase(set.of(landline))).toMatchObject({ erased: 0 });
    expect(await set.refusals(landline)).toEqual([]);
  });

  it("do not wait for the store to respond, and a failed count is logged", async () => {
    const set = setUpRefusing();
    const store = set.store as { commit: unknown };
    const { commit } = set.store;
    store.commit = async () => Promise.reject(new Error("down"));
    expect(await set.refused(landline)).toBe("invalid_line");
    await expect.poll(() => set.log.lines.map(({ message }) => message)).toContain("a rejected request could not be counted; `refusals` will not show it");
    store.commit = commit;
    expect(await set.refusals(landline)).toEqual([]);
  });
});
