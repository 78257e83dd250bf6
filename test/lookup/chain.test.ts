import { describe, expect, it } from "vitest";
import { lookupChain, type WantedFact } from "../../adapters/lookup/chain.js";
import type { LookupProvider, LookupResult } from "../../src/index.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";

const request = { phone_number: "+14155552671", country_code: "US", line_type: "Unknown" as const };
const inTime = (timeLeft = 2000) => ({ signal: new AbortController().signal, timeLeft });
const soon = () => new Promise((resolve) => setImmediate(resolve));

/** A provider that answers so, and counts how often it is asked. */
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

/** What a chain of sources that answer so comes to, without what it cost. */
async function chained(...answers: (LookupResult | undefined | Error)[]) {
  const { price, ...facts } = (await lookupChain(answers.map((answer) => source(answer).provider)).lookup(request, inTime())) as LookupResult;
  return facts;
}

const verizon = { carrier: "Verizon", mcc: "311", mnc: "480" };

describe("fields missing are filled by the later ones only where that is sound", () => {
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

  it("one that knows nothing makes way, and that nothing is known by any is no failure", async () => {
    expect(await chained(undefined, verizon)).toEqual(verizon);
    expect(await chained(undefined, {})).toEqual({});
  });
});

describe("a provider that fails or hangs makes way for the next", () => {
  it("one that throws: what the next knows is told, with what failed, and as incomplete where something is left to know", async () => {
    expect(await chained(new Error("HTTP 500"), verizon)).toEqual({ ...verizon, failed: ["HTTP 500"], incomplete: true });
    const all: LookupResult = { ...verizon, line_type: "Mobile", number_ported: false };
    expect(await chained(new Error("HTTP 500"), all), "nothing is left to know").toEqual({ ...all, failed: ["HTTP 500"] });
  });

  it("all fail: the chain fails, with each reason", async () => {
    await expect(chained(new Error("one"), new Error("two"))).rejects.toThrow("one; two");
  });

  it("one that hangs has an even share of the time, is aborted, and the next is asked within what is left", async () => {
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

  it("where no time is left nobody is asked, and nothing paid", async () => {
    const one = source(verizon, 1);
    await expect(lookupChain([one.provider]).lookup(request, inTime(50))).rejects.toMatchObject({
      message: "timed out before all providers were asked",
      price: 0,
    });
    expect(one.asked.times).toBe(0);
  });

  it("a lookup that is called off ends at once", async () => {
    const abort = new AbortController();
    const looking = lookupChain([{ lookup: () => new Promise(() => {}) }]).lookup(request, { signal: abort.signal, timeLeft: 2000 });
    await soon();
    abort.abort();
    await expect(looking).rejects.toThrow("the lookup timed out");
  });

  it("one that throws before it answers, or something that is no error, is a failure like others", async () => {
    const throws: LookupProvider = {
      lookup() {
        throw "down";
      },
    };
    expect(await lookupChain([throws, source(verizon).provider]).lookup(request, inTime())).toMatchObject(verizon);
  });
});

describe("who is asked, and what it costs", () => {
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

  it("its price is the sum, known where each is; what was not asked, or told another price, is given back", async () => {
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

  it("it states a price of 0 if nothing asked costs anything, not if a free provider was asked alone (docs/lookup.md#price)", async () => {
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
