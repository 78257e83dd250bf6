import { mongoServer } from "../test/support/mongo.js";
import { compare, middleOf } from "./pairs.js";
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
      const { mounted } = await compare({ framework: "Fastify 5", store: url.href, kinds: ["mounted"], rounds: 3, pairs: 200, connections: 1 });
      const measured = `${number(middleOf(mounted, "latency"))} ms, ${number(middleOf(mounted, "cpu"))} µs of server CPU`;
      return [{ figure: "create + check through Fastify, one after another", measured }];
    } finally {
      await server.stop();
    }
  },
};
