import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { serveBatches } from "../store/processes-worker.js";

// As long as the service waits in these tests.
await serveBatches(async (file) => sqliteStore({ file, busyTimeout: 30_000 }));
