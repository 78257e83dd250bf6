import { setTimeout as wait } from "node:timers/promises";
import { Pool } from "pg";
import { postgresStore } from "phoneproof/postgres";
import { newDatabase, postgresServer } from "../test/support/postgres.js";
import { atMost, type Row } from "./report.js";
import { benchVerifier, customer_uuid, expect, fewVisits, writePast } from "./service.js";
import { visitors } from "./traffic.js";

const people = 200;

/** Statements of commits, and bytes, for each request, if there is a server. */
export async function countedInPostgres(): Promise<Row[]> {
  const server = await postgresServer("the bench's part counted, for PostgreSQL");
  if (server === undefined) return [{ figure: "statements to PostgreSQL", measured: "SKIPPED: no server" }];
  const url = await newDatabase(server);
  await writePast(url, fewVisits);
  const pool = new Pool({ connectionString: url });
  let statements = 0;
  const store = postgresStore({
    async query(text, values) {
      // Not counted: background work that no request waits for.
      if (!text.includes(".tally(") && !text.includes(".lease(") && !text.includes(".sweep(")) statements++;
      return (await pool.query(text, values)).rows;
    },
  });
  const codes = new Map<string, string>();
  const verifier = benchVerifier(store, (phone, code) => codes.set(phone, code));
  const elsewhere = benchVerifier(store, () => {});
  const next = visitors(0);
  const count = async (request: (index: number) => Promise<unknown>) => {
    statements = 0;
    for (let index = 0; index < people; index++) await request(index);
    await wait(200);
    return statements / people;
  };
  const bytes = async () => {
    for (const table of ["record", "member", "total"]) await pool.query(`vacuum full phoneproof.${table}`);
    const { rows } = await pool.query(
      "select sum(pg_total_relation_size(relid))::text as bytes from pg_stat_user_tables where relname in ('record', 'member', 'total')",
    );
    return Number(rows[0].bytes);
  };
  try {
    const made: { readonly authentication_uuid: string; readonly check_code: string }[] = [];
    const create = async () => {
      const { fields } = next();
      const { authentication_uuid, status } = await verifier.createAuthentication({ customer_uuid, ...fields });
      expect(status, "pending");
      made.push({ authentication_uuid, check_code: codes.get(fields.phone_number) ?? "" });
    };
    for (let index = 0; index < 24; index++) await create();
    await wait(200);
    made.length = 0;
    const before = await bytes();
    const creates = await count(create);
    const pending = ((await bytes()) - before) / people;
    const check = (by: typeof verifier) => async (index: number) =>
      expect((await by.check({ customer_uuid, ...(made[index] as (typeof made)[number]) })).status, "valid");
    const checks = await count(check(verifier));
    made.length = 0;
    for (let index = 0; index < people; index++) await create();
    const checksElsewhere = await count(check(elsewhere));
    return [
      atMost("round trips to PostgreSQL: create", creates, 1.1, ""),
      atMost("round trips to PostgreSQL: check, right code", checks, 1.1, ""),
      atMost("round trips to PostgreSQL: check, right code, in another process", checksElsewhere, 2.1, ""),
      atMost("bytes in PostgreSQL for each pending authentication, indexes included", pending, 3_000, ""),
    ];
  } finally {
    await Promise.all([verifier.close(), elsewhere.close()]);
    await pool.end();
    await server.stop();
  }
}
