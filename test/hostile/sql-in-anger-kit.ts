import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import { createVerifier, type VerifierOptions } from "phoneproof";
import { postgresStore } from "phoneproof/postgres";
import { poolOf, sql } from "../support/postgres.js";

type Statements = { query(text: string, values: (string | null)[]): Promise<{ readonly rows: readonly unknown[] }> };

/** Visits of users who enter their code. Without `pool`, each group has its own connection, so that its statistics are complete when it ends. */
export async function honestService(url: string, options: Partial<VerifierOptions> = {}, pool?: Statements) {
  let people = 0;

  async function visits(count: number): Promise<void> {
    const own = pool === undefined ? poolOf(url, { max: 1 }) : undefined;
    const codes = new Map<string, string>();
    const store = postgresStore({ pool: pool ?? (own as Pool) });
    if (people === 0) await store.ensureSchema();
    const verifier = createVerifier({
      store,
      sender: {
        async send({ to, code }) {
          codes.set(to, code);
          return { outcome: "accepted" };
        },
      },
      secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6",
      countries: ["FR"],
      phoneValidation: "possible",
      statistics: false,
      callbacks: { worker: false },
      ...options,
    });
    verifiers.push(verifier);
    for (let done = 0; done < count; done++) {
      const index = people++;
      const phone_number = `+336${String(10_000_000 + ((index * 60_013) % 60_000_000))}`;
      const ip = `${(index % 200) + 11}.${(index >> 8) & 255}.${index & 255}.7`;
      const { authentication_uuid, status } = await verifier.createAuthentication({ phone_number, ip, device_id: randomUUID() });
      if (status !== "pending") throw new Error(`create returned ${status}`);
      const checked = await verifier.check({ authentication_uuid, check_code: codes.get(phone_number) ?? "" });
      if (checked.status !== "valid") throw new Error(`check returned ${checked.status}`);
    }
    if (own === undefined) return;
    await verifier.close();
    await own.end();
  }

  const verifiers: { close(): Promise<void> }[] = [];

  /** How many blocks of tables and indexes the server has read, in memory or on disk. */
  async function blocks(): Promise<number> {
    const [row] = await sql<{ blocks: string }>(
      url,
      `select sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read) as blocks from pg_statio_user_tables where schemaname = 'phoneproof'`,
    );
    return Number(row?.blocks);
  }

  /** How many blocks a visit reads: the mean of `count`. */
  async function blocksOf(count: number): Promise<number> {
    const before = await settled(blocks);
    await visits(count);
    return Math.round(((await settled(blocks)) - before) / count);
  }

  return { visits, blocksOf, close: () => Promise.all(verifiers.map((verifier) => verifier.close())) };
}

/** A figure that a backend writes when it ends, which may be a moment after its client has gone. */
async function settled(read: () => Promise<number>): Promise<number> {
  let [last, now] = [-1, await read()];
  while (now !== last) {
    last = now;
    now = await read();
  }
  return now;
}

/** A pool that reports when none of its statements is running. */
export function watched(pool: Pool) {
  let running = 0;
  return {
    async query(text: string, values: (string | null)[]) {
      running++;
      try {
        return await pool.query(text, values);
      } finally {
        running--;
      }
    },
    async idle(): Promise<void> {
      for (let turns = 0; turns < 3; turns = running > 0 ? 0 : turns + 1) await new Promise(setImmediate);
    },
  };
}

/** Rows of windows that ended two hours ago. */
export async function endedRows(url: string, count: number): Promise<void> {
  await sql(
    url,
    `insert into phoneproof.member (name, member, at, added_by, ends)
     select 'old:' || i, 'm', 1, null, extract(epoch from now())::bigint / 60 - 120 from generate_series(1, ${count}) i`,
  );
}
