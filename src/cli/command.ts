import { version } from "../../package.json";
import { defaultPolicy } from "../domain/policy.js";
import { defaultKeyOverlap } from "../options/customers.js";
import { defaultSendTimeout } from "../options/schema.js";
import { carrierUsage, type Environment } from "./carriers.js";
import { readCustomersSettings, runCustomers } from "./customers.js";
import { runDev } from "./dev.js";
import { readDoctorSettings, runDoctor } from "./doctor.js";
import { runOperator } from "./operators/run.js";
import { defaultDays, operatorCommands, readOperatorSettings } from "./operators/settings.js";
import { runServe } from "./serve/run.js";
import { defaultDrain, defaultGrace, defaultHost, defaultPort, readServeSettings } from "./serve/settings.js";
import { defaultData, readDevSettings } from "./settings.js";
import type { DevOutput } from "./start.js";
import { readWorkerSettings, runWorker } from "./worker.js";

/** What the command line asks for. */
export interface Command {
  /** Its name, if it runs until it is stopped. */
  readonly server?: string;
  /** Runs it to its end; a server, until `stop`. Returns the exit code. Clients that a module opened are still open. */
  run(output: DevOutput, stop: AbortSignal): Promise<number>;
}

/** The list of commands. */
const synopsis = `Usage: phoneproof dev [options]
       phoneproof serve MODULE [options]
       phoneproof worker MODULE [options]
       phoneproof customers ACTION [options]
       phoneproof keys ACTION [options]
       phoneproof doctor MODULE [options]
       phoneproof why NUMBER [MODULE] [options]
       phoneproof unlock NUMBER [MODULE] [options]
       phoneproof erase NUMBER [MODULE] [options]
       phoneproof stats [MODULE] [options]
       phoneproof --help
       phoneproof --version
`;

/** The text of `--help`. */
export const usage = `${synopsis}
phoneproof dev
Starts the service on this machine, without a carrier or an account. This terminal and the page show messages, calls
and callbacks.

  --port PORT               port to listen on (default 3000, or the next free one; 0: any free one)
  --host ADDRESS            address to listen on (default 127.0.0.1). With any other, everyone who can reach it can read
                            the codes. The Host header of requests must be localhost, an IP address or ADDRESS
  --data FILE               store data in this SQLite file, or in memory with "memory" (default ${defaultData}). It also holds
                            the customer, its key and the secret, unless the environment sets them. Needs Node.js 22.13
                            or newer, or the package libsql
  --store URL               store data there instead: redis://…, rediss://…, postgres://…, mongodb://…, mongodb+srv://… or,
                            for Upstash, https://…. Needs the package redis, pg, mongodb or @upstash/redis. Other users can
                            see a password in the process list: use PHONEPROOF_STORE for one
  --json                    write one JSON object per line to stdout ("ready"; "sms", "call" and "callback" for each of
                            these; "hint"), and everything else to stderr
  --lifetime SECONDS        how long a code can be checked (default ${defaultPolicy.lifetime})
  --cooldown SECONDS,…      cool-down after each message; there are as many retries as numbers (default ${defaultPolicy.retryCooldowns.join(",")})
  --sender NAME             send real messages through this carrier, at its price, with credentials from the environment
                            (below). They are also shown here and on the page
  --latency SECONDS         how long each send takes, 0 to 60 (default 0). Above the service's limit of ${defaultSendTimeout}, its outcome is
                            unknown
  --fail OUTCOME            how each message fails: rejected (not sent), unknown (it arrives, but its outcome is unknown)
                            or timeout (it arrives, but the send gets no response). Not with --sender

  Environment (the first three are generated if not set; processes that share a --store need the same ones)
  PHONEPROOF_DEV_CUSTOMER_UUID   UUID of the customer
  PHONEPROOF_DEV_API_KEY         its API key: 32 to 128 letters, digits, "_", "-" and "."
  PHONEPROOF_DEV_SECRET          key of the codes' digests, at least 32 characters
  PHONEPROOF_STORE, PHONEPROOF_DATA
                                 used if neither --store nor --data is given, by all commands
  UPSTASH_REDIS_REST_TOKEN       token for https://…

  Environment of --sender ([optional]; …_BASE_URL selects another region of the carrier, or a test server)
${carrierUsage}

phoneproof serve MODULE
Runs the service in production, for apps that do not use Node.js. It serves /v1, /receipts and /healthz for the verifier
that the JavaScript file MODULE exports as \`verifier\` or by default, or for the one that an exported function returns:
({ store }) => createVerifier({ store, … }). It logs one JSON object per line to stdout: one per request, without numbers,
codes and keys.

  --port PORT               port to listen on (default: the environment variable PORT, or ${defaultPort}; 0: any free one)
  --host ADDRESS            address to listen on (default ${defaultHost}: this machine only; 0.0.0.0 or :: for others, and in
                            containers)
  --data FILE               the store that such a function receives: an SQLite file, or "memory" (default ${defaultData}). Needs
                            Node.js 22.13 or newer, or the package libsql
  --store URL               that store, as with dev; also PHONEPROOF_STORE and PHONEPROOF_DATA in the environment
  --wires NAMES             also serve the APIs of other services (default: none): prelude-v2, twilio-verify
  --metrics-port PORT       serve Prometheus metrics at /metrics on this port, same address (default: not served)
  --drain SECONDS           after SIGTERM or SIGINT, keep listening this long while /healthz returns 503, so that load
                            balancers notice (default ${defaultDrain})
  --grace SECONDS           then wait this long for requests and callbacks in progress (default ${defaultGrace}). A second signal exits
                            at once

phoneproof worker MODULE
Delivers callbacks until SIGTERM or SIGINT, for the verifier that the JavaScript file MODULE exports as \`verifier\` or by
default.

  --data FILE, --store URL  as with serve
  --interval SECONDS        seconds between two searches for callbacks that are due (default 5)
  --once                    deliver what is due, print { delivered, failed, dead } as JSON, and exit: for cron jobs
  --metrics-port PORT       serve Prometheus metrics at /metrics on this port (default: not served). Not with --once
  --host ADDRESS            address to serve them on (default ${defaultHost})

phoneproof customers, phoneproof keys
Manage the customers of a verifier with customers: "store", and their API keys.

  customers create          create a customer and print its UUID. Takes --name, --policy, --webhook-secrets, and --uuid
                            UUID to choose the UUID
  customers list            list customers, newest first. Takes --limit N (1 to 1000, default 100) and --after UUID, the
                            last one of the previous page
  customers get UUID        print a customer
  customers update UUID     change a customer: --name NAME ("" for none), --policy JSON (null for none), --webhook-secrets
  customers suspend UUID    reject its keys, within two seconds in all processes
  customers resume UUID     accept them again
  keys issue UUID           create an API key and print it; it is never shown again. A customer can have two. Takes
                            --name NAME
  keys rotate UUID [KEY_ID] replace a key. The old one works for another --overlap SECONDS (default ${defaultKeyOverlap}). Takes
                            --name NAME
  keys revoke UUID KEY_ID   reject a key forever, within two seconds in all processes
  keys list UUID            list a customer's keys, with the day of their last use

  --store URL               the store of your verifier, as with dev
  --data FILE               the file of phoneproof serve, instead of --store
  --prefix TEXT             the option \`prefix\` of that store, if you set it
  --json                    write one JSON object per line to stdout

  Environment
  PHONEPROOF_STORE, PHONEPROOF_DATA
                                as with dev
  PHONEPROOF_SECRET             option \`secret\` of your verifier; during rotation also PHONEPROOF_SECRET_PREVIOUS
  PHONEPROOF_WEBHOOK_SECRETS    secrets for --webhook-secrets, separated by commas, current one first. Not set: secrets
                                derived from the verifier's
  UPSTASH_REDIS_REST_TOKEN      as with dev

phoneproof doctor MODULE
Checks the verifier that the JavaScript file MODULE exports: its store, its carriers' credentials, its callbacks and
receipts. Each finding comes with its fix. The checks send nothing and write nothing, but importing MODULE may open its
store (and create an SQLite file) and, if its worker is on, deliver callbacks. Exits with 1 if there is a fault, otherwise
with 0.

  --data FILE, --store URL  as with serve
  --development             accept values that are only safe in development
  --json                    print { ok, findings } as JSON

phoneproof why, unlock, erase, stats
For people who help users. These commands use the verifier that MODULE exports, as serve does. Without MODULE they use the
data that --store, --data or the environment names, and the default policy.

  why NUMBER                explain what happened to a number: which rule rejected it, its count and threshold, when there is
                            room again, and what each carrier responded
  unlock NUMBER             lift the limits of a number, once in 24 hours. Exits with 1 if they were lifted already
  erase NUMBER              erase a number. Asks for confirmation, unless --yes is given
  stats                     print messages, verifications, cost and blocked messages of the last --days DAYS (1 to 90,
                            default ${defaultDays}, or as many as statistics are kept)

  --customer UUID           the customer (default: PHONEPROOF_CUSTOMER). Needed if the verifier has customers
  --store URL, --data FILE, --prefix TEXT
                            as with customers
  --json                    print one JSON object

  Environment
  PHONEPROOF_STORE, PHONEPROOF_DATA
                            as with dev
  PHONEPROOF_SECRET         option \`secret\` of your verifier; also PHONEPROOF_SECRET_PREVIOUS. PHONEPROOF_PEPPER: its option
                            \`pepper\`, if set. Not needed for the file of phoneproof dev, which holds its own

phoneproof --help           print this text; after a command, its part of it
phoneproof --version        print the version
`;

/** `read`: throws a `TypeError` that names an invalid argument. */
function command<S>(read: (args: readonly string[], env: Environment) => S, run: (settings: S, output: DevOutput, stop: AbortSignal) => Promise<number>) {
  return (args: readonly string[], env: Environment): Command["run"] => {
    const settings = read(args, env);
    return (output, stop) => run(settings, output, stop);
  };
}

const servers = new Map([
  ["dev", command(readDevSettings, runDev)],
  ["serve", command(readServeSettings, runServe)],
  ["worker", command(readWorkerSettings, runWorker)],
]);

const others = new Map([
  ["doctor", command(readDoctorSettings, runDoctor)],
  ...(["customers", "keys"] as const).map((name) => [name, command((args, env) => readCustomersSettings(name, args, env), runCustomers)] as const),
  ...operatorCommands.map((name) => [name, command((args, env) => readOperatorSettings(name, args, env), runOperator)] as const),
]);

/** Parses the arguments after the program's name, and the environment. Never throws. */
export function readCommand(args: readonly string[], env: Environment): Command {
  const [name = "", ...rest] = args;
  if (args.some((arg) => arg === "--help" || arg === "-h")) return printing("out", partOf(name) ?? usage, 0);
  if (name === "--version" || name === "-v") return printing("out", `${version}\n`, 0);
  const server = servers.get(name);
  const read = server ?? others.get(name);
  if (read === undefined) return refused(args.length === 0 ? "a command is missing" : `unknown command ${name}`, synopsis);
  try {
    return { ...(server && { server: name }), run: read(rest, env) };
  } catch (error) {
    return refused((error as TypeError).message, usageOf(name));
  }
}

function refused(message: string, help: string): Command {
  return printing("err", `phoneproof: ${message}\n\n${help}`, 2);
}

function printing(to: keyof DevOutput, text: string, code: number): Command {
  return {
    async run(output) {
      output[to](text);
      return code;
    },
  };
}

/** The command's line of the list. */
function usageOf(name: string): string {
  const [line] = synopsis.match(new RegExp(`phoneproof ${name} .*`)) ?? [];
  return `Usage: ${line}\n       phoneproof ${name} --help\n`;
}

/** The part of the help whose first line names the command. */
function partOf(name: string): string | undefined {
  const part = usage.split(/\n\n(?=phoneproof )/).find((one) => /^phoneproof (\w.*)/.exec(one)?.[1]?.split(/[ ,]+/).includes(name));
  return part && `${part}\n`;
}
