/** Child process with one app: the framework, what is in it (`bare` routes, the service made by hand, better-auth's plugin, the verifier) and the URL of the store are its arguments. */
import { frameworks, type Running } from "./apps.js";
import { backendOf, handmadeOf, storeOf } from "./backends.js";
import { betterAuthInMemory } from "./better-auth.js";
import type { Batch, Fired } from "./load.js";
import { answerCalls } from "./processes.js";
import { benchVerifier } from "./service.js";

const [, , name = "", kind = "", url = ""] = process.argv;
const framework = frameworks[name];
if (framework === undefined) throw new Error(`no framework ${name}`);

let codes = new Map<string, string>();
let running: Running;

answerCalls({
  /** The port; absent for an app that is called in this process. */
  async start(): Promise<number | undefined> {
    if (kind === "bare") running = await framework.bare(await backendOf(url));
    else if (kind === "better-auth") running = await framework.bare(betterAuthInMemory((id, code) => codes.set(id, code)));
    else if (kind === "handmade") running = await framework.bare(await handmadeOf(url, (id, code) => codes.set(id, code)));
    else {
      const service = benchVerifier(await storeOf(url));
      codes = service.codes;
      running = await framework.mounted(service.verifier);
    }
    return "port" in running ? running.port : undefined;
  },
  /** Microseconds of CPU that this process has had. */
  cpu(): number {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  /** The codes sent since the last call, by authentication. */
  codes(): Map<string, string> {
    const sent = new Map(codes);
    codes.clear();
    return sent;
  },
  /** What `load.ts` does, for an app that is called in this process: the requests are built here, for bare and mounted alike. */
  async fire({ path, connections, requests }: Omit<Batch, "port">): Promise<Fired> {
    if (!("handler" in running)) throw new Error("this app has a port");
    const { handler } = running;
    const answers: string[] = [];
    const started = performance.now();
    let next = 0;
    const client = async () => {
      for (let at = next++; at < requests.length; at = next++) {
        const { key, body } = requests[at] as Batch["requests"][number];
        const headers = { "x-api-key": key, "content-type": "application/json" };
        const response = await handler(new Request(`http://127.0.0.1${path}`, { method: "POST", headers, body }));
        answers[at] = await response.text();
      }
    };
    await Promise.all(Array.from({ length: connections }, client));
    return { answers, times: [], took: performance.now() - started };
  },
});
