import { describe, expect, it, onTestFinished } from "vitest";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { Store } from "../../src/ports/store.js";
import { libraries, type OpenSqlite } from "../support/sqlite.js";
import { changes } from "./kit.js";
import { oddValues } from "./odd-values.js";
import { opened, place } from "./sqlite-kit.js";
import { twoDaysAhead } from "./two-days-ahead.js";

const odd = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "\u0000'",
  "\\u0000",
  "NULL",
  "'; drop table phoneproof_records; --",
  '"); delete from phoneproof_records where ("" = "',
  "?1",
  ":name",
  "%",
  "_",
  "x'41'",
  "0x10",
  "1e3",
  "9007199254740993",
  "\\",
  "\ufeff\uffff",
  "👩‍👩‍👧‍👦🏴‍☠️",
  "__proto__",
  "\r\n\t\b\v",
  "\u202e\u0301",
  "e\u0301",
  "é",
  "x".repeat(60_000),
];

describe.each(Object.entries(libraries))("odd values next to ordinary ones, in one transaction of %s", (_, open: OpenSqlite) => {
  function stored(): Store {
    const database = open(place().file);
    onTestFinished(() => database.close());
    return sqliteStore({ database, synchronous: "NORMAL" });
  }

  oddValues(stored, odd, [
    Number.MAX_SAFE_INTEGER,
    -Number.MAX_SAFE_INTEGER,
    2 ** 53,
    2 ** 63,
    -(2 ** 63),
    1e300,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    0.5,
    -0,
  ]);

  it("names that some comparisons consider equal stay distinct: by case, accents, text after a NUL, blanks and digits (docs/contract.md#keyed-by-customer)", async () => {
    const store = stored();
    const apart = [
      "a",
      "A",
      "a ",
      " a",
      "a\u0000",
      "a\u0000b",
      "a\u0000c",
      "é",
      "e\u0301",
      "E\u0301",
      "1",
      "01",
      "1.0",
      "١",
      "ß",
      "ss",
      "ı",
      "i",
      "K",
      "\u212a",
      "",
    ];
    const { ends, sum, record } = changes();
    const results = await Promise.allSettled(
      apart.flatMap((text) => [
        store.put(`${text}`, `value of ${text}`, ends),
        store.commit({ claims: [{ ...sum(""), sum: `${text}:one`, weight: 7 }], record: record({ customer: text, id: "one", data: `customer ${text}` }) }),
        store.commit({
          claims: [{ window: `w:${text}`, member: "m", since: 0, limit: 1, ...ends }],
          record: record({ customer: "w", id: text, data: `id ${text}` }),
        }),
      ]),
    );
    expect(results.filter((one) => one.status === "rejected" || (one.value !== undefined && !one.value.done))).toEqual([]);
    for (const text of apart) {
      expect(await store.get(text)).toBe(`value of ${text}`);
      expect((await store.find(text, "one"))?.data).toBe(`customer ${text}`);
      expect((await store.find("w", text))?.data).toBe(`id ${text}`);
      expect(await store.members(`w:${text}`, 5)).toEqual(["m"]);
      expect(await store.commit({ asks: [{ sum: `${text}:one`, part: 1, parts: 3 }] })).toMatchObject({ asked: [7] });
    }
    // A deletion removes no similar name.
    await store.delete({ records: [{ customer: "A", id: "one" }], values: ["A"], windows: ["w:A"], sums: [{ sum: "A:one", part: 1, parts: 3 }] });
    expect([await store.get("a"), (await store.find("a", "one"))?.data, await store.members("w:a", 5)]).toEqual(["value of a", "customer a", ["m"]]);
    expect([await store.get("A"), await store.find("A", "one"), await store.members("w:A", 5)]).toEqual([undefined, undefined, []]);
  });

  it("customers whose ids differ only by case have separate caps and records (docs/contract.md#keyed-by-customer)", async () => {
    const store = stored();
    const [lower, upper] = ["abcdefab-cdef-4abc-8def-abcdefabcdef", "ABCDEFAB-CDEF-4ABC-8DEF-ABCDEFABCDEF"];
    const { ends } = changes();
    const claim = (customer: string) => ({ window: `${customer}:n`, member: "m", since: 0, limit: 1, ...ends });
    const write = (customer: string) => store.commit({ claims: [claim(customer)], record: { customer, id: "i", tokens: [customer], data: customer, ...ends } });
    expect([await write(lower), await write(upper)]).toMatchObject([{ done: true }, { done: true }]);
    expect([(await store.find(lower, "i"))?.data, (await store.find(upper, "i"))?.data]).toEqual([lower, upper]);
  });

  it("sums and times that need more than 32 bits are returned exactly (docs/contract.md#sum-parts)", async () => {
    const store = stored();
    const { customer, sum, record } = changes();
    const large = 2 ** 52 + 1;
    const keepUntil = 253_402_300_799_999;
    const far = { now: Date.now(), keepUntil };
    await store.commit({ claims: [{ ...sum("large"), weight: large, ...far }] });
    await store.commit({ claims: [{ ...sum("large"), weight: -1, ...far }] });
    expect(await store.commit({ asks: [sum("large")] })).toMatchObject({ asked: [large - 1] });
    const made = record({ keepUntil, wakeAt: keepUntil - 1 });
    await store.commit({ record: made });
    expect(await store.find(customer, made.id)).toMatchObject({ keepUntil });
    expect(await store.lease(keepUntil - 2, 5, keepUntil)).toEqual([]);
    expect(await store.lease(keepUntil - 1, 5, keepUntil)).toMatchObject([{ id: made.id, keepUntil }]);
  });

  it("a process whose clock is two days ahead erases nothing that the others need (docs/contract.md#early-end)", async () => {
    await twoDaysAhead(stored());
  });
});

describe("two stores on one file", () => {
  it("with alternating calls, a process whose clock is two days ahead erases nothing that the others need (docs/contract.md#early-end)", async () => {
    const { file } = place();
    const [one, two] = [opened({ file }), opened({ file })];
    await one.get("made");
    await two.get("made");
    // Calls alternate, like the requests of two processes.
    let turn = 0;
    const both = new Proxy(one, {
      get:
        (_, name: keyof Store) =>
        (...args: never[]) =>
          (((turn++ % 2 ? one : two)[name] ?? (() => undefined)) as (...args: never[]) => unknown)(...args),
    });
    await twoDaysAhead(both);
  });
});
