import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** A file of a page of the documents: the code block that begins with a comment of its name. */
export async function documented(page: string, name: string): Promise<string> {
  const text = await readFile(new URL(`../../docs/${page}`, import.meta.url), "utf8");
  const block = new RegExp(`\`\`\`\\w+\\n// ${name.replaceAll(/[.[\]/]/g, "\\$&")}\\n([\\s\\S]*?)\`\`\``).exec(text)?.[1];
  if (block === undefined) throw new Error(`docs/${page} has no file ${name}`);
  return block;
}

/** One script for a page, with the published package. `modules`: the text of what it imports by a relative path. */
export async function bundle(script: string, modules: Readonly<Record<string, string>> = {}): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: script, resolveDir: root, loader: "tsx" },
    bundle: true,
    write: false,
    format: "esm",
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "error",
    plugins: [
      {
        name: "modules",
        setup({ onResolve, onLoad }) {
          onResolve({ filter: /^\.\// }, ({ path }) => (path in modules ? { path, namespace: "given" } : undefined));
          onLoad({ filter: /./, namespace: "given" }, ({ path }) => ({ contents: modules[path] as string, loader: "tsx", resolveDir: root }));
        },
      },
    ],
  });
  return outputFiles[0]?.text ?? "";
}

/** Serves one page with one script on a free port. */
export async function servePage(body: string, script: string) {
  const server = createServer(({ url }, response) => {
    const isScript = url === "/page.js";
    response.writeHead(200, { "content-type": isScript ? "text/javascript" : "text/html; charset=utf-8" });
    response.end(isScript ? script : `<!doctype html><html lang="en"><title>Page</title><body>${body}<script type="module" src="/page.js"></script>`);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => {
      server.closeAllConnections();
      return new Promise<void>((closed) => void server.close(() => closed()));
    },
  };
}
