import { randomUUID } from "node:crypto";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { dumpOfMemory } from "../support/dump.js";
import { privacyCases } from "./cases.js";

privacyCases("memory", async () => {
  const store = memoryStore({ name: randomUUID() });
  return { store, dump: async () => dumpOfMemory(store) };
});
