import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postgresStore, schemaSql } from "../../adapters/store/postgres/index.js";
import type { RecordWrite, Store } from "../../src/ports/store.js";
import { storeContract } from "../../src/testing/store-contract.js";
import { newDatabase, newStore, poolOf, postgresServer, sql } from "../support/postgres.js";

const server = await postgresServer("what is special about PostgreSQL");
afterAll(() => server?.stop());

const hour = 3_600_000;
const expiry = (now = Date.now()) => ({ now, keepUntil: now + hour });
const newRecord = (fields: Partial<RecordWrite> = {}): RecordWrite => ({
  customer: randomUUID(),
  id: randomUUID(),
  tokens: [randomUUID()],
  data: "data",
  ...expiry(),
  ...fields,
});

/** Does every kind of work once. */
async function works(store: Store): Promise<void> {
  const record = newRecord({ wakeAt: 1 });
  const name = `${record.customer}:w`;
  const member = { window: name, member: "m", since: 0, limit: 1, ...expiry() };
  const claims = [member, { ...member, window: `${name}2` }, { sum: name, part: 1, parts: 3, weight: 1, limit: 5, ...expiry() }];
  expect(await store.commit({ claims, record })).toEqual({ done: true, counts: [1, 1, 1], asked: [] });
  expect(await store.find(record.customer, record.id)).toMatchObject({ data: "data" });
  expect(await store.members(name, 5)).toEqual(["m"]);
  expect((await store.lease(1, 10, 2)).map(({ id }) => id)).toEqual([record.id]);
  expect(await store.tally([{ counter: name, by: 2, ...expiry() }], [name])).toEqual([2]);
  await store.put(name, "value", expiry());
  expect(await store.get(name)).toBe("value");
  await store.delete({ records: [record], windows: [name], sums: [{ sum: name, part: 1, parts: 3 }], values: [name] });
  expect([await store.find(record.customer, record.id), await store.get(name)]).toEqual([undefined, undefined]);
}

describe.runIf(server)("features specific to PostgreSQL", () => {
  it("ensureSchema: twenty parallel calls create one schema, and a further call changes nothing", async () => {
    const url = await newDatabase(server);
    const pools = Array.from({ length: 20 }, () => poolOf(url, { max: 1 }));
    await Promise.all(pools.map((pool) => postgresStore({ pool }).ensureSchema()));
    expect(await sql(url, "select number from phoneproof.step")).toEqual([{ number: 1 }]);
    await postgresStore({ pool: pools[0] as (typeof pools)[0] }).ensureSchema();
    await works(postgresStore({ pool: pools[1] as (typeof pools)[0] }));
    await Promise.all(pools.map((pool) => pool.end()));
  });

  it("the schema name keeps stores apart, even with prepared statements on one pool", async () => {
    const { pool, store, close } = await newStore(server, { prepare: true });
    const other = postgresStore({ pool, schema: "other_1", prepare: true });
    expect(other.schemaSql()).toBe(schemaSql("other_1"));
    await other.ensureSchema();
    const record = newRecord();
    await store.commit({ record });
    expect(await other.find(record.customer, record.id)).toBeUndefined();
    await works(other);
    await close();
  });

  describe("a role that may not create anything", () => {
    let url: string;
    let role: string;
    const asRole = () => {
      const own = new URL(url);
      own.username = role;
      return poolOf(own.href, { max: 2 });
    };
    beforeAll(async () => {
      url = await newDatabase(server);
      role = `role-${randomUUID()}`;
      await sql(url, `create role "${role}" login`, "revoke create on schema public from public");
    });
    afterAll(async () => {
      await sql(url, `drop owned by "${role}"`, `drop role "${role}"`);
    });

    it("is shown what is missing, step by step, with the statement for each; the rights in docs/stores.md are enough for all work", async () => {
      const pool = asRole();
      const store = postgresStore({ pool });
      const missing = async () => (await store.inspect?.(0))?.missing;
      await expect(store.ensureSchema()).rejects.toThrow(/permission denied .*\(42501\): the role lacks a right/);
      await expect(store.commit({ record: newRecord() })).rejects.toThrow(/ensureSchema\(\) once, or run schemaSql\(\)/);
      expect(await missing()).toEqual([expect.stringContaining('the schema "phoneproof" is missing')]);
      await sql(url, schemaSql());
      expect(await missing()).toEqual([`the role may not use the schema: grant usage on schema "phoneproof" to "${role}"`]);
      await sql(url, `grant usage on schema phoneproof to "${role}"`);
      expect(await missing()).toContain(`the role lacks insert on table "phoneproof".total: grant insert on table "phoneproof".total to "${role}"`);
      await sql(url, `grant select, insert, update, delete on all tables in schema phoneproof to "${role}"`);
      expect(await missing()).toBeUndefined();
      await works(store);
      await store.ensureSchema();
      await pool.end();
    });

    it("a missing table, index, function or step is reported with what adds it", async () => {
      const pool = poolOf(url, { max: 1 });
      const missing = async () => (await postgresStore({ pool }).inspect?.(0))?.missing;
      await pool.query("drop table phoneproof.value; drop index phoneproof.total_ends; drop function phoneproof.tally");
      const told = (await missing()) as readonly string[];
      expect(told).toHaveLength(4);
      for (const one of told) {
        const [, fix = ""] = one.split(": ");
        if (fix.startsWith("create ")) await pool.query(fix);
      }
      const again = "call await store.ensureSchema(), or run schemaSql() as the owner of the schema";
      expect(await missing()).toEqual([`the function "phoneproof".tally(text, text) is missing: ${again}`]);
      await pool.query(
        "drop table phoneproof.step, phoneproof.record; alter table phoneproof.member drop constraint member_pkey; drop index phoneproof.total_ends",
      );
      expect(await missing()).toHaveLength(7);
      await pool.query(schemaSql());
      expect(await missing()).toBeUndefined();
      await pool.query("update phoneproof.step set number = 0");
      expect(await missing()).toEqual([`the schema "phoneproof" is at step 0 of 1: ${again}`]);
      await pool.query(schemaSql());
      expect(await missing()).toBeUndefined();
      await pool.end();
    });
  });

  it("a missing column, key or row level security policy is reported with statements that make the store work again", async () => {
    const { pool, store, close } = await newStore(server);
    const columns = await pool.query(
      "select table_name as place, column_name as name from information_schema.columns where table_schema = 'phoneproof' and table_name <> 'step'",
    );
    const keys = await pool.query("select conrelid::regclass as place, conname as name from pg_constraint where connamespace = 'phoneproof'::regnamespace");
    const reader = `reader-${randomUUID()}`;
    await pool.query(`create role "${reader}"; grant usage on schema phoneproof to "${reader}"`);
    await pool.query(`grant select, insert, update, delete on all tables in schema phoneproof to "${reader}"`);
    const asReader = postgresStore({
      query: async (text, values) => {
        const client = await pool.connect();
        await client.query(`set role "${reader}"`);
        return client
          .query(text, values)
          .then(({ rows }) => rows)
          .finally(async () => {
            await client.query("reset role");
            client.release();
          });
      },
    });
    for (const breaks of [
      ...columns.rows.map(({ place, name }) => `delete from phoneproof.${place}; alter table phoneproof.${place} drop column ${name}`),
      ...keys.rows.map(({ place, name }) => `alter table ${place} drop constraint ${name}`),
      "alter table phoneproof.record enable row level security",
    ]) {
      await pool.query(breaks);
      const told = (await asReader.inspect?.(0))?.missing ?? [];
      expect.soft(told, breaks).not.toEqual([]);
      for (const one of told) await pool.query(one.split(": ")[1] as string);
      expect.soft((await asReader.inspect?.(0))?.missing, breaks).toBeUndefined();
      await works(asReader);
    }
    await pool.query("alter table phoneproof.record enable row level security; create policy all_rows on phoneproof.record using (true)");
    expect((await asReader.inspect?.(0))?.missing).toBeUndefined();
    await works(asReader);
    await pool.query(`drop owned by "${reader}"; drop role "${reader}"`);
    await store.ensureSchema();
    await close();
  });

  it("lease deletes what has expired and nothing else, one full batch after another", async () => {
    const { pool, store, close } = await newStore(server);
    const [kept, ended] = [newRecord({ wakeAt: 10 }), newRecord({ wakeAt: 10 })];
    for (const record of [kept, ended]) {
      const name = `${record.customer}:w`;
      const member = { window: name, member: "m", since: 0, ...expiry() };
      await store.commit({ claims: [member, { sum: name, part: 1, parts: 3, weight: 1, ...expiry() }], record });
      await store.tally([{ counter: name, by: 1, ...expiry() }], []);
      await store.put(name, "value", expiry());
    }
    const counts = async () => {
      const tables = ["record", "member", "total", "value"];
      const { rows } = await pool.query(
        tables.map((table) => `select '${table}' as name, count(*)::integer as rows from phoneproof.${table}`).join(" union all "),
      );
      return Object.fromEntries(rows.map(({ name, rows }) => [name, rows]));
    };
    const both = { record: 2, member: 2, total: 4, value: 2 };
    await store.lease(0, 1, 1);
    expect(await counts()).toEqual(both);
    for (const [table, column] of [
      ["record", "customer"],
      ["member", "name"],
      ["total", "name"],
      ["value", "key"],
    ])
      await pool.query(`update phoneproof.${table} set ends = 1 where strpos(${column}, $1) > 0`, [ended.customer]);
    await pool.query("insert into phoneproof.value (key, ends, value) select i, 1, '' from generate_series(1, 2500) i");
    const other = postgresStore({ pool });
    for (let i = 0; i < 3; i++) await other.lease(0, 1, 1);
    expect(await counts()).toEqual({ record: 1, member: 1, total: 2, value: 1 });
    expect((await other.lease(10, 5, 11)).map(({ id }) => id)).toEqual([kept.id]);
    await close();
  });

  it("a record ends as much later or earlier as a write says, whatever the caller's clock", async () => {
    const { pool, store, close } = await newStore(server);
    const first = newRecord({ keepUntil: Date.now() + 168 * hour });
    await store.commit({ record: first });
    let [expected = ""] = first.tokens;
    for (const [now, hours] of [
      [Date.now(), 24],
      [Date.now() + 48 * hour, 24],
      [Date.now(), 72],
    ] as const) {
      const tokens = [randomUUID()];
      await store.commit({ record: { ...first, tokens, now, keepUntil: first.keepUntil + (hours - 168) * hour }, expected });
      [expected = ""] = tokens;
      const { rows } = await pool.query("select ends - extract(epoch from now()) / 60 as minutes from phoneproof.record");
      expect(Number(rows[0].minutes)).toBeGreaterThan(hours * 60);
      expect(Number(rows[0].minutes)).toBeLessThan(hours * 60 + 60);
    }
    await close();
  });

  it("nine in ten updates of counted rows are HOT, since a row's end is rarely raised", async () => {
    const { pool, store, close } = await newStore(server);
    const customer = randomUUID();
    const sum = () => ({ sum: `${customer}:s`, part: 1, parts: 3, weight: 1, ...expiry() });
    for (let i = 0; i < 200; i++) await store.commit({ claims: [sum()], counts: [] });
    const shown = async () =>
      (await pool.query("select n_tup_upd::integer as updates, n_tup_hot_upd::integer as hot from pg_stat_user_tables where relname = 'total'")).rows[0];
    // A session reports its statistics once a second at most.
    await expect.poll(async () => (await shown()).updates, { timeout: 30_000 }).toBeGreaterThan(150);
    const { updates, hot } = await shown();
    expect(hot / updates).toBeGreaterThan(0.9);
    await close();
  });

  it("reads no more beside a long transaction of another application, however often a sum changes", async () => {
    const { pool, store, url, close } = await newStore(server);
    const { sum, ...rest } = { sum: `${randomUUID()}:s`, part: 3, parts: 3, ...expiry() };
    const oneConnection = poolOf(url, { max: 1 });
    const ofStore = postgresStore({ pool: oneConnection });
    const blocks = async () => {
      await oneConnection.query("select pg_stat_force_next_flush()");
      const { rows } = await pool.query(
        "select sum(heap_blks_hit + idx_blks_hit)::integer as blocks from pg_statio_user_tables where schemaname = 'phoneproof'",
      );
      return rows[0].blocks as number;
    };
    const change = async (times: number) => {
      const before = await blocks();
      for (let i = 0; i < times; i++) await ofStore.commit({ claims: [{ sum, weight: 1, limit: 10_000, ...rest }], counts: [] });
      return ((await blocks()) - before) / times;
    };
    const other = await pool.connect();
    await other.query("begin isolation level repeatable read");
    await other.query("select from phoneproof.record");
    await change(50);
    const few = await change(50);
    await change(1_900);
    const many = await change(50);
    await other.query("rollback");
    other.release();
    expect(many).toBeLessThan(1.5 * few);
    expect(await store.commit({ asks: [{ sum, ...rest }] })).toMatchObject({ asked: [2_050] });
    await Promise.all([oneConnection.end(), close()]);
  });

  describe("commits sent together", () => {
    const customer = randomUUID();
    const sum = (name: string) => ({ sum: `${customer}:${name}`, part: 1, parts: 3, weight: 1, ...expiry() });

    it("of one customer share statements, each with its own result; another customer's commit does not wait", async () => {
      const { pool, close } = await newStore(server);
      const owners: (string | null)[] = [];
      const query = async (text: string, values: (string | null)[]) => {
        if (text.includes(".commit(")) owners.push(values[0] as string | null);
        return (await pool.query(text, values)).rows;
      };
      const store = postgresStore({ query });
      const other = newRecord();
      const all = await Promise.all([
        ...Array.from({ length: 100 }, () => store.commit({ claims: [{ ...sum("together"), limit: 70 }] })),
        store.commit({ record: other }),
      ]);
      expect(all.filter(({ done }) => done)).toHaveLength(71);
      expect(all.flatMap((one) => (one.done ? (one.counts[0] ?? []) : []))).toEqual(Array.from({ length: 70 }, (_, at) => at + 1));
      expect(owners).toEqual([customer, other.customer, customer, customer]);
      await close();
    });

    it("one whose value the server rejects fails alone", async () => {
      const { pool, store, close } = await newStore(server);
      await pool.query("alter table phoneproof.record add constraint short check (length(data) < 5)");
      const [first, ...others] = await Promise.allSettled([
        store.commit({ claims: [sum("alone")] }),
        store.commit({ claims: [sum("alone")] }),
        store.commit({ claims: [sum("alone")], record: newRecord({ customer, data: "too long" }) }),
        store.commit({ claims: [sum("alone")] }),
      ]);
      expect(first).toMatchObject({ value: { counts: [1] } });
      expect(others).toMatchObject([{ value: { counts: [2] } }, { reason: { code: "23514" } }, { value: { counts: [3] } }]);
      await close();
    });

    it("do not wait for a statement that hangs", async () => {
      const { pool, close } = await newStore(server);
      let asked = 0;
      const store = postgresStore({
        query: async (text, values) => (asked++ === 0 ? new Promise(() => undefined) : (await pool.query(text, values)).rows),
      });
      void store.commit({ claims: [sum("hangs")] });
      const results = await Promise.all([store.commit({ claims: [sum("hangs")] }), store.commit({ claims: [sum("hangs")] })]);
      expect([asked, results.map(({ done }) => done)]).toEqual([2, [true, true]]);
      expect(await store.commit({ asks: [sum("hangs")] })).toEqual({ done: true, counts: [], asked: [2] });
      await close();
    });
  });

  it("errors contain neither values nor statements", async () => {
    const { pool, store, close } = await newStore(server);
    const secret = "+33612345678";
    await pool.query("alter table phoneproof.value add constraint short check (length(value) < 5)");
    const error = await store.put(secret, `${secret} and more`, expiry()).catch((error: Error) => error);
    expect(String(error)).toMatch(/^Error: postgresStore: the server rejected a value \(23514\)$/);
    expect(JSON.stringify(Object.entries(error as Error))).not.toContain(secret);
    await close();
  });

  it("a single connection is rejected: commits would be part of the application's transactions", async () => {
    const pool = poolOf(await newDatabase(server));
    const connection = await pool.connect();
    const sentence = "postgresStore: option `pool` is one connection, whose transactions would include commits; pass a Pool";
    try {
      expect(() => postgresStore({ pool: connection })).toThrow(sentence);
    } finally {
      connection.release();
      await pool.end();
    }
  });

  it("a `query` that does not return rows as objects is rejected with the fix", async () => {
    const { pool, close } = await newStore(server);
    const other = [
      async (text: string, values: (string | null)[]) => pool.query(text, values) as never,
      async (text: string, values: (string | null)[]) => (await pool.query({ text, values, rowMode: "array" })).rows,
    ];
    for (const query of other)
      await expect(postgresStore({ query }).commit({ record: newRecord() })).rejects.toThrow(
        /^postgresStore: option `query` must return the rows as objects, as in /,
      );
    await close();
  });

  it("no commit of the contract is rolled back by the server, not even a rejected one", async () => {
    const { pool, store, close } = await newStore(server);
    const before = (await pool.query("select xact_rollback::integer as n from pg_stat_database where datname = current_database()")).rows[0].n;
    for (const { name, run } of storeContract({ racers: 2 }))
      if (name.startsWith("window: one after another") || name.startsWith("sum: one after another")) await run({ store });
    await pool.query("select pg_stat_clear_snapshot()");
    expect((await pool.query("select xact_rollback::integer as n from pg_stat_database where datname = current_database()")).rows[0].n).toBe(before);
    await close();
  });
});
