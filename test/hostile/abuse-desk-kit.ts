import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** French mobile numbers, each in another range of 10,000. */
export const numberOf = (index: number): string => `+336${10_000_000 + index * 12_347}`;

/** A module with a verifier on a memory store that has already had one request, for the commands of operators. */
export function moduleWith(options: string, phoneNumber: string): { readonly file: string; remove(): void } {
  const folder = mkdtempSync(join(root, "test/hostile/.abuse-desk-"));
  const file = join(folder, "verifier.mjs");
  writeFileSync(
    file,
    `import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
export const verifier = createVerifier({
  store: memoryStore(),
  sender: { send: async () => ({ outcome: "accepted" }) },
  secret: "nGq0ZB2o5cVt7xUe1LrYw8KdFh3MsJpA",
  countries: ["FR"],
  callbacks: { worker: false },
  ${options}
});
await verifier.createAuthentication({ phone_number: ${JSON.stringify(phoneNumber)} });
`,
  );
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** What the command prints. */
export function phoneproof(...args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join(root, "dist/dev.js"), ...args], { cwd: tmpdir(), env: { PATH: process.env["PATH"] ?? "" } }, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
}
