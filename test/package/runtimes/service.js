import { createVerifier, generateApiKey } from "phoneproof";
import { fetchHandler } from "phoneproof/fetch";
import { memoryStore } from "phoneproof/memory";

const customer_uuid = "5f0c7f3e-1d2b-4c3a-9e8f-7a6b5c4d3e2f";
const api_key = "pp_the-key-of-the-runtimes-test-43-characters-long";

/** The built package behind `fetchHandler`. `GET /about` tells what the test has to know, messages sent and a fresh API key included. */
export function createService(callbacks) {
  const messages = [];
  const verifier = createVerifier({
    store: memoryStore(),
    sender: {
      async send({ to, code }) {
        messages.push({ to, code });
        return { outcome: "accepted" };
      },
    },
    secret: "a secret of the runtimes' test, 32 characters and more",
    countries: "all",
    customers: [{ customer_uuid, keys: [api_key] }],
    callbacks,
  });
  const handler = fetchHandler(verifier);
  const about = async () => ({ customer_uuid, api_key, messages, secrets: await verifier.webhookSecrets(customer_uuid), fresh: generateApiKey() });
  return {
    verifier,
    fetch: async (request) => (new URL(request.url).pathname === "/about" ? Response.json(await about()) : handler(request)),
  };
}
