import { Pool } from "pg";
import { postgresStore } from "phoneproof/postgres";
import { newDatabase, postgresIsInstalled, startPostgres } from "../test/support/postgres.js";
import { median, number, type Part, type Row } from "./report.js";
import { multiple } from "./rounds.js";
import { benchVerifier, customer_uuid, expect, fewVisits, writePast } from "./service.js";
import { visitors } from "./traffic.js";

/** The time of a create with many open authentications. */
export const postgresGrowthPart: Part = {
  name: "postgres-growth",
  title: "PostgreSQL, a create beside a million open authentications of one customer, against a thousand; one after another, medians of five turns of 200",
  measure,
};

async function measure(): Promise<Row[]> {
  if (!postgresIsInstalled("the bench's part postgres-growth"))
    return [{ figure: "PostgreSQL is missing", measured: "SKIPPED; get it with: apt-get install postgresql" }];
  const server = await startPostgres(["shared_buffers=256MB", "max_wal_size=4GB"]);
  const places = await Promise.all(
    [1_000, 1_000_000].map(async (open) => {
      const url = await newDatabase(server);
      await writePast(url, fewVisits);
      const pool = new Pool({ connectionString: url, max: 4 });
      await fill(pool, open);
      const codes = new Map<string, string>();
      const verifier = benchVerifier(postgresStore({ pool }), (phone, code) => codes.set(phone, code));
      return { pool, verifier, next: visitors(open === 1_000 ? 1 : 2) };
    }),
  );
  const times: number[][] = [[], []];
  try {
    for (let turn = 0; turn < 6; turn++)
      for (const [at, { verifier, next }] of places.entries()) {
        const took: number[] = [];
        for (let index = 0; index < 200; index++) {
          const began = performance.now();
          expect((await verifier.createAuthentication({ customer_uuid, ...next().fields })).status, "pending");
          took.push(performance.now() - began);
        }
        // The first turn prepares plans and fills caches.
        if (turn > 0) times[at]?.push(median(took));
      }
    const [few = [], many = []] = times;
    const ratios = many.map((time, turn) => time / (few[turn] as number));
    const { rows } = await (places[0] as (typeof places)[0]).pool.query(
      "select relname as name, round(100.0 * n_tup_hot_upd / greatest(n_tup_upd, 1)) as hot from pg_stat_user_tables where relname in ('total', 'member', 'record') order by 1",
    );
    return [
      multiple("create, a million open × a thousand open", ratios, `${number(median(many))} ms against ${number(median(few))}`, { most: 1.3 }),
      ...rows.map(({ name, hot }) => ({ figure: `HOT updates of ${name}`, measured: `${hot} %` })),
    ];
  } finally {
    await Promise.all(places.map(async ({ pool, verifier }) => [await verifier.close(), await pool.end()]));
    await server.stop();
  }
}

/** Open authentications as after creates, each with two windows. */
async function fill(pool: Pool, open: number): Promise<void> {
  const ends = "(extract(epoch from now()) / 60)::integer + 1440";
  await pool.query(`insert into phoneproof.record (customer, id, tokens, data, keep_until, ends)
    select '${customer_uuid}', gen_random_uuid(), array['keSiedEp_6s'], repeat('d', 150), 0, ${ends} from generate_series(1, ${open}) i`);
  await pool.query(`insert into phoneproof.member (name, member, at, added_by, ends)
    select '${customer_uuid}:' || kind || ':' || left(md5(i::text), 16), md5(i::text), 1795503140810, 'keSiedEp_6s', ${ends} from generate_series(1, ${open}) i, unnest(array['n', 'd']) kind`);
  await pool.query("vacuum analyze phoneproof.record, phoneproof.member");
}
