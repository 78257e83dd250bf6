import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { build } from "esbuild";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";
import type { OtpInputElement } from "../../clients/otp-input/index.js";
import { launchChromium } from "../support/chromium.js";

/** The strictest policy that a page could set: no inline style, no inline script, no HTML from strings. */
const policy = "default-src 'none'; script-src 'self'; form-action 'self'; require-trusted-types-for 'script'";

/** Pages with a script, in a browser. */
export interface Pages {
  /**
   * Opens a page with this body; fails on any script error, warning or blocked resource. With options, its profile is
   * fresh. Others share a tab, since each profile starts a process.
   */
  on(body: string, run: (page: Page) => Promise<void>, options?: PageOptions): Promise<void>;
  close(): Promise<void>;
}

export interface PageOptions extends BrowserContextOptions {
  /** Attributes of `<html>`. Default: `lang="en"`. */
  readonly html?: string;
  /** Runs before any script of the page. */
  readonly before?: (page: Page) => Promise<unknown>;
  /** The place of the script; `after`: the test adds it. Default: `head`. */
  readonly script?: "head" | "after";
}

/** @param entry What is bundled for the pages, relative to the project. */
export async function openPages(entry: string): Promise<Pages> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "../..", entry)],
    bundle: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"development"' },
    logLevel: "error",
    write: false,
  });
  const script = outputFiles[0]?.text;
  let html = "";
  const server = createServer((request, response) => {
    const isScript = request.url?.startsWith("/script.js");
    response.writeHead(200, { "content-type": `text/${isScript ? "javascript" : "html"}; charset=utf-8`, "content-security-policy": policy });
    response.end(isScript ? script : html);
  });
  const url = await listening(server);
  const browser: Browser = await launchChromium();
  const openTab = async (options: BrowserContextOptions) => {
    const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"], reducedMotion: "reduce", ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (line) => ["error", "warning"].includes(line.type()) && !/data:,/.test(line.text()) && faults.push(line.text()));
    return { page, faults };
  };
  let shared: ReturnType<typeof openTab> | undefined;
  return {
    async on(body, run, { html: attributes = 'lang="en"', before, script: where = "head", ...options } = {}) {
      const scripted = where === "head" ? '<script type="module" src="/script.js"></script>' : "";
      html = `<!doctype html><html ${attributes}><head><title>Test</title><link rel="icon" href="data:,">${scripted}</head><body>${body}</body></html>`;
      const fresh = before !== undefined || Object.keys(options).length > 0;
      const { page, faults } = await (fresh ? openTab(options) : (shared ??= openTab({})));
      try {
        await before?.(page);
        await page.goto(url);
        if (where === "head" && options.javaScriptEnabled !== false) await page.waitForFunction(() => customElements.get("otp-input") !== undefined);
        await run(page);
        expect(faults).toEqual([]);
      } catch (error) {
        shared = undefined;
        throw error;
      } finally {
        if (fresh) await page.context().close();
      }
    },
    async close() {
      await browser.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Adds the script to a loaded page. */
export async function addScript(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const { trustedTypes } = globalThis as unknown as { trustedTypes: { createPolicy(name: string, rules: object): { createScriptURL(url: string): string } } };
    const script = document.createElement("script");
    script.type = "module";
    script.src = trustedTypes.createPolicy("late", { createScriptURL: (url: string) => url }).createScriptURL(`/script.js?${performance.now()}`);
    const loaded = new Promise((resolve) => script.addEventListener("load", resolve));
    document.head.append(script);
    await loaded;
  });
}

/** The only field of the page. */
export const field = (page: Page) => page.getByRole("textbox");

/** Runs a function on the only element of the page. */
export function element<T, A = undefined>(page: Page, run: (otp: OtpInputElement, given: A) => T, given?: A): Promise<T> {
  return page.locator("otp-input").evaluate(run as (otp: Element, given: unknown) => T, given) as Promise<T>;
}

/** Records the events that the element fires. */
export function watch(page: Page): Promise<void> {
  return page.evaluate(() => {
    const told: string[] = [];
    Object.assign(globalThis, { told });
    for (const type of ["otp-complete", "otp-resend", "input", "change"]) {
      document.addEventListener(type, (event) =>
        told.push([type, ...Object.values((event as CustomEvent<object | null>).detail ?? {})].filter(Boolean).join(" ")),
      );
    }
  });
}

export function told(page: Page): Promise<string[]> {
  return page.evaluate(() => (globalThis as unknown as { told: string[] }).told);
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
