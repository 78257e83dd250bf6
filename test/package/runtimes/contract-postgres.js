import process from "node:process";
import { postgresStore } from "phoneproof/postgres";
import { storeContract } from "phoneproof/testing";

// Runs the cases of the store contract on two clients of a runtime, and statements that fail; prints the results of
// both. Arguments: the client and the URL of the database.
const [, , client, connectionString] = process.argv;
const clients = {
  async "Bun.sql"() {
    const { SQL } = await import("bun");
    const pool = new SQL(connectionString);
    return { pool, close: () => pool.close() };
  },
  async pg() {
    const { Pool } = await import("pg");
    const pool = new Pool({ connectionString });
    return { pool, close: () => pool.end() };
  },
  async postgres() {
    const { default: postgres } = await import("postgres");
    const pool = postgres(connectionString, { onnotice() {} });
    return { pool, close: () => pool.end() };
  },
};
const [one, two] = [await clients[client](), await clients[client]()];
const [store, peer] = [one, two].map(({ pool }) => postgresStore({ pool }));
const cases = storeContract({ racers: 50 });
const broken = [];
for (const { name, run } of cases) await run({ store, peer }).catch((error) => broken.push(`${name}: ${error.message}`));
const put = (value) => store.put("key", value, { now: 0, keepUntil: 60_000 }).catch((error) => error.message);
const errors = [await put("fail 40001"), await put("fail 40P01"), await put("fail 57014"), await put("bad +33612345678")];
await Promise.all([one.close(), two.close()]);
console.log(JSON.stringify({ cases: cases.length, broken, errors }));
