import { PhoneNumberFormat, PhoneNumberType, PhoneNumberUtil } from "google-libphonenumber";
import examples from "libphonenumber-js/examples.mobile.json" with { type: "json" };
import { getCountryCallingCode } from "libphonenumber-js/max";
import { expect, it } from "vitest";
import type { LineType } from "../../src/contract/lookup.js";
import { type NumberRules, phoneNumberOf } from "../../src/domain/phone-number.js";

/** Google's own port of libphonenumber: an independent parser with its own copy of the metadata. */
const google = PhoneNumberUtil.getInstance();

/** Its names for line types in our terms, written down a second time. */
const inOurWords: Readonly<Record<string, LineType>> = {
  FIXED_LINE: "FixedLine",
  MOBILE: "Mobile",
  FIXED_LINE_OR_MOBILE: "Unknown",
  TOLL_FREE: "TollFree",
  PREMIUM_RATE: "PremiumRate",
  SHARED_COST: "SharedCost",
  VOIP: "Voip",
  PERSONAL_NUMBER: "Unknown",
  PAGER: "Pager",
  UAN: "UniversalAccess",
  VOICEMAIL: "VoiceMail",
  UNKNOWN: "Unknown",
};

const rules: NumberRules = { validation: "valid", testNumbers: new Map(), ambiguousLineType: "Unknown" };

/** Where the two differ and why, by the first digits of numbers. */
const knownToDiffer: Readonly<Record<string, string>> = {
  "+2298": "Benin: the plan changed, and the two have it of different months",
  "+267": "Botswana: likewise, its VoIP range and lengths of fixed numbers",
  "+26313": "Zimbabwe: likewise, a fixed range",
  "+290": "Saint Helena and Tristan da Cunha: ours leaves open what kind some valid numbers are",
  "+49800": "Germany: toll-free numbers of sixteen digits, one more than E.164 allows",
};

/** The result of Google's port for a number, in the form of ours. */
function theirs(number: string): string {
  try {
    const parsed = google.parse(number);
    if (!google.isValidNumber(parsed)) return "invalid";
    const type = google.getNumberType(parsed);
    const name = Object.keys(PhoneNumberType).find((key) => PhoneNumberType[key] === type) ?? "UNKNOWN";
    const region = google.getRegionCodeForNumber(parsed);
    return `${region === undefined || region === "001" ? "no country" : region} ${inOurWords[name]}`;
  } catch {
    return "invalid";
  }
}

function ours(number: string): string {
  const phone = phoneNumberOf(number, rules);
  return phone === undefined ? "invalid" : `${phone.country ?? "no country"} ${phone.lineType}`;
}

/** The number and similar ones: with other last digits, one digit more or one less. */
function variations(number: string): string[] {
  const ends = ["0", "7", "00", "99", "123", "4567", "98765"].map((end) => number.slice(0, -end.length) + end);
  return [number, ...ends, `${number}1`, number.slice(0, -1)];
}

it("the offline result is that of Google's own port, but for known differences, on 500 numbers, 60 countries and every line type", () => {
  const e164 = (parsed: Parameters<typeof google.format>[0]) => google.format(parsed, PhoneNumberFormat.E164);
  const types = Object.values(PhoneNumberType).filter((type) => type >= 0);
  const ofGoogle = google.getSupportedRegions().flatMap((region) => types.flatMap((type) => google.getExampleNumberForType(region, type) ?? []));
  const global = google.getSupportedGlobalNetworkCallingCodes().flatMap((code) => google.getExampleNumberForNonGeoEntity(code) ?? []);
  const ofOurs = Object.entries(examples).map(([country, national]) => `+${getCountryCallingCode(country as "FR")}${national}`);
  const numbers = [...new Set([...[...ofGoogle, ...global].map(e164), ...ofOurs].flatMap(variations))];

  const compared = numbers.map((number) => ({ number, ours: ours(number), theirs: theirs(number) }));
  const valid = compared.filter((one) => one.theirs !== "invalid");
  const differ = compared.filter((one) => one.ours !== one.theirs);
  const countries = new Set(valid.map((one) => one.theirs.split(" ")[0]));
  const kinds = new Map<string, number>();
  for (const { theirs: said } of valid) kinds.set(said.split(" ").at(-1) ?? "", (kinds.get(said.split(" ").at(-1) ?? "") ?? 0) + 1);
  console.log(
    `${numbers.length} numbers compared, ${valid.length} of them valid, over ${countries.size} countries; by kind: ${[...kinds].map(([kind, count]) => `${kind} ${count}`).join(", ")}; ${differ.length} differ`,
    differ.map((one) => `${one.number}: ours ${one.ours}, Google's ${one.theirs}`),
  );
  expect(valid.length).toBeGreaterThanOrEqual(500);
  expect(countries.size).toBeGreaterThanOrEqual(60);
  expect([...kinds.keys()].sort(), "every kind that the plans name").toEqual([...new Set(Object.values(inOurWords))].sort());
  const unexplained = differ.filter(({ number }) => !Object.keys(knownToDiffer).some((beginning) => number.startsWith(beginning)));
  expect(unexplained).toEqual([]);
  expect(differ.length / numbers.length, "and they are few").toBeLessThan(0.005);
});

it.each(["possible", "valid"] as const)(
  '"%s": the canonical form of a number with up to four trunk prefixes is its own canonical form (docs/contract.md#canonical-form)',
  (validation) => {
    const read = (number: string) => phoneNumberOf(number, { ...rules, validation })?.number;
    const ends = { same: 0, changed: 0, refused: 0 };
    for (const region of google.getSupportedRegions())
      for (const type of [PhoneNumberType.MOBILE, PhoneNumberType.PREMIUM_RATE]) {
        const example = google.getExampleNumberForType(region, Number(type));
        if (example === null) continue;
        const plain = google.format(example, PhoneNumberFormat.E164);
        const length = 1 + String(example.getCountryCode()).length;
        for (const trunks of ["", ...["0", "1", "8"].flatMap((trunk) => [1, 2, 3, 4].map((times) => trunk.repeat(times)))]) {
          const number = plain.slice(0, length) + trunks + plain.slice(length);
          const first = read(number);
          ends[first === undefined ? "refused" : first === number ? "same" : "changed"]++;
          if (first !== undefined && first !== number) expect(read(first), number).toBe(first);
        }
      }
    expect(ends.changed).toBeGreaterThan(100);
    expect(ends.refused).toBeGreaterThan(100);
    expect(ends.same).toBeGreaterThan(300);
  },
);

it.each(["possible", "valid"] as const)(
  '"%s": a number with two or more trunk prefixes is invalid, in every country (docs/contract.md#canonical-form)',
  (validation) => {
    const accepted: string[] = [];
    const countries = new Set<string>();
    for (const region of google.getSupportedRegions())
      for (const type of Object.values(PhoneNumberType)) {
        const trunk = (google as unknown as { getNddPrefixForRegion(region: string, digitsOnly: boolean): string | null }).getNddPrefixForRegion(region, true);
        const example = google.getExampleNumberForType(region, Number(type));
        if (!trunk || example === null) continue;
        countries.add(region);
        const plain = google.format(example, PhoneNumberFormat.E164);
        const length = 1 + String(example.getCountryCode()).length;
        for (const times of [2, 3, 4, 5, 6]) {
          const number = plain.slice(0, length) + trunk.repeat(times) + plain.slice(length);
          if (phoneNumberOf(number, { ...rules, validation }) !== undefined) accepted.push(number);
        }
      }
    expect(countries.size).toBeGreaterThan(130);
    // Numbers of Russia's plan that begin with an 8 may have 14 digits.
    expect(accepted.filter((number) => !/^\+78{4}\d{10}$/.test(number))).toEqual([]);
  },
);

it('"possible": a digit that numbers of the country begin with is no trunk prefix, in ranges that are unknown too (docs/contract.md#canonical-form)', () => {
  const newRanges = ["+78881234567", "+2250312345678", "+390001234567", "+447000012345", "+493111111111", "+61212345670"];
  for (const number of newRanges) expect(phoneNumberOf(number, { ...rules, validation: "possible" })?.number, number).toBe(number);
});
