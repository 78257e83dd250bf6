import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { build } from "esbuild";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { launchChromium } from "../support/chromium.js";

/** Records what happens in a page: `take()` returns it and starts again. A submit is recorded with its fields, and prevented. */
const watch = `
  window.seen = [];
  window.take = () => window.seen.splice(0).join(" ");
  window.$ = (id) => document.getElementById(id);
  window.inner = (id) => $(id).shadowRoot.querySelector("input");
  window.shown = (id) => [...$(id).shadowRoot.querySelectorAll("#message")].filter((p) => !p.hidden).map((p) => p.textContent.trim()).join();
  for (const type of ["input", "change", "otp-complete", "otp-resend", "reset"])
    document.addEventListener(type, (event) => seen.push(type + (event.detail?.code ? ":" + event.detail.code : "")));
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    seen.push("submit:" + new URLSearchParams(new FormData(event.target, event.submitter)) + (event.submitter?.getAttribute("formaction") ?? ""));
  });
`;

export interface Field {
  /** Opens a page with this body, and closes it; fails on script errors, and on errors and warnings of the console. */
  on(body: string, run: (page: Page, ask: (script: string) => Promise<unknown>) => Promise<void>, options?: { late?: boolean; before?: string }): Promise<void>;
  close(): Promise<void>;
}

/** `<otp-input>` on pages with a strict policy, in one browser. */
export async function openField(): Promise<Field> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "../../clients/otp-input/index.ts")],
    bundle: true,
    format: "esm",
    target: "es2022",
    logLevel: "error",
    write: false,
  });
  const script = outputFiles[0]?.text;
  let html = "";
  const server = createServer((request, response) => {
    const isScript = request.url === "/script.js";
    const policy = "default-src 'none'; script-src 'self'; form-action 'self'; require-trusted-types-for 'script'";
    response.writeHead(200, { "content-type": `text/${isScript ? "javascript" : "html"}; charset=utf-8`, "content-security-policy": policy });
    response.end(isScript ? script : html);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser = await launchChromium();
  return {
    async on(body, run, { late = false, before = "" } = {}) {
      html = `<!doctype html><html lang="en"><title>t</title>${late ? "" : '<script type="module" src="/script.js"></script>'}<body>${body}</body></html>`;
      const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
      const page = await context.newPage();
      const wrong: string[] = [];
      page.on("pageerror", (error) => wrong.push(error.message));
      page.on("console", (message) => void (["error", "warning"].includes(message.type()) && wrong.push(message.text())));
      await page.addInitScript(watch + before);
      await page.goto(url);
      if (!late) await page.waitForFunction("customElements.get('otp-input') !== undefined");
      await run(page, (asked) => page.evaluate(asked));
      expect(wrong, "what the page reports").toEqual([]);
      await context.close();
    },
    async close() {
      await browser.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
