import { fixedClock } from "phoneproof/testing";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { newDatabase, type OwnPostgresServer, poolOf, postgresIsInstalled, sql, startPostgres } from "../support/postgres.js";
import { endedRows, honestService, watched } from "./sql-in-anger-kit.js";

const installed = postgresIsInstalled("SQL stores in anger");
let server: OwnPostgresServer | undefined;

beforeAll(async () => {
  if (installed) server = await startPostgres();
});
afterAll(async () => server?.stop());

test.skipIf(!installed)("one worker deletes ended rows as fast as 100 visits a second make them", async () => {
  const url = await newDatabase(server);
  const pool = poolOf(url, { max: 16 });
  onTestFinished(() => pool.end());
  const statements = watched(pool);
  const clock = fixedClock(Date.now());
  const service = await honestService(statements, { clock, callbacks: { worker: true } });
  onTestFinished(async () => void (await service.close()));
  await service.visit();
  // What a minute of 100 visits a second leaves: each is a member of four windows: of its number, of its device, of the device's numbers, of verified numbers.
  await endedRows(url, 24_000);

  for (let seconds = 0; seconds < 65; seconds++) {
    clock.advance(1_000);
    await statements.idle();
  }

  const [left] = await sql<{ count: string }>(url, "select count(*) from phoneproof.member where name like 'old:%'");
  expect(Number(left?.count), "rows left of 24,000 after a minute").toBe(0);
});
