import { afterAll, beforeAll, describe, it } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { storeContract } from "../../src/testing/store-contract.js";
import { type Connected, drivers, dropDatabase, mongoServer, newDatabase } from "../support/mongo.js";

/** All sentences with 50 racers, and those that race with `many` too. */
const few = storeContract({ racers: 50 });
const sentences = (many: number) => [...few, ...storeContract({ racers: many }).filter(({ name }) => !few.some((sentence) => sentence.name === name))];

const server = await mongoServer("the store contract on MongoDB");
afterAll(() => server?.stop());

describe.runIf(server)("the store contract on MongoDB", () => {
  const url = server?.url ?? "";

  describe.each(Object.entries(drivers))("through %s", (driver, connect) => {
    const name = newDatabase();
    let first: Connected;
    let second: Connected;

    beforeAll(async () => {
      first = await connect(url, name);
      // Whatever the application has set for itself does not reach the store.
      second = await connect(url, name, { promoteValues: false, readPreference: "secondaryPreferred", readConcernLevel: "local", writeConcern: { w: 1 } });
      await mongoStore({ db: first.db }).ensureIndexes();
    });

    afterAll(async () => {
      await first?.close();
      await second?.close();
      await dropDatabase(url, name);
    });

    // Who races meets at the server: with one driver a thousand of them do.
    for (const { name: sentence, run } of sentences(driver === "mongodb 7" ? 1_000 : 200)) {
      it(sentence, () => run({ store: mongoStore({ db: first.db }), peer: mongoStore({ db: second.db }) }));
    }
  });

  it("races are right without indexes too", async () => {
    const name = newDatabase();
    const { db, close } = await drivers["mongodb 7"](url, name);
    try {
      for (const { name: sentence, run } of few) if (/racers|racing|workers/.test(sentence)) await run({ store: mongoStore({ db }) });
    } finally {
      await close();
      await dropDatabase(url, name);
    }
  });
});
