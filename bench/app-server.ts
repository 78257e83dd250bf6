// Child process with one app. Arguments: the framework, the kind of backend, the URL of the store, the port for codes.
import { connect } from "node:net";
import { type Backend, type FrameworkName, frameworks } from "./apps.js";
import { bareOnRedis } from "./bare.js";
import { betterAuthOnPostgres, betterAuthOnRedis } from "./better-auth.js";
import { handmadeOnMongo, handmadeOnPostgres, handmadeOnRedis, handmadeOnSqlite, leanOnRedis } from "./handmade.js";
import { answerCalls } from "./processes.js";
import { benchVerifier, openStore } from "./service.js";

/**
 * The backend of an app: the verifier; the hand-written service, and a version of it with as few round trips as
 * possible; routes with only the phone check and one script; better-auth's plugin.
 */
export type Kind = "ours" | "handmade" | "lean" | "bare" | "better-auth";

const [, , framework, kind, url = "", codesPort] = process.argv as [string, string, FrameworkName, Kind, string, string];
const { routes, mounted } = frameworks[framework];

const isPostgres = url.startsWith("postgres:");

/** Codes are sent in batches, as text: the same small amount of work in every app. */
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
  /** Returns the port. */
  start: async () => (kind === "ours" ? mounted(benchVerifier((await openStore(url)).store, deliver)) : routes(await backends[kind]())),
  /** Microseconds of CPU time that this process has used. */
  cpu() {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
});
