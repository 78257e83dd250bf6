import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { serveOrders } from "./crash-worker.js";

await serveOrders(async (file) => sqliteStore({ file }));
