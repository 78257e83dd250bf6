import { MongoClient } from "mongodb";
import { dropDatabase, mongoServer, newDatabase } from "../test/support/mongo.js";
import { newDatabase as newPostgresDatabase, postgresIsInstalled, startPostgres } from "../test/support/postgres.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../test/support/redis.js";
import { startProxy } from "../test/support/redis-proxy.js";
import { newFolder } from "../test/support/sqlite.js";
import type { Part, Row } from "./report.js";
import { type Field, type Play, playAll, rowsOf } from "./rounds.js";
import { eightDays, fewVisits, writePast } from "./service.js";
import { besideAMillion, bytesEach } from "./sqlite.js";

/** Every measurement uses two stores: one with two hours of traffic, and one with eight days. */
const pasts = { empty: fewVisits, "8 days of history": eightDays };

type Place = keyof typeof pasts;

const both = ["ours", "handmade"] as const;

const closed = (connections: number): Play => ({ name: `closed ${connections}`, loop: { connections }, seconds: 1.5, rounds: 3, contenders: both });
const poisson = (perSecond: number): Play => ({ name: `Poisson ${perSecond}/s`, loop: { perSecond }, seconds: 3, rounds: 3, contenders: both, ping: true });

/** Every part, once for each past. */
export const overHttpParts: readonly Part[] = (Object.keys(pasts) as Place[]).flatMap((place) => [
  {
    name: "redis",
    title: `Fastify and Redis, ${place}. Ours × theirs in the same rounds: the middle, the least and the most
  a flow: a create with all fields and its checks, creates and checks mixed · bare routes: the phone check and one script each
  closed: so many clients that each wait for their answer · Poisson: people come when they come, and type 0.2 to 2 s later; latency from the moment when a request was due`,
    measure: () => inRedis(place, measureRedis),
  },
  {
    name: "express",
    title: `Express and Redis, ${place}, a closed loop of 32 clients. better-auth: its phone plugin, codes in the same Redis`,
    measure: () => inRedis(place, measureExpress),
  },
  {
    name: "far",
    title: `Fastify and a Redis that is 2 ms away, ${place}. By hand a flow makes six round trips, with its commands together four; ours two`,
    measure: () => inRedis(place, measureFar),
  },
  {
    name: "postgres",
    title: `Fastify and PostgreSQL, ${place}, writes as durable as PostgreSQL has them by default; 16 connections each. By hand a create is a transaction of four statements
  with three caps. better-auth: its phone plugin, codes in the same PostgreSQL`,
    measure: () => measurePostgres(place),
  },
  { name: "mongo", title: `Fastify and MongoDB, ${place}`, measure: () => measureMongo(place) },
  { name: "sqlite", title: `Fastify and an SQLite file, ${place}`, measure: () => measureSqlite(place) },
]);

async function measureRedis(server: RedisServer, place: Place): Promise<Row[]> {
  const elsewhere: Play = { ...poisson(500), name: "Poisson 500/s, elsewhere", contenders: ["ours elsewhere", "handmade"], ping: false };
  const results = await playAll({ framework: "Fastify", ...fieldOf(server) }, [
    { ...closed(32), seconds: 2, rounds: 5, contenders: ["ours", "handmade", "lean", "bare", "ours elsewhere", "bare elsewhere"] },
    { ...closed(1), contenders: ["ours", "handmade", "lean"] },
    ...[4, 16, 128].map(closed),
    { ...closed(32), name: "closed 32 with PING", ping: true },
    poisson(100),
    { ...poisson(500), seconds: 5 },
    poisson(1_000),
    elsewhere,
  ]);
  const costs = { flows: undefined, storeCpu: undefined, serverCpu: undefined };
  const latency = { createP50: undefined, createP99: undefined, checkP50: undefined, checkP99: undefined };
  return [
    ...rowsOf(results, "closed 32", both, { storeCpu: { most: place === "empty" ? 1.8 : 1.9 }, flows: { least: 0.75 }, serverCpu: undefined }),
    ...rowsOf(results, "closed 32", ["ours", "bare"], { serverCpu: { most: 1.6 } }),
    ...rowsOf(results, "closed 32", ["ours elsewhere", "bare elsewhere"], { serverCpu: { most: 1.9 } }),
    ...["closed 1", "closed 4", "closed 16", "closed 128"].flatMap((play) => rowsOf(results, play, both, costs)),
    ...["closed 1", "closed 32"].flatMap((play) => rowsOf(results, play, ["ours", "lean"], costs)),
    ...rowsOf(results, "closed 32 with PING", both, { pingP50: undefined, pingP99: { most: 2 } }),
    ...rowsOf(results, "Poisson 100/s", both, { ...latency, pingP99: undefined }),
    ...rowsOf(results, "Poisson 500/s", both, { ...latency, createP50: { most: 1.8 }, checkP50: { most: 1.8 }, pingP99: { most: 2 } }),
    ...rowsOf(results, "Poisson 1000/s", both, { ...latency, pingP99: undefined }),
    ...rowsOf(results, elsewhere.name, ["ours elsewhere", "handmade"], latency),
  ];
}

async function measureExpress(server: RedisServer): Promise<Row[]> {
  const play: Play = { ...closed(32), seconds: 2, rounds: 5, contenders: ["ours", "handmade", "better-auth"] };
  const results = await playAll({ framework: "Express", ...fieldOf(server) }, [play]);
  return [
    ...rowsOf(results, play.name, both, { flows: { least: 1 }, storeCpu: undefined, serverCpu: undefined }),
    ...rowsOf(results, play.name, ["ours", "better-auth"], { flows: { least: 4 }, storeCpu: undefined, serverCpu: undefined }),
  ];
}

/** Through a proxy that delays each chunk by 1 ms in each direction. */
async function measureFar(server: RedisServer): Promise<Row[]> {
  const proxy = await startProxy(server.port);
  proxy.delay(1);
  try {
    const plays = [1, 32].map((connections): Play => ({ ...closed(connections), seconds: 2, contenders: ["ours", "handmade", "lean"] }));
    const results = await playAll({ framework: "Fastify", store: proxy.url }, plays);
    return [
      ...rowsOf(results, "closed 1", both, { flows: { least: 2.5 } }),
      ...rowsOf(results, "closed 32", both, { flows: { least: 1.8 } }),
      ...plays.flatMap(({ name }) => rowsOf(results, name, ["ours", "lean"], { flows: undefined })),
    ];
  } finally {
    await proxy.close();
  }
}

/** The goals are for a real mongod: the one in `MONGODB_URL`, else one started by mongodb-memory-server. */
async function measureMongo(place: Place): Promise<Row[]> {
  const server = await mongoServer("the bench's part mongo");
  if (server === undefined) return [{ figure: "no MongoDB server", measured: "SKIPPED" }];
  const database = newDatabase();
  const client = await MongoClient.connect(server.url);
  try {
    const admin = client.db("admin");
    const { setName } = await admin.command({ hello: 1 });
    interface Times {
      readonly user_time_us?: number;
      readonly system_time_us?: number;
    }
    const timesOf = async () =>
      admin.command({ serverStatus: 1 }).then(
        ({ extra_info }): Times => extra_info ?? {},
        (): Times => ({}),
      );
    const tells = (await timesOf()).user_time_us !== undefined;
    const storeCpu = async () => {
      const { user_time_us = 0, system_time_us = 0 } = await timesOf();
      return user_time_us + system_time_us;
    };
    const url = new URL(server.url);
    url.pathname = database;
    await writePast(url.href, { ...pasts[place], visits: 2_000 });
    const plays = [1, 32, 128].map((connections): Play => ({ ...closed(connections), seconds: 3 }));
    const results = await playAll({ framework: "Fastify", store: url.href, ...(tells && { storeCpu }) }, plays);
    const goals = setName === undefined ? { flows: { least: 0.5 }, storeCpu: { most: 2.2 } } : { flows: { least: 0.6 }, storeCpu: { most: 1.8 } };
    return plays.flatMap(({ name }) => {
      const { flows, storeCpu } = name === "closed 32" ? goals : { flows: undefined, storeCpu: undefined };
      return rowsOf(results, name, both, { flows, ...(tells && { storeCpu }), serverCpu: undefined, createP50: undefined, checkP50: undefined });
    });
  } finally {
    await client.close();
    await dropDatabase(server.url, database);
    await server.stop();
  }
}

/** Each contender has its own file, as our worker writes while the other plays. */
async function measureSqlite(place: Place): Promise<Row[]> {
  const { file, remove } = newFolder();
  try {
    const store = `sqlite:${file}`;
    await writePast(store, pasts[place]);
    const plays = [1, 32, 128].map((connections): Play => ({ ...closed(connections), seconds: 2, rounds: 5 }));
    const results = await playAll({ framework: "Fastify", store }, plays);
    const rows = plays.flatMap(({ name }) =>
      rowsOf(results, name, both, { flows: name === "closed 32" ? { least: 1 } : undefined, serverCpu: undefined, createP50: undefined, checkP50: undefined }),
    );
    return place === "empty" ? [...rows, await bytesEach(), await besideAMillion()] : rows;
  } finally {
    remove();
  }
}

async function measurePostgres(place: Place): Promise<Row[]> {
  if (!postgresIsInstalled("the bench's part postgres"))
    return [{ figure: "PostgreSQL is missing", measured: "SKIPPED; get it with: apt-get install postgresql" }];
  const server = await startPostgres(["fsync=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=2GB"]);
  try {
    const url = await newPostgresDatabase(server);
    await writePast(url, { ...pasts[place], visits: 2_000 });
    const contenders: Play["contenders"] = ["ours", "handmade", "better-auth"];
    const plays = [1, 32].map((connections): Play => ({ ...closed(connections), seconds: 3, contenders }));
    const results = await playAll({ framework: "Fastify", store: url, storeCpu: async () => server.cpu() }, plays);
    return plays.flatMap(({ name }) => {
      const isGoal = name === "closed 32";
      const costs = { storeCpu: undefined, serverCpu: undefined, createP50: undefined, checkP50: undefined };
      return [
        ...rowsOf(results, name, both, { flows: isGoal ? { least: 1 } : undefined, ...costs }),
        ...rowsOf(results, name, ["ours", "better-auth"], { flows: isGoal ? { least: 3 } : undefined, storeCpu: undefined, serverCpu: undefined }),
      ];
    });
  } finally {
    await server.stop();
  }
}

/** Measures in a separate Redis. */
async function inRedis(place: Place, measure: (server: RedisServer, place: Place) => Promise<Row[]>): Promise<Row[]> {
  if (!redisIsInstalled("the bench over HTTP")) return [{ figure: "redis-server is missing", measured: "SKIPPED; get it with: apt-get install redis-server" }];
  const server = await startRedis();
  try {
    await writePast(server.url, pasts[place]);
    return await measure(server, place);
  } finally {
    await server.stop();
  }
}

function fieldOf(server: RedisServer): Pick<Field, "store" | "port" | "storeCpu"> {
  return {
    store: server.url,
    port: server.port,
    async storeCpu() {
      const [, system = "", user = ""] = /used_cpu_sys:([\d.]+)[\s\S]*?used_cpu_user:([\d.]+)/.exec(await server.cli("INFO", "cpu")) ?? [];
      return 1e6 * (Number(user) + Number(system));
    },
  };
}
