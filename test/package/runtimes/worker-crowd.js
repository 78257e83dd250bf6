import { waitUntil } from "cloudflare:workers";
import { Redis } from "@upstash/redis";
import { createVerifier } from "phoneproof";
import { fetchHandler } from "phoneproof/fetch";
import { redisStore } from "phoneproof/redis";

const off = { mode: "off" };
const spam = { range: off, crowd: off, country: off, newCountries: off, address: off, strangeNetwork: off };

let handler;

/** One verifier for all requests, on the Redis named in a header of the first. */
export const worker = {
  fetch(request) {
    handler ??= fetchHandler(
      createVerifier({
        store: redisStore({ client: new Redis({ ...JSON.parse(request.headers.get("x-upstash")), automaticDeserialization: false }) }),
        sender: { send: async () => ({ outcome: "accepted" }) },
        secret: "a secret of the runtimes' test, 32 characters and more",
        countries: "all",
        policy: { spam },
        customers: [{ customer_uuid: request.headers.get("x-customer"), keys: [request.headers.get("x-api-key")] }],
        callbacks: { waitUntil },
      }),
    );
    return handler(request);
  },
};
