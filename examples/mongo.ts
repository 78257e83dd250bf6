/** Express with MongoDB: `MONGODB_URL=mongodb://127.0.0.1:27017/phoneproof npm run example examples/mongo.ts`. */
import type { AddressInfo } from "node:net";
import express from "express";
import { MongoClient } from "mongodb";
import { createVerifier } from "phoneproof";
import { expressHandlers } from "phoneproof/express";
import { mongoStore } from "phoneproof/mongo";
import { consoleSender } from "phoneproof/senders/console";
import { invite, settings } from "./settings.js";

const client = new MongoClient(process.env.MONGODB_URL ?? "mongodb://127.0.0.1:27017/phoneproof", { serverSelectionTimeoutMS: 1500 });
const store = mongoStore({ db: client.db() });
await store.ensureIndexes(); // once, at start or in a migration

const verifier = createVerifier({
  store,
  sender: consoleSender(),
  secret: settings.secret,
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: settings.customer_uuid, keys: [settings.apiKey] }],
});

const app = express();
app.use(expressHandlers(verifier));
const server = app.listen(settings.port, "127.0.0.1", () => invite((server.address() as AddressInfo).port));
