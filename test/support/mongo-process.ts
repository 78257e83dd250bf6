import { MongoClient } from "mongodb";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { serveBatches } from "../store/processes-worker.js";

await serveBatches(async (url) => mongoStore({ db: (await MongoClient.connect(url)).db() }));
