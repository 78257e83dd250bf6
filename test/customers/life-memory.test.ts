import { randomUUID } from "node:crypto";
import { describe, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { lifeOfAKey } from "./life.js";
import { raceCustomers } from "./races.js";

describe("the life of a key in the memory store", () => {
  it("create customer → issue → use over HTTP → rotate with overlap → old revoked → rejected within two seconds → suspend → rejected → resume", async () => {
    const store = memoryStore({ name: randomUUID() });
    await lifeOfAKey({ store, peer: store });
  });

  it("a revocation is never undone, and there are never three keys in use", async () => {
    const store = memoryStore({ name: randomUUID() });
    await raceCustomers({ store, peer: store });
  });
});
