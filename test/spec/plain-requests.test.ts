import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CreateAuthenticationRequest, plainCreate } from "../../src/contract/authentication.js";
import { CheckRequest, plainCheck } from "../../src/contract/check.js";

const uuid = "2f0e6f5c-3b7a-4d58-9c1e-6a1b2c3d4e5f";

/** What is taken as it stands, and what is not, of each kind. */
const plain = {
  uuid: fc.constantFrom(uuid, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
  text: fc.constantFrom("a", "é ü", "😀", "x".repeat(128)),
  code: fc.constantFrom("123456", "0", "wrong", "9".repeat(64)),
};
const odd = fc.constantFrom<unknown>(
  undefined,
  null,
  "",
  " ",
  "x".repeat(129),
  "x".repeat(8193),
  "a\u0000",
  "a\u2028",
  "\u200b",
  "\ud800",
  0,
  1,
  true,
  Number.NaN,
  [],
  ["1.2.3.4"],
  {},
  { $ne: null },
  () => "",
  Symbol.iterator,
  1n,
  new String("web"),
  uuid.toUpperCase(),
  `${uuid}\n`,
  `{${uuid}}`,
  uuid.replaceAll("-", ""),
  "WEB",
  "web",
  "WEB ",
  "1.2.3.4",
  "01.2.3.4",
  "1.2.3.256",
  "1.2.3",
  "::1",
  "::ffff:1.2.3.4",
  "fe80::1%eth0",
  "FA+9qCX9VSu",
  "FA+9qCX9VS",
  "+14155552671",
  "12 34 56",
  "12-34",
  "١٢٣٤٥٦",
  "123456\n",
  "9".repeat(65),
  "https://example.com/",
);
const either = (good: fc.Arbitrary<unknown>) => fc.oneof({ weight: 8, arbitrary: good }, { weight: 1, arbitrary: odd });

const create = fc.record(
  {
    customer_uuid: either(plain.uuid),
    phone_number: either(fc.constant("+14155552671")),
    app_realm: either(fc.constant("FA+9qCX9VSu")),
    app_version: either(plain.text),
    callback_url: either(fc.constant("https://example.com/")),
    device_id: either(plain.text),
    device_model: either(plain.text),
    device_type: either(fc.constantFrom("IOS", "ANDROID", "WEB")),
    ip: either(fc.oneof(fc.ipV4(), fc.ipV6())),
    is_returning_user: either(fc.boolean()),
    os_version: either(plain.text),
    proof: either(fc.constantFrom("p", "p".repeat(8192))),
    unknown: odd,
    ["__proto__"]: odd,
  },
  { requiredKeys: ["customer_uuid", "phone_number"] },
);
const check = fc.record(
  { authentication_uuid: either(plain.uuid), check_code: either(plain.code), customer_uuid: either(plain.uuid), unknown: odd },
  { requiredKeys: [] },
);

describe.each([
  ["create", plainCreate, CreateAuthenticationRequest, fc.oneof({ weight: 20, arbitrary: create }, { weight: 1, arbitrary: odd })],
  ["check", plainCheck, CheckRequest, fc.oneof({ weight: 20, arbitrary: check }, { weight: 1, arbitrary: odd })],
] as const)("%s", (_name, read, schema, inputs) => {
  test("what is taken without the schema is what the schema makes of it, to the order of its fields", () => {
    let taken = 0;
    fc.assert(
      fc.property(inputs, (input) => {
        const quick = read(input);
        if (quick === undefined) return;
        taken++;
        const judged = schema.safeParse(input);
        expect(judged.error).toBeUndefined();
        expect(quick).toEqual(judged.data);
        expect(JSON.stringify(quick)).toBe(JSON.stringify(judged.data));
      }),
      { numRuns: 5_000 },
    );
    expect(taken).toBeGreaterThan(500);
  });
});

test("what apps send is taken without the schema", () => {
  const number = { customer_uuid: uuid, phone_number: "+14155552671" };
  const all = {
    ...number,
    app_realm: "FA+9qCX9VSu",
    app_version: "1.2.3",
    callback_url: "https://example.com/",
    device_id: "3f2a",
    device_model: "Pixel 8",
    device_type: "ANDROID",
    ip: "203.0.113.9",
    is_returning_user: false,
    os_version: "14",
    proof: "token",
  };
  expect(plainCreate(number)).toEqual(number);
  expect(plainCreate(all)).toEqual(all);
  expect(plainCheck({ customer_uuid: uuid, authentication_uuid: uuid, check_code: "123456" })).toBeDefined();
});
