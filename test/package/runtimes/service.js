import { createVerifier, generateApiKey } from "phoneproof";
import { createClient } from "phoneproof/client";
import { fetchHandler } from "phoneproof/fetch";
import { memoryStore } from "phoneproof/memory";

const customer_uuid = "5f0c7f3e-1d2b-4c3a-9e8f-7a6b5c4d3e2f";
const api_key = "pp_the-key-of-the-runtimes-test-43-characters-long";

/**
 * The built package behind `fetchHandler`. `GET /about` returns what the test needs: keys, messages, a fresh API key.
 * `GET /client` returns the results of the package's client against this service, and against one that hangs.
 */
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
  const called = async ({ url }) => {
    // A Worker cannot call its own address, so its client calls the handler.
    const inWorker = globalThis.navigator?.userAgent === "Cloudflare-Workers";
    const hanging = (_url, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const to = { baseUrl: new URL(url).origin, apiKey: api_key, customerUuid: customer_uuid };
    const client = createClient({ ...to, ...(inWorker && { fetch: (...asked) => handler(new Request(...asked)) }) });
    const { authentication_uuid, status } = await client.createAuthentication({ phone_number: "+33612345670" });
    const { code: check_code } = messages.find(({ to }) => to === "+33612345670");
    const failed = (call) => call.then(String, (error) => error.code);
    return [
      status,
      (await client.retry({ authentication_uuid })).status,
      (await client.check({ authentication_uuid, check_code })).status,
      (await client.lookup({ phone_number: "+33612345670" })).line_type,
      await failed(client.retry({ authentication_uuid: customer_uuid })),
      await failed(createClient({ ...to, fetch: hanging, timeout: 0.1 }).retry({ authentication_uuid })),
    ];
  };
  const own = { "/about": about, "/client": called };
  return {
    verifier,
    async fetch(request) {
      const answer = own[new URL(request.url).pathname];
      return answer === undefined ? handler(request) : Response.json(await answer(request));
    },
  };
}
