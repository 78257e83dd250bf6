/** A custom store, on plain node:http: `npm run example examples/custom-store.ts`. The store is in map-store.ts. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createVerifier } from "phoneproof";
import { nodeHandler } from "phoneproof/node";
import { consoleSender } from "phoneproof/senders/console";
import { mapStore } from "./map-store.js";
import { invite, settings } from "./settings.js";

const verifier = createVerifier({
  store: mapStore(),
  sender: consoleSender(),
  secret: settings.secret,
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: settings.customer_uuid, keys: [settings.apiKey] }],
});

const server = createServer(nodeHandler(verifier)).listen(settings.port, "127.0.0.1", () => invite((server.address() as AddressInfo).port));
