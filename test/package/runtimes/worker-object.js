import { DurableObject } from "cloudflare:workers";
import { sqliteStore } from "phoneproof/sqlite";
import { storeContract } from "phoneproof/testing";

/** Runs the cases of the store contract on the storage of a Durable Object; returns those that fail, with reasons. */
export class Contract extends DurableObject {
  async fetch() {
    const [store, peer] = [this.ctx.storage, this.ctx.storage].map((database) => sqliteStore({ database }));
    const cases = storeContract({ racers: 50 });
    const broken = [];
    for (const { name, run } of cases) await run({ store, peer }).catch((error) => broken.push(`${name}: ${error.message}`));
    return Response.json({ cases: cases.length, broken, kind: (await store.inspect(0)).kind });
  }
}

export const worker = {
  fetch: (request, { CONTRACT }) => CONTRACT.get(CONTRACT.idFromName("one")).fetch(request),
};
