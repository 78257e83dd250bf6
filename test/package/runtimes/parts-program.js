import { tryParts } from "./parts.js";

const [servers] = globalThis.Deno?.args ?? process.argv.slice(2);
console.log(JSON.stringify(await tryParts(JSON.parse(servers))));
process.exit();
