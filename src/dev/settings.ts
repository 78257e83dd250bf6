import { randomBytes, randomUUID } from "node:crypto";
import { parseArgs } from "node:util";
import { defaultPolicy } from "../domain/policy.js";
import { generateApiKey } from "../engine/account.js";

/** What `phoneproof dev` runs with. */
export interface DevSettings {
  /** Address to listen on. */
  readonly host: string;
  /** The port asked for; absent: the first free one from 3000 on. */
  readonly port?: number;
  /** One JSON object a line on stdout, everything else on stderr. */
  readonly json: boolean;
  /** Seconds from creation to `expires_at`. */
  readonly lifetime: number;
  /** Seconds of cool-down after each send; as many retries as there are numbers. */
  readonly cooldown: readonly number[];
  readonly customer_uuid: string;
  readonly api_key: string;
  /** Key of the codes' digests. */
  readonly secret: string;
}

/** What the command line asks for: the help text, a run, or a fault to be told with the usage. */
export type Command =
  | { readonly kind: "help" }
  | { readonly kind: "run"; readonly settings: DevSettings }
  | { readonly kind: "fault"; readonly message: string };

export const usage = `Usage: phoneproof dev [options]

Starts the service on this machine, with the memory store: no carrier, no database, no account.
Messages are shown in this terminal and on the page.

Options
  --port PORT               port to listen on (default 3000, or the next free one; 0 takes any free one)
  --host ADDRESS            address to listen on (default 127.0.0.1; with any other than loopback, whoever reaches it reads the codes)
  --json                    stdout carries one JSON object a line ("ready", then an "sms" for each message); the rest goes to stderr
  --lifetime SECONDS        how long an authentication can be checked (default ${defaultPolicy.lifetime})
  --cooldown SECONDS,…      cool-down after each send; as many retries as numbers (default ${defaultPolicy.retryCooldowns.join(",")})
  --help                    this text

Environment (each is made anew at every start when unset)
  PHONEPROOF_DEV_CUSTOMER_UUID   the customer's UUID
  PHONEPROOF_DEV_API_KEY         its API key, 32 to 128 letters, digits, "_", "-" or "."
  PHONEPROOF_DEV_SECRET          key of the codes' digests, at least 32 characters
`;

const options = {
  port: { type: "string" },
  host: { type: "string" },
  json: { type: "boolean" },
  lifetime: { type: "string" },
  cooldown: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

/** Reads the arguments after the program's name, and the environment. Decides nothing but what they say; never throws. */
export function readCommand(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Command {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
    if (values.help) return { kind: "help" };
    const [command, ...surplus] = positionals;
    if (command !== "dev")
      throw new TypeError(command === undefined ? "a command is missing: the one there is, is dev" : `unknown command ${command}: the one there is, is dev`);
    if (surplus.length > 0) throw new TypeError(`unexpected ${surplus.join(" ")}`);
    if (values.host === "") throw new TypeError("--host must not be empty");
    return {
      kind: "run",
      settings: {
        host: values.host ?? "127.0.0.1",
        ...(values.port !== undefined && { port: integer("--port", values.port, 0, 65_535) }),
        json: values.json ?? false,
        lifetime: values.lifetime === undefined ? defaultPolicy.lifetime : integer("--lifetime", values.lifetime, 1, 86_400),
        cooldown: values.cooldown === undefined ? defaultPolicy.retryCooldowns : cooldowns(values.cooldown),
        customer_uuid:
          fromEnvironment(env, "PHONEPROOF_DEV_CUSTOMER_UUID", /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, "a UUID")?.toLowerCase() ?? randomUUID(),
        api_key: fromEnvironment(env, "PHONEPROOF_DEV_API_KEY", /^[\w.-]{32,128}$/, '32 to 128 letters, digits, "_", "-" or "."') ?? generateApiKey().key,
        secret: fromEnvironment(env, "PHONEPROOF_DEV_SECRET", /^.{32,}$/s, "at least 32 characters") ?? randomBytes(32).toString("base64url"),
      },
    };
  } catch (error) {
    return { kind: "fault", message: (error as TypeError).message };
  }
}

function cooldowns(text: string): number[] {
  const list = text.split(",").map((part) => integer("--cooldown", part, 0, 86_400));
  if (list.length > 20) throw new TypeError("--cooldown takes at most 20 numbers");
  return list;
}

function integer(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) throw new TypeError(`${option} takes a whole number from ${least} to ${most}, not "${text}"`);
  return value;
}

function fromEnvironment(env: Readonly<Record<string, string | undefined>>, name: string, form: RegExp, words: string): string | undefined {
  const value = env[name];
  if (value === undefined || value === "") return undefined;
  if (!form.test(value)) throw new TypeError(`${name} must be ${words}`);
  return value;
}
