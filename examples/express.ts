/** Express with the memory store: `npm run example examples/express.ts`. */
import type { AddressInfo } from "node:net";
import express from "express";
import { createVerifier } from "phoneproof";
import { expressHandlers } from "phoneproof/express";
import { memoryStore } from "phoneproof/memory";
import { consoleSender } from "phoneproof/senders/console";
import { invite, settings } from "./settings.js";

const verifier = createVerifier({
  store: memoryStore(),
  sender: consoleSender(),
  secret: settings.secret,
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: settings.customer_uuid, keys: [settings.apiKey] }],
});

const app = express();
app.use(express.json()); // your own parsers may come before or after
app.use(expressHandlers(verifier));
app.get("/", (_request, response) => {
  response.send("an app that verifies phone numbers under /v1");
});

const server = app.listen(settings.port, "127.0.0.1", () => invite((server.address() as AddressInfo).port));
