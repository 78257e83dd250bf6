import { postgresStore } from "../../adapters/store/postgres/index.js";
import { poolOf } from "../support/postgres.js";
import { serveOrders } from "./crash-worker.js";

await serveOrders(async (url) => postgresStore({ pool: poolOf(url) }));
