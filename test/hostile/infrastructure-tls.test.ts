import dns from "node:dns";
import type { Socket } from "node:net";
import { closeWhenSilent, postgresStore } from "phoneproof/postgres";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { newStore, type OwnPostgresServer, poolOf, postgresIsInstalled, postgresJsSettings, sql, startPostgres } from "../support/postgres.js";
import { type Certificate, certificateFor } from "./infrastructure-tls-kit.js";
import { faultOf, findingsOn } from "./store-operators-kit.js";

const host = "db.example.com";

describe.skipIf(!postgresIsInstalled("test/hostile/infrastructure-tls"))("PostgreSQL with TLS", () => {
  let certificate: Certificate;
  let server: OwnPostgresServer;
  let url: string;

  beforeAll(async () => {
    certificate = certificateFor(host);
    server = await startPostgres(certificate.settings);
    const created = await newStore(server);
    await created.close();
    url = created.url;
  });
  afterAll(async () => {
    await server?.stop();
    certificate?.remove();
  });

  /** The server under its name, which resolves to this machine. */
  function named(): string {
    const { lookup } = dns;
    const resolve = ((name: string, ...rest: unknown[]) => lookup(name === host ? "127.0.0.1" : name, ...(rest as [never]))) as typeof dns.lookup;
    vi.spyOn(dns, "lookup").mockImplementation(resolve);
    onTestFinished(() => {
      vi.restoreAllMocks();
    });
    const address = new URL(url);
    address.hostname = host;
    return address.href;
  }

  // Its socket comes from closeWhenSilent, without which postgres.js takes the name from the address.
  it("postgres.js with closeWhenSilent checks the certificate against the name of its host (docs/stores.md#the-client-is-yours)", async () => {
    const client = postgres(named(), { ...postgresJsSettings, ssl: { ca: certificate.text } });
    onTestFinished(() => client.end({ timeout: 1 }));
    expect(await faultOf(postgresStore({ pool: client }))).toBe("");
  });

  it("a socket of closeWhenSilent has the address that postgres.js names in TLS and in errors", async () => {
    const socket = (await closeWhenSilent().socket({ host: ["127.0.0.1"], port: [server.port] })) as Socket;
    onTestFinished(() => void socket.destroy());
    expect(socket).toMatchObject({ host: "127.0.0.1", port: server.port });
  });

  it("doctor does not say to start a PostgreSQL whose certificate the client rejects (docs/contract.md#ping)", async () => {
    const pool = poolOf(url, { ssl: true });
    onTestFinished(() => pool.end());
    const [finding = ""] = await findingsOn(postgresStore({ pool }));
    expect(finding).toContain("self-signed certificate");
    expect(finding).not.toMatch(/start it, or correct the address/);
  });

  it("doctor reports that commits wait for a synchronous standby that is gone (docs/stores.md#postgresql, Failover)", async () => {
    await sql(url, "alter system set synchronous_standby_names = 'gone'", "select pg_reload_conf()");
    onTestFinished(async () => {
      await sql(url, "alter system reset synchronous_standby_names", "select pg_reload_conf()");
    });
    const pool = poolOf(url, { query_timeout: 300 });
    onTestFinished(() => pool.end());
    const store = postgresStore({ pool });
    await expect.poll(() => faultOf(store)).not.toBe("");
    await expect.poll(async () => (await findingsOn(store)).join("\n"), { timeout: 3_000 }).toContain("synchronous_standby_names");
  });
});

it("the error of a standby with hot_standby = off does not say to wait (docs/stores.md#postgresql, Failover)", async () => {
  // As `pg` 8 rejects; PostgreSQL 15 does so on every connection, until the standby is promoted.
  const error = Object.assign(new Error("the database system is not accepting connections"), {
    code: "57P03",
    detail: "Hot standby mode is disabled.",
  });
  const store = postgresStore({ pool: { query: () => Promise.reject(error) } });
  const [finding = ""] = await findingsOn(store);
  for (const text of [await faultOf(store), finding]) {
    expect(text).toContain("57P03");
    expect(text).not.toMatch(/wait until it accepts connections/);
  }
});
