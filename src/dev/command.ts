import { defaultPolicy } from "../domain/policy.js";
import { type DevSettings, type Environment, readDevSettings } from "./settings.js";
import { readWorkerSettings, type WorkerSettings } from "./worker.js";

/** What the command line asks for: the help text, one of the commands, or a fault to be told with the usage. */
export type Command =
  | { readonly kind: "help" }
  | { readonly kind: "dev"; readonly settings: DevSettings }
  | { readonly kind: "worker"; readonly settings: WorkerSettings }
  | { readonly kind: "fault"; readonly message: string };

export const usage = `Usage: phoneproof dev [options]
       phoneproof worker MODULE [options]

phoneproof dev
Starts the service on this machine: no carrier, no account. Messages are shown in this terminal and on the page.

  --port PORT               port to listen on (default 3000, or the next free one; 0 takes any free one)
  --host ADDRESS            address to listen on (default 127.0.0.1; with any other than loopback, whoever reaches it reads the codes)
  --store URL               redis://…, rediss://…, mongodb://…, mongodb+srv://… or, for Upstash, https://… (default: in memory, until it ends);
                            needs the package redis, mongodb or @upstash/redis
  --json                    stdout carries one JSON object a line ("ready", then an "sms" for each message); the rest goes to stderr
  --lifetime SECONDS        how long an authentication can be checked (default ${defaultPolicy.lifetime})
  --cooldown SECONDS,…      cool-down after each send; as many retries as numbers (default ${defaultPolicy.retryCooldowns.join(",")})

  Environment (each of the first three is made anew at every start when unset; processes that share a store need them alike)
  PHONEPROOF_DEV_CUSTOMER_UUID   the customer's UUID
  PHONEPROOF_DEV_API_KEY         its API key, 32 to 128 letters, digits, "_", "-" or "."
  PHONEPROOF_DEV_SECRET          key of the codes' digests, at least 32 characters
  UPSTASH_REDIS_REST_TOKEN       the token that goes with --store https://…

phoneproof worker MODULE
Delivers callbacks until SIGTERM or SIGINT, for the verifier that the JavaScript file MODULE exports as \`verifier\` or by default.

  --interval SECONDS        between two looks for callbacks that are due (default 5)
  --once                    deliver what is due now, print { delivered, failed, dead } as JSON, and end: for cron jobs

phoneproof --help           this text
`;

/** Reads the arguments after the program's name, and the environment. Decides nothing but what they say; never throws. */
export function readCommand(args: readonly string[], env: Environment): Command {
  if (args.some((arg) => arg === "--help" || arg === "-h")) return { kind: "help" };
  const [name, ...rest] = args;
  try {
    if (name === "dev") return { kind: "dev", settings: readDevSettings(rest, env) };
    if (name === "worker") return { kind: "worker", settings: readWorkerSettings(rest) };
    return { kind: "fault", message: `${name === undefined ? "a command is missing" : `unknown command ${name}`}: there are dev and worker` };
  } catch (error) {
    return { kind: "fault", message: (error as TypeError).message };
  }
}
