import { createClient } from "redis";
import type { Backend } from "./apps.js";
import { created, type Deliver, validNumber } from "./handmade.js";

const id = "0f9b7c1e-52a6-4d0b-9a38-6f1d2c3b4a59";
const onlyCode = "123456";

/** The minimum for create: one script that counts the send in two windows and writes the code. */
const createScript = `
if redis.call("ZCOUNT", KEYS[2], ARGV[3], "+inf") >= 5 or redis.call("ZCOUNT", KEYS[3], ARGV[3], "+inf") >= 1e6 then return "-" end
redis.call("ZADD", KEYS[2], ARGV[4], ARGV[5])
redis.call("PEXPIRE", KEYS[2], ARGV[2])
redis.call("ZADD", KEYS[3], ARGV[4], ARGV[5])
redis.call("PEXPIRE", KEYS[3], ARGV[2])
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return "+"`;

/** The minimum for check: one script that reads the code and writes the result. */
const checkScript = `
local stored = redis.call("GET", KEYS[1])
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return stored and "+" or "-"`;

/**
 * Routes that check the number and run one script each, with the client of the store: the cost of HTTP, the phone check
 * and one round trip. The code is always `123456`.
 */
export async function bareOnRedis(url: string, deliver: Deliver): Promise<Backend> {
  const client = await createClient({ url }).connect();
  const [createSha, checkSha] = await Promise.all([client.scriptLoad(createScript), client.scriptLoad(checkScript)]);
  const life = String(25 * 3_600_000);
  let count = 0;
  return {
    async create(body) {
      const number = validNumber((body as { phone_number?: unknown }).phone_number);
      if (number === undefined) return { code: "invalid_phone_number" };
      const now = Date.now();
      const name = `${process.pid}-${count++}`;
      const data = `aAAAAAAAAAAAA|mqxyzabc||[1,"${number}",${now},600000,0,0,0,1,1,0,0,[1,"dGhlIGRpZ2VzdCBvZiBpdA",0]]`;
      await client.evalSha(createSha, {
        keys: [`bare:r:${name}`, `bare:n:${number}`, "bare:all"],
        arguments: [data, life, String(now - 600_000), String(now), name],
      });
      deliver(number, onlyCode);
      return created(id);
    },
    async check(body) {
      const { authentication_uuid, check_code } = body as { authentication_uuid: string; check_code: string };
      const data = `aAAAAAAAAAAAA,BBBBBBBBBBB|mqxyzabc||[1,"+33612000000",${Date.now()},600000,0,0,2,1,1,0,0,[1,"",0]]`;
      await client.evalSha(checkSha, { keys: [`bare:r:${authentication_uuid}`], arguments: [data, life] });
      return { authentication_uuid, status: check_code === onlyCode ? "valid" : "invalid" };
    },
  };
}
