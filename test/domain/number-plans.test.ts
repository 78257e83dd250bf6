import fc from "fast-check";
import { PhoneNumberFormat, PhoneNumberType, PhoneNumberUtil } from "google-libphonenumber";
import examples from "libphonenumber-js/examples.mobile.json" with { type: "json" };
import { getCountries, getCountryCallingCode, parsePhoneNumberFromString } from "libphonenumber-js/max";
import { expect, test } from "vitest";
import { plannedNumber } from "../../src/domain/number-plans.js";

const codes = [...new Set(getCountries().map((country) => getCountryCallingCode(country)))];

/** What the library says of a number that it takes for valid and leaves as it is. */
function ofLibrary(number: string) {
  const parsed = parsePhoneNumberFromString(number);
  const type = parsed?.getType();
  return parsed === undefined || type === undefined ? undefined : { number: parsed.number, country: parsed.country, type };
}

/** `undefined`: as the library has it, or nothing is said. Else both answers. */
function difference(number: string) {
  const planned = plannedNumber(number);
  const same = ofLibrary(number);
  const ours = planned && { number, ...planned };
  return ours === undefined || JSON.stringify(ours) === JSON.stringify(same) ? undefined : { ours, same };
}

const google = PhoneNumberUtil.getInstance();
const ofGoogle = google
  .getSupportedRegions()
  .flatMap((region) => Object.values(PhoneNumberType).flatMap((type) => (type < 0 ? [] : (google.getExampleNumberForType(region, type) ?? []))))
  .map((parsed) => google.format(parsed, PhoneNumberFormat.E164));
const mobiles = Object.entries(examples).map(([country, national]) => `+${getCountryCallingCode(country as "FR")}${national}`);

test("examples of every country and kind, and all that differ from one in up to three digits at one place, are as the library has them", () => {
  const near = (number: string): string[] =>
    Array.from({ length: number.length - 2 }, (_, at) => at + 2).flatMap((at) =>
      ["", "0", "5", "00", "18", "909"].map((digits) => number.slice(0, at) + digits + number.slice(at + digits.length)),
    );
  const numbers = [...new Set([...mobiles, ...ofGoogle].flatMap((number) => [number, `${number}1`, number.slice(0, -1), ...near(number)]))];
  expect(numbers.length).toBeGreaterThan(40_000);
  expect(numbers.map(difference).filter((one) => one !== undefined)).toEqual([]);
});

test("any digits behind any calling code are as the library has them", () => {
  const national = fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 0, maxLength: 14 });
  fc.assert(
    fc.property(fc.constantFrom(...codes), national, (code, digits) => difference(`+${code}${digits}`) === undefined),
    { numRuns: 20_000 },
  );
});

test("nine in ten mobiles need no search of the library; of no plan nothing is said", () => {
  const found = mobiles.filter((number) => plannedNumber(number) !== undefined);
  expect(found.length / mobiles.length).toBeGreaterThan(0.9);
  for (const number of ["+0", "+8816123456789", "+999123456789", "+1", "+33"]) expect(plannedNumber(number), number).toBeUndefined();
});

test("what may begin with a trunk prefix is left to the library", () => {
  expect(plannedNumber("+33612345678")).toEqual({ country: "FR", type: "MOBILE" });
  expect(plannedNumber("+330612345678")).toBeUndefined();
  expect(plannedNumber("+390612345678")).toEqual({ country: "IT", type: "FIXED_LINE" });
  // Belarus: its numbers for premium rates may begin with the 8 that is also dialled before numbers within the country, and this is none of them.
  expect(ofLibrary("+3758100112416")).toBeUndefined();
  expect(plannedNumber("+3758100112416")).toBeUndefined();
});

test.each(["+494920717577796", "+4343511257"])(
  "%s, which one kind of its plan would take and the plan as a whole does not, is left to the library",
  (number) => {
    expect(ofLibrary(number)).toBeUndefined();
    expect(plannedNumber(number)).toBeUndefined();
  },
);
