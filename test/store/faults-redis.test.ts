import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recognise } from "../../adapters/store/redis/clients.js";
import { type RunScript, redisStore } from "../../adapters/store/redis/index.js";
import { systemClock } from "../../src/core/clocks.js";
import { type RedisCluster, type RedisServer, redisIsInstalled, startCluster, startRedis, startSentinel, until } from "../support/redis.js";
import { type Connected, clients, clusterClients, hurried, patient, sentinelClients } from "../support/redis-clients.js";
import { startProxy } from "../support/redis-proxy.js";
import { type Answer, newNumber, serviceOn } from "../support/redis-service.js";
import { back, expectInTime, type Figures, refused, served, slowest, throughCuts, throughOutage, throughSilence, timeUntilServed } from "./faults.js";

const installed = redisIsInstalled("faults of Redis");

const underError = ["redis 6", "ioredis 6", "valkey-glide 2", "@upstash/redis 1"];
const figures: Record<string, Figures> = {};

function connect(name: string, server: { port: number; url: string }, patience = hurried): Promise<Connected> {
  return (clients[name] as (typeof clients)[string])(server, patience);
}

describe.runIf(installed)("Redis failures", () => {
  afterAll(() => {
    console.log("Redis under faults:");
    console.table(figures);
  });

  const on = async (options: readonly string[], run: (server: RedisServer) => Promise<void>) => {
    const server = await startRedis(options);
    try {
      await run(server);
    } finally {
      await server.stop();
    }
  };

  // Clients differ in how they lose a connection and reconnect; what the server has lost, and what the store waits for,
  // does not.
  describe.each(underError)("through %s", (name) => {
    it("with appendonly, a server killed and restarted loses nothing acknowledged", async () => {
      await on(["--appendonly", "yes", "--appendfsync", "always"], async (server) => {
        const { client, close } = await connect(name, server);
        figures[`killed, ${name}`] = await throughOutage(
          serviceOn(redisStore({ client })),
          () => server.signal("SIGKILL"),
          () => server.restart(),
        );
        await close();
      });
    });

    it("a server stopped during a burst loses nothing acknowledged", async () => {
      await on([], async (server) => {
        const { client, close } = await connect(name, server);
        figures[`stopped, ${name}`] = await throughOutage(
          serviceOn(redisStore({ client })),
          () => server.signal("SIGSTOP"),
          () => server.signal("SIGCONT"),
        );
        await close();
      });
    });

    it("responses cut off after the write: nothing is sent, wrong codes stay limited, and a check repeated with its Idempotency-Key gets its result", async () => {
      await on([], async (server) => {
        const proxy = await startProxy(server.port);
        const { client, close } = await connect(name, proxy);
        const service = serviceOn(redisStore({ client }));
        figures[`answers cut, ${name}`] = await throughCuts(service, proxy.cutAnswers);
        await close();
        await proxy.close();
      });
    });
  });

  it("a server restarted empty serves again, and its records and limits are lost", async () => {
    await on([], async (server) => {
      const { client, close } = await connect("ioredis 6", server);
      const service = serviceOn(redisStore({ client }));
      const number = newNumber();
      const before = await Promise.all(Array.from({ length: 5 }, () => service.create(number)));
      expect((await service.create(number)).body.status).toBe("rate_limited");
      await server.signal("SIGKILL");
      server.forget();
      await server.restart();
      const served = await timeUntilServed(service);
      const checks = await Promise.all(before.map(({ body }) => service.check(body.authentication_uuid, service.codeOf(body.authentication_uuid))));
      expect(checks.map(({ body }) => body.code)).toEqual(checks.map(() => "invalid_auth_uuid"));
      const again = await Promise.all(Array.from({ length: 7 }, () => service.create(number)));
      const sentAgain = again.filter(({ body }) => body.status === "pending").length;
      expect(sentAgain).toBe(5);
      figures["restarted empty"] = {
        "served again after ms": served,
        "authentications lost": checks.length,
        "charges lost": 5,
        "sent to the number in all": 5 + sentAgain,
      };
      await close();
    });
  });

  it.each(["redis 6", "redis 5", "ioredis 6", "ioredis 5"])(
    "a connection that goes silent, through %s, is replaced while requests keep coming",
    async (name) => {
      await on([], async (server) => {
        const proxy = await startProxy(server.port);
        const { client, close } = await connect(name, proxy);
        figures[`connection without answers, ${name}`] = await throughSilence(serviceOn(redisStore({ client })), proxy);
        await close();
        await proxy.close();
      });
    },
  );

  it("a connection to a primary that became a replica is replaced, when its address leads to the new primary", async () => {
    const [old, next] = await Promise.all([startRedis(), startRedis()]);
    const proxy = await startProxy(old.port);
    const connected = await Promise.all(["redis 6", "redis 5", "ioredis 6", "ioredis 5"].map((name) => connect(name, proxy)));
    try {
      const services = connected.map(({ client }) => serviceOn(redisStore({ client })));
      for (const service of services) expect((await service.create(newNumber())).status).toBe(200);
      proxy.redirect(next.port);
      await old.cli("REPLICAOF", "127.0.0.1", String(next.port));
      for (const service of services) expect((await service.create(newNumber())).status).toBe(503);
      await Promise.all(services.map((service) => timeUntilServed(service)));
    } finally {
      await Promise.all(connected.map(({ close }) => close()));
      await proxy.close();
      await Promise.all([old.stop(), next.stop()]);
    }
  });

  it("a slow server gives correct results within the deadline, and 503 beyond it", async () => {
    await on([], async (server) => {
      const proxy = await startProxy(server.port);
      const [calm, hasty] = [await connect("ioredis 6", proxy, patient), await connect("ioredis 6", proxy)];
      const inTime = serviceOn(redisStore({ client: calm.client }), { storeTimeout: patient / 1_000 });
      await inTime.create(newNumber());
      proxy.delay(100);
      const created = await inTime.create(newNumber());
      const { authentication_uuid: id } = created.body;
      const checked = await inTime.check(id, inTime.codeOf(id));
      expect([created.body.status, checked.body.status]).toEqual(["pending", "valid"]);
      proxy.delay(5_000);
      const service = serviceOn(redisStore({ client: hasty.client }), {}, inTime.customer);
      const late = await Promise.all([service.create(newNumber()), service.check(id, "000000")]);
      expectInTime(late);
      expect(refused(late)).toBe(2);
      expect(service.sent).toEqual([]);
      figures["slow"] = { "slowest answer ms": slowest(late) };
      proxy.delay(0);
      await calm.close();
      await hasty.close();
      await proxy.close();
    });
  });

  it("when a cluster node fails over, the other nodes keep serving, and all requests are served afterwards", async () => {
    const cluster = await startCluster(1_000);
    const connected = await Promise.all(Object.entries(clusterClients).map(async ([name, connectTo]) => ({ name, ...(await connectTo(cluster, hurried)) })));
    try {
      const [first] = cluster.masters as [RedisServer];
      const services = await Promise.all(
        connected.map(async ({ name, client }) => {
          // Each customer's counters are on one node; many customers spread over all nodes.
          const store = redisStore({ client });
          const made = Array.from({ length: 30 }, async () => {
            const service = serviceOn(store);
            return { service, id: (await served(() => service.create(newNumber()))).body.authentication_uuid };
          });
          return { name, made: await Promise.all(made) };
        }),
      );
      const replica = await cluster.replicaOf(first);
      await first.signal("SIGKILL");
      const during = await Promise.all(services.map(({ made }) => Promise.all(made.map(({ service, id }) => service.check(id, service.wrongCodeFor(id))))));
      for (const answers of during) {
        expectInTime(answers);
        expect(refused(answers)).toBeLessThan(answers.length);
      }
      await until(
        "the replica is promoted",
        async () => (await replica.cli("ROLE")).startsWith("master") && (await replica.cli("CLUSTER", "INFO")).includes("cluster_state:ok"),
      );
      await Promise.all(
        services.map(async ({ name, made }, at) => {
          const started = performance.now();
          const open = new Set(made);
          await until("all are served", async () => {
            const check = async (one: (typeof made)[number]) => {
              const { service, id } = one;
              if ((await service.check(id, service.codeOf(id), id)).body.status === "valid") open.delete(one);
            };
            await Promise.all([...open].map(check));
            return open.size === 0;
          });
          const served = Math.round(performance.now() - started);
          expect(served).toBeLessThan(back);
          const answers = during[at] as Answer[];
          figures[`cluster node failed over, ${name}`] = {
            "requests refused": refused(answers),
            "slowest answer ms": slowest(answers),
            "served again after ms": served,
          };
        }),
      );
    } finally {
      await Promise.all(connected.map(({ close }) => close()));
      await cluster.stop();
    }
  });

  describe("the cluster node that holds a customer's windows hangs", () => {
    let cluster: RedisCluster;
    beforeAll(async () => {
      cluster = await startCluster();
    });
    afterAll(() => cluster?.stop());

    it.each(Object.keys(clusterClients))(
      "through %s, retries return 503; once it is back, none of them has used up a retry or invalidated the code",
      async (name) => {
        const { client, close } = await (clusterClients[name] as (typeof clusterClients)[string])(cluster, hurried);
        let ahead = 0;
        const now = () => Date.now() + ahead;
        try {
          const service = serviceOn(redisStore({ client }), { clock: { ...systemClock(), now } });
          const nodeOf = async (uuid: string, before: string, after: string) => {
            const pattern = `*${before}${Buffer.from(uuid.replaceAll("-", ""), "hex").toString("base64url")}${after}`;
            const found = await Promise.all(cluster.masters.map(async (node) => (await node.cli("KEYS", pattern)) !== ""));
            return cluster.masters[found.indexOf(true)];
          };
          const ids: string[] = [];
          let hung: RedisServer | undefined;
          while (ids.length < 2) {
            const id = (await service.create(newNumber())).body.authentication_uuid;
            hung ??= await nodeOf(service.customer, "{", "}*");
            if ((await nodeOf(id, "", "")) !== hung) ids.push(id);
          }
          const [checked, retried] = ids as [string, string];
          const sentBefore = service.sent.length;
          await hung?.signal("SIGSTOP");
          ahead += 31_000;
          const during = await Promise.all(ids.flatMap((id) => [service.retry(id), service.retry(id), service.retry(id)]));
          expectInTime(during);
          expect(refused(during)).toBe(during.length);
          expect(service.sent).toHaveLength(sentBefore);
          await hung?.signal("SIGCONT");
          const served = await timeUntilServed(service);
          expect((await service.check(checked, service.codeOf(checked))).body.status).toBe("valid");
          const answers = [];
          for (let turn = 0; turn < 5; turn++) {
            answers.push((await service.retry(retried)).body.status);
            ahead += 121_000;
          }
          expect(answers).toEqual(["approved", "approved", "approved", "approved", "rate_limited"]);
          figures[`cluster node of the windows hung, ${name}`] = {
            "requests refused": refused(during),
            "slowest answer ms": slowest(during),
            "served again after ms": served,
          };
        } finally {
          await close();
        }
      },
    );
  });

  it("when a master behind a sentinel fails over, requests return 503 until then and are served afterwards", async () => {
    const [master, replica] = [await startRedis(), await startRedis()];
    await replica.cli("REPLICAOF", "127.0.0.1", String(master.port));
    await until("the replica is in sync", async () => (await replica.cli("INFO", "replication")).includes("master_link_status:up"));
    const sentinel = await startSentinel(master);
    const connected = await Promise.all(Object.entries(sentinelClients).map(async ([name, connectTo]) => ({ name, ...(await connectTo(sentinel, hurried)) })));
    try {
      const services = connected.map(({ name, client }) => ({ name, service: serviceOn(redisStore({ client })) }));
      const ids = await Promise.all(services.map(async ({ service }) => (await service.create(newNumber())).body.authentication_uuid));
      await until("the replica has all", async () => {
        const offset = /master_repl_offset:(\d+)/.exec(await master.cli("INFO", "replication"))?.[1];
        return (await replica.cli("INFO", "replication")).includes(`slave_repl_offset:${offset}`);
      });
      await master.signal("SIGKILL");
      const during = await Promise.all(services.map(({ service }) => service.create(newNumber())));
      expectInTime(during);
      expect(refused(during)).toBe(during.length);
      await until("the replica is promoted", async () => (await replica.cli("ROLE")).startsWith("master"));
      await Promise.all(
        services.map(async ({ name, service }, at) => {
          const ms = await timeUntilServed(service);
          const id = ids[at] as string;
          expect((await served(() => service.check(id, service.codeOf(id), id))).body.status).toBe("valid");
          figures[`sentinel failed over, ${name}`] = {
            "requests refused": 1,
            "slowest answer ms": slowest(during.slice(at, at + 1)),
            "served again after ms": ms,
          };
        }),
      );
    } finally {
      await Promise.all(connected.map(({ close }) => close()));
      sentinel.stop();
      await Promise.all([master.stop(), replica.stop()]);
    }
  });

  it("promoting a lagging replica loses what it had not received, unless the client waits for it (WAIT)", async () => {
    const [master, replica] = [await startRedis(), await startRedis()];
    const { client, close } = await connect("ioredis 6", master);
    const afterwards = await connect("ioredis 6", replica);
    try {
      const { run } = recognise(client);
      const wait = client as unknown as { wait(replicas: number, ms: number): Promise<number> };
      const waiting: RunScript = async (script, keys, args) => {
        const reply = await run(script, keys, args);
        if ((await wait.wait(1, 300)) < 1) throw new Error("no replica has it");
        return reply;
      };
      await replica.cli("REPLICAOF", "127.0.0.1", String(master.port));
      await until("the replica is in sync", async () => (await replica.cli("INFO", "replication")).includes("master_link_status:up"));
      const plain = serviceOn(redisStore({ client }));
      const safe = serviceOn(redisStore({ client: waiting }), {}, plain.customer);
      const kept = await safe.create(newNumber());
      expect(kept.status).toBe(200);

      await replica.signal("SIGSTOP");
      await master.cli("CLIENT", "KILL", "TYPE", "replica");
      const number = newNumber();
      const lost = await Promise.all(Array.from({ length: 5 }, () => plain.create(number)));
      expect(lost.every(({ body }) => body.status === "pending")).toBe(true);
      const refusedOnes = await Promise.all(Array.from({ length: 5 }, () => safe.create(newNumber())));
      expectInTime(refusedOnes);
      expect(refused(refusedOnes)).toBe(5);
      expect(safe.sent).toHaveLength(1);
      await master.signal("SIGKILL");
      await replica.signal("SIGCONT");
      await replica.cli("REPLICAOF", "NO", "ONE");

      const after = serviceOn(redisStore({ client: afterwards.client }), {}, plain.customer);
      expect((await after.check(kept.body.authentication_uuid, safe.codeOf(kept.body.authentication_uuid))).body.status).toBe("valid");
      const checks = await Promise.all(lost.map(({ body }) => after.check(body.authentication_uuid, plain.codeOf(body.authentication_uuid))));
      const gone = checks.filter(({ body }) => body.code === "invalid_auth_uuid").length;
      const again = (await Promise.all(Array.from({ length: 6 }, () => after.create(number)))).filter(({ body }) => body.status === "pending").length;
      expect([gone, again]).toEqual([5, 5]);
      figures["lagging replica promoted"] = { "authentications lost": gone, "charges lost": 5, "sent to the number in all": 5 + again };
      figures["lagging replica promoted, client waits"] = {
        "requests refused": refused(refusedOnes),
        "slowest answer ms": slowest(refusedOnes),
        "authentications lost": 0,
      };
    } finally {
      await close();
      await afterwards.close();
      await Promise.all([master.stop(), replica.stop()]);
    }
  });
});
