import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const root = join(import.meta.dirname, "../..");

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly example?: unknown;
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content & { readonly description: string }>>;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const documents = ["openapi.json", "openapi-prelude-v2.json", "openapi-twilio-verify.json"] as const;

export const read = (name: (typeof documents)[number]): OpenApi => JSON.parse(readFileSync(join(root, name), "utf8")) as OpenApi;

/** A schema, or the one that it refers to. */
function resolved(document: OpenApi, schema: Schema): Schema {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : (document.components.schemas[name] as Schema);
}

/** Every schema below one, itself included, with its path. */
function* schemasIn(schema: Schema, path: string): Generator<readonly [string, Schema]> {
  yield [path, schema];
  for (const [name, property] of Object.entries(schema.properties ?? {})) yield* schemasIn(property, `${path}.${name}`);
  if (schema.items) yield* schemasIn(schema.items, `${path}[]`);
}

export interface Responded {
  /** Document, operation and status, for messages. */
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
}

/** Every response of every document. */
export function* responses(): Generator<Responded> {
  for (const file of documents) {
    const document = read(file);
    for (const [path, item] of Object.entries(document.paths))
      for (const [method, operation] of Object.entries(item))
        for (const [status, { description, content }] of Object.entries(operation.responses ?? {})) {
          const schema = content?.["application/json"]?.schema;
          if (schema) yield { name: `${file}: ${method} ${path} ${status}`, description, schema: resolved(document, schema) };
        }
  }
}

/** What mock servers return for a string without an example, by its format, as `openapi-sampler` and Prism do. */
const mocked: Readonly<Record<string, string>> = { "date-time": "2019-08-24T14:15:22Z", uuid: "b89b5f87-0039-4033-a737-af2d497d48be" };

/** The strings of a response for which a mock server returns a value that the response's own schema rejects. */
export function* wronglyMocked({ name, schema }: Responded): Generator<string> {
  for (const [path, { format = "", pattern, example, examples = [example ?? mocked[format] ?? "string"] }] of schemasIn(schema, name))
    if (pattern !== undefined && !new RegExp(pattern).test(String(examples[0]))) yield path;
}

export interface Served {
  readonly url: string;
  close(): Promise<void>;
}

export interface Told {
  readonly status: number;
  readonly message: string;
}

/** The status and the message of the response to a request. */
export async function told(url: string, init: RequestInit): Promise<Told> {
  const response = await fetch(url, init);
  const { message = "" } = (await response.json()) as { message?: string };
  return { status: response.status, message };
}

/** The `basePath` that a message tells its reader to set. */
export const advisedBasePath = (message: string): string | undefined => /basePath: "([^"]*)"/.exec(message)?.[1];

const built = (file: string): string => pathToFileURL(join(root, "dist", file)).href;

const verifierModule = `
import { createVerifier, generateApiKey } from "${built("index.js")}";
import { memoryStore } from "${built("memory.js")}";
import { consoleSender } from "${built("senders/console.js")}";
export const verifier = createVerifier({
  store: memoryStore(),
  sender: consoleSender(),
  secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6",
  countries: "all",
  customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: [generateApiKey().key] }],
});
`;

/** Starts `phoneproof serve` with a module in the folder, and waits until it listens. */
export async function servedByCommand(folder: string): Promise<Served> {
  const file = join(folder, "verifier.mjs");
  writeFileSync(file, verifierModule);
  const child = spawn(process.execPath, [join(root, "dist/dev.js"), "serve", file, "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /"url":"([^"]+)"/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stdout.resume();
    return {
      url,
      close: () => {
        child.kill("SIGTERM");
        return ended;
      },
    };
  }
  throw new Error("phoneproof serve ended before it listened");
}
