import { getCountries } from "libphonenumber-js/max";
import { expect, test } from "vitest";
import { countryCodes } from "../../src/domain/countries.js";

test("the countries are those of libphonenumber-js", () => {
  expect([...countryCodes].sort()).toEqual(getCountries().sort());
});
