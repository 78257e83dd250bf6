import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../package/built.js";
import { command, linkFromHere, type Started, startCommand } from "../package/projects.js";
import { hasChromium, launchChromium } from "../support/chromium.js";
import { freePort } from "../support/ports.js";
import { readPage } from "./pages.js";

// The whole page of docs/front-end.md, pasted into an empty folder. Its packages are linked from here, not installed.

const page = readPage("docs/front-end.md");
const [install = "", bundle = ""] = page.blocks.filter(({ language }) => language === "sh").map(({ text }) => text);
const nameOf = (text: string) => /^(?:\/\/|\/\*|<!--) (\S+\.\w+)/.exec(text)?.[1] ?? "";
const files = ["server.ts", "public/index.html", "public/style.css", "public/react.html", "main.jsx", "SignUp.tsx"];
const withoutInstalls = (text: string) => text.replace(/^npm install .*\n/gm, "");

describe.skipIf(!hasChromium("The whole page of docs/front-end.md"))("the whole page of docs/front-end.md", () => {
  let folder: string;
  let url: string;
  let server: Started;
  let browser: Browser;

  beforeAll(async () => {
    folder = await mkdtemp(join(await realpath(tmpdir()), "phoneproof-page-"));
    const port = await freePort();
    for (const name of files) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), page.blocks.find(({ text }) => nameOf(text) === name)?.text ?? "");
    }
    await linkFromHere(folder, "express", "tsx", "react", "react-dom", "esbuild");
    await symlink(root, join(folder, "node_modules/phoneproof"));
    await command(folder, "bash", ["-ec", withoutInstalls(bundle)]);
    server = startCommand(folder, "bash", ["-ec", withoutInstalls(install).replace(/^npx tsx/m, "exec node node_modules/tsx/dist/cli.mjs")], {
      PORT: String(port),
    });
    url = `http://127.0.0.1:${port}`;
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it.concurrent.for([
    ["plain", "/", "+33612345678", "06 12 34 56 78"],
    ["in React", "/react.html", "+33622345678", "06 22 34 56 78"],
  ] as const)("%s: messages for unusable numbers, a wrong code, another message, the right code", async ([, path, to, typed], { expect }) => {
    const tab = await browser.newPage();
    tab.setDefaultTimeout(60_000);
    const faults: string[] = [];
    tab.on("pageerror", (error) => faults.push(String(error)));
    tab.on("console", (line) => line.type() === "error" && !/status of 400|favicon/.test(line.text() + line.location().url) && faults.push(line.text()));
    const number = tab.getByLabel("Phone number");
    const code = tab.getByRole("textbox", { name: "Code from the message" });
    const sent = async (nth: number) => server.seen(new RegExp(`(?:SMS to \\${to} [\\s\\S]*?code is (?=(\\d{6}))[\\s\\S]*?){${nth}}`));
    await expect
      .poll(() =>
        fetch(url).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200);
    await tab.goto(url + path);
    for (const [text, words] of [
      ["06 12", "This number is too short. Is a digit missing?"],
      ["01 23 45 67 89", "This number cannot receive codes. Use a mobile number."],
    ] as const) {
      await number.fill(text);
      await number.press("Enter");
      await tab.getByText(words).waitFor();
      expect(await number.inputValue()).toBe(text);
    }
    await number.fill(typed);
    await tab.getByRole("button", { name: "Send me a code" }).click();
    const first = await sent(1);
    await expect.poll(() => tab.evaluate("document.activeElement.localName")).toBe("otp-input");
    await tab.keyboard.type(first === "000000" ? "000001" : "000000");
    await tab.getByText("That code is not right. 4 tries left").first().waitFor();
    const again = tab.getByRole("button", { name: /new code/i });
    await expect.poll(() => again.getAttribute("aria-disabled"), { interval: 1_000 }).toBe("false");
    await again.click();
    await tab.locator("p", { hasText: "A new code is on its way." }).waitFor();
    await code.fill(await sent(2));
    await tab.locator("p", { hasText: "Your number is verified." }).waitFor();
    await expect.poll(() => tab.getByRole("button", { name: "Check" }).count()).toBe(0);
    expect(faults).toEqual([]);
    await tab.close();
  });

  it("its table has the messages of the server file", () => {
    const server = page.blocks.find(({ text }) => nameOf(text) === "server.ts")?.text ?? "";
    const words = [...server.matchAll(/^ {2}(\w+): "(.+)",$/gm)].map(([, reason, sentence]) => [reason, sentence]);
    const rows = [...page.text.matchAll(/^\| `(\w+)` \| [^|]+ \| ([A-Z][^|]+) \|$/gm)].map(([, reason, sentence]) => [reason, sentence]);
    expect(rows).toEqual(words);
    expect(words).toHaveLength(6);
  });
});
