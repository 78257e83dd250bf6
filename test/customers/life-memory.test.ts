import { randomUUID } from "node:crypto";
import { describe, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { lifeOfAKey } from "./life.js";
import { raceCustomers } from "./races.js";

describe("The life of a key over memory, Redis and MongoDB: memory", () => {
  it("create customer → issue → use over HTTP → rotate with overlap → old revoked → refused within two seconds → suspend → refused → resume", async () => {
    const store = memoryStore({ name: randomUUID() });
    await lifeOfAKey({ store, peer: store });
  });

  it("a revocation is never undone, and never are three keys in use", async () => {
    const store = memoryStore({ name: randomUUID() });
    await raceCustomers({ store, peer: store });
  });
});
