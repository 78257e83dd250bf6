import { parseArgs } from "node:util";
import { integer } from "../arguments.js";
import type { Environment } from "../carriers.js";
import { type DataSettings, readData } from "../settings.js";

/** What `phoneproof serve` runs with. */
export interface ServeSettings {
  /** Path of the module that exports the verifier. */
  readonly module: string;
  /** The file of a module that leaves its store to the command. Absent: in memory. */
  readonly data?: DataSettings;
  /** Address to listen on. */
  readonly host: string;
  readonly port: number;
  /** Absent: the metrics are not served. */
  readonly metricsPort?: number;
  /** Seconds between a signal and the end of listening, in which `/healthz` already says 503. */
  readonly drain: number;
  /** Seconds, after those, for what is under way. */
  readonly grace: number;
}

/** Loopback, because the API key goes over plain HTTP: whoever wants to be reached from elsewhere says so. */
export const defaultHost = "127.0.0.1";
export const defaultPort = 3000;
export const defaultDrain = 0;
/** Kubernetes, Heroku and ECS kill what is still there 30 s after the signal. */
export const defaultGrace = 25;

const options = {
  port: { type: "string" },
  host: { type: "string" },
  data: { type: "string" },
  "metrics-port": { type: "string" },
  drain: { type: "string" },
  grace: { type: "string" },
} as const;

/** Reads the arguments after `serve`, and the environment. Throws a `TypeError` that names the option or variable at fault. */
export function readServeSettings(args: readonly string[], env: Environment): ServeSettings {
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  const [module, ...surplus] = positionals;
  if (!module) throw new TypeError("serve needs the path of a module that exports your verifier: phoneproof serve ./verifier.js");
  if (surplus.length > 0) throw new TypeError(`unexpected ${surplus.join(" ")}`);
  if (values.host === "") throw new TypeError("--host must not be empty");
  const port = values.port === undefined ? portOf("the environment variable PORT", env["PORT"] || String(defaultPort)) : portOf("--port", values.port);
  const metricsPort = values["metrics-port"] === undefined ? undefined : portOf("--metrics-port", values["metrics-port"]);
  if (metricsPort === port && port !== 0) throw new TypeError(`--metrics-port must be another than the port of the service, ${port}: strangers reach that one`);
  const data = readData(values.data);
  return {
    module,
    ...(data !== undefined && { data }),
    host: values.host ?? defaultHost,
    port,
    ...(metricsPort !== undefined && { metricsPort }),
    drain: values.drain === undefined ? defaultDrain : integer("--drain", values.drain, 0, 300),
    grace: values.grace === undefined ? defaultGrace : integer("--grace", values.grace, 1, 300),
  };
}

const portOf = (name: string, text: string) => integer(name, text, 0, 65_535);
