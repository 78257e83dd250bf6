import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Browser, Locator, Page } from "playwright-core";
import { freePort } from "../support/ports.js";

const root = join(import.meta.dirname, "../..");

/** Pages of the built element, served from the loopback interface. */
export interface Pages {
  /** Opens a page with this body once the element is defined. */
  open(browser: Browser, body: string, options?: Parameters<Browser["newContext"]>[0]): Promise<Page>;
  close(): void;
}

export async function servePages(): Promise<Pages> {
  const dist = dirname(fileURLToPath(import.meta.resolve("phoneproof/otp-input")));
  let shown = "";
  const server = createServer((request, response) => {
    const script = /^\/phoneproof\/(.+\.js)$/.exec(request.url ?? "")?.[1];
    if (script === undefined) return void response.setHeader("content-type", "text/html").end(shown);
    readFile(join(dist, basename(script))).then(
      (text) => response.setHeader("content-type", "text/javascript").end(text),
      () => response.writeHead(404).end(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return {
    async open(browser, body, options) {
      shown = `<!doctype html><html lang="en"><title>Code</title><script type="module" src="/phoneproof/otp-input.js"></script><body>${body}`;
      const page = await browser.newPage(options);
      await page.goto(`http://127.0.0.1:${port}/`);
      await page.locator("otp-input").locator("input").first().waitFor();
      return page;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** An app whose files are those of the documents. */
export interface DocumentedApp {
  readonly url: string;
  /** The codes that were printed so far, oldest first. */
  codes(): string[];
  stop(): Promise<void>;
}

/** The code blocks of a page of the documents that begin with the name of a file. */
async function filesOf(document: string): Promise<Map<string, string>> {
  const text = await readFile(join(root, "docs", document), "utf8");
  const blocks = text.matchAll(/```\w+\n(?:\/\/|<!--|\/\*) ([\w./]+\.\w+)[^\n]*\n([\s\S]*?)```/g);
  return new Map([...blocks].map(([, name = "", content = ""]) => [name, content]));
}

/** Starts the page of `docs/front-end.md` (also in React, at `/react.html`), or the app of `docs/first-form.md`. */
export async function startDocumented(app: "front-end" | "first-form"): Promise<DocumentedApp> {
  const folder = await mkdtemp(join(tmpdir(), "code-field-"));
  const files = await filesOf(`${app}.md`);
  if (app === "first-form") {
    const install = await filesOf("install.md");
    for (const name of ["verifier.ts", "required.ts"]) files.set(name, install.get(name) ?? "");
  }
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  await mkdir(join(folder, "public"));
  for (const [name, content] of files) if (!name.startsWith("lib/")) await writeFile(join(folder, name), content);
  if (app === "front-end")
    await build({ entryPoints: [join(folder, "main.jsx")], bundle: true, jsx: "automatic", logLevel: "error", outfile: join(folder, "public/main.js") });
  const port = await freePort();
  const env = { ...process.env, PORT: String(port), PHONEPROOF_SECRET: randomBytes(32).toString("base64") };
  const main = app === "front-end" ? "server.ts" : "app.ts";
  const child = spawn(process.execPath, ["--import", "tsx", main], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (printed += text));
  const url = `http://127.0.0.1:${port}`;
  await answering(url, child, () => printed);
  return {
    url,
    codes: () => [...printed.matchAll(/code is (\d{6})/g)].map(([, code]) => code as string),
    async stop() {
      const ended = child.exitCode === null ? once(child, "exit") : undefined;
      child.kill("SIGKILL");
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}

async function answering(url: string, child: ChildProcess, printed: () => string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the documented app ended: ${printed()}`);
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Presses where a button is, whether or not it accepts that: a user does not wait for it. */
export async function press(button: Locator, times = 1): Promise<void> {
  const box = await button.boundingBox();
  if (!box) throw new Error("the button is not shown");
  await button.page().mouse.click(box.x + box.width / 2, box.y + box.height / 2, { clickCount: times, delay: 40 });
}

/** A connection on which each response takes a while, as on a phone. */
export async function slow(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", { offline: false, latency: 400, downloadThroughput: -1, uploadThroughput: -1 });
}

/** Holds back the POSTs to a path. `letGo` lets them through, and resolves once each has its response. */
export async function hold(page: Page, path: string): Promise<{ letGo(): Promise<void> }> {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  const under: Promise<unknown>[] = [];
  await page.route(`**${path}`, async (route) => {
    under.push(route.request().response());
    await held;
    await route.continue();
  });
  return {
    async letGo() {
      letGo();
      for (const one of under) await one;
    },
  };
}

/** Whether a column of pixels of the page has one color from top to bottom. */
export async function isUnbroken(page: Page, clip: { x: number; y: number; height: number }): Promise<boolean> {
  const png = await page.screenshot({ clip: { ...clip, width: 1 } });
  return page.evaluate<boolean>(`(async () => {
    const image = await createImageBitmap(await (await fetch("data:image/png;base64,${png.toString("base64")}")).blob());
    const context = new OffscreenCanvas(1, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    return new Set(new Uint32Array(context.getImageData(0, 0, 1, image.height).data.buffer)).size === 1;
  })()`);
}
