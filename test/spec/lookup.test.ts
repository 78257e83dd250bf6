import { describe, expect, it } from "vitest";
import type { LookupFacts, LookupProvider } from "../../src/index.js";
import { errorCode, numberOf, setUp } from "../support/verifier.js";

const look = (set: ReturnType<typeof setUp>, phone_number: string) => set.verifier.lookup({ customer_uuid: set.customer, phone_number });
const provider = (lookup: LookupProvider["lookup"]) => setUp({ lookup: { lookup } });

describe("Phone lookup result (docs/contract.md#lookup)", () => {
  it.each([
    ["+33612345678", { country_code: "FR", line_type: "Mobile" }],
    ["+33142345678", { country_code: "FR", line_type: "FixedLine" }],
    ["+18005550199", { country_code: "US", line_type: "TollFree" }],
    ["+19005550199", { country_code: "US", line_type: "PremiumRate" }],
    ["+41840123456", { country_code: "CH", line_type: "SharedCost" }],
    ["+445600123456", { country_code: "GB", line_type: "Voip" }],
    ["+447640123456", { country_code: "GB", line_type: "Pager" }],
    ["+443001234567", { country_code: "GB", line_type: "UniversalAccess" }],
    ["+447012345678", { country_code: "GB", line_type: "Unknown" }],
    ["+14155552671", { country_code: "US", line_type: "Unknown" }],
    ["+525512345678", { country_code: "MX", line_type: "Unknown" }],
    ["+447911123456", { country_code: "GG", line_type: "Mobile" }],
    ["+88213000000", { line_type: "Voip" }],
  ])("%s: returns phone_number and line_type, country_code unless the number is non-geographic, and nothing else offline", async (phone_number, rest) => {
    expect(await look(setUp(), phone_number)).toEqual({ phone_number, ...rest });
  });

  it("FIXED_LINE_OR_MOBILE is `Unknown` in lookup unless `ambiguousLineType` overrides it (docs/contract.md#ambiguous-lines)", async () => {
    expect((await look(setUp({ ambiguousLineType: "Mobile" }), "+14155552671")).line_type).toBe("Mobile");
  });

  it("`carrier`, `mcc`, `mnc` and `number_ported` come from the provider, whose line_type overrides the numbering plan's", async () => {
    const set = provider(async ({ phone_number, line_type }) => {
      expect([phone_number, line_type]).toEqual(["+14155552671", "Unknown"]);
      return { carrier: "Verizon", mcc: "311", mnc: "480", number_ported: true, line_type: "Mobile" };
    });
    expect(await look(set, "+14155552671")).toEqual({
      carrier: "Verizon",
      country_code: "US",
      line_type: "Mobile",
      mcc: "311",
      mnc: "480",
      number_ported: true,
      phone_number: "+14155552671",
    });
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("down");
      },
    ],
    ["rejects", async () => Promise.reject(new Error("down"))],
    ["answers null", async () => null],
    ["answers a string", async () => "Verizon"],
    ["answers fields of the wrong form", async () => ({ carrier: 5, mcc: "1", mnc: 10, number_ported: "yes", line_type: "Toaster", country_code: "usa" })],
    ["answers `Unknown`, which is no word against the plan's", async () => ({ line_type: "Unknown" })],
    ["answers MNC without MCC", async () => ({ mnc: "01" })],
    ["answers nulls", async () => ({ carrier: null, mcc: null, line_type: null })],
  ])("a lookup that %s does not make the request fail", async (_what, lookup) => {
    expect(await look(provider(lookup as never), "+33612345678")).toEqual({ phone_number: "+33612345678", country_code: "FR", line_type: "Mobile" });
  });

  it("a lookup that hangs is aborted after `lookupTimeout`", async () => {
    let aborted = false;
    const set = provider((_request, { signal }) => new Promise<LookupFacts>(() => signal.addEventListener("abort", () => (aborted = true))));
    const looking = look(set, "+33612345678");
    await new Promise((resolve) => setImmediate(resolve));
    set.clock.advance(2000);
    expect((await looking).line_type).toBe("Mobile");
    expect(aborted).toBe(true);
  });

  it("beyond the ceiling of lookups the provider is not asked", async () => {
    let asked = 0;
    const set = setUp({ lookup: { lookup: async () => ({ carrier: `asked ${++asked}` }) }, policy: { limits: { lookups: [{ limit: 2, window: 3600 }] } } });
    const carriers = [];
    for (let index = 0; index < 4; index++) carriers.push((await look(set, numberOf(index))).carrier);
    expect(carriers).toEqual(["asked 1", "asked 2", undefined, undefined]);
  });

  it("a phone_number that is not E.164 or not valid is `invalid_phone_number`", async () => {
    const set = setUp();
    for (const number of ["33612345678", "+1", "nonsense", "+336 12345678"]) expect(await errorCode(look(set, number))).toBe("invalid_phone_number");
  });

  it("an unknown customer-uuid is `account_invalid`", async () => {
    const set = setUp();
    expect(await errorCode(set.verifier.lookup({ customer_uuid: "11111111-2222-3333-4444-555555555555", phone_number: "+33612345678" }))).toBe(
      "account_invalid",
    );
  });
});
