import { sqliteStore } from "phoneproof/sqlite";
import { newFolder, type OwnHandle, openSqlite } from "../test/support/sqlite.js";
import { median, number, type Row } from "./report.js";
import { multiple } from "./rounds.js";
import { benchVerifier, customer_uuid, expect } from "./service.js";
import { visitors } from "./traffic.js";

/** Bytes of the file per pending authentication, including everything in which it is counted, after a vacuum. */
export async function bytesEach(): Promise<Row> {
  const { file, remove } = newFolder();
  const database = openSqlite(file);
  const size = () => {
    database.exec("VACUUM");
    const pragma = (name: string) => Number((database.prepare(`PRAGMA ${name}`).get() as Record<string, number>)[name]);
    return pragma("page_count") * pragma("page_size");
  };
  const { create, close } = createsOn(database);
  try {
    for (let i = 0; i < 500; i++) await create();
    const before = size();
    const made = 5_000;
    for (let i = 0; i < made; i++) await create();
    return { figure: "bytes of the file a pending authentication, its windows, sums and indexes included", measured: number((size() - before) / made) };
  } finally {
    await close();
    remove();
  }
}

/** The time of a create without disk syncs, with a million pending authentications and with a thousand. */
export async function besideAMillion(): Promise<Row> {
  const folders = [1_000, 1_000_000].map((pending) => ({ pending, ...newFolder() }));
  const creates: Creates[] = [];
  try {
    for (const { pending, file } of folders) {
      const database = openSqlite(file);
      await fill(database, pending);
      const filled = createsOn(database);
      creates.push(filled);
      for (let i = 0; i < 1_000; i++) await filled.create();
    }
    const times: number[][] = [];
    for (let round = 0; round < 9; round++)
      times.push(
        await inTurns(creates, async ({ create }) => {
          const started = performance.now();
          for (let i = 0; i < 500; i++) await create();
          return (performance.now() - started) / 500;
        }),
      );
    const [few = 0, many = 0] = [0, 1].map((at) => 1_000 * median(times.map((round) => round[at] as number)));
    const ratios = times.map(([few = 1, many = 0]) => many / few);
    return multiple("a create where a million are pending × a thousand", ratios, `${number(many)} µs against ${number(few)} µs`, { most: 1.3 });
  } finally {
    for (const { close } of creates) await close();
    for (const { remove } of folders) remove();
  }
}

async function inTurns<T>(list: readonly T[], measure: (one: T) => Promise<number>): Promise<number[]> {
  const measured: number[] = [];
  for (const one of list) measured.push(await measure(one));
  return measured;
}

/** The rules count as usual, but reject no one. */
const inShadow = Object.fromEntries(
  ["range", "crowd", "country", "newCountries", "address", "strangeNetwork", "signals"].map((rule) => [rule, { mode: "shadow" as const }]),
);

interface Creates {
  create(): Promise<void>;
  close(): Promise<void>;
}

function createsOn(database: OwnHandle): Creates {
  const verifier = benchVerifier(sqliteStore({ database, synchronous: "OFF" }), () => {}, {
    callbacks: { worker: false },
    policy: { spam: inShadow, limits: { perCustomer: [] } },
  });
  const next = visitors(3);
  return {
    create: async () => expect((await verifier.createAuthentication({ customer_uuid, ...next().fields })).status, "pending"),
    async close() {
      await verifier.close();
      database.close();
    },
  };
}

/** Rows as after creates: a record, three members and four parts of sums each. */
async function fill(database: OwnHandle, pending: number): Promise<void> {
  await sqliteStore({ database, synchronous: "OFF" }).get("none");
  const [now, hour] = [Date.now(), 3_600_000];
  const id = "printf('%08x-0000-4000-8000-%012x', i, i)";
  const name = (kind: string) => `'${customer_uuid}:${kind}:' || printf('%016x', i)`;
  const from = `FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${pending}) SELECT i FROM n)`;
  const data = "printf('%0250d', i)";
  database.exec(`PRAGMA cache_size = -200000; BEGIN;
    INSERT INTO phoneproof_records SELECT '${customer_uuid}', ${id}, '["AAAAAAAAAAA"]', ${data}, ${now + hour}, NULL, ${now + hour} ${from};`);
  for (const kind of ["d", "dn", "n"])
    database.exec(`INSERT INTO phoneproof_members SELECT ${name(kind)}, ${id} || '/aaaaaaaa/1', ${now}, 'AAAAAAAAAAA', ${now + hour} ${from};`);
  for (const kind of ["b:a", "b:r", "b:r2", "m:r"]) database.exec(`INSERT INTO phoneproof_sums SELECT ${name(kind)}, 41557, 1000000, ${now + hour} ${from};`);
  database.exec("COMMIT; PRAGMA cache_size = -2000");
}
