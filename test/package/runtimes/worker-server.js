import { httpServerHandler } from "cloudflare:node";
import { createServer } from "node:http";
import { nodeHandler } from "phoneproof/node";
import { createService } from "./service.js";

const { verifier } = createService({ worker: false });
createServer(nodeHandler(verifier)).listen(8080);

/** A server of node:http, to which the platform passes requests. */
export const worker = httpServerHandler({ port: 8080 });
