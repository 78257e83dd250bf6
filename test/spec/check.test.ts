import { describe, expect, it } from "vitest";
import { errorCode, numberOf, onePerTenMinutes, setUp, start } from "../support/verifier.js";

/** A verifier on the store of `first`, for the same customer. */
const beside = (first: ReturnType<typeof setUp>, options: object) =>
  setUp({ store: first.store, clock: first.clock, customers: [{ customer_uuid: first.customer, keys: [first.apiKey] }], ...options });

describe("two secrets during rotation, over several processes (docs/contract.md#secret-rotation)", () => {
  it("processes that list the two secrets in different orders accept each other's codes", async () => {
    const [previous, next] = ["previous secret ".repeat(3), "next secret ".repeat(3)];
    for (const [make, read] of [
      [
        [previous, next],
        [next, previous],
      ],
      [
        [next, previous],
        [previous, next],
      ],
    ]) {
      const first = setUp({ secret: make as never });
      const { authentication_uuid } = await first.create();
      const other = beside(first, { secret: read });
      expect((await other.verifier.check({ customer_uuid: first.customer, authentication_uuid, check_code: first.box.code() })).status).toBe("valid");
    }
  });
});

/** The budgets of an authentication that has ended. */
const over = { remaining_retry: 0, remaining_checks: 0 };

describe("Check result statuses: the first row that holds (docs/contract.md#check-order)", () => {
  it("`valid` for the right code, then `already_validated` for any code", async () => {
    const { create, check, box, wrong } = setUp();
    const { authentication_uuid } = await create();
    expect(await check(authentication_uuid, box.code())).toEqual({ authentication_uuid, status: "valid", phone_number: numberOf(1), ...over });
    expect(await check(authentication_uuid, box.code())).toEqual({ authentication_uuid, status: "already_validated", ...over });
    expect(await check(authentication_uuid, wrong())).toEqual({ authentication_uuid, status: "already_validated", ...over });
  });

  it("`invalid` for the first 5 wrong codes, then `rate_limited`, even for the right code", async () => {
    const { create, check, box, wrong } = setUp();
    const { authentication_uuid } = await create();
    for (let guess = 1; guess <= 5; guess++) expect((await check(authentication_uuid, wrong())).status).toBe("invalid");
    expect((await check(authentication_uuid, wrong())).status).toBe("rate_limited");
    expect(await check(authentication_uuid, box.code())).toEqual({ authentication_uuid, status: "rate_limited", phone_number: numberOf(1), ...over });
  });

  it("a retry does not reset the count of wrong codes", async () => {
    const { create, check, retry, clock, box, wrong } = setUp();
    const { authentication_uuid } = await create();
    for (let guess = 1; guess <= 4; guess++) await check(authentication_uuid, wrong());
    clock.advance(30_000);
    expect((await retry(authentication_uuid)).status).toBe("approved");
    expect((await check(authentication_uuid, wrong())).status).toBe("invalid");
    expect((await check(authentication_uuid, box.code())).status).toBe("rate_limited");
  });

  it("`without_attempt` if every route rejected the message; nothing is counted", async () => {
    const { create, check, box, store, customer } = setUp();
    box.answer = async () => ({ outcome: "rejected" });
    const { authentication_uuid } = await create();
    const before = await store.find(customer, authentication_uuid);
    for (let guess = 1; guess <= 7; guess++)
      expect(await check(authentication_uuid, "123456")).toEqual({ authentication_uuid, status: "without_attempt", phone_number: numberOf(1), ...over });
    expect(await store.find(customer, authentication_uuid)).toEqual(before);
  });

  it("`rate_limited` for an authentication created as `rate_limited`", async () => {
    const { create, check } = setUp({ policy: onePerTenMinutes });
    await create();
    expect((await check((await create()).authentication_uuid, "123456")).status).toBe("rate_limited");
  });

  it("`expired_auth` for 24 h after the end, without the codes in the record; then the id is unknown", async () => {
    const { create, check, clock, box, store, customer } = setUp();
    const { authentication_uuid } = await create();
    clock.set(start + 600_000);
    expect((await check(authentication_uuid, box.code())).status).toBe("expired_auth");
    expect((await store.find(customer, authentication_uuid))?.data, "without its codes").toContain('"d":[""]');
    clock.set(start + 600_000 + 86_400_000 - 1);
    expect((await check(authentication_uuid, box.code())).status).toBe("expired_auth");
    clock.advance(1);
    expect(await errorCode(check(authentication_uuid, box.code()))).toBe("invalid_auth_uuid");
  });

  it("expired_auth comes before already_validated", async () => {
    const { create, check, clock, box } = setUp();
    const { authentication_uuid } = await create();
    await check(authentication_uuid, box.code());
    clock.advance(600_000);
    expect((await check(authentication_uuid, box.code())).status).toBe("expired_auth");
  });

  it("the newest two codes are live, an older one is not", async () => {
    for (const [index, status] of ["invalid", "valid", "valid"].entries()) {
      const { create, check, retry, clock, box } = setUp();
      const { authentication_uuid } = await create();
      for (const wait of [30_000, 60_000]) {
        clock.advance(wait);
        await retry(authentication_uuid);
      }
      if (new Set(box.messages.map((message) => message.code)).size < 3) continue;
      expect((await check(authentication_uuid, box.code(index))).status).toBe(status);
    }
  });

  it.each([
    [
      ["accepted", "accepted", "rejected"],
      ["valid", "valid", "invalid"],
    ],
    [
      ["accepted", "rejected", "accepted"],
      ["valid", "invalid", "valid"],
    ],
    [
      ["accepted", "unknown", "rejected"],
      ["valid", "valid", "invalid"],
    ],
  ] as const)(
    "a code whose send was rejected is not live, and ends no other code: sends %j, checks %j (docs/contract.md#live-codes)",
    async (outcomes, statuses) => {
      for (const [index, status] of statuses.entries()) {
        const { create, check, retry, clock, box } = setUp();
        box.answer = async () => ({ outcome: outcomes[box.messages.length - 1] ?? "unknown" });
        const { authentication_uuid } = await create();
        for (let sent = 1; sent < outcomes.length; sent++) {
          clock.advance(60_000);
          await retry(authentication_uuid);
        }
        if (new Set(box.messages.map((message) => message.code)).size < 3) continue;
        expect((await check(authentication_uuid, box.code(index))).status).toBe(status);
      }
    },
  );

  it("with `acceptPreviousCode: false` the code before the newest accepted one is no longer valid", async () => {
    const { create, check, retry, clock, box } = setUp({ policy: { acceptPreviousCode: false } });
    const { authentication_uuid } = await create();
    clock.advance(30_000);
    await retry(authentication_uuid);
    if (box.code(0) !== box.code(1)) expect((await check(authentication_uuid, box.code(0))).status).toBe("invalid");
    expect((await check(authentication_uuid, box.code(1))).status).toBe("valid");
  });

  it.each([0, 1])("with `acceptPreviousCode: false` the newest accepted code and a newer one of unknown outcome are both live: code %i", async (index) => {
    const { create, check, retry, clock, box } = setUp({ policy: { acceptPreviousCode: false } });
    const { authentication_uuid } = await create();
    clock.advance(30_000);
    box.answer = async () => ({ outcome: "unknown" });
    await retry(authentication_uuid);
    expect((await check(authentication_uuid, box.code(index))).status).toBe("valid");
  });

  it("a code is valid for its own authentication only, even if another one has the same number", async () => {
    const { create, check, box } = setUp();
    const one = await create();
    const two = await create();
    if (box.code(0) === box.code(1)) return;
    expect((await check(two.authentication_uuid, box.code(0))).status).toBe("invalid");
    expect((await check(one.authentication_uuid, box.code(0))).status).toBe("valid");
  });

  it.each([
    ["spaces around and inside", (code: string) => ` ${code.slice(0, 3)} ${code.slice(3)}\n`],
    ["hyphens", (code: string) => `${code.slice(0, 3)}-${code.slice(3)}`],
    ["a non-breaking hyphen and space", (code: string) => `${code.slice(0, 2)}\u2011${code.slice(2, 4)}\u00a0${code.slice(4)}`],
    ["a minus sign", (code: string) => `${code.slice(0, 3)}\u2212${code.slice(3)}`],
    ["the marks of right-to-left text", (code: string) => `\u200f\u202a${code}\u202c\u200e`],
    ["bidirectional isolates", (code: string) => `\u2068${code}\u2069`],
    ["zero-width spaces and joiners", (code: string) => [...code].join("\u200b\u200d\u2060\ufeff")],
    ["a soft hyphen", (code: string) => `${code.slice(0, 3)}\u00ad${code.slice(3)}`],
    ["variation selectors", (code: string) => [...code].join("\ufe0f")],
    ["Arabic-Indic digits", (code: string) => code.replace(/\d/g, (digit) => String.fromCodePoint(0x660 + Number(digit)))],
    ["Devanagari digits", (code: string) => code.replace(/\d/g, (digit) => String.fromCodePoint(0x966 + Number(digit)))],
    ["full-width digits", (code: string) => code.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))],
    ["mathematical bold digits", (code: string) => code.replace(/\d/g, (digit) => String.fromCodePoint(0x1d7ce + Number(digit)))],
    ["mathematical monospace digits", (code: string) => code.replace(/\d/g, (digit) => String.fromCodePoint(0x1d7f6 + Number(digit)))],
  ])("`check_code` tolerates typing habits: %s", async (_what, typed) => {
    const { create, check, box } = setUp();
    const { authentication_uuid } = await create();
    expect((await check(authentication_uuid, typed(box.code()))).status).toBe("valid");
  });

  it.each(["abc", "1", "12345", "1234567", "½¼", "null", "{}", "0x1234", "é".repeat(64), "1e5", "\u0000"])(
    "any other string up to 64 characters counts as a wrong code: %j",
    async (typed) => {
      const { create, check, store, customer } = setUp();
      const { authentication_uuid } = await create();
      const before = (await store.find(customer, authentication_uuid))?.data;
      expect((await check(authentication_uuid, typed)).status).toBe("invalid");
      expect((await store.find(customer, authentication_uuid))?.data, "counted").not.toBe(before);
    },
  );

  it.each(["", " ", "---", " - ", "\u200b", "1".repeat(65)])(
    "an empty code (without spaces, hyphens and invisible characters) or a longer one is `bad_request`, uncounted: %j",
    async (typed) => {
      const { create, check, store, customer } = setUp();
      const { authentication_uuid } = await create();
      const before = await store.find(customer, authentication_uuid);
      expect(await errorCode(check(authentication_uuid, typed))).toBe("bad_request");
      expect(await store.find(customer, authentication_uuid)).toEqual(before);
    },
  );

  it("codes are drawn evenly over all digits, leading zeros included", async () => {
    const { createKeyring } = await import("../../src/core/keyring.js");
    const codes = createKeyring(["s"]);
    const firsts = new Map<string, number>();
    for (let draw = 0; draw < 20_000; draw++) {
      const code = codes.draw(6);
      expect(code).toMatch(/^\d{6}$/);
      firsts.set(code.slice(0, 1), (firsts.get(code.slice(0, 1)) ?? 0) + 1);
    }
    // 2,000 of each are expected, with a standard deviation of 42: an even draw never deviates by eight of these.
    for (const digit of "0123456789") expect(Math.abs((firsts.get(digit) ?? 0) - 2000)).toBeLessThan(340);
  });
});
