import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";
import { verifyWebhook } from "../../clients/webhooks.js";
import { receiver } from "../support/receiver.js";
import { root } from "./built.js";
import { missing, type Runtime, runFile, runtimeOf, runtimes } from "./programs.js";
import { startWorker, type Worker } from "./worker.js";

/** The response of `/about` of runtimes/service.js. */
interface About {
  readonly customer_uuid: string;
  readonly api_key: string;
  readonly messages: readonly { readonly to: string; readonly code: string }[];
  readonly secrets: readonly string[];
  readonly fresh: { readonly key: string; readonly digest: string };
}

/** runtimes/service.js on a runtime, with a receiver of its callbacks. */
interface Service {
  fetch(path: string, init?: RequestInit): Promise<Response>;
  readonly callback_url: string;
  /** The callbacks that arrived. */
  readonly received: readonly { readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>; readonly body: string }[];
  stop(): Promise<void>;
}

/** Starts a program that prints its origin, and a receiver on loopback that it may call. */
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

/** Starts a Worker whose outgoing calls are all handled here. */
async function startCallingWorker(folder: string, file: string): Promise<Service & Pick<Worker, "scheduled">> {
  const received: { headers: Record<string, string>; body: string }[] = [];
  const worker = await startWorker(folder, file, async (request) => {
    received.push({ headers: Object.fromEntries(request.headers), body: await request.text() });
  });
  return { ...worker, callback_url: "https://hooks.example.com/statuses", received };
}

const start: Readonly<Record<Runtime, (path: string) => Promise<Service>>> = {
  Bun: (path) => startProgram(path, [...runFile.Bun, "test/package/runtimes/bun.js"]),
  // "Permissions: `--allow-net`" (docs/runtimes.md).
  Deno: (path) => startProgram(path, ["run", "--no-prompt", "--no-lock", "--allow-net=127.0.0.1", "test/package/runtimes/deno.js"]),
  Workers: (path) => startCallingWorker(path, "worker.js"),
};

async function aboutOf(service: Service): Promise<About> {
  return (await (await service.fetch("/about")).json()) as About;
}

/** Posts to a route with the key and the customer, and returns the fields; fails unless the status is 200. */
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

/** Creates an authentication with a callback, and checks the signed callback that arrives. */
async function expectCallback(service: Service, phone_number: string, deliver: () => Promise<unknown> = async () => undefined): Promise<void> {
  const { authentication_uuid } = await post(service, "/v1/authentication", { phone_number, callback_url: service.callback_url });
  await deliver();
  await expect.poll(() => service.received.length).toBe(1);
  const [webhook] = service.received as [Service["received"][number]];
  const event = verifyWebhook({ secret: (await aboutOf(service)).secrets, ...webhook });
  expect(event).toMatchObject({ type: "delivery_status", data: { authentication_uuid, attempt: 1, status: "submitted" } });
}

/** JSON of exactly this many bytes. */
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

describe.each(Object.keys(runtimes) as Runtime[])("the built package on %s", (runtime) => {
  let service: Service | undefined;
  beforeAll(async () => {
    const path = await runtimeOf(runtime);
    if (path === undefined) console.warn(`SKIPPED: ${missing(runtimes[runtime])}`);
    else service = await start[runtime](path);
  });
  afterAll(() => service?.stop());
  const running = ({ skip }: TestContext): Service => service ?? skip(missing(runtimes[runtime]));

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

  test.for(refusals)("responds to $what with $status $code", async ({ key, body, status, code, ...rest }, context) => {
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

  test("generates API keys", async (context) => {
    const { fresh } = await aboutOf(running(context));
    const again = await aboutOf(running(context));
    expect(fresh.key).toMatch(/^pp_[0-9A-Za-z]{49}$/);
    expect(fresh.digest).toBe(`sha256:${createHash("sha256").update(fresh.key).digest("hex")}`);
    expect(again.fresh.key).not.toBe(fresh.key);
  });

  test("calls the service with the package's client", async (context) => {
    const answers = await (await running(context).fetch("/client")).json();
    expect(answers).toEqual(["pending", "denied", "valid", "Mobile", "invalid_auth_uuid", "timeout"]);
  });

  test("delivers a signed callback", async (context) => expectCallback(running(context), "+33612345679"));
});

test("a verifier in a Worker's global scope delivers its callbacks from a scheduled event", async ({ skip, onTestFinished }) => {
  const folder = await runtimeOf("Workers");
  if (folder === undefined) return skip(missing(runtimes.Workers));
  const service = await startCallingWorker(folder, "worker-scheduled.js");
  onTestFinished(() => service.stop());
  await expectCallback(service, "+33612345678", async () => expect(await service.scheduled()).toBe("ok"));
});

/** Both implement node:https themselves; if they ignored `lookup`, callbacks would be unguarded. */
test.for(["Bun", "Deno"] as const)("callbacks on %s are not sent to a name that resolves to a private address", async (runtime, { skip, onTestFinished }) => {
  const program = await runtimeOf(runtime);
  if (program === undefined) return skip(missing(runtimes[runtime]));
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
