/** Runs one compiled block in a separate process: reports when it listens and has loaded, and ends on a message. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { register } from "node:module";
import { Server } from "node:net";
import { pathToFileURL } from "node:url";

const listen = Server.prototype.listen;
Server.prototype.listen = function (...args) {
  this.once("listening", () => process.send?.({ listening: this.address().port }));
  return listen.apply(this, args);
};
process.on("message", () => process.exit(process.exitCode ?? 0));
process.channel?.unref();

// Next.js' own bundler finds next/headers, and files of app/ and lib/, without their extension; Node does not. Only
// these programs need the hook, which starts a thread.
const resolve = `
  const bare = (name, from = "") => /^next\\/\\w+$/.test(name) || (/\\/(app|lib)\\//.test(from) && /^\\.[^?]*\\/[\\w-]+$/.test(name));
  export const resolve = (name, context, next) => next(bare(name, context.parentURL) ? name + ".js" : name, context);
`;
const file = process.argv[2];
if (/"next\/|[/](app|lib)[/]/.test(file + readFileSync(file, "utf8"))) register(`data:text/javascript,${encodeURIComponent(resolve)}`);

const exported = await import(pathToFileURL(file).href);
if (process.env.PROBE) await probe(process.env.PROBE, JSON.parse(process.env.REQUEST ?? "{}"));
process.send?.({ loaded: true });

/** Calls a block's export as its framework would, and prints the status of the response. `call` is an expression. */
async function probe(call, request) {
  const served = (listener) =>
    new Promise((done) => {
      const server = createServer(listener).listen(0, "127.0.0.1", async () => {
        done((await fetch(`http://127.0.0.1:${server.address().port}/v1/authentication`, request)).status);
        server.close();
      });
    });
  const run = new Function("exported", "request", "served", "h3", `return (async () => ${call})()`);
  console.log(`answered ${await run(exported, request, served, call.includes("h3.") && (await import("h3")))}`);
}
