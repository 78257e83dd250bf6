import { randomUUID } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { Change, Store } from "../../src/ports/store.js";
import { libraries, type OpenSqlite } from "../support/sqlite.js";
import { ending, numberAt, sender, service, tallied, wide } from "./kit.js";
import { changes, opened, place } from "./sqlite-kit.js";
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

describe.each(Object.entries(libraries))("odd values beside innocent ones, in one transaction of %s", (_, open: OpenSqlite) => {
  function stored(): Store {
    const database = open(place().file);
    onTestFinished(() => database.close());
    return sqliteStore({ database, synchronous: "NORMAL" });
  }

  it("a text comes back as it was or is rejected alone, wherever it stands (docs/contract.md#one-commit)", async () => {
    const store = stored();
    for (const text of odd) {
      const { customer, ends, sum, record } = changes();
      const innocent = () => store.commit({ claims: [sum("innocent")], record: record() });
      const hostile: Change[] = [
        { claims: [sum("data")], record: record({ data: text }) },
        { claims: [sum("token")], record: record({ tokens: [text] }) },
        { claims: [sum("tokens")], record: record({ tokens: [randomUUID(), text, randomUUID()] }) },
        { claims: [sum("id")], record: record({ id: text }) },
        { claims: [sum("member"), { window: `${customer}:w`, member: text, since: 0, ...ends }] },
        { claims: [sum("window"), { window: `${customer}:${text}`, member: "m", since: 0, ...ends }] },
        { claims: [sum("sum"), sum(text)] },
        { claims: [sum("expected")], record: record(), expected: text },
      ];
      void innocent();
      const work = hostile.map((change) => [store.commit(change), innocent()] as const);
      const results = await Promise.allSettled(work.map(([one]) => one));
      const innocents = await Promise.allSettled(work.map(([, one]) => one));
      expect(innocents.map((one) => one.status === "fulfilled" && one.value.done)).toEqual(hostile.map(() => true));
      for (const [at, change] of hostile.entries()) {
        const result = results[at] as (typeof results)[number];
        const done = result.status === "fulfilled" && result.value.done;
        const claim = change.claims?.[0] as ReturnType<typeof sum>;
        const [counted] = await store.commit({ asks: [claim] }).then((answer) => (answer.done ? answer.asked : []));
        expect(counted, claim.sum).toBe(done ? 1 : 0);
        if (!done || !change.record) continue;
        expect(await store.find(customer, change.record.id)).toMatchObject({ data: change.record.data, tokens: change.record.tokens });
      }
      if (results[4]?.status === "fulfilled") expect(await store.members(`${customer}:w`, 5)).toEqual([text]);
    }
  });

  it("names that some comparison takes for one are apart: by case, by accents, by what follows a NUL, by blanks, by digits (docs/contract.md#keyed-by-customer)", async () => {
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
    // What is deleted takes none of the others along.
    await store.delete({ records: [{ customer: "A", id: "one" }], values: ["A"], windows: ["w:A"], sums: [{ sum: "A:one", part: 1, parts: 3 }] });
    expect([await store.get("a"), (await store.find("a", "one"))?.data, await store.members("w:a", 5)]).toEqual(["value of a", "customer a", ["m"]]);
    expect([await store.get("A"), await store.find("A", "one"), await store.members("w:A", 5)]).toEqual([undefined, undefined, []]);
  });

  it("customers whose ids differ by case only have caps and records of their own (docs/contract.md#keyed-by-customer)", async () => {
    const store = stored();
    const [lower, upper] = ["abcdefab-cdef-4abc-8def-abcdefabcdef", "ABCDEFAB-CDEF-4ABC-8DEF-ABCDEFABCDEF"];
    const { ends } = changes();
    const claim = (customer: string) => ({ window: `${customer}:n`, member: "m", since: 0, limit: 1, ...ends });
    const write = (customer: string) => store.commit({ claims: [claim(customer)], record: { customer, id: "i", tokens: [customer], data: customer, ...ends } });
    expect([await write(lower), await write(upper)]).toMatchObject([{ done: true }, { done: true }]);
    expect([(await store.find(lower, "i"))?.data, (await store.find(upper, "i"))?.data]).toEqual([lower, upper]);
  });

  it("numbers at and beyond every range are rejected alone, or kept exactly (docs/contract.md#one-commit)", async () => {
    const store = stored();
    for (const value of [
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
    ]) {
      const { customer, ends, sum, record } = changes();
      const hostile: Record<string, Change> = {
        weight: { claims: [{ ...sum("weight"), weight: value }] },
        part: { claims: [{ ...sum("part"), part: value }] },
        parts: { claims: [{ ...sum("parts"), parts: value }] },
        limit: { claims: [{ ...sum("limit"), limit: value }] },
        floor: { claims: [{ ...sum("floor"), floor: value } as never] },
        keepUntil: { claims: [{ ...sum("keep"), keepUntil: value }] },
        since: { claims: [{ window: `${customer}:w`, member: "m", since: value, ...ends }] },
        now: { claims: [{ ...sum("now"), now: value }] },
        ends: { record: record({ keepUntil: value }) },
        wakeAt: { record: record({ wakeAt: value }) },
        counts: { claims: [sum("counts")], counts: [value] },
      };
      void store.commit({ claims: [sum("innocent")] });
      const innocents: Promise<{ done: boolean }>[] = [];
      const work = Object.values(hostile).map((change) => {
        innocents.push(store.commit({ claims: [sum("innocent")], record: record() }));
        return store.commit(change);
      });
      const [weighed] = await Promise.allSettled(work);
      expect((await Promise.allSettled(innocents)).map((one) => one.status === "fulfilled" && one.value.done)).toEqual(innocents.map(() => true));
      expect(await store.commit({ asks: [sum("innocent")] })).toMatchObject({ asked: [innocents.length + 1] });
      if (weighed?.status !== "fulfilled" || !Number.isSafeInteger(value)) continue;
      expect(await store.commit({ asks: [sum("weight")] })).toMatchObject({ asked: [value === 0 ? expect.closeTo(0) : value] });
      await store.lease(0, 1_000, 1);
    }
  });

  it("sums, times and ends that need more than 32 bits come back to the unit (docs/contract.md#sum-parts)", async () => {
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

  it("through the public API: each text is stored, or the caller's fault, and no innocent request fails beside it (docs/contract.md#device-fields)", async () => {
    const store = stored();
    let answers = 0;
    const named = odd.filter((text) => text !== "" && !/[\ud800-\udfff]/u.test(text));
    const carrier = sender();
    carrier.answer = async () => {
      const text = (named[answers++ % named.length] as string).slice(0, 5_000);
      return { outcome: "accepted", route: text, messageId: text, idSpace: text, keepId: true };
    };
    const shared = { store, storeTimeout: 60, customer: randomUUID(), statistics: {} };
    const hostile = service({
      ...shared,
      policy: { limits: wide },
      sender: carrier,
      spamRules: [{ name: "own", cell: ({ os_version }) => odd[Number(os_version)], seed: 1_000, perVerified: 2 }],
    });
    const innocent = service({ ...shared, policy: { limits: wide } });
    const [asked, beside]: [Promise<string>[], Promise<string>[]] = [[], []];
    let number = 0;
    for (const [at, text] of odd.entries()) {
      for (const field of ["device_id", "device_model", "app_version", "os_version", "ip", "proof", "callback_url", "channel"])
        asked.push(ending(hostile.create(number++, { os_version: String(at), [field]: text })));
      for (const more of [{ correlation_id: text }, { locale: text }, { callback_form: text }])
        asked.push(ending(hostile.verifier.verifications.start({ customer_uuid: shared.customer, phone_number: numberAt(number++), ...more } as never)));
      asked.push(ending(hostile.create(number++, {}, { idempotencyKey: text })));
      asked.push(ending(hostile.check(text, text)), ending(hostile.retry(text)));
      for (let n = 0; n < 6; n++) beside.push(ending(innocent.create(number++, { device_id: `device ${number}` })));
    }
    expect(tallied(await Promise.all(beside))).toEqual({ pending: beside.length });
    const ends = tallied(await Promise.all(asked));
    expect(Object.keys(ends).filter((end) => !/^(pending|bad_request|invalid_\w+)$/.test(end))).toEqual([]);
    expect(carrier.messages).toHaveLength(ends["pending"] ?? 0);
    await hostile.verifier.flush();
    const checks = carrier.messages.map(({ authentication_uuid: id, code }) => ending(hostile.check(id, code)));
    expect(tallied(await Promise.all(checks))).toEqual({ valid: checks.length });
  });

  it("one process's clock is two days ahead: its writes end nothing that the others keep (docs/contract.md#early-end)", async () => {
    await twoDaysAhead(stored());
  });
});

describe("two processes' worth of stores on one file", () => {
  it("a clock two days ahead in one of them ends nothing of the other's (docs/contract.md#early-end)", async () => {
    const { file } = place();
    const [one, two] = [opened({ file }), opened({ file })];
    await one.get("made");
    await two.get("made");
    // By turns, as requests of two processes come.
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
