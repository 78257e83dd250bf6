import { mongoServer } from "../test/support/mongo.js";
import { measureMounted } from "./pairs.js";
import { number, type Part } from "./report.js";

/** Create + check on MongoDB, where a server can be started or MONGODB_URL names one. */
export const mongoPart: Part = {
  name: "mongo",
  title: "MongoDB store, the client `mongodb`",
  async measure() {
    const server = await mongoServer("the bench's part mongo");
    if (server === undefined) return [{ figure: "no MongoDB server", measured: "SKIPPED" }];
    try {
      const url = new URL(server.url);
      url.pathname = "/phoneproof-bench";
      const { latency, cpu } = await measureMounted({ framework: "Fastify 5", store: url.href, rounds: 3, pairs: 200, connections: 1 });
      return [{ figure: "create + check through Fastify, one after another", measured: `${number(latency)} ms, ${number(cpu)} µs of server CPU` }];
    } finally {
      await server.stop();
    }
  },
};
