import type { Verifier } from "../../create-verifier.js";
import type { HttpHandler } from "../../http/message.js";
import { preludeV2 } from "../../wires/prelude-v2/index.js";
import { twilioVerify } from "../../wires/twilio-verify/index.js";
import { hostOf, integer, parse, portOf, valued } from "../arguments.js";
import type { Environment } from "../carriers.js";
import { readPlace, variable } from "../settings.js";

/** Loopback by default, because the API key is sent over plain HTTP. To be reachable from elsewhere, set the host. */
export const defaultHost = "127.0.0.1";
export const defaultPort = 3000;
export const defaultDrain = 0;
/** In seconds. Kubernetes, Heroku and ECS kill the process 30 s after the signal. */
export const defaultGrace = 25;

/** The wires that can be served alongside `/v1`. */
export const wires = {
  "prelude-v2": preludeV2,
  "twilio-verify": twilioVerify,
} as const satisfies Record<string, (verifier: Verifier) => HttpHandler>;

const wireNames = Object.keys(wires) as (keyof typeof wires)[];

const options = valued("port", "host", "data", "wires", "store", "metrics-port", "drain", "grace");

export type ServeSettings = ReturnType<typeof readServeSettings>;

/**
 * Reads the arguments after `serve`, and the environment. Throws a `TypeError` that names the invalid option or
 * variable.
 */
export function readServeSettings(args: readonly string[], env: Environment) {
  const { values, positionals } = parse("serve", args, options, 1);
  const [module] = positionals;
  if (!module) throw new TypeError("serve needs the path of a module that exports your verifier: phoneproof serve ./verifier.js");
  const port =
    values.port === undefined ? portOf("the environment variable PORT", variable("PORT", env) ?? String(defaultPort)) : portOf("--port", values.port);
  const metricsPort = values["metrics-port"] === undefined ? undefined : portOf("--metrics-port", values["metrics-port"]);
  if (metricsPort === port && port !== 0) throw new TypeError(`--metrics-port must differ from the port of the service, ${port}: strangers can reach that one`);
  return {
    /** Path of the module that exports the verifier. */
    module,
    /** For a module that leaves its store to the command. */
    place: readPlace(values, env),
    /** Address to listen on. */
    host: hostOf(values.host ?? defaultHost),
    port,
    /** What is served alongside `/v1`. */
    wires: values.wires === undefined ? [] : wiresOf(values.wires),
    /** `undefined`: metrics are not served. */
    metricsPort,
    /** Seconds between a signal and the end of listening. `/healthz` returns 503 during that time. */
    drain: values.drain === undefined ? defaultDrain : integer("--drain", values.drain, 0, 300),
    /** Seconds after that for requests in progress. */
    grace: values.grace === undefined ? defaultGrace : integer("--grace", values.grace, 1, 300),
  };
}

function wiresOf(text: string) {
  const names = text.split(",").map((name) => {
    const known = wireNames.find((one) => one === name);
    if (known === undefined) throw new TypeError(`--wires takes ${wireNames.join(" and ")}, separated by a comma, not "${name}"`);
    return known;
  });
  return [...new Set(names)];
}
