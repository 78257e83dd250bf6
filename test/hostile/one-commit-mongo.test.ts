import { randomUUID } from "node:crypto";
import { MongoClient } from "mongodb";
import { afterAll, describe } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { mongoServer } from "../support/mongo.js";
import { start } from "../support/verifier.js";
import { type Service, sender, service } from "./kit.js";
import { oneCommitCases } from "./one-commit-stores.js";

const server = await mongoServer("the hostile tests of the anti-spam rules on MongoDB");

describe.runIf(server)("on MongoDB", () => {
  const clients: MongoClient[] = [];
  afterAll(async () => {
    await Promise.all(clients.map((one) => one.close()));
    await server?.stop();
  });

  oneCommitCases(async (count, options) => {
    const shared = { clock: fixedClock(start), sender: sender(options?.price), customer: randomUUID(), storeTimeout: 60, ...options };
    const name = `otp-${randomUUID().slice(0, 8)}`;
    const set: Service[] = [];
    for (let i = 0; i < count; i++) {
      const client = await new MongoClient(server?.url as string, { directConnection: true }).connect();
      clients.push(client);
      const store = mongoStore({ db: client.db(name) });
      if (i === 0) await store.ensureIndexes();
      set.push(service({ ...shared, store }));
    }
    return set;
  });
});
