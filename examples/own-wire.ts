/**
 * Your own wire next to `/v1`, for clients of another API: `npm run example examples/own-wire.ts`. This one
 * starts a verification with `PUT /otp/{number}` and checks a code with `POST /otp/{number}`, whose body is the code.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createVerifier, type HttpHandler, type HttpRequest, type HttpResponse, type Verifier, VerifierError } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { nodeHandler } from "phoneproof/node";
import { consoleSender } from "phoneproof/senders/console";
import { settings } from "./settings.js";

function ownWire(verifier: Verifier): HttpHandler {
  const respond = async (request: HttpRequest): Promise<HttpResponse> => {
    const phone_number = /^\/otp\/(\+\d{1,15})$/.exec(request.path)?.[1];
    if (phone_number === undefined) return text(404, "PUT or POST /otp/{number}");
    // The customer follows from the key. Decide that before the body is read.
    const customer_uuid = await verifier.customerOf(request.header("authorization")?.replace(/^Bearer /, ""));
    switch (request.method) {
      case "PUT": {
        const { status } = await verifier.verifications.start({ customer_uuid, phone_number });
        return text(status === "pending" ? 202 : 429, status);
      }
      case "POST": {
        const { status } = await verifier.verifications.check({ customer_uuid, phone_number, check_code: await bodyOf(request) });
        return text(status === "valid" ? 200 : 422, status);
      }
      default:
        return text(405, "PUT or POST only", { allow: "PUT, POST" });
    }
  };
  return {
    // The verifier's clock and logger, and the reason if it cannot be mounted.
    ...verifier.http,
    root: "/otp",
    // Adapters require that this never rejects.
    handle: (request) =>
      respond(request).catch((error: unknown) => {
        if (error instanceof VerifierError && error.status < 500) return text(error.status, error.message);
        verifier.http.warn(`a request to /otp failed: ${error}`);
        return text(503, "try again later");
      }),
  };
}

function text(status: number, body: string, headers: Record<string, string> = {}): HttpResponse {
  return { status, headers: { "content-type": "text/plain", ...headers }, body: `${body}\n` };
}

/** The body as text, up to 100 bytes. The host's body parser may have read it before. */
async function bodyOf(request: HttpRequest): Promise<string> {
  const body = await request.body(100);
  if (body.kind === "bytes") return new TextDecoder().decode(body.bytes);
  if (body.kind === "text") return body.text;
  throw new VerifierError("bad_request", "The body must be the code as plain text.");
}

const verifier = createVerifier({
  store: memoryStore(),
  sender: consoleSender(),
  secret: settings.secret,
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: settings.customer_uuid, keys: [settings.apiKey] }],
});

const server = createServer(nodeHandler([verifier, ownWire(verifier)])).listen(settings.port, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  console.log(`listening on http://127.0.0.1:${port}

curl -X PUT http://127.0.0.1:${port}/otp/+33612345678 -H 'authorization: Bearer ${settings.apiKey}'
`);
});
