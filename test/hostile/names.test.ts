import { randomUUID } from "node:crypto";
import { createSocket } from "node:dgram";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { PlainStore } from "../store/plain-store.js";
import { type Receiver, receiver } from "../support/receiver.js";
import { logger, secret } from "../support/verifier.js";
import { eventually, keyOf, noSpamRules, numberAt, sender, wide } from "./kit.js";

const real = { lookup: dns.lookup, Resolver: dns.promises.Resolver, CallbackResolver: dns.Resolver };
/** A name server that never responds, and the names that the system's resolver was asked for, which it never resolves. */
const hole = createSocket("udp4");
const held: string[] = [];
let asked = 0;

beforeAll(async () => {
  hole.on("message", () => void asked++);
  await new Promise<void>((done) => hole.bind(0, "127.0.0.1", done));
  const servers = [`127.0.0.1:${(hole.address() as AddressInfo).port}`];
  const aimed = (Base: typeof real.Resolver) =>
    class extends Base {
      constructor(...args: ConstructorParameters<typeof Base>) {
        super(...args);
        this.setServers(servers);
      }
    };
  dns.promises.Resolver = aimed(real.Resolver);
  dns.Resolver = aimed(real.CallbackResolver as never) as never;
  dns.lookup = ((name: string, ...rest: unknown[]) => {
    if (name.endsWith(".example")) held.push(name);
    else (real.lookup as (...args: unknown[]) => void)(name, ...rest);
  }) as never;
  syncBuiltinESMExports();
});

afterAll(async () => {
  dns.promises.Resolver = real.Resolver;
  dns.Resolver = real.CallbackResolver;
  dns.lookup = real.lookup;
  syncBuiltinESMExports();
  await new Promise<void>((done) => hole.close(done));
});

it.each([60, 800])(
  "%i creates with callback_urls whose DNS never responds hold at most one system lookup, and delay another customer's event by less than 10 s",
  async (count) => {
    const { createVerifier } = await import("../../src/index.js");
    const [mallory, alice] = [randomUUID(), randomUUID()];
    const well: Receiver = await receiver();
    held.length = 0;
    asked = 0;
    let number = 0;
    const verifier = createVerifier({
      store: new PlainStore(),
      sender: sender(),
      secret,
      countries: "all",
      customers: [mallory, alice].map((customer_uuid) => ({ customer_uuid, keys: [keyOf(customer_uuid)] })),
      policy: { spam: noSpamRules, limits: wide },
      logger: logger(),
      callbacks: { allowOrigins: [well.origin] },
    });
    const create = (customer_uuid: string, callback_url: string) =>
      verifier.createAuthentication({ customer_uuid, phone_number: numberAt(number++), callback_url });
    await Promise.all(Array.from({ length: count }, (_, i) => create(mallory, `https://dead-${count}-${i}.example/hook`)));
    await eventually("names are asked for", () => asked + held.length > 0);
    const started = performance.now();
    const { status } = await create(alice, `${well.origin}/hook`);
    expect(status).toBe("pending");
    await eventually("the other's event", () => well.received.length > 0);
    expect(performance.now() - started).toBeLessThan(10_000);
    await new Promise((done) => setTimeout(done, 1_000));
    expect(held.length).toBeLessThanOrEqual(1);
    // Does not wait for the posts in progress.
    void verifier.close();
    await well.close();
  },
  30_000,
);
