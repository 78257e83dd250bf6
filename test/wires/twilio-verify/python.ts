import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/** The first Python is often one without Debian's packages. */
const candidates = ["python3", "/usr/bin/python3"];

const script = fileURLToPath(new URL("client.py", import.meta.url));

function withTwilio(python: string): boolean {
  try {
    execFileSync(python, ["-c", "import twilio.rest"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/**
 * The Python that has the vendor's library. If none has it, the suite reports what it skips and how to get it;
 * with `CI=true` that is an error.
 */
export function pythonWithTwilio(suite: string): string | undefined {
  const found = candidates.find(withTwilio);
  if (found !== undefined) return found;
  const message = `Twilio's library for Python is missing: ${suite} cannot run. Get it with: apt-get install python3-twilio`;
  if (process.env["CI"] === "true") throw new Error(message);
  console.warn(`SKIPPED: ${message}`);
  return undefined;
}

export interface PythonResult {
  readonly returned?: unknown;
  readonly raised?: { readonly status: number; readonly code: number; readonly msg: string; readonly uri: string };
}

/** A process with the vendor's client, unmodified. It ends with the test. */
export function pythonClient(python: string, settings: { readonly url: string; readonly user: string; readonly password: string; readonly service: string }) {
  const child = spawn(python, [script, JSON.stringify(settings)], { env: { ...process.env, NO_PROXY: "127.0.0.1" }, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  onTestFinished(() => {
    child.stdin.end();
    return gone;
  });
  return {
    async call(name: string, fields: Readonly<Record<string, string>> = {}): Promise<PythonResult> {
      child.stdin.write(`${JSON.stringify([name, fields])}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error("the Python client ended");
      return JSON.parse(value) as PythonResult;
    },
  };
}
