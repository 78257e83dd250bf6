import { defaultPolicy } from "../domain/policy.js";
import { flags, hostOf, integer, parse, portOf, valued } from "./arguments.js";
import { type Environment, readCarrier } from "./carriers.js";
import { type Failure, failures } from "./sender.js";

/** The store that a URL names, by the package that connects to it. The URL may contain a password. */
export type StoreSettings = Named &
  (
    | { readonly driver: "redis" | "mongodb" | "pg"; readonly url: string }
    | { readonly driver: "@upstash/redis"; readonly url: string; readonly token: string }
  ) & {
    /** The value of the store's own option. Absent: its default. */
    readonly prefix?: string;
  };

/** The file of an SQLite store, or memory, given or by default. */
export interface DataSettings extends Named {
  /** `undefined`: in memory. */
  readonly file: string | undefined;
  /** Whether an option or a variable gives it: then a missing SQLite is an error. */
  readonly isAsked: boolean;
}

interface Named {
  /** The environment variable that gives it. Absent: the option does. */
  readonly by?: string;
}

/** Where a command keeps or finds data. */
export type Place = StoreSettings | DataSettings;

/** The environment variables for what `--store` and `--data` say: a command line is visible to other users of the machine. */
const storeVariable = "PHONEPROOF_STORE";
const dataVariable = "PHONEPROOF_DATA";

/** Reads the options, or else the environment. Returns the default file if nothing is given. */
export function readPlace(given: { readonly store?: string | undefined; readonly data?: string | undefined }, env: Environment): Place {
  if (given.store !== undefined && given.data !== undefined) throw new TypeError("--data has no effect with --store");
  if (given.store !== undefined) return readStore(given.store, env);
  if (given.data !== undefined) return readData(given.data);
  const [store, data] = [variable(storeVariable, env), variable(dataVariable, env)];
  if (store && data) throw new TypeError(`${storeVariable} and ${dataVariable} are both set: unset one`);
  if (store) return { ...readStore(store, env, storeVariable), by: storeVariable };
  return { ...readData(data), ...(data && { by: dataVariable }) };
}

/** A variable without spaces and line breaks around it. Env files, and what reads them, leave other things in it. */
export function variable(name: string, env: Environment): string | undefined {
  const value = env[name]?.trim();
  if (value && /\p{Cc}/u.test(value)) throw new TypeError(`${name} contains a line break or another control character: remove it`);
  if (value && /^(["']).*\1$/.test(value)) throw new TypeError(`${name} has quotation marks around its value: remove them`);
  return value || undefined;
}

export const placeNames = `${storeVariable} or ${dataVariable} in the environment, or --store or --data`;

/** The verifier's secret, or the current and the previous one while it is rotated. `undefined`: it is not set. */
export function secretIn(env: Environment) {
  const { PHONEPROOF_SECRET: secret, PHONEPROOF_SECRET_PREVIOUS: previous } = env;
  if (!secret) return undefined;
  return previous ? ([secret, previous] as const) : secret;
}

/** The customer that calls, and the key of the codes' digests. */
export interface Identity {
  readonly customer_uuid: string;
  readonly api_key: string;
  readonly secret: string;
}

const options = {
  ...valued("port", "host", "store", "data"),
  ...flags("json"),
  ...valued("lifetime", "cooldown", "sender", "latency", "fail"),
};

const identity = {
  PHONEPROOF_DEV_CUSTOMER_UUID: { form: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, words: "a UUID" },
  PHONEPROOF_DEV_API_KEY: { form: /^[\w.-]{32,128}$/, words: '32 to 128 letters, digits, "_", "-" or "."' },
  PHONEPROOF_DEV_SECRET: { form: /^.{32,}$/s, words: "at least 32 characters" },
} as const;

export type DevSettings = ReturnType<typeof readDevSettings>;

/**
 * Reads the arguments after `dev`, and the environment. Throws a `TypeError` that names the invalid option or variable.
 */
export function readDevSettings(args: readonly string[], env: Environment) {
  const { values } = parse("dev", args, options, 0);
  if (values.fail !== undefined && values.sender !== undefined)
    throw new TypeError("--fail has no effect with --sender: the carrier decides what happens to a message");
  if (values.fail === "timeout" && values.latency !== undefined) throw new TypeError("--latency has no effect with --fail timeout: no send gets a response");
  const given = (name: keyof typeof identity) => {
    const value = env[name] || undefined;
    if (value !== undefined && !identity[name].form.test(value)) throw new TypeError(`${name} must be ${identity[name].words}`);
    return value;
  };
  const place = readPlace(values, env);
  const customer_uuid = given("PHONEPROOF_DEV_CUSTOMER_UUID")?.toLowerCase();
  const api_key = given("PHONEPROOF_DEV_API_KEY");
  const secret = given("PHONEPROOF_DEV_SECRET");
  return {
    /** Address to listen on. */
    host: hostOf(values.host ?? "127.0.0.1"),
    /** The requested port. `undefined`: the first free one from 3000 on. */
    port: values.port === undefined ? undefined : portOf("--port", values.port),
    place,
    /** Whether `NODE_ENV` is `production`, where the demo does not run. */
    production: env["NODE_ENV"] === "production",
    /** Whether to print one JSON object per line to stdout, and everything else to stderr. */
    json: values.json ?? false,
    /** Seconds from creation to `expires_at`. */
    lifetime: values.lifetime === undefined ? defaultPolicy.lifetime : integer("--lifetime", values.lifetime, 1, 86_400),
    /** Seconds of cool-down after each send; one number for each retry. */
    cooldown: values.cooldown === undefined ? defaultPolicy.retryCooldowns : cooldowns(values.cooldown),
    /** `undefined`: nothing leaves this machine. */
    carrier: values.sender === undefined ? undefined : readCarrier(values.sender, env),
    /** Seconds until each send returns. */
    latency: values.latency === undefined ? 0 : integer("--latency", values.latency, 0, 60),
    /** Never together with `carrier`. */
    fail: values.fail === undefined ? undefined : readFailure(values.fail),
    /** The customer that calls and the key of the codes' digests, as far as the environment sets them. */
    given: { ...(customer_uuid && { customer_uuid }), ...(api_key && { api_key }), ...(secret && { secret }) },
    /** The variables that were not set: their values are created by this process or read from the file. */
    unset: Object.keys(identity).filter((name) => !env[name]),
  };
}

/** Default path of the data file. */
export const defaultData = "./phoneproof.db";

/** Reads the value of `--data`. */
function readData(value: string | undefined): DataSettings {
  if (value === "") throw new TypeError("--data takes the path of a file, or memory");
  return { file: value === "memory" ? undefined : (value ?? defaultData), isAsked: value !== undefined };
}

/** Reads a store's URL. Errors never contain it, as it may contain a password. */
function readStore(url: string, env: Environment, name = "--store"): StoreSettings {
  if (/^rediss?:\/\/./i.test(url) && URL.canParse(url)) return { driver: "redis", url };
  if (/^postgres(ql)?:\/\/./i.test(url) && URL.canParse(url)) return { driver: "pg", url };
  if (/^mongodb(\+srv)?:\/\/./i.test(url)) return { driver: "mongodb", url };
  // The token is sent with every request, so plain HTTP is allowed only on this machine. Upstash has no user name and
  // password.
  if (URL.canParse(url) && /^(https:\/\/[^@]+|http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?\/?)$/i.test(url)) {
    const token = variable("UPSTASH_REDIS_REST_TOKEN", env);
    if (!token) throw new TypeError(`${name} https://… needs the environment variable UPSTASH_REDIS_REST_TOKEN: the REST token of your Upstash database`);
    return { driver: "@upstash/redis", url, token };
  }
  throw new TypeError(`${name} takes a URL: redis://…, rediss://…, postgres://…, mongodb://…, mongodb+srv://… or, for Upstash, https://…`);
}

function readFailure(text: string): Failure {
  const failure = failures.find((one) => one === text);
  if (failure === undefined) throw new TypeError(`--fail takes one of ${failures.join(", ")}, not "${text}"`);
  return failure;
}

function cooldowns(text: string): number[] {
  const list = text.split(",").map((part) => integer("--cooldown", part, 0, 86_400));
  if (list.length > 20) throw new TypeError("--cooldown takes at most 20 numbers");
  return list;
}
