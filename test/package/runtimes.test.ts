import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";
import { verifyWebhook } from "../../adapters/callback/webhooks.js";
import { receiver } from "../support/receiver.js";
import { root } from "./built.js";

/** Exact versions, so that a new release of a runtime does not decide about ours. */
const packages = { Bun: "bun@1.4.5", Deno: "deno@2.9.6", Workers: "miniflare@4.20260730.0" } as const;
type Runtime = keyof typeof packages;

/** What `about` of runtimes/service.js answers. */
interface About {
  readonly customer_uuid: string;
  readonly api_key: string;
  readonly messages: readonly { readonly to: string; readonly code: string }[];
  readonly secrets: readonly string[];
  readonly fresh: { readonly key: string; readonly digest: string };
}

/** runtimes/service.js on some runtime, with a receiver of its callbacks. */
interface Service {
  fetch(path: string, init?: RequestInit): Promise<Response>;
  readonly callback_url: string;
  /** The callbacks that arrived. */
  readonly received: readonly { readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>; readonly body: string }[];
  stop(): Promise<void>;
}

/** What a command prints with an npm package on its path; `undefined` where the registry cannot be reached and nothing is cached. */
async function withPackage(name: string, command: readonly string[]): Promise<string | undefined> {
  // Without a network, npm would spend more than a minute on its retries.
  const env = process.env.CI ? process.env : { ...process.env, npm_config_fetch_retries: "0" };
  try {
    const { stdout } = await promisify(execFile)("npx", ["--yes", `--package=${name}`, "--", ...command], { env, timeout: 100_000 });
    return stdout.trim();
  } catch (error) {
    if (process.env.CI) throw error;
    return undefined;
  }
}

/** How npm tells the path of that runtime's program, of miniflare's folder for Workers. */
const locate: Readonly<Record<Runtime, readonly string[]>> = {
  Bun: ["bun", "-p", "process.execPath"],
  Deno: ["deno", "eval", "console.log(Deno.execPath())"],
  Workers: ["node", "-p", `process.env.PATH.split(path.delimiter).map((bin) => path.join(bin, "../miniflare")).find(fs.existsSync)`],
};

const paths = new Map<Runtime, Promise<string | undefined>>();

/** That path, asked for once. */
function pathOf(runtime: Runtime): Promise<string | undefined> {
  const path = paths.get(runtime) ?? withPackage(packages[runtime], locate[runtime]);
  paths.set(runtime, path);
  return path;
}

/** Arguments that run a file. All that the package needs of Deno's permissions: the network; and for https callbacks the certificates, which are found through `sys` and `env`. */
const runFile = { Bun: ["--no-install"], Deno: ["run", "--no-prompt", "--no-lock", "--allow-net=127.0.0.1", "--allow-sys", "--allow-env"] } as const;

function missing(runtime: Runtime): string {
  return `the package on ${runtime} was not tried: it comes as the npm package ${packages[runtime]}; connect to the npm registry and run again`;
}

/** A program that prints its origin, and a receiver on loopback that it may call. */
async function startProgram(program: string, args: readonly string[]): Promise<Service> {
  const hook = await receiver();
  const child = spawn(program, [...args, hook.origin], { cwd: root, stdio: ["ignore", "pipe", "pipe"], timeout: 300_000 });
  const ended = once(child, "exit");
  const complaint = text(child.stderr);
  const origin = await Promise.race([
    once(createInterface(child.stdout), "line").then(([line]) => line as string),
    ended.then(async () => Promise.reject(new Error(await complaint))),
  ]);
  return {
    fetch: (path, init) => fetch(origin + path, init),
    callback_url: `${hook.origin}/statuses`,
    received: hook.received,
    async stop() {
      child.kill();
      await ended;
      await hook.close();
    },
  };
}

/** The part of miniflare that is used here. */
interface Miniflare {
  readonly ready: Promise<URL>;
  dispatchFetch(url: string, init?: RequestInit): Promise<Response>;
  getWorker(): Promise<{ scheduled(event: { cron: string }): Promise<{ readonly outcome: string }> }>;
  dispose(): Promise<void>;
}

/** A Worker on workerd, bundled as wrangler does, whose every call outwards is answered here. */
async function startWorker(folder: string, file: string): Promise<Service & { scheduled(): Promise<string> }> {
  const bundle = await build({
    stdin: { contents: `export { worker as default } from "./test/package/runtimes/${file}";`, resolveDir: root },
    bundle: true,
    format: "esm",
    platform: "browser",
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*", "cloudflare:*"],
    logLevel: "error",
    write: false,
  });
  const miniflare = (await import(pathToFileURL(join(folder, "dist/src/index.js")).href)) as {
    readonly Miniflare: new (options: object) => Miniflare;
    readonly Response: typeof Response;
  };
  const received: { headers: Record<string, string>; body: string }[] = [];
  const workerd = new miniflare.Miniflare({
    modules: true,
    script: bundle.outputFiles[0]?.text,
    compatibilityDate: "2026-07-01",
    compatibilityFlags: ["nodejs_compat"],
    async outboundService(request: Request) {
      received.push({ headers: Object.fromEntries(request.headers), body: await request.text() });
      return new miniflare.Response();
    },
  });
  await workerd.ready;
  return {
    fetch: (path, init) => workerd.dispatchFetch(`http://127.0.0.1${path}`, init),
    callback_url: "https://hooks.example.com/statuses",
    received,
    stop: () => workerd.dispose(),
    scheduled: async () => (await (await workerd.getWorker()).scheduled({ cron: "* * * * *" })).outcome,
  };
}

const start: Readonly<Record<Runtime, (path: string) => Promise<Service>>> = {
  Bun: (path) => startProgram(path, [...runFile.Bun, "test/package/runtimes/bun.js"]),
  Deno: (path) => startProgram(path, [...runFile.Deno, "test/package/runtimes/deno.js"]),
  Workers: (path) => startWorker(path, "worker.js"),
};

async function aboutOf(service: Service): Promise<About> {
  return (await (await service.fetch("/about")).json()) as About;
}

/** Posts to a route with the key and the customer, and answers the fields; anything but a 200 fails. */
async function post(service: Service, path: string, fields: object): Promise<Readonly<Record<string, string>>> {
  const { customer_uuid, api_key } = await aboutOf(service);
  const response = await service.fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": api_key },
    body: JSON.stringify({ customer_uuid, ...fields }),
  });
  const answer = (await response.json()) as Record<string, string>;
  expect({ status: response.status, answer }).toMatchObject({ status: 200 });
  return answer;
}

/** Creates an authentication with a callback, and reads what the receiver gets, with its signature. */
async function expectCallback(service: Service, phone_number: string, deliver: () => Promise<unknown> = async () => undefined): Promise<void> {
  const { authentication_uuid } = await post(service, "/v1/authentication", { phone_number, callback_url: service.callback_url });
  await deliver();
  await expect.poll(() => service.received.length, { timeout: 5000 }).toBe(1);
  const [webhook] = service.received as [Service["received"][number]];
  const event = verifyWebhook({ secret: (await aboutOf(service)).secrets, ...webhook });
  expect(event).toMatchObject({ type: "delivery_status", data: { authentication_uuid, attempt: 1, status: "submitted" } });
}

/** JSON of so many bytes. */
function jsonOf(bytes: number): string {
  const frame = JSON.stringify({ padding: "" });
  return JSON.stringify({ padding: "x".repeat(bytes - frame.length) });
}

const limit = 16 * 1024;
const refusals = [
  { what: "a request without a key", key: false, body: "{}", status: 403, code: "forbidden" },
  { what: "a body of 16 KiB that lacks every field", key: true, body: jsonOf(limit), status: 400, code: "bad_request" },
  { what: "a body above 16 KiB", key: true, body: jsonOf(limit + 1), status: 413, code: "payload_too_large" },
  { what: "a streamed body above 16 KiB", key: true, body: jsonOf(limit + 1), streamed: true, status: 413, code: "payload_too_large" },
  { what: "malformed JSON", key: true, body: `{"phone_number":`, status: 400, code: "bad_request" },
] as const;

describe.each(Object.keys(packages) as Runtime[])("the built package on %s", (runtime) => {
  let service: Service | undefined;
  beforeAll(async () => {
    const path = await pathOf(runtime);
    if (path === undefined) console.warn(`SKIPPED: ${missing(runtime)}`);
    else service = await start[runtime](path);
  });
  afterAll(() => service?.stop());
  const running = ({ skip }: TestContext): Service => service ?? skip(missing(runtime));

  test("verifies a number and looks it up", async (context) => {
    const service = running(context);
    const phone_number = "+33612345678";
    const created = await post(service, "/v1/authentication", { phone_number });
    const { authentication_uuid } = created;
    const { messages, customer_uuid, api_key } = await aboutOf(service);
    const check_code = messages.find(({ to }) => to === phone_number)?.code ?? "";
    expect(check_code).toMatch(/^\d{6}$/);
    const wrong = check_code === "000000" ? "000001" : "000000";
    const answers = [
      created,
      await post(service, "/v1/check", { authentication_uuid, check_code: wrong }),
      await post(service, "/v1/retry", { authentication_uuid }),
      await post(service, "/v1/check", { authentication_uuid, check_code }),
      await post(service, "/v1/check", { authentication_uuid, check_code }),
    ];
    expect(answers.map(({ status }) => status)).toEqual(["pending", "invalid", "denied", "valid", "already_validated"]);
    const lookup = await service.fetch(`/v1/lookup/${phone_number}`, { headers: { "x-api-key": api_key, "customer-uuid": customer_uuid } });
    expect(lookup.status).toBe(200);
    expect(await lookup.json()).toEqual({ phone_number, country_code: "FR", line_type: "Mobile" });
  });

  test.for(refusals)("answers $what with $status $code", async ({ key, body, status, code, ...rest }, context) => {
    const service = running(context);
    const { api_key } = await aboutOf(service);
    const response = await service.fetch("/v1/check", {
      method: "POST",
      headers: { "content-type": "application/json", ...(key && { "x-api-key": api_key }) },
      ...("streamed" in rest ? { body: new Blob([body]).stream(), duplex: "half" } : { body }),
    });
    expect({ status: response.status, fault: await response.json() }).toEqual({
      status,
      fault: { code, message: expect.any(String), doc_url: expect.any(String) },
    });
  });

  test("makes API keys", async (context) => {
    const { fresh } = await aboutOf(running(context));
    const again = await aboutOf(running(context));
    expect(fresh.key).toMatch(/^pp_[0-9A-Za-z]{49}$/);
    expect(fresh.digest).toBe(`sha256:${createHash("sha256").update(fresh.key).digest("hex")}`);
    expect(again.fresh.key).not.toBe(fresh.key);
  });

  test("calls the service by its client", async (context) => {
    const answers = await (await running(context).fetch("/client")).json();
    expect(answers).toEqual(["pending", "denied", "valid", "Mobile", "invalid_auth_uuid", "timeout"]);
  });

  test("delivers a signed callback", async (context) => expectCallback(running(context), "+33612345679"));
});

test("a verifier in a Worker's global scope delivers its callbacks from a scheduled event", async ({ skip, onTestFinished }) => {
  const folder = await pathOf("Workers");
  if (folder === undefined) return skip(missing("Workers"));
  const service = await startWorker(folder, "worker-scheduled.js");
  onTestFinished(() => service.stop());
  await expectCallback(service, "+33612345678", async () => expect(await service.scheduled()).toBe("ok"));
});

/** Both have node:https made anew, and a `lookup` that it passed over would leave callbacks unguarded. */
test.for(["Bun", "Deno"] as const)("callbacks on %s go to no name that resolves to an inner address", async (runtime, { skip, onTestFinished }) => {
  const program = await pathOf(runtime);
  if (program === undefined) return skip(missing(runtime));
  const cache = join(root, "node_modules/.cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "phoneproof-runtimes-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const outfile = join(folder, "guard.mjs");
  // Bundled from the source: the package exports neither the sender nor its resolver.
  const contents = `
    import { guardedSender } from "./src/callbacks/guarded-sender.js";
    const sender = guardedSender({ resolve: async () => [{ address: "127.0.0.1", family: 4 }] });
    const request = { url: "https://hooks.example.com/", headers: {}, body: "{}", timeout: 5000, allowOrigins: [] };
    console.log((await sender.post(request)).failed);`;
  await build({ stdin: { contents, resolveDir: root }, bundle: true, format: "esm", platform: "node", logLevel: "error", outfile });
  const { stdout } = await promisify(execFile)(program, [...runFile[runtime], outfile], { cwd: root });
  expect(stdout).toBe("the host of callback_url resolves to 127.0.0.1, which is not on the public internet\n");
});
