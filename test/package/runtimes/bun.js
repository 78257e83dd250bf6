import { createService } from "./service.js";

const { fetch } = createService({ allowOrigins: process.argv.slice(2) });
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
console.log(server.url.origin);
