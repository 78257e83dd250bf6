import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A server that redirects every path to the one with a slash at its end, as Next.js does with `trailingSlash: true`. */
export async function serveSlashes() {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(308, { location: `${request.url}/` }).end();
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise<void>((closed) => void server.close(() => closed()));
    },
  };
}

/** A section of the page about frameworks. */
export async function sectionOf(framework: string): Promise<string> {
  const page = await readFile(new URL("../../docs/frameworks.md", import.meta.url), "utf8");
  const section = page.split(/^## /m).find((text) => text.startsWith(`${framework}\n`));
  if (section === undefined) throw new Error(`docs/frameworks.md has no section ${framework}`);
  return section;
}
