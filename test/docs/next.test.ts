import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { root } from "../package/built.js";
import { missing } from "../package/programs.js";
import { command, registryAnswers } from "../package/projects.js";
import { hasChromium, launchChromium } from "../support/chromium.js";
import { freePort } from "../support/ports.js";
import { readPage } from "./pages.js";

// Follows docs/next.md as a reader would: every command and every file, in order, from an empty folder.

const page = readPage("docs/next.md");
const commands = page.blocks.filter(({ language }) => language === "sh").map(({ text }) => text);
const [create = "", secrets = "", dev = "", production = ""] = commands;
const files = page.blocks.filter(({ language }) => language !== "sh");
const nameOf = (text: string) => /^(?:\/\/|\/\*) (\S+\.\w+)/.exec(text)?.[1] ?? "";

describe.skipIf(!hasChromium("docs/next.md"))("docs/next.md, followed from an empty folder", () => {
  let folder: string;
  let browser: Browser;
  let reachable = false;

  beforeAll(async () => {
    reachable = await registryAnswers();
    if (!reachable) return;
    folder = await mkdtemp(join(await realpath(tmpdir()), "phoneproof-next-"));
    await mkdir(join(folder, "phoneproof"));
    await command(root, "npm", ["pack", "--ignore-scripts", "--pack-destination", join(folder, "phoneproof")]);
    await command(folder, "bash", ["-ec", create], { npm_config_yes: "true" });
    for (const { text } of files) {
      const file = join(folder, "my-app", nameOf(text));
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
    browser = await launchChromium();
  });
  beforeEach(({ skip }) => {
    if (!reachable) skip(missing("create-next-app"));
  });
  afterAll(async () => {
    await browser?.close();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  /** Runs commands of the page in the app, after the page's exports of secrets. */
  async function run(text: string) {
    const port = await freePort();
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(PATH|HOME|npm_config_.*)$/.test(name)));
    const child = spawn("bash", ["-ec", secrets + text], {
      cwd: join(folder, "my-app"),
      env: { ...env, PORT: String(port), NEXT_TELEMETRY_DISABLED: "1" } as unknown as NodeJS.ProcessEnv,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const ended = once(child, "close");
    let printed = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (printed += chunk));
    return {
      url: `http://127.0.0.1:${port}`,
      async ready() {
        await expect.poll(() => child.exitCode !== null || printed.includes("Ready in")).toBe(true);
        expect(printed).toContain("Ready in");
      },
      /** The codes printed so far. */
      codes: () => [...printed.matchAll(/Your verification code is (\d{6})/g)].map(([, code = ""]) => code),
      async stop() {
        if (child.exitCode === null) process.kill(-(child.pid as number)); // the shell, npm and Next.js
        await ended;
      },
    };
  }

  /** Starts the app with a command, signs a user up, and stops it. */
  async function signsUp(command: string): Promise<void> {
    const app = await run(command);
    try {
      await app.ready();
      await signsUpIn(app);
    } finally {
      await app.stop();
    }
  }

  async function signsUpIn(app: Awaited<ReturnType<typeof run>>) {
    // Some proxies add the user's port to the address.
    const context = await browser.newContext({ extraHTTPHeaders: { "x-forwarded-for": "203.0.113.9:51234" } });
    const tab: Page = await context.newPage();
    const faults: string[] = [];
    tab.on("pageerror", (error) => faults.push(String(error)));
    tab.on("console", (line) => line.type() === "error" && !line.location().url.endsWith("/favicon.ico") && faults.push(line.text()));
    tab.setDefaultTimeout(60_000);
    const press = (name: string) => tab.getByRole("button", { name }).click();
    const says = (text: string | RegExp) => tab.getByText(text).waitFor();
    const field = tab.getByLabel("The code");

    await tab.goto(app.url);
    await tab.getByRole("link", { name: "Sign up" }).click();
    await tab.getByLabel("Your mobile number").fill("06 12");
    await press("Send me a code");
    await says("This number is too short.");
    expect(await tab.getByLabel("Your mobile number").inputValue()).toBe("06 12");
    await tab.getByLabel("Your mobile number").fill("01 23 45 67 89");
    await press("Send me a code");
    await says("This number cannot receive codes.");
    await tab.getByLabel("Your mobile number").fill("06 12 34 56 78");
    await press("Send me a code");
    await says("We sent a code to +33612345678.");
    await expect.poll(() => app.codes().length).toBe(1);
    const [first] = app.codes();

    await field.fill(first === "000000" ? "000001" : "000000");
    await press("Continue");
    await says("That is not the code. Tries left: 4.");
    await press("Send another code");
    await says(/You can ask for another code in \d+ s\./);
    await tab.reload();
    // The cool-down passes while this waits.
    await expect
      .poll(
        async () => {
          await press("Send another code");
          return app.codes().length;
        },
        { interval: 1_000 },
      )
      .toBe(2);
    await expect.poll(() => tab.getByRole("button", { name: "Continue" }).isEnabled()).toBe(true); // the last press has its response
    await field.fill(app.codes()[1] ?? "");
    await press("Continue");
    await says("Signed in as +33612345678");
    expect((await context.cookies()).filter(({ httpOnly, sameSite }) => !httpOnly || sameSite !== "Lax")).toEqual([]);
    await tab.reload();
    await says("Signed in as +33612345678");
    await press("Sign out");
    await tab.getByRole("link", { name: "Sign up" }).click();
    await tab.getByLabel("Your mobile number").waitFor();
    expect(faults).toEqual([]);
    await context.close();
  }

  it("has four blocks of commands, and each file has a name", () => {
    expect(commands).toHaveLength(4);
    expect(files.filter(({ text }) => nameOf(text) === "").map(({ line }) => line)).toEqual([]);
  });

  it("the error for a missing secret explains how to generate one", async () => {
    const text = files.find(({ text }) => nameOf(text) === "lib/required.ts")?.text ?? "";
    const required = join(folder, "required.mjs");
    await writeFile(required, `${(await transform(text, { loader: "ts" })).code}required("SESSION_SECRET");`);
    const failed = promisify(execFile)(process.execPath, [required], { env: {} as NodeJS.ProcessEnv });
    await expect(failed).rejects.toThrow('SESSION_SECRET is not set; make one: export SESSION_SECRET="$(openssl rand -base64 32)"');
  });

  it("signs a user in with next dev", async () => {
    await signsUp(dev);
  });

  it("signs a user in with next start, after a build without secrets", async () => {
    const [build = "", start = ""] = production.split(/(?<=\n)/);
    await promisify(execFile)("bash", ["-ec", build], {
      cwd: join(folder, "my-app"),
      env: { PATH: process.env.PATH, HOME: process.env.HOME } as unknown as NodeJS.ProcessEnv,
    });
    await signsUp(start);
  });
});
