import { execFile } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** Runs an ES module in its own process with the built package, and returns its exit code and what it printed. */
export function run(program: string): Promise<{ readonly code: number; readonly printed: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, ["--input-type=module", "--eval", program], { cwd: root }, (error, stdout, stderr) => {
      const failed = typeof error?.code === "number" ? error.code : 1;
      resolve({ code: error ? failed : 0, printed: `${stdout}${stderr}` });
    });
  });
}
