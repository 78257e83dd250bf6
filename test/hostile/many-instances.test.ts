import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { newDatabase, type PostgresServer, pgbouncerIsInstalled, poolOf, postgresIsInstalled, postgresServer, startPgbouncer } from "../support/postgres.js";
import { numberOf, setUp } from "../support/verifier.js";
import { bouncerErrors, otherBouncer } from "./many-instances-kit.js";

const suite = "several instances on one PostgreSQL";
const bouncer = pgbouncerIsInstalled(suite);

/** The message of a read through a client that the server rejects. */
const reported = (code: string, message: string) =>
  postgresStore({ query: () => Promise.reject(Object.assign(new Error(message), { code })) })
    .find("11111111-2222-3333-4444-555555555555", "an id")
    .then(
      () => "no error",
      (error: Error) => error.message,
    );

describe("the log when PgBouncer gives no connection", () => {
  it.runIf(bouncer)("does not blame statement_timeout when PgBouncer does not know the database", async () => {
    const other = await otherBouncer();
    onTestFinished(() => other.stop());
    const pool = poolOf(other.url, { connectionTimeoutMillis: 1500 });
    onTestFinished(() => pool.end());
    const error = await postgresStore({ pool })
      .find("11111111-2222-3333-4444-555555555555", "an id")
      .catch((error: Error) => error.message);
    expect(error).toContain("08P01");
    expect(error).not.toContain("statement_timeout");
  });

  it.each(bouncerErrors)("does not blame statement_timeout for: %s", async (text) => {
    expect(await reported("08P01", text)).not.toContain("statement_timeout");
  });
});

describe("the log when a setting of the role is in the way", () => {
  it.each([
    ["lock_timeout", "55P03", "canceling statement due to lock timeout"],
    ["default_transaction_isolation", "40001", "could not serialize access due to concurrent update"],
  ])("names the fix for %s", async (_setting, code, text) => {
    expect(await reported(code, text)).not.toContain("look for the reason in the server's log");
  });
});

describe.runIf(bouncer && postgresIsInstalled(suite))("prepare: true behind a PgBouncer before 1.21", () => {
  let server: PostgresServer | undefined;
  beforeAll(async () => {
    server = await postgresServer(suite);
  });
  afterAll(() => server?.stop());

  it("names the option prepare in the log of the second instance", async () => {
    const url = await newDatabase(server);
    const direct = poolOf(url);
    onTestFinished(() => direct.end());
    await postgresStore({ pool: direct }).ensureSchema();
    const pooler = await startPgbouncer({ url, stop: async () => {} }, 1);
    onTestFinished(() => pooler.stop());
    const through = new URL(pooler.url);
    through.pathname = new URL(url).pathname;
    const instances = [1, 2].map(() => {
      const pool = poolOf(through.href);
      onTestFinished(() => pool.end());
      return setUp({ store: postgresStore({ pool, prepare: true }) });
    });
    for (const [index, { create }] of instances.entries()) await create({ phone_number: numberOf(index) }).catch(() => undefined);
    const errors = instances.flatMap(({ log }) => log.lines).filter(({ level }) => level === "error");
    // A newer PgBouncer serves them, and then there is nothing to explain.
    expect(errors.map(({ fields }) => String(fields["err"])).filter((text) => !text.includes("`prepare`"))).toEqual([]);
  });
});
