import { join } from "node:path";
import { build } from "esbuild";
import { describe, expect, it, onTestFinished } from "vitest";
import { type App, builtFiles, newApp, webpackBundle } from "./bundles-kit.js";

function app(packages?: readonly string[]): App {
  const made = newApp(packages);
  onTestFinished(() => made.remove());
  return made;
}

const secret = "q7Jx0dPz1mWc5nYt8vBk3rHs6uLe9aGf2oXi4";

/** A program that prints the result of one verification and the name of an error on one line. */
const verification = (imports: string, store: string) => `
import { createVerifier, VerifierError } from "phoneproof";
${imports}
import { inboxSender } from "phoneproof/senders/inbox";
async function main() {
  const sender = inboxSender();
  const verifier = createVerifier({ store: ${store}, sender, secret: "${secret}", countries: ["FR"] });
  const { authentication_uuid } = await verifier.createAuthentication({ phone_number: "+33612345678" });
  const { status } = await verifier.check({ authentication_uuid, check_code: sender.messages[0].code });
  const error = await verifier.createAuthentication({ phone_number: "+33142685300" }).catch((thrown) => thrown);
  console.log(status, error instanceof VerifierError, error.name, error.code);
  await verifier.close();
}
main();
`;

describe("a bundled server", () => {
  it.each(["esm", "cjs"] as const)("verifies a number as one minified file without node_modules, in %s (docs/runtimes.md#node)", async (format) => {
    const made = app();
    const entry = made.write("server.js", verification('import { memoryStore } from "phoneproof/memory";', "memoryStore()"));
    const { warnings, outputFiles } = await build({
      entryPoints: [entry],
      bundle: true,
      minify: true,
      platform: "node",
      format,
      write: false,
      logLevel: "silent",
    });
    made.uninstall();
    const file = made.write(format === "esm" ? "server.mjs" : "server.cjs", outputFiles[0]?.text ?? "");
    expect(warnings).toEqual([]);
    expect(await made.run(file)).toBe("valid true VerifierError invalid_line\n");
  });

  it("opens an SQLite file after webpack: node:sqlite, or libsql on older Node.js (docs/stores.md#sqlite)", async () => {
    const made = app(["libsql"]);
    const entry = made.write("server.js", verification('import { sqliteStore } from "phoneproof/sqlite";', 'sqliteStore({ file: "data.db" })'));
    const bundled = await webpackBundle(made.folder, entry, "bundle.mjs");
    expect(bundled.errors).toEqual([]);
    expect(await made.run(join(made.folder, "bundle.mjs")).catch(({ stdout, stderr }) => stdout + stderr)).toBe("valid true VerifierError invalid_line\n");
  });

  it("imports modules by literal names only, which webpack can follow (docs/stores.md#sqlite)", async () => {
    const made = app(["libsql"]);
    const entry = made.write("server.js", 'import { sqliteStore } from "phoneproof/sqlite"; console.log(sqliteStore);');
    expect((await webpackBundle(made.folder, entry, "bundle.mjs")).warnings).toEqual([]);
  });
});

describe("the built files", () => {
  it("contain no path of the machine that built them (docs/install.md#today-from-a-clone-or-a-packed-file)", () => {
    const absolute = /raw-text:\/|["'\s:](?:\/[\w.-]+)+\/(?:src|adapters|clients)\/[\w./-]+\.(?:ts|js|css|html)/;
    expect(
      builtFiles()
        .filter(({ text }) => absolute.test(text))
        .map(({ path }) => path),
    ).toEqual([]);
  });
});
