import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "vitest";
import { nodeHandler } from "../../adapters/http/node.js";
import { createVerifier, type Store, type Verifier, type VerifierOptions } from "../../src/index.js";
import { type FixedClock, fixedClock } from "../../src/testing/fixed-clock.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { inbox, logger, numberOf, secret, start } from "../support/verifier.js";

/** Two handles on one store, as in two processes. */
export interface Handles {
  readonly store: Store;
  readonly peer: Store;
}

/** One process: a verifier, listening on loopback. */
export interface Process {
  readonly verifier: Verifier;
  readonly log: ReturnType<typeof logger>;
  /** The response to a create over HTTP: the status, and the code or status in the body. */
  create(key: string, customer_uuid: string): Promise<string>;
  close(): Promise<void>;
}

/** A verifier whose customers are in the store. */
export function storedVerifier(store: Store, clock: FixedClock, options: Partial<VerifierOptions> = {}) {
  const log = logger();
  const verifier = createVerifier({
    store,
    sender: inbox(),
    secret,
    countries: "all",
    customers: "store",
    clockSkew: 0,
    logger: log,
    callbacks: { worker: false },
    // The clock jumps while a batch may be in progress, which would then time out.
    statistics: false,
    ...options,
    policy: { spam: noSpamRules, ...options.policy },
    clock,
  });
  return { verifier, log };
}

export async function startProcess(store: Store, clock: FixedClock, options: Partial<VerifierOptions> = {}): Promise<Process> {
  const { verifier, log } = storedVerifier(store, clock, options);
  const server = createServer(nodeHandler(verifier));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    verifier,
    log,
    async create(key, customer_uuid) {
      const response = await fetch(`http://127.0.0.1:${port}/v1/authentication`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json" },
        body: JSON.stringify({ customer_uuid, phone_number: numberOf(calls++) }),
      });
      const { status, code } = (await response.json()) as { status?: string; code?: string };
      return `${response.status} ${status ?? code}`;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
      await verifier.close();
    },
  };
}

/** Each call uses a new number, since numbers have caps. */
let calls = 0;

const second = 1_000;
const hour = 3_600 * second;

/**
 * The life of a key over two processes: issued, rotated with an overlap, revoked, its customer suspended and resumed,
 * its last use shown as a day.
 */
export async function lifeOfAKey({ store, peer }: Handles): Promise<void> {
  const clock = fixedClock(start);
  const [here, there] = [await startProcess(store, clock), await startProcess(peer, clock)];
  const { customers } = here.verifier;
  const both = (key: string, uuid: string) => Promise.all([here.create(key, uuid), there.create(key, uuid)]);
  const accepted = ["200 pending", "200 pending"];
  const refused = ["403 forbidden", "403 forbidden"];
  try {
    const { customer_uuid } = await customers.create({ name: "Ådne & Søn" });
    const first = await customers.keys.issue({ customer_uuid, name: "server" });
    expect(await both(first.key, customer_uuid)).toEqual(accepted);

    // Rotation: both keys work during the overlap, the new one at once.
    const next = await customers.keys.rotate({ customer_uuid, overlap: 3_600 });
    expect(await both(first.key, customer_uuid)).toEqual(accepted);
    expect(await both(next.key, customer_uuid)).toEqual(accepted);
    expect((await customers.keys.list({ customer_uuid })).map(({ key_id, status }) => [key_id, status])).toEqual([
      [next.key_id, "active"],
      [first.key_id, "ending"],
    ]);
    await expect(customers.keys.issue({ customer_uuid })).rejects.toMatchObject({ code: "bad_request" });

    // Early revocation of the old key: effective here at once, elsewhere within two seconds.
    await customers.keys.revoke({ customer_uuid, key_id: first.key_id });
    expect(await here.create(first.key, customer_uuid)).toBe("403 forbidden");
    clock.advance(2 * second);
    expect(await both(first.key, customer_uuid)).toEqual(refused);
    expect(await both(next.key, customer_uuid)).toEqual(accepted);

    await customers.suspend({ customer_uuid });
    expect(await here.create(next.key, customer_uuid)).toBe("403 forbidden");
    clock.advance(2 * second);
    expect(await both(next.key, customer_uuid)).toEqual(refused);
    const direct = there.verifier.createAuthentication({ customer_uuid, phone_number: numberOf(99) });
    await expect(direct).rejects.toMatchObject({ code: "account_invalid" });

    await there.verifier.customers.resume({ customer_uuid });
    clock.advance(2 * second);
    expect(await both(next.key, customer_uuid)).toEqual(accepted);

    // Another rotation without a revocation: the old key stops at the end of the overlap, to the millisecond and
    // without a store call.
    const last = await customers.keys.rotate({ customer_uuid, overlap: 2 });
    clock.advance(2 * second - 1);
    expect(await both(next.key, customer_uuid)).toEqual(accepted);
    clock.advance(1);
    expect(await both(next.key, customer_uuid)).toEqual(refused);
    expect(await both(last.key, customer_uuid)).toEqual(accepted);

    // The day of the last use is visible once the write that is made outside requests has arrived.
    const listed = () => there.verifier.customers.keys.list({ customer_uuid });
    await expect.poll(async () => (await listed()).map(({ last_used_on }) => last_used_on)).toEqual(["2026-03-01", "2026-03-01", "2026-03-01"]);
    expect((await listed()).map(({ status }) => status)).toEqual(["active", "ended", "revoked"]);
    clock.advance(12 * hour);
    expect(await there.create(last.key, customer_uuid)).toBe("200 pending");
    await expect.poll(async () => (await listed()).map(({ last_used_on }) => last_used_on)).toEqual(["2026-03-02", "2026-03-01", "2026-03-01"]);

    expect(await there.verifier.customers.list()).toEqual([await customers.get({ customer_uuid })]);
    for (const { log } of [here, there]) expect(log.lines).toEqual([]);
  } finally {
    await Promise.all([here.close(), there.close()]);
  }
}
