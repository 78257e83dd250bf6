import type { CustomersOfStore } from "../access/customers/customers.js";
import { createVerifier } from "../create-verifier.js";
import { defined } from "../domain/defined.js";
import { flags, integer, parse, valued } from "./arguments.js";
import type { Environment } from "./carriers.js";
import { quietOptions } from "./quiet.js";
import { placeNames, readPlace, secretIn } from "./settings.js";
import type { DevOutput } from "./start.js";
import { type OpenStore, openPlace } from "./store.js";

const options = {
  ...valued("store", "data", "prefix"),
  ...flags("json"),
  ...valued("name", "uuid", "policy"),
  ...flags("webhook-secrets"),
  ...valued("limit", "after", "overlap"),
};

interface Action {
  /** The arguments after the action's name; those in brackets are optional. */
  readonly words: readonly ("UUID" | "KEY_ID" | "[KEY_ID]")[];
  readonly options: readonly (keyof typeof options)[];
  /** `argument` is checked by the verifier. */
  readonly run: (customers: CustomersOfStore, argument: never) => Promise<object | readonly object[]>;
}

const actions: Readonly<Record<string, Action>> = {
  "customers create": { words: [], options: ["name", "uuid", "policy", "webhook-secrets"], run: ({ create }, argument) => create(argument) },
  "customers list": { words: [], options: ["limit", "after"], run: ({ list }, argument) => list(argument) },
  "customers get": { words: ["UUID"], options: [], run: ({ get }, argument) => get(argument) },
  "customers update": { words: ["UUID"], options: ["name", "policy", "webhook-secrets"], run: ({ update }, argument) => update(argument) },
  "customers suspend": { words: ["UUID"], options: [], run: ({ suspend }, argument) => suspend(argument) },
  "customers resume": { words: ["UUID"], options: [], run: ({ resume }, argument) => resume(argument) },
  "keys issue": { words: ["UUID"], options: ["name"], run: ({ keys }, argument) => keys.issue(argument) },
  "keys rotate": { words: ["UUID", "[KEY_ID]"], options: ["name", "overlap"], run: ({ keys }, argument) => keys.rotate(argument) },
  "keys revoke": { words: ["UUID", "KEY_ID"], options: [], run: ({ keys }, argument) => keys.revoke(argument) },
  "keys list": { words: ["UUID"], options: [], run: ({ keys }, argument) => keys.list(argument) },
};

export type CustomersSettings = ReturnType<typeof readCustomersSettings>;

/**
 * Reads the arguments after `customers` or `keys`, and the environment. Throws a `TypeError` that names the invalid
 * one.
 */
export function readCustomersSettings(command: "customers" | "keys", args: readonly string[], env: Environment) {
  const { values, positionals } = parse(command, args, options, Number.POSITIVE_INFINITY);
  const [name, ...words] = positionals;
  const action = Object.hasOwn(actions, `${command} ${name}`) ? actions[`${command} ${name}`] : undefined;
  if (action === undefined) {
    const names = Object.keys(actions).flatMap((key) => (key.startsWith(`${command} `) ? key.slice(command.length + 1) : []));
    const list = `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
    throw new TypeError(`${command} needs an action: ${list}${name === undefined ? "" : `, not "${name}"`}`);
  }
  const required = action.words.filter((word) => word !== "[KEY_ID]");
  if (words.length < required.length)
    throw new TypeError(`${command} ${name} needs the customer's UUID${required.includes("KEY_ID") ? " and the key's KEY_ID" : ""}`);
  if (words.length > action.words.length) throw new TypeError(`unexpected argument "${words[action.words.length]}"`);
  const surplus = Object.keys(values).find((option) => !["store", "data", "prefix", "json", ...action.options].includes(option));
  if (surplus !== undefined) throw new TypeError(`--${surplus} has no effect with ${command} ${name}`);
  const place = readPlace(values, env);
  if ("file" in place && !place.isAsked)
    throw new TypeError(`${command} needs ${placeNames}: the URL of the store that your verifier uses, or the file of phoneproof serve`);
  const secret = secretIn(env);
  if (secret === undefined) throw new TypeError(`${command} needs the environment variable PHONEPROOF_SECRET: the secret of your verifier`);
  const [uuid = values.uuid, key_id] = words;
  const argument = defined({
    customer_uuid: uuid,
    key_id,
    // "" removes the name.
    name: values.name === "" ? null : values.name,
    policy: values.policy === undefined ? undefined : readPolicy(values.policy),
    webhookSecrets: values["webhook-secrets"] ? (env["PHONEPROOF_WEBHOOK_SECRETS"]?.split(",") ?? null) : undefined,
    limit: values.limit === undefined ? undefined : integer("--limit", values.limit, 1, 1_000),
    after: values.after,
    overlap: values.overlap === undefined ? undefined : integer("--overlap", values.overlap, 0, 31_536_000),
  });
  if ("file" in place && values.prefix !== undefined) throw new TypeError("--prefix has no effect with a file");
  if ("file" in place && place.file === undefined) throw new TypeError(`${command} needs a file: --data memory is empty`);
  return {
    /** Whether the store must be there already. Only the first customer may create it. */
    mustExist: `${command} ${name}` !== "customers create",
    place: { ...place, ...(values.prefix !== undefined && { prefix: values.prefix }) },
    secret,
    /** Whether to print one JSON object per line. */
    json: values.json ?? false,
    run: (customers: CustomersOfStore) => action.run(customers, argument as never),
  };
}

/**
 * Runs one call of `verifier.customers` and prints its result.
 *
 * @returns The exit code: 0, or 1 after an error. The error message contains no key and no secret.
 */
export async function runCustomers({ mustExist, place, secret, json, run }: CustomersSettings, { out, err }: DevOutput): Promise<number> {
  let opened: OpenStore | undefined;
  try {
    opened = await openPlace(place, () => undefined, { mustExist });
    const { customers } = createVerifier({
      // Policies with a spend ceiling are checked against the real sender when your verifier reads them.
      ...quietOptions(opened.store, (line) => err(`phoneproof: ${line}\n`)),
      secret,
      customers: "store",
    });
    const result = await run(customers);
    for (const one of [result].flat()) out(json ? `${JSON.stringify(one)}\n` : inLines(one));
    if ("key" in result) err("This key is shown only once; the store keeps only its SHA-256.\n");
    return 0;
  } catch (error) {
    err(`${(error as Error).message.replace(/^(phoneproof: )?/, "phoneproof: ")}\n`);
    return 1;
  } finally {
    await opened?.close();
  }
}

/** One field per line, then an empty line. */
function inLines(one: object): string {
  const lines = Object.entries(one).map(([field, value]) => `${field.padEnd(16)}${typeof value === "object" ? JSON.stringify(value) : value}\n`);
  return `${lines.join("")}\n`;
}

function readPolicy(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new TypeError(`--policy takes JSON, for example '{"checks":3}', or null for none`);
  }
}
