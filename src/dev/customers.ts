import { parseArgs } from "node:util";
import { createVerifier } from "../create-verifier.js";
import type { PolicyOverride } from "../domain/policy.js";
import type { CustomerChange, CustomersOfStore } from "../engine/customers/customers.js";
import { integer } from "./arguments.js";
import type { Environment } from "./carriers.js";
import { type DataSettings, readData, readStore, type StoreSettings } from "./settings.js";
import type { DevOutput } from "./start.js";
import { type OpenStore, openData, openStore } from "./store.js";

/** What `phoneproof customers` and `phoneproof keys` run with. */
export interface CustomersSettings {
  readonly store: StoreSettings | DataSettings;
  /** The current one first. */
  readonly secret: string | readonly [current: string, previous: string];
  /** One JSON object a line on stdout. */
  readonly json: boolean;
  /** What is asked for. */
  readonly ask: (customers: CustomersOfStore) => Promise<object | readonly object[]>;
}

const options = {
  store: { type: "string" },
  data: { type: "string" },
  prefix: { type: "string" },
  json: { type: "boolean" },
  name: { type: "string" },
  uuid: { type: "string" },
  policy: { type: "string" },
  "webhook-secrets": { type: "boolean" },
  limit: { type: "string" },
  after: { type: "string" },
  overlap: { type: "string" },
} as const;

/** The options as they are handed on; what was not given is absent. */
interface Given {
  readonly own: CustomerChange;
  readonly name: { readonly name?: string };
  readonly uuid: { readonly customer_uuid?: string };
  readonly page: { readonly limit?: number; readonly after?: string };
  readonly overlap: { readonly overlap?: number };
}

interface Action {
  /** What stands behind the action's name; what ends in `?` may be left out. */
  readonly takes: readonly string[];
  readonly may: readonly (keyof typeof options)[];
  readonly ask: (customers: CustomersOfStore, words: readonly string[], given: Given) => ReturnType<CustomersSettings["ask"]>;
}

const named = ([customer_uuid = ""]: readonly string[]) => ({ customer_uuid });

/** Every action, by the command and its name. What is given is judged by the verifier. */
const actions: Readonly<Record<string, Action>> = {
  "customers create": {
    takes: [],
    may: ["name", "uuid", "policy", "webhook-secrets"],
    ask: (customers, _, { own, uuid }) => customers.create({ ...own, ...uuid }),
  },
  "customers list": { takes: [], may: ["limit", "after"], ask: (customers, _, { page }) => customers.list(page) },
  "customers get": { takes: ["UUID"], may: [], ask: (customers, words) => customers.get(named(words)) },
  "customers update": {
    takes: ["UUID"],
    may: ["name", "policy", "webhook-secrets"],
    ask: (customers, words, { own }) => customers.update({ ...named(words), ...own }),
  },
  "customers suspend": { takes: ["UUID"], may: [], ask: (customers, words) => customers.suspend(named(words)) },
  "customers resume": { takes: ["UUID"], may: [], ask: (customers, words) => customers.resume(named(words)) },
  "keys issue": { takes: ["UUID"], may: ["name"], ask: ({ keys }, words, { name }) => keys.issue({ ...named(words), ...name }) },
  "keys rotate": {
    takes: ["UUID", "KEY_ID?"],
    may: ["name", "overlap"],
    ask: ({ keys }, words, { name, overlap }) => keys.rotate({ ...named(words), ...(words[1] !== undefined && { key_id: words[1] }), ...name, ...overlap }),
  },
  "keys revoke": { takes: ["UUID", "KEY_ID"], may: [], ask: ({ keys }, words) => keys.revoke({ ...named(words), key_id: words[1] as string }) },
  "keys list": { takes: ["UUID"], may: [], ask: ({ keys }, words) => keys.list(named(words)) },
};

/** Reads the arguments after `customers` or `keys`, and the environment. Throws a `TypeError` that names the one at fault. */
export function readCustomersSettings(command: "customers" | "keys", args: readonly string[], env: Environment): CustomersSettings {
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  const [name, ...words] = positionals;
  const action = Object.hasOwn(actions, `${command} ${name}`) ? actions[`${command} ${name}`] : undefined;
  if (action === undefined) {
    const there = Object.keys(actions).flatMap((key) => (key.startsWith(`${command} `) ? key.slice(command.length + 1) : []));
    throw new TypeError(`${command} does one of ${there.join(", ")}, not ${name === undefined ? "nothing" : `"${name}"`}`);
  }
  const { takes, may } = action;
  const least = takes.filter((word) => !word.endsWith("?")).length;
  if (words.length < least || words.length > takes.length)
    throw new TypeError(`${command} ${name} takes ${takes.length === 0 ? "no further word" : takes.map((word) => word.replace(/(.*)\?/, "[$1]")).join(" ")}`);
  const meaningless = Object.keys(values).find((option) => !["store", "data", "prefix", "json", ...may].includes(option));
  if (meaningless !== undefined) throw new TypeError(`--${meaningless} has no meaning with ${command} ${name}`);
  if (values.store === undefined && values.data === undefined)
    throw new TypeError(`${command} needs --store, the URL of the store that your verifier uses, or --data, the file of phoneproof serve`);
  if (values.store !== undefined && values.data !== undefined) throw new TypeError("--data has no meaning with --store");
  if (values.prefix !== undefined && values.data !== undefined) throw new TypeError("--prefix has no meaning with --data");
  const secret = env["PHONEPROOF_SECRET"];
  if (!secret) throw new TypeError(`${command} needs the environment variable PHONEPROOF_SECRET: the secret of your verifier`);
  const previous = env["PHONEPROOF_SECRET_PREVIOUS"];
  const { name: text, policy, limit, after, overlap, uuid } = values;
  const given: Given = {
    own: {
      ...(text !== undefined && { name: text || null }),
      ...(policy !== undefined && { policy: json(policy) as PolicyOverride | null }),
      ...(values["webhook-secrets"] && { webhookSecrets: env["PHONEPROOF_WEBHOOK_SECRETS"]?.split(",") ?? null }),
    },
    name: text === undefined ? {} : { name: text },
    uuid: uuid === undefined ? {} : { customer_uuid: uuid },
    page: { ...(limit !== undefined && { limit: integer("--limit", limit, 1, 1_000) }), ...(after !== undefined && { after }) },
    overlap: overlap === undefined ? {} : { overlap: integer("--overlap", overlap, 0, 31_536_000) },
  };
  const file = readData(values.data);
  if (file === undefined) throw new TypeError(`${command} needs a file: --data memory has nothing in it`);
  return {
    store: values.store === undefined ? file : { ...readStore(values.store, env), ...(values.prefix !== undefined && { prefix: values.prefix }) },
    secret: previous ? [secret, previous] : secret,
    json: values.json ?? false,
    ask: (customers) => action.ask(customers, words, given),
  };
}

/**
 * Asks the verifier of a store for what the settings say, and prints the answer.
 *
 * @returns The exit code: 0; 1 when it could not be done. What is printed then holds no key and no secret.
 */
export async function runCustomers({ store, secret, json: asJson, ask }: CustomersSettings, { out, err }: DevOutput): Promise<number> {
  let opened: OpenStore;
  try {
    opened = await ("file" in store ? openData(store, () => undefined) : openStore(store));
  } catch (error) {
    err(`phoneproof: ${(error as Error).message}\n`);
    return 1;
  }
  try {
    const verifier = createVerifier({
      store: opened.store,
      // Nothing is sent. A policy with a spend ceiling is held against your own sender when your verifier reads it.
      sender: { send: async () => ({ outcome: "rejected", reason: "this command sends nothing" }), plan: () => undefined },
      secret,
      countries: "all",
      customers: "store",
      callbacks: { worker: false },
      logger: {
        info() {},
        warn: (_, message) => err(`phoneproof: ${message}\n`),
        error: ({ err: cause }, message) => err(`phoneproof: ${message}: ${(cause as Error)?.message}\n`),
      },
    });
    const answer = await ask(verifier.customers);
    for (const one of [answer].flat()) out(asJson ? `${JSON.stringify(one)}\n` : inLines(one));
    if ("key" in answer) err("This key is shown this once: the store keeps its SHA-256 alone.\n");
    return 0;
  } catch (error) {
    err(`${(error as Error).message.replace(/^(phoneproof: )?/, "phoneproof: ")}\n`);
    return 1;
  } finally {
    await opened.close();
  }
}

/** A field a line, and an empty line after them. */
function inLines(one: object): string {
  const lines = Object.entries(one).map(([field, value]) => `${field.padEnd(16)}${typeof value === "object" ? JSON.stringify(value) : value}\n`);
  return `${lines.join("")}\n`;
}

function json(policy: string): unknown {
  try {
    return JSON.parse(policy);
  } catch {
    throw new TypeError(`--policy takes JSON, for example '{"checks":3}', or null for none`);
  }
}
