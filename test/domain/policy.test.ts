import { expect, it } from "vitest";
import { defaultPolicy, milliseconds, withOverride } from "../../src/domain/policy.js";

it("`undefined` in an override, also in its limits, changes nothing", () => {
  const perIp = [{ limit: 1, window: 60 }];
  expect(withOverride(defaultPolicy, { lifetime: undefined, limits: undefined })).toEqual(defaultPolicy);
  expect(withOverride(defaultPolicy, { checks: 1, limits: { perIp, perNumber: undefined } })).toEqual({
    ...defaultPolicy,
    checks: 1,
    limits: { ...defaultPolicy.limits, perIp },
  });
});

it("seconds become whole milliseconds", () => {
  // 2.3 * 1000 is 2299.9999999999995.
  expect([0.001, 2.3, 0.0316, 86_400].map(milliseconds)).toEqual([1, 2300, 32, 86_400_000]);
});
