import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as wait } from "node:timers/promises";
import type { Verifier } from "phoneproof";
import { fromNodeRedis, type RunScript, redisStore } from "phoneproof/redis";
import { fixedClock } from "phoneproof/testing";
import { createClient } from "redis";
import { redisIsInstalled, startRedis } from "../test/support/redis.js";
import { atMost, number, type Row } from "./report.js";
import { benchVerifier, countedAt, customer_uuid, eightDays, expect, fewVisits, visit, writePast } from "./service.js";
import { type Fields, visitors, wrongCode } from "./traffic.js";

/** The number of people over which each figure is averaged. */
const people = 200;
const pending = 5_000;
const day = 86_400_000;

/** Figures counted in Redis and on the connection to it. */
export async function countedInRedis(): Promise<Row[]> {
  if (!redisIsInstalled("the bench's part counted"))
    return [{ figure: "redis-server is missing", measured: "SKIPPED; get it with: apt-get install redis-server" }];
  const server = await startRedis();
  await writePast(server.url, eightDays, countedAt);
  const client = await createClient({ url: server.url }).connect();
  try {
    const place = { run: fromNodeRedis(client), client, cli: server.cli, clock: fixedClock(countedAt), next: visitors(0) };
    return [...(await roundTrips(place)), ...(await perRequest(place)), ...(await keysLeft(place)), ...(await bytesPending(place, server.url))];
  } finally {
    client.destroy();
    await server.stop();
  }
}

interface Place {
  readonly run: RunScript;
  readonly client: { scanIterator(options: { COUNT: number }): AsyncIterable<string[]>; pTTL(key: string): Promise<number> };
  /** Runs a command on a separate connection. */
  readonly cli: (...args: string[]) => Promise<string>;
  readonly clock: ReturnType<typeof fixedClock>;
  readonly next: ReturnType<typeof visitors>;
}

/** Simulates a process: a verifier, and the codes that it sent, by number. */
function startProcess({ run, clock }: Place, policy = {}): { readonly verifier: Verifier; readonly codes: Map<string, string> } {
  const codes = new Map<string, string>();
  return { verifier: benchVerifier(redisStore({ client: run }), (phone, code) => codes.set(phone, code), { clock, policy }), codes };
}

/**
 * A script that starts after another's response adds a round trip; scripts in parallel count as one. Background work
 * after the response is not counted.
 */
async function roundTrips(place: Place): Promise<Row[]> {
  const operation = new AsyncLocalStorage<{ scripts: number; trips: number }>();
  const run: RunScript = async (script, keys, args) => {
    const own = operation.getStore() ?? { scripts: 0, trips: 0 };
    own.scripts++;
    const trip = own.trips + 1;
    try {
      return await place.run(script, keys, args);
    } finally {
      own.trips = Math.max(own.trips, trip);
    }
  };
  const { clock, next } = place;
  const counting = { ...place, run };
  const [own, other] = [startProcess(counting), startProcess(counting)];
  const paid = startProcess(counting, { limits: { spend: [{ amount: 1e6, per: "day" }] } });

  const rows: Row[] = [];
  /** Makes requests until one returns `status`, and counts that one. */
  async function count(
    figure: string,
    most: number | undefined,
    status: string,
    request: () => Promise<{ readonly status: string }>,
    tries = 1,
  ): Promise<void> {
    for (let left = tries; left > 0; left--) {
      const counts = { scripts: 0, trips: 0 };
      const answer = await operation.run(counts, request);
      const { scripts, trips } = counts;
      await wait(20);
      if (left > 1 && answer.status !== status) continue;
      expect(answer.status, status);
      const row = { figure: `round trips: ${figure}`, measured: `${trips} (${scripts} scripts)` };
      rows.push(most === undefined ? row : { ...row, target: `≤ ${most}`, reached: trips <= most });
      return;
    }
  }
  const create = async (process = own, fields: Fields = next().fields) => process.verifier.createAuthentication({ customer_uuid, ...fields });
  /** Counts a request for an authentication that was created before. */
  async function after(
    figure: string,
    most: number,
    status: string,
    request: (id: string, code: string) => Promise<{ readonly status: string }>,
  ): Promise<void> {
    const { fields } = next();
    const { authentication_uuid } = await create(own, fields);
    await pass(clock, 31);
    await count(figure, most, status, () => request(authentication_uuid, own.codes.get(fields.phone_number) ?? ""));
  }
  const check = (process: typeof own, authentication_uuid: string, check_code: string) =>
    process.verifier.check({ customer_uuid, authentication_uuid, check_code });

  await count("accepted create, the first of a process", undefined, "pending", () => create());
  for (let index = 0; index < 24; index++) await create(index % 2 === 0 ? other : paid);
  for (let index = 0; index < 24; index++) await visit(own, next());
  await count("accepted create", 1, "pending", () => create());
  await count("accepted create under a spend ceiling", 1, "pending", () => create(paid));
  const { ip, device_id, phone_number } = next().fields;
  const range = phone_number.slice(0, -4);
  let last = 1_000;
  await count("create refused by a rule (address)", 2, "spam_detected", () => create(own, { ...next().fields, ip }), 50);
  await count("create refused by a rule (range)", 2, "spam_detected", () => create(own, { ...next().fields, phone_number: `${range}${last++}` }), 200);
  await count(
    "create refused by a cap (numbers of a device)",
    1,
    "rate_limited",
    () => create(own, { ...next().fields, device_id, device_type: "WEB", app_realm: undefined }),
    50,
  );
  await after("right code, the process that created", 1, "valid", (id, code) => check(own, id, code));
  await after("wrong code, the process that created", 1, "invalid", (id, code) => check(own, id, wrongCode(code)));
  await after("right code, another process", 2, "valid", (id, code) => check(other, id, code));
  await after("wrong code, another process", 2, "invalid", (id, code) => check(other, id, wrongCode(code)));
  await after("approved retry, another process", 2, "approved", (authentication_uuid) => other.verifier.retry({ customer_uuid, authentication_uuid }));

  const start = (process: typeof own, fields: Fields) => process.verifier.verifications.start({ customer_uuid, ...fields });
  const checkNumber = (process: typeof own, phone_number: string, check_code: string) =>
    process.verifier.verifications.check({ customer_uuid, phone_number, check_code });
  const one = next().fields;
  await count("start by number", 1, "pending", () => start(own, one));
  for (const [where, most, process] of [
    ["the same process", 1, own],
    ["another process", 2, other],
  ] as const) {
    await pass(clock, 61);
    // The process has the country's state, as after any create there in the last minutes.
    await create(process, { ...next().fields, phone_number: `${one.phone_number.slice(0, -4)}0000` });
    await count(`start by number again, ${where}`, most, "pending", () => start(process, one));
  }
  await count("wrong code by number, the same process", 1, "invalid", () =>
    checkNumber(other, one.phone_number, wrongCode(other.codes.get(one.phone_number) ?? "")),
  );
  const { fields: another } = next();
  await start(own, another);
  await count("right code by number, another process", 2, "valid", () => checkNumber(other, another.phone_number, own.codes.get(another.phone_number) ?? ""));
  // As above: a background read that took too long is repeated by the next create.
  await create(other, { ...next().fields, phone_number: `${another.phone_number.slice(0, -4)}0000` });
  await count("start by number after one that has ended, the same process", 1, "pending", () => start(other, another));
  await Promise.all([own, other, paid].map(({ verifier }) => verifier.close()));
  return rows;
}

/** Advances time in steps, in which background work gets its responses. */
async function pass(clock: Place["clock"], seconds: number): Promise<void> {
  for (let step = 0; step < 10 * seconds; step++) {
    clock.advance(100);
    await wait(1);
  }
}

/** Commands and bytes for each request, at twenty requests per second, including background work. */
async function perRequest(place: Place): Promise<Row[]> {
  const { cli, clock, next } = place;
  const [own, other] = [startProcess(place), startProcess(place)];
  const received = async () => Number(/total_net_input_bytes:(\d+)/.exec(await cli("INFO", "stats"))?.[1]);
  const ofInfo = -(await received()) + (await received());
  const rows: Row[] = [];
  const count = async (figure: string, mostCommands: number | undefined, request: (index: number) => Promise<unknown>) => {
    await cli("CONFIG", "RESETSTAT");
    const before = await received();
    for (let index = 0; index < people; index++) {
      await request(index);
      clock.advance(50);
      await wait(1);
    }
    await wait(100);
    const bytes = (await received()) - before - ofInfo;
    const calls = [...(await cli("INFO", "commandstats")).matchAll(/^cmdstat_(?!config|info)([^:]+):calls=(\d+)/gm)];
    const sum = (some: typeof calls) => some.reduce((all, [, , count]) => all + Number(count), 0) / people;
    const commands = sum(calls);
    const detail = ` (${number(sum(calls.filter(([, name = ""]) => /^(eval|fcall)/.test(name))))} of them scripts)`;
    const name = `commands inside Redis: ${figure}`;
    rows.push(mostCommands === undefined ? { figure: name, measured: `${number(commands)}${detail}` } : atMost(name, commands, mostCommands, "", detail), {
      figure: `bytes to Redis: ${figure}`,
      measured: number(bytes / people),
    });
  };
  /** Checks authentications that were created before, in the same or in another process. */
  const checks = async (figure: string, mostCommands: number | undefined, { verifier }: typeof own, status: "valid" | "invalid") => {
    const made: { readonly customer_uuid: string; readonly authentication_uuid: string; readonly check_code: string }[] = [];
    for (let index = 0; index < people; index++) {
      const { fields } = next();
      const { authentication_uuid } = await own.verifier.createAuthentication({ customer_uuid, ...fields });
      const code = own.codes.get(fields.phone_number) ?? "";
      made.push({ customer_uuid, authentication_uuid, check_code: status === "valid" ? code : wrongCode(code) });
      clock.advance(50);
    }
    await wait(100);
    await count(figure, mostCommands, async (index) => expect((await verifier.check(made[index] as (typeof made)[number])).status, status));
  };
  // Both processes have run for a while and have seen each country and network.
  for (let index = 0; index < 384; index++) await visit(index < 192 ? own : other, next());
  await pass(clock, 4);
  await count("create", 18, async () => expect((await own.verifier.createAuthentication({ customer_uuid, ...next().fields })).status, "pending"));
  await checks("check, right code", 12, own, "valid");
  await checks("check, right code, another process", undefined, other, "valid");
  await checks("check, wrong code", undefined, own, "invalid");
  await Promise.all([own, other].map(({ verifier }) => verifier.close()));
  return rows;
}

/** The keys that whole visits leave, and when they expire. */
async function keysLeft(place: Place): Promise<Row[]> {
  const { client, next } = place;
  const process = startProcess(place);
  /** Milliseconds until each key expires; below 0: never. */
  const allKeys = async () => {
    const ends = new Map<string, number>();
    for await (const keys of client.scanIterator({ COUNT: 1_000 })) await Promise.all(keys.map(async (key) => ends.set(key, await client.pTTL(key))));
    return ends;
  };
  const before = await allKeys();
  for (let index = 0; index < people; index++) await visit(process, next());
  await process.verifier.close();
  const after = await allKeys();
  const ends = [...after.values()];
  const ofVisits = [...after].flatMap(([key, end]) => (before.has(key) ? [] : [end]));
  const within = (days: number) => number(ofVisits.filter((end) => end <= days * day).length / people);
  const longest = ends.reduce((most, end) => Math.max(most, end), 0) / day;
  return [
    {
      figure: "keys that a visit leaves",
      measured: `${number(ofVisits.length / people)}; ${within(1.1)} end within 26 hours, ${within(2)} within two days, ${within(9)} within nine`,
    },
    atMost("keys without an expiry", ends.filter((end) => end < 0).length, 0, "", ` of ${number(ends.length)}`),
    atMost("the longest expiry of a key, as docs/privacy.md has it", longest, 180, " days"),
  ];
}

/** Bytes of memory per create, in a Redis that counts few ranges and addresses yet: each create adds its own. */
async function bytesPending(place: Place, url: string): Promise<Row[]> {
  const { cli, clock, next } = place;
  await cli("FLUSHALL");
  await writePast(url, fewVisits, clock.now());
  const process = startProcess(place);
  const create = async () => {
    expect((await process.verifier.createAuthentication({ customer_uuid, ...next().fields })).status, "pending");
    clock.advance(10);
  };
  for (let index = 0; index < 24; index++) await create();
  await wait(100);
  const before = await usedMemory(cli);
  for (let index = 0; index < pending; index++) await create();
  await wait(100);
  const bytes = ((await usedMemory(cli)) - before) / pending;
  await process.verifier.close();
  const figure = "bytes of a pending authentication in Redis, its share of what is counted included";
  return [{ figure, measured: number(Math.round(bytes)), target: "gate 1,500, goal ≤ 1,250", reached: bytes <= 1_500 }];
}

/** The memory in use, without the buffers of connections. */
async function usedMemory(cli: Place["cli"]): Promise<number> {
  const info = await cli("INFO", "memory");
  const [all, clients] = ["used_memory", "mem_clients_normal"].map((name) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1])) as [number, number];
  return all - clients;
}
