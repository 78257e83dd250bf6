import { describe, expect, it } from "vitest";
import { lookupChain, type WantedFact } from "../../adapters/lookup/chain.js";
import type { LookupProvider, LookupResult } from "../../src/index.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";

const request = { phone_number: "+14155552671", country_code: "US", line_type: "Unknown" as const };
const inTime = (timeLeft = 2000) => ({ signal: new AbortController().signal, timeLeft });
const soon = () => new Promise((resolve) => setImmediate(resolve));

/** A provider that gives this answer and counts its calls. */
function source(answer: LookupResult | undefined | Error, price?: number) {
  const asked = { times: 0 };
  const provider: LookupProvider = {
    price,
    async lookup() {
      asked.times++;
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  return { provider, asked };
}

/** The facts from a chain of sources with these answers, without the price. */
async function chained(...answers: (LookupResult | undefined | Error)[]) {
  const { price, ...facts } = (await lookupChain(answers.map((answer) => source(answer).provider)).lookup(request, inTime())) as LookupResult;
  return facts;
}

const verizon = { carrier: "Verizon", mcc: "311", mnc: "480" };

describe("later providers fill in missing fields only if they are consistent", () => {
  it.each<[string, LookupResult[], LookupResult]>([
    [
      "the first word stands",
      [
        { line_type: "Mobile", ...verizon },
        { line_type: "Mobile", ...verizon, carrier: "Other" },
      ],
      { line_type: "Mobile", ...verizon },
    ],
    ["porting is added by who knows", [{ line_type: "Mobile", ...verizon }, { number_ported: true }], { line_type: "Mobile", ...verizon, number_ported: true }],
    ["a line type is added", [verizon, { line_type: "Mobile" }], { ...verizon, line_type: "Mobile" }],
    ["`Unknown` is no word", [{ line_type: "Unknown", ...verizon }, { line_type: "Voip" }], { ...verizon, line_type: "Voip" }],
    ["a whole network is added", [{ line_type: "Mobile" }, verizon], { line_type: "Mobile", ...verizon }],
    ["half a network is not made whole by another's half", [{ mcc: "311" }, { mcc: "311", mnc: "480", carrier: "Verizon" }], { mcc: "311" }],
    ["a carrier's name is added where both name the same network", [{ mcc: "311", mnc: "480" }, verizon], verizon],
    ["a network is added where both name the same carrier", [{ carrier: "Verizon" }, verizon], verizon],
    ["a carrier is not given another's network", [{ carrier: "Three" }, verizon], { carrier: "Three" }],
    [
      "one that contradicts the line type adds nothing",
      [{ line_type: "FixedLine" }, { line_type: "Mobile", ...verizon, number_ported: true }],
      { line_type: "FixedLine" },
    ],
    [
      "one that contradicts the network adds nothing",
      [
        { mcc: "208", mnc: "01" },
        { mcc: "208", mnc: "10", line_type: "Mobile", number_ported: true },
      ],
      { mcc: "208", mnc: "01" },
    ],
    ["one that contradicts the country adds nothing", [{ country_code: "US" }, { country_code: "CA", line_type: "Mobile" }], { country_code: "US" }],
    [
      "another country than the number's is none",
      [{ country_code: "CA" }, { country_code: "US", line_type: "Mobile" }],
      { country_code: "US", line_type: "Mobile" },
    ],
    ["a line type that does not exist is none", [{ line_type: "mobile" as never }, { line_type: "Mobile", mnc: "480" }], { line_type: "Mobile" }],
    ["whoever contradicts, the next may still add", [{ line_type: "Mobile" }, { line_type: "Voip", mcc: "1" }, verizon], { line_type: "Mobile", ...verizon }],
  ])("%s", async (_, answers, facts) => {
    expect(await chained(...answers)).toEqual(facts);
  });

  it("a provider without facts is skipped, and a chain without any facts does not fail", async () => {
    expect(await chained(undefined, verizon)).toEqual(verizon);
    expect(await chained(undefined, {})).toEqual({});
  });
});

describe("after a provider that fails or hangs the next one is called", () => {
  it("after an error the result has the next one's facts, the failure, and `incomplete` if facts are missing", async () => {
    expect(await chained(new Error("HTTP 500"), verizon)).toEqual({ ...verizon, failed: ["HTTP 500"], incomplete: true });
    const all: LookupResult = { ...verizon, line_type: "Mobile", number_ported: false };
    expect(await chained(new Error("HTTP 500"), all), "nothing is left to know").toEqual({ ...all, failed: ["HTTP 500"] });
  });

  it("the chain fails with each reason if all providers fail", async () => {
    await expect(chained(new Error("one"), new Error("two"))).rejects.toThrow("one; two");
  });

  it("a provider that hangs is aborted after an even share of the time, and the next one gets the rest", async () => {
    const clock = fixedClock(0);
    let aborted = false;
    const hangs: LookupProvider = { lookup: (_, { signal }) => new Promise(() => signal.addEventListener("abort", () => (aborted = true))) };
    const lefts: number[] = [];
    const knows: LookupProvider = {
      async lookup(_, { timeLeft }) {
        lefts.push(timeLeft);
        return verizon;
      },
    };
    const looking = lookupChain([hangs, knows], { clock }).lookup(request, inTime(2050));
    await soon();
    clock.advance(999);
    await soon();
    expect([aborted, lefts]).toEqual([false, []]);
    clock.advance(1);
    expect(await looking).toMatchObject({ ...verizon, failed: ["a provider did not respond within 1000 ms"], incomplete: true });
    expect([aborted, lefts]).toEqual([true, [1000]]);
  });

  it("`timeout` is each provider's own deadline", async () => {
    const clock = fixedClock(0);
    const hangs: LookupProvider = { lookup: () => new Promise(() => {}) };
    const looking = lookupChain([hangs, source(verizon).provider], { clock, timeout: 0.3 }).lookup(request, inTime());
    await soon();
    clock.advance(300);
    expect(await looking).toMatchObject({ ...verizon, failed: ["a provider did not respond within 300 ms"] });
  });

  it("without time left no provider is called, and the price is 0", async () => {
    const one = source(verizon, 1);
    await expect(lookupChain([one.provider]).lookup(request, inTime(50))).rejects.toMatchObject({
      message: "timed out before all providers were asked",
      price: 0,
    });
    expect(one.asked.times).toBe(0);
  });

  it("an aborted lookup ends at once", async () => {
    const abort = new AbortController();
    const looking = lookupChain([{ lookup: () => new Promise(() => {}) }]).lookup(request, { signal: abort.signal, timeLeft: 2000 });
    await soon();
    abort.abort();
    await expect(looking).rejects.toThrow("the lookup timed out");
  });

  it("a provider that throws before it returns a promise, or throws a string, counts as failed", async () => {
    const throws: LookupProvider = {
      lookup() {
        throw "down";
      },
    };
    expect(await lookupChain([throws, source(verizon).provider]).lookup(request, inTime())).toMatchObject(verizon);
  });
});

describe("which providers are called, and what it costs", () => {
  it.each<[string, WantedFact[] | undefined, LookupResult, number]>([
    ["all is known: nobody further", undefined, { ...verizon, line_type: "Mobile", number_ported: true }, 0],
    ["porting is missing: the next", undefined, { ...verizon, line_type: "Mobile" }, 1],
    ["what is wanted is known: nobody further", ["line_type", "mcc", "mnc"], { ...verizon, line_type: "Mobile" }, 0],
    ["no network is waited for on a fixed line", ["line_type", "mcc", "mnc"], { line_type: "FixedLine" }, 0],
    ["`Unknown` is not known", ["line_type"], { line_type: "Unknown" }, 1],
  ])("%s", async (_, wants, first, times) => {
    const second = source(undefined);
    await lookupChain([source(first).provider, second.provider], { ...(wants && { wants }) }).lookup(request, inTime());
    expect(second.asked.times).toBe(times);
  });

  it("the chain's price is the sum if each is known; a result leaves out providers not called, and uses the prices they state", async () => {
    const all: LookupResult = { ...verizon, line_type: "Mobile", number_ported: true };
    const two = lookupChain([source(all, 0.01).provider, source(all, 0.02).provider]);
    expect(two.price).toBeCloseTo(0.03);
    expect(await two.lookup(request, inTime())).toMatchObject({ price: 0.01 });
    expect(lookupChain([source(all, 0.01).provider, source(all).provider]).price).toBeUndefined();
    const free = Object.assign(new Error("HTTP 429"), { price: 0 });
    expect(await lookupChain([source(free, 0.01).provider, source(all, 0.02).provider]).lookup(request, inTime())).toMatchObject({ price: 0.02 });
    const late = new Error("no response in time");
    await expect(lookupChain([source(late, 0.01).provider, source(free, 0.02).provider]).lookup(request, inTime())).rejects.toMatchObject({ price: 0.01 });
  });

  it("it states a price of 0 if no called provider costs anything, but not if only a free one was called (docs/lookup.md#price)", async () => {
    const free = Object.assign(new Error("HTTP 429"), { price: 0 });
    const stated = async (...all: LookupProvider[]) =>
      (
        await lookupChain(all)
          .lookup(request, inTime())
          .catch((error) => error)
      ).price;
    expect(await stated(source(free, 0).provider, source({ price: 0 }).provider)).toBe(0);
    expect(await stated(source({}, 0).provider)).toBeUndefined();
    expect(await stated(source(free).provider, source(undefined).provider)).toBeUndefined();
    expect(await stated(source({}, 0).provider, source(free, 0.01).provider)).toBe(0);
  });

  it.each<[string, () => unknown, string]>([
    ["an empty list", () => lookupChain([]), "lookupChain: option providers must be a list of lookup providers"],
    ["what is no provider", () => lookupChain([{} as never]), "lookupChain: option providers must be"],
    [
      "a price below 0",
      () => lookupChain([source(undefined, -1).provider, source(undefined, 5).provider]),
      "lookupChain: option providers must each have a price",
    ],
    ["a time-out of 0", () => lookupChain([source(undefined).provider], { timeout: 0 }), "lookupChain: option timeout must be"],
    ["a fact that is none", () => lookupChain([source(undefined).provider], { wants: ["colour" as never] }), "lookupChain: option wants must be"],
  ])("options: %s", (_, make, message) => {
    expect(make).toThrow(message);
  });
});
