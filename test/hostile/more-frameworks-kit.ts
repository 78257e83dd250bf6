import { execFile } from "node:child_process";
import { join } from "node:path";
import type { Mountable } from "phoneproof/fetch";
import { fetchHandler } from "phoneproof/fetch";

const root = join(import.meta.dirname, "../..");

type FetchOptions = NonNullable<Parameters<typeof fetchHandler>[1]>;

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
