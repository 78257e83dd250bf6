import type { Pool } from "pg";
import { createVerifier, type VerifierOptions } from "phoneproof";
import { postgresStore } from "phoneproof/postgres";
import { sql } from "../support/postgres.js";

type Statements = { query(text: string, values: (string | null)[]): Promise<{ readonly rows: readonly unknown[] }> };

/** Visits of users who enter their code. */
export async function honestService(pool: Statements, options: Partial<VerifierOptions>) {
  let people = 0;
  const codes = new Map<string, string>();
  const store = postgresStore({ pool });
  await store.ensureSchema();
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
    statistics: false,
    ...options,
  });
  return {
    async visit(): Promise<void> {
      const phone_number = `+336${String(12_345_678 + people++)}`;
      const { authentication_uuid, status } = await verifier.createAuthentication({ phone_number });
      if (status !== "pending") throw new Error(`create returned ${status}`);
      const checked = await verifier.check({ authentication_uuid, check_code: codes.get(phone_number) ?? "" });
      if (checked.status !== "valid") throw new Error(`check returned ${checked.status}`);
    },
    close: () => verifier.close(),
  };
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
