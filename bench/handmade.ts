/**
 * The service as a good engineer would write it by hand: numbers are validated, codes are stored as keyed digests,
 * number and address each have a cap, attempts are counted before they are checked, and of two right codes one wins.
 * It has no anti-spam rules, retries, idempotency, receipts, callbacks or statistics.
 */
import { createHmac, randomInt, randomUUID, timingSafeEqual } from "node:crypto";
import { Redis } from "ioredis";
import { parsePhoneNumberFromString } from "libphonenumber-js/max";
import { MongoClient } from "mongodb";
import { Pool } from "pg";
import { createClient } from "redis";
import { openSqlite } from "../test/support/sqlite.js";
import type { Backend } from "./apps.js";
import { postgresConnections } from "./service.js";

/** Seconds. */
const lifetime = 600;
const numberCap = { limit: 5, window: 600 };
const addressCap = { limit: 20, window: 3600 };
const deviceCap = { limit: 5, window: 3600 };
/** The cap of the whole service; only in stores with transactions for it. */
const serviceCap = { limit: 10_000_000, window: 86_400 };
const attempts = 5;
const secret = "a secret of the bench, long enough to be one";

/** Receives each code. */
export type Deliver = (number: string, code: string) => void;

interface Create {
  readonly phone_number: string;
  readonly ip: string;
}

interface Check {
  readonly authentication_uuid: string;
  readonly check_code: string;
}

/** The number in E.164 form if it is valid, else `undefined`. */
export function validNumber(number: unknown): string | undefined {
  const parsed = typeof number === "string" ? parsePhoneNumberFromString(number) : undefined;
  return parsed?.isValid() ? parsed.number : undefined;
}

export function created(authentication_uuid: string) {
  const now = Date.now();
  return {
    authentication_uuid,
    created_at: new Date(now).toISOString(),
    expires_at: new Date(now + lifetime * 1000).toISOString(),
    status: "pending",
  };
}

const newCode = () => String(randomInt(1_000_000)).padStart(6, "0");
const digestOf = (id: string, code: string) => createHmac("sha256", secret).update(`${id}:${code}`).digest("base64url");
const isRight = ({ authentication_uuid: id, check_code: code }: Check, digest: string) => timingSafeEqual(Buffer.from(digestOf(id, code)), Buffer.from(digest));
const refused = { code: "invalid_phone_number" };
const limited = { status: "rate_limited" };

/** Three round trips each, with ioredis: a cap is a pipeline of two commands, and a rejection skips later caps. */
export async function handmadeOnRedis(url: string, deliver: Deliver): Promise<Backend> {
  const redis = new Redis(url);
  const count = async (name: string, window: number): Promise<number> => {
    const [counted] = (await redis.pipeline().incr(name).expire(name, window, "NX").exec()) ?? [];
    if (counted === undefined || counted[0] !== null) throw counted?.[0] ?? new Error("no answer");
    return counted[1] as number;
  };
  return {
    async create(body) {
      const { phone_number, ip } = body as Create;
      const number = validNumber(phone_number);
      if (number === undefined) return refused;
      if ((await count(`number:${number}`, numberCap.window)) > numberCap.limit) return limited;
      if ((await count(`address:${ip}`, addressCap.window)) > addressCap.limit) return limited;
      const [id, code] = [randomUUID(), newCode()];
      await redis.set(`code:${id}`, JSON.stringify({ number, digest: digestOf(id, code) }), "EX", lifetime);
      deliver(number, code);
      return created(id);
    },
    async check(body) {
      const { authentication_uuid: id } = body as Check;
      if ((await count(`tries:${id}`, lifetime)) > attempts) return limited;
      const stored = await redis.get(`code:${id}`);
      if (stored === null) return { authentication_uuid: id, status: "expired" };
      const { digest } = JSON.parse(stored) as { digest: string };
      if (!isRight(body as Check, digest)) return { authentication_uuid: id, status: "invalid" };
      const won = (await redis.getdel(`code:${id}`)) !== null;
      return { authentication_uuid: id, status: won ? "valid" : "expired" };
    },
  };
}

/**
 * The same in two round trips each, with the client that ours uses: independent commands are sent together, and with
 * those of other requests in the same turn of the event loop.
 */
export async function leanOnRedis(url: string, deliver: Deliver): Promise<Backend> {
  const redis = await createClient({ url }).connect();
  return {
    async create(body) {
      const { phone_number, ip } = body as Create;
      const number = validNumber(phone_number);
      if (number === undefined) return refused;
      const [sends, visits] = await Promise.all([
        redis.incr(`number:${number}`),
        redis.incr(`address:${ip}`),
        redis.expire(`number:${number}`, numberCap.window, "NX"),
        redis.expire(`address:${ip}`, addressCap.window, "NX"),
      ]);
      if (sends > numberCap.limit || visits > addressCap.limit) return limited;
      const [id, code] = [randomUUID(), newCode()];
      await redis.set(`code:${id}`, JSON.stringify({ number, digest: digestOf(id, code) }), { expiration: { type: "EX", value: lifetime } });
      deliver(number, code);
      return created(id);
    },
    async check(body) {
      const { authentication_uuid: id } = body as Check;
      const [tries, stored] = await Promise.all([redis.incr(`tries:${id}`), redis.get(`code:${id}`), redis.expire(`tries:${id}`, lifetime, "NX")]);
      if (stored === null) return { authentication_uuid: id, status: "expired" };
      if (tries > attempts) return limited;
      const { digest } = JSON.parse(stored) as { digest: string };
      if (!isRight(body as Check, digest)) return { authentication_uuid: id, status: "invalid" };
      const won = (await redis.getDel(`code:${id}`)) !== null;
      return { authentication_uuid: id, status: won ? "valid" : "expired" };
    },
  };
}

interface Code {
  readonly _id: string;
  readonly number: string;
  readonly digest: string;
  readonly tries: number;
  readonly expireAt: Date;
}

/** Two round trips each. */
export async function handmadeOnMongo(url: string, deliver: Deliver): Promise<Backend> {
  const db = (await MongoClient.connect(url)).db();
  const codes = db.collection<Code>("handmade_codes");
  const counters = db.collection<{ _id: string; count: number; expireAt: Date }>("handmade_counters");
  for (const collection of [codes, counters]) await collection.createIndex({ expireAt: 1 }, { expireAfterSeconds: 0 });
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000);
  const count = async (name: string, window: number) => {
    const _id = `${name}:${Math.floor(Date.now() / 1000 / window)}`;
    const change = { $inc: { count: 1 }, $setOnInsert: { expireAt: inSeconds(window) } };
    return (await counters.findOneAndUpdate({ _id }, change, { upsert: true, returnDocument: "after" }))?.count ?? 0;
  };
  return {
    async create(body) {
      const { phone_number, ip } = body as Create;
      const number = validNumber(phone_number);
      if (number === undefined) return refused;
      const [sends, visits] = await Promise.all([count(`number:${number}`, numberCap.window), count(`address:${ip}`, addressCap.window)]);
      if (sends > numberCap.limit || visits > addressCap.limit) return limited;
      const [id, code] = [randomUUID(), newCode()];
      await codes.insertOne({ _id: id, number, digest: digestOf(id, code), tries: 0, expireAt: inSeconds(lifetime) });
      deliver(number, code);
      return created(id);
    },
    async check(body) {
      const { authentication_uuid: id } = body as Check;
      const stored = await codes.findOneAndUpdate({ _id: id, tries: { $lt: attempts }, expireAt: { $gt: new Date() } }, { $inc: { tries: 1 } });
      if (stored === null) return { authentication_uuid: id, status: "expired" };
      if (!isRight(body as Check, stored.digest)) return { authentication_uuid: id, status: "invalid" };
      const { deletedCount } = await codes.deleteOne({ _id: id });
      return { authentication_uuid: id, status: deletedCount === 1 ? "valid" : "expired" };
    },
  };
}

/** One transaction each, with three caps, as safe as ours: a write-ahead log that is synced at each commit. */
export function handmadeOnSqlite(file: string, deliver: Deliver): Backend {
  const db = openSqlite(file);
  db.exec(`PRAGMA busy_timeout = 5000; PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS handmade_codes (id TEXT PRIMARY KEY, number TEXT, digest TEXT, tries INTEGER, ends INTEGER) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS handmade_counters (name TEXT PRIMARY KEY, count INTEGER, ends INTEGER) WITHOUT ROWID`);
  db.prepare("PRAGMA journal_mode = WAL").get();
  const counting = db.prepare("INSERT INTO handmade_counters VALUES (?, 1, ?) ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count");
  const keeping = db.prepare("INSERT INTO handmade_codes VALUES (?, ?, ?, 0, ?)");
  const trying = db.prepare("UPDATE handmade_codes SET tries = tries + 1 WHERE id = ? AND tries < ? AND ends > ? RETURNING digest");
  const removing = db.prepare("DELETE FROM handmade_codes WHERE id = ?");
  const isWithin = (name: string, { limit, window }: typeof numberCap) => {
    const at = Math.floor(Date.now() / 1000 / window);
    return (counting.get(`${name}:${at}`, (at + 1) * window * 1000) as { count: number }).count <= limit;
  };
  /** One transaction, which is rolled back if `work` returns `undefined`. */
  const transaction = <T>(work: () => T | undefined): T | undefined => {
    db.exec("BEGIN IMMEDIATE");
    const result = work();
    db.exec(result === undefined ? "ROLLBACK" : "COMMIT");
    return result;
  };
  return {
    create(body) {
      const { phone_number, ip, device_id = "" } = body as Create & { device_id?: string };
      const number = validNumber(phone_number);
      if (number === undefined) return refused;
      const [id, code] = [randomUUID(), newCode()];
      const kept = transaction(() => {
        const isFree = isWithin(`number:${number}`, numberCap) && isWithin(`address:${ip}`, addressCap) && isWithin(`device:${device_id}`, deviceCap);
        return isFree ? keeping.run(id, number, digestOf(id, code), Date.now() + lifetime * 1000) : undefined;
      });
      if (kept === undefined) return limited;
      deliver(number, code);
      return created(id);
    },
    check(body) {
      const { authentication_uuid: id } = body as Check;
      const status = transaction(() => {
        const stored = trying.get(id, attempts, Date.now()) as { digest: string } | undefined;
        if (!stored) return "expired";
        if (!isRight(body as Check, stored.digest)) return "invalid";
        removing.run(id);
        return "valid";
      });
      return { authentication_uuid: id, status };
    },
  };
}

/** A create is a transaction of four statements: begin, three caps, the code, commit. A check is two statements. */
export async function handmadeOnPostgres(url: string, deliver: Deliver): Promise<Backend> {
  const pool = new Pool({ connectionString: url, max: postgresConnections });
  await pool.query(`create table if not exists handmade_codes (id uuid primary key, number text not null, digest text not null, tries integer not null default 0, ends timestamptz not null);
    create index if not exists handmade_codes_ends on handmade_codes (ends);
    create table if not exists handmade_counters (name text primary key, count integer not null, ends timestamptz not null);
    create index if not exists handmade_counters_ends on handmade_counters (ends)`);
  const caps = [numberCap.limit, addressCap.limit, serviceCap.limit];
  const countText = `insert into handmade_counters as c (name, count, ends) select name, 1, now() + interval '1 hour' from unnest($1::text[]) as name
    on conflict (name) do update set count = c.count + 1 returning count`;
  const nameOf = (kind: string, { window }: { window: number }) => `${kind}:${Math.floor(Date.now() / 1000 / window)}`;
  return {
    async create(body) {
      const { phone_number, ip } = body as Create;
      const number = validNumber(phone_number);
      if (number === undefined) return refused;
      const client = await pool.connect();
      try {
        await client.query("begin");
        const names = [nameOf(`number:${number}`, numberCap), nameOf(`address:${ip}`, addressCap), nameOf("service", serviceCap)];
        const { rows } = await client.query<{ count: number }>(countText, [names]);
        if (rows.some(({ count }, at) => count > (caps[at] as number))) {
          await client.query("rollback");
          return limited;
        }
        const [id, code] = [randomUUID(), newCode()];
        const values = [id, number, digestOf(id, code), lifetime];
        await client.query("insert into handmade_codes (id, number, digest, ends) values ($1, $2, $3, now() + make_interval(secs => $4))", values);
        await client.query("commit");
        deliver(number, code);
        return created(id);
      } finally {
        client.release();
      }
    },
    async check(body) {
      const { authentication_uuid: id } = body as Check;
      const tried = "update handmade_codes set tries = tries + 1 where id = $1 and tries < $2 and ends > now() returning digest";
      const [stored] = (await pool.query<{ digest: string }>(tried, [id, attempts])).rows;
      if (stored === undefined) return { authentication_uuid: id, status: "expired" };
      if (!isRight(body as Check, stored.digest)) return { authentication_uuid: id, status: "invalid" };
      const { rowCount } = await pool.query("delete from handmade_codes where id = $1", [id]);
      return { authentication_uuid: id, status: rowCount === 1 ? "valid" : "expired" };
    },
  };
}

/** Maps with a timer for each entry. */
export function handmadeInMemory(deliver: Deliver): Backend {
  const codes = new Map<string, { readonly number: string; readonly digest: string; tries: number }>();
  const counters = new Map<string, number>();
  const forget = (map: Map<string, unknown>, key: string, seconds: number) => setTimeout(() => map.delete(key), seconds * 1000).unref();
  const count = (name: string, window: number) => {
    const counted = (counters.get(name) ?? 0) + 1;
    if (counted === 1) forget(counters, name, window);
    counters.set(name, counted);
    return counted;
  };
  return {
    create(body) {
      const { phone_number, ip } = body as Create;
      const number = validNumber(phone_number);
      if (number === undefined) return refused;
      if (count(`number:${number}`, numberCap.window) > numberCap.limit || count(`address:${ip}`, addressCap.window) > addressCap.limit) return limited;
      const [id, code] = [randomUUID(), newCode()];
      codes.set(id, { number, digest: digestOf(id, code), tries: 0 });
      forget(codes, id, lifetime);
      deliver(number, code);
      return created(id);
    },
    check(body) {
      const { authentication_uuid: id } = body as Check;
      const stored = codes.get(id);
      if (stored === undefined) return { authentication_uuid: id, status: "expired" };
      if (++stored.tries > attempts) return limited;
      if (!isRight(body as Check, stored.digest)) return { authentication_uuid: id, status: "invalid" };
      codes.delete(id);
      return { authentication_uuid: id, status: "valid" };
    },
  };
}
