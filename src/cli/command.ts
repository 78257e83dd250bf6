import { defaultPolicy } from "../domain/policy.js";
import { defaultKeyOverlap } from "../options/customers.js";
import { defaultSendTimeout } from "../options/schema.js";
import { carrierUsage, type Environment } from "./carriers.js";
import { type CustomersSettings, readCustomersSettings } from "./customers.js";
import { type DoctorSettings, readDoctorSettings } from "./doctor.js";
import { defaultDays, type OperatorSettings, operatorCommands, readOperatorSettings } from "./operators/settings.js";
import { defaultDrain, defaultGrace, defaultHost, defaultPort, readServeSettings, type ServeSettings } from "./serve/settings.js";
import { type DevSettings, defaultData, readDevSettings } from "./settings.js";
import { readWorkerSettings, type WorkerSettings } from "./worker.js";

/** What the command line asks for: the help text, a command, or an error to print with the usage. */
export type Command =
  | { readonly kind: "help" }
  | { readonly kind: "version" }
  | { readonly kind: "dev"; readonly settings: DevSettings }
  | { readonly kind: "serve"; readonly settings: ServeSettings }
  | { readonly kind: "worker"; readonly settings: WorkerSettings }
  | { readonly kind: "customers"; readonly settings: CustomersSettings }
  | { readonly kind: "doctor"; readonly settings: DoctorSettings }
  | { readonly kind: "operator"; readonly settings: OperatorSettings }
  | { readonly kind: "fault"; readonly message: string };

/** The list of commands, shown after an error of the command line. */
export const synopsis = `Usage: phoneproof dev [options]
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
Starts the service on this machine; it needs no carrier and no account. Messages, calls and callbacks are shown in this terminal and on the page.

  --port PORT               port to listen on (default 3000, or the next free one; 0 takes any free one)
  --host ADDRESS            address to listen on (default 127.0.0.1; with any other than loopback, whoever reaches it reads the codes).
                            Requests are answered that name localhost, an IP address or this ADDRESS in their Host header
  --data FILE               where data is kept: an SQLite file, or memory for none (default ${defaultData}). The customer, its key and the
                            secret are in it too, where the environment does not say them. Needs Node.js 22.13 or newer, or the package libsql
  --store URL               data is kept there instead: redis://…, rediss://…, postgres://…, mongodb://…, mongodb+srv://… or, for Upstash, https://…;
                            needs the package redis, pg, mongodb or @upstash/redis. A password in it is visible in the list of processes: use PHONEPROOF_STORE
  --json                    stdout carries one JSON object a line ("ready", then an "sms" for each message, a "call" for each call, a "callback" for each callback, a "hint"),
                            and the rest goes to stderr
  --lifetime SECONDS        how long an authentication can be checked (default ${defaultPolicy.lifetime})
  --cooldown SECONDS,…      cool-down after each send; as many retries as numbers (default ${defaultPolicy.retryCooldowns.join(",")})
  --sender NAME             send the messages by this carrier, for real and at its price, with credentials from the environment (below);
                            they are shown here and on the page too
  --latency SECONDS         how long every send takes to be answered, 0 to 60 (default 0); past the service's limit of ${defaultSendTimeout} its outcome is unknown
  --fail OUTCOME            what becomes of every message: rejected (it is not sent), unknown (it arrives, but counts as unclear)
                            or timeout (it arrives, but its send is never answered); not with --sender

  Environment (each of the first three is generated when unset; processes that share a --store need the same ones)
  PHONEPROOF_DEV_CUSTOMER_UUID   the customer's UUID
  PHONEPROOF_DEV_API_KEY         its API key, 32 to 128 letters, digits, "_", "-" or "."
  PHONEPROOF_DEV_SECRET          key of the codes' digests, at least 32 characters
  PHONEPROOF_STORE, PHONEPROOF_DATA
                                 what --store and --data say, if neither option is given; for every command
  UPSTASH_REDIS_REST_TOKEN       the token that goes with https://…

  Environment of --sender (in brackets: may be left out; …_BASE_URL aims at another region of the carrier, or at a stand-in for tests)
${carrierUsage}

phoneproof serve MODULE
The service in production, for apps that are not in Node: serves /v1, /receipts and /healthz for the verifier that the JavaScript file MODULE exports
as \`verifier\` or by default, or that the function exported there makes: ({ store }) => createVerifier({ store, … }). Standard output carries one JSON object a line: one for each request, without numbers, codes and keys.

  --port PORT               port to listen on (default: the environment variable PORT, or ${defaultPort}; 0 takes any free one)
  --host ADDRESS            address to listen on (default ${defaultHost}, for this machine alone; 0.0.0.0 or :: for others, and in containers)
  --data FILE               where the store of such a function is kept: an SQLite file, or memory for none (default ${defaultData}).
                            Needs Node.js 22.13 or newer, or the package libsql
  --wires NAMES             serve these beside /v1 (default: none), for clients of other APIs: prelude-v2, twilio-verify
  --store URL               that store instead, as with dev; or PHONEPROOF_STORE and PHONEPROOF_DATA in the environment
  --metrics-port PORT       serve Prometheus' /metrics there, at the same address (default: nowhere)
  --drain SECONDS           on SIGTERM or SIGINT go on listening for so long, while /healthz says 503 (default ${defaultDrain}; load balancers take a moment)
  --grace SECONDS           then, for what is under way and the callbacks being delivered (default ${defaultGrace}); a second signal ends it at once

phoneproof worker MODULE
Delivers callbacks until SIGTERM or SIGINT, for the verifier that the JavaScript file MODULE exports as \`verifier\` or by default.

  --data FILE, --store URL  as with serve
  --interval SECONDS        between two looks for callbacks that are due (default 5)
  --once                    deliver what is due now, print { delivered, failed, dead } as JSON, and end: for cron jobs

phoneproof customers, phoneproof keys
Keep the customers of a verifier that has customers: "store", and their API keys.

  customers create          a new customer; prints its UUID. With --name, --policy, --webhook-secrets, and --uuid UUID for one that it has already
  customers list            the newest first. With --limit N (1 to 1000, default 100) and --after UUID, the last of the page before
  customers get UUID
  customers update UUID     with --name NAME ("" for none), --policy JSON (null for none), --webhook-secrets
  customers suspend UUID    its keys are refused, everywhere within two seconds
  customers resume UUID
  keys issue UUID           a new API key, shown this once; two may be in use. With --name NAME
  keys rotate UUID [KEY_ID] a new one in the place of another, which still works for --overlap SECONDS (default ${defaultKeyOverlap}). With --name NAME
  keys revoke UUID KEY_ID   refused for good, everywhere within two seconds
  keys list UUID            with the day of their last use

  --store URL               as above: the store of your verifier. A password in it is visible in the list of processes: use PHONEPROOF_STORE
  --data FILE               instead: the file of phoneproof serve
  --prefix TEXT             the option prefix of that store, where you set it
  --json                    stdout carries one JSON object a line

  Environment
  PHONEPROOF_STORE              what --store says, if neither option is given
  PHONEPROOF_DATA               what --data says, if neither option is given
  PHONEPROOF_SECRET             the option secret of your verifier; while you rotate also PHONEPROOF_SECRET_PREVIOUS
  PHONEPROOF_WEBHOOK_SECRETS    what --webhook-secrets sets, separated by commas, the current one first; unset: those made of the verifier's secret
  UPSTASH_REDIS_REST_TOKEN      as above

phoneproof doctor MODULE
Looks at the verifier that the JavaScript file MODULE exports, its store, its carriers' credentials, its callbacks and receipts, and says how to fix it.
Sends nothing and writes nothing. Ends with 1 where there is a fault, else with 0.

  --data FILE, --store URL  as with serve
  --development             values for development are no faults
  --json                    print { ok, findings } as JSON

phoneproof why, unlock, erase, stats
For people who help users: what is known of a number and why, lifting its limits, erasing it, counts. They use the verifier that MODULE exports, as serve does;
without MODULE, the data that the variables below or --store or --data name, with the default policy.

  why NUMBER                history of the number, in sentences: which rule, what it counted, the threshold, when there is room again, what each carrier answered
  unlock NUMBER             lifts the limits of the number, once in 24 hours; ends with 1 if they were lifted before
  erase NUMBER              erases the number; asks first. With --yes it does not ask
  stats                     messages, verifications, cost and blocked messages of the last --days DAYS (1 to 90, default ${defaultDays})

  --customer UUID           the customer (default: the environment variable PHONEPROOF_CUSTOMER); needed if the verifier has customers
  --store URL, --data FILE, --prefix TEXT
                            as above
  --json                    print one JSON object

  Environment
  PHONEPROOF_STORE, PHONEPROOF_DATA
                            as above
  PHONEPROOF_SECRET         the option secret of your verifier, also PHONEPROOF_SECRET_PREVIOUS; PHONEPROOF_PEPPER: its option pepper, if set.
                            Not needed for the file of phoneproof dev, which holds its own

phoneproof --help           this text
phoneproof --version        the version
`;

/** Parses the arguments after the program's name, and the environment. Never throws. */
export function readCommand(args: readonly string[], env: Environment): Command {
  if (args.some((arg) => arg === "--help" || arg === "-h")) return { kind: "help" };
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v") return { kind: "version" };
  try {
    if (name === "dev") return { kind: "dev", settings: readDevSettings(rest, env) };
    if (name === "serve") return { kind: "serve", settings: readServeSettings(rest, env) };
    if (name === "worker") return { kind: "worker", settings: readWorkerSettings(rest, env) };
    if (name === "customers" || name === "keys") return { kind: "customers", settings: readCustomersSettings(name, rest, env) };
    if (name === "doctor") return { kind: "doctor", settings: readDoctorSettings(rest, env) };
    const operator = operatorCommands.find((one) => one === name);
    if (operator !== undefined) return { kind: "operator", settings: readOperatorSettings(operator, rest, env) };
    return { kind: "fault", message: name === undefined ? "a command is missing" : `unknown command ${name}` };
  } catch (error) {
    return { kind: "fault", message: (error as TypeError).message };
  }
}
