import { MongoClient } from "mongodb";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { serveOrders } from "./crash-worker.js";

await serveOrders(async (url) => mongoStore({ db: (await MongoClient.connect(url)).db() }));
