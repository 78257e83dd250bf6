import { postgresStore } from "../../adapters/store/postgres/index.js";
import { serveBatches } from "../store/processes-worker.js";
import { poolOf } from "./postgres.js";

await serveBatches(async (url) => postgresStore({ pool: poolOf(url) }));
