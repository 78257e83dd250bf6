/** Child process with one app. Its arguments: the framework, who is in it, the URL of the store, the port that takes the codes. */
import { connect } from "node:net";
import { type Backend, type FrameworkName, frameworks } from "./apps.js";
import { bareOnRedis } from "./bare.js";
import { betterAuthOnPostgres, betterAuthOnRedis } from "./better-auth.js";
import { handmadeOnMongo, handmadeOnPostgres, handmadeOnRedis, handmadeOnSqlite, leanOnRedis } from "./handmade.js";
import { answerCalls } from "./processes.js";
import { benchVerifier, openStore } from "./service.js";

/** Who is in an app: the verifier; the service made by hand, and once more with as few round trips as it can do with; routes with the phone check and one script; better-auth's plugin. */
export type Kind = "ours" | "handmade" | "lean" | "bare" | "better-auth";

const [, , framework, kind, url = "", codesPort] = process.argv as [string, string, FrameworkName, Kind, string, string];
const { routes, mounted } = frameworks[framework];

const isPostgres = url.startsWith("postgres:");

/** Codes go out in batches, as text: in every app the same little work. */
const codes = connect(Number(codesPort), "127.0.0.1");
let batch = "";
function deliver(number: string, code: string): void {
  if (batch === "") setTimeout(flush, 5);
  batch += `${number} ${code}\n`;
}
function flush(): void {
  codes.write(batch);
  batch = "";
}

const backends: Record<Exclude<Kind, "ours">, () => Promise<Backend>> = {
  handmade: async () => {
    if (url.startsWith("sqlite:")) return handmadeOnSqlite(`${url.slice("sqlite:".length)}-by-hand`, deliver);
    return (url.startsWith("redis:") ? handmadeOnRedis : isPostgres ? handmadeOnPostgres : handmadeOnMongo)(url, deliver);
  },
  lean: () => leanOnRedis(url, deliver),
  bare: () => bareOnRedis(url, deliver),
  "better-auth": () => (isPostgres ? betterAuthOnPostgres : betterAuthOnRedis)(url, deliver),
};

answerCalls({
  /** Answers the port. */
  start: async () => (kind === "ours" ? mounted(benchVerifier((await openStore(url)).store, deliver)) : routes(await backends[kind]())),
  /** Microseconds of CPU that this process has had. */
  cpu() {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
});
