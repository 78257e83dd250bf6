import { setTimeout as wait } from "node:timers/promises";
import { MongoClient } from "mongodb";
import { mongoStore } from "phoneproof/mongo";
import { mongoServer, newDatabase } from "../test/support/mongo.js";
import { atMost, type Row } from "./report.js";
import { benchVerifier, customer_uuid, expect, fewVisits, writePast } from "./service.js";
import { visitors } from "./traffic.js";

const people = 200;

/** Commands of the driver for each request, if there is a server. */
export async function countedInMongo(): Promise<Row[]> {
  const server = await mongoServer("the bench's part counted, for MongoDB");
  if (server === undefined) return [{ figure: "commands to MongoDB", measured: "SKIPPED: no server" }];
  const url = new URL(server.url);
  url.pathname = newDatabase();
  await writePast(url.href, fewVisits);
  const client = await MongoClient.connect(url.href, { monitorCommands: true });
  let commands = 0;
  client.on("commandStarted", () => commands++);
  const codes = new Map<string, string>();
  const verifier = benchVerifier(mongoStore({ db: client.db() }), (phone, code) => codes.set(phone, code));
  const next = visitors(0);
  const count = async (request: (index: number) => Promise<unknown>) => {
    commands = 0;
    for (let index = 0; index < people; index++) await request(index);
    await wait(200);
    return commands / people;
  };
  try {
    const made: { readonly authentication_uuid: string; readonly check_code: string }[] = [];
    const create = async () => {
      const { fields } = next();
      const { authentication_uuid, status } = await verifier.createAuthentication({ customer_uuid, ...fields });
      expect(status, "pending");
      made.push({ authentication_uuid, check_code: codes.get(fields.phone_number) ?? "" });
    };
    for (let index = 0; index < 24; index++) await create();
    made.length = 0;
    await wait(200);
    const creates = await count(create);
    const checks = await count(async (index) => expect((await verifier.check({ customer_uuid, ...(made[index] as (typeof made)[number]) })).status, "valid"));
    return [atMost("commands to MongoDB: create", creates, 3, ""), atMost("commands to MongoDB: check, right code", checks, 3, "")];
  } finally {
    await verifier.close();
    await client.db().dropDatabase();
    await client.close();
    await server.stop();
  }
}
