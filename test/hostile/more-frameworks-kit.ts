import { execFile } from "node:child_process";
import { join } from "node:path";
import { Hono } from "hono";
import type { Mountable } from "phoneproof/fetch";
import { fetchHandler } from "phoneproof/fetch";
import { createTestVerifier } from "phoneproof/testing";

const root = join(import.meta.dirname, "../..");

type FetchOptions = NonNullable<Parameters<typeof fetchHandler>[1]>;

/** A service whose handler Hono's `app.mount` calls without the mount path. */
export function mounted(path: string, options: FetchOptions) {
  const test = createTestVerifier();
  const app = new Hono();
  app.mount(path, fetchHandler(test.verifier, options));
  return {
    close: test.close,
    /** Posts a create to the path, and returns status and text of the response. */
    async create(to: string) {
      const headers = { "x-api-key": test.apiKey, "content-type": "application/json" };
      const body = JSON.stringify({ customer_uuid: test.customer_uuid, phone_number: "+33612345678" });
      const answer = await app.request(to, { method: "POST", headers, body });
      return { status: answer.status, text: await answer.text() };
    },
  };
}

/** What a handler replies to a POST to the path, as text. */
export async function reply(handler: Mountable, path: string, options: FetchOptions = {}): Promise<string> {
  const answer = await fetchHandler(handler, options)(new Request(`http://127.0.0.1${path}`, { method: "POST", body: "{}" }));
  return await answer.text();
}

/** Runs an ES module in its own process with the built package, and returns its exit code and what it printed. */
export function run(program: string): Promise<{ readonly code: number; readonly printed: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, ["--input-type=module", "--eval", program], { cwd: root }, (error, stdout, stderr) => {
      const failed = typeof error?.code === "number" ? error.code : 1;
      resolve({ code: error ? failed : 0, printed: `${stdout}${stderr}` });
    });
  });
}
