import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { serveBatches } from "../store/processes-worker.js";

// Equal to the timeout of the service in these tests.
await serveBatches(async (file) => sqliteStore({ file, busyTimeout: 30_000 }));
