import { Redis } from "ioredis";

let client;

/** Keeps using the client that its first request connected, as a server does. */
export const worker = {
  async fetch(request) {
    const { redis } = await request.json();
    if (client === undefined) {
      client = new Redis(redis, { lazyConnect: true, commandTimeout: 500 }).on("error", () => {});
      await client.connect();
    }
    return Response.json(await client.ping().catch(String));
  },
};
