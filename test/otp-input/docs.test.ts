import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { attributes } from "../../clients/otp-input/attributes.js";
import { otpWords } from "../../clients/otp-input/index.js";
import { style } from "../../clients/otp-input/style.js";
import { readPage } from "../docs/pages.js";
import { root } from "../package/built.js";
import { hasChromium, launchChromium } from "../support/chromium.js";

const page = readPage("docs/front-end.md");

describe("docs/front-end.md", () => {
  test("names every attribute, custom property and language, and no custom property that there is not", () => {
    for (const attribute of Object.values(attributes)) expect(page.text).toContain(`\`${attribute}\``);
    const properties = (css: string) => [...new Set(css.match(/--otp-[\w-]+/g))].sort();
    expect(properties(page.text)).toEqual(properties(style));
    const names = new Intl.DisplayNames("en", { type: "language" });
    for (const tag of Object.keys(otpWords)) expect(page.text).toContain((names.of(tag) as string).replace("Traditional Chinese", "traditional"));
  });

  describe.skipIf(!hasChromium("The form of docs/front-end.md"))("its form in plain HTML", () => {
    const form = page.blocks.find(({ language, text }) => language === "html" && text.includes("otp-complete"))?.text;
    const asked: [path: string | undefined, body: string][] = [];
    const server = createServer(async (request, response) => {
      const file = /^\/phoneproof\/([\w-]+\.js)$/.exec(request.url ?? "")?.[1];
      if (file !== undefined) return response.writeHead(200, { "content-type": "text/javascript" }).end(readFileSync(join(root, "dist", file)));
      if (request.method === "GET")
        return response.writeHead(200, { "content-type": "text/html" }).end(`<!doctype html><html lang="en"><title>T</title>${form}`);
      asked.push([request.url, await text(request)]);
      const next_retry_at = new Date(0).toISOString();
      const checked = asked.at(-1)?.[1].includes("222222")
        ? { status: "valid" }
        : { status: "invalid", remaining_checks: 4, remaining_retry: 4, next_retry_at };
      const answer = request.url === "/sign-up/check" ? checked : { status: "approved", remaining_retry: 3, next_retry_at };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
    let browser: Awaited<ReturnType<typeof launchChromium>>;
    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      browser = await launchChromium();
    });
    afterAll(async () => {
      await browser?.close();
      server.closeAllConnections();
      server.close();
    });

    async function opened(options?: BrowserContextOptions) {
      const tab = await browser.newPage(options);
      tab.setDefaultTimeout(60_000);
      await tab.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      return tab;
    }

    test("where JavaScript is off there is one field, of the same name", async () => {
      const tab = await opened({ javaScriptEnabled: false });
      await tab.getByRole("textbox", { name: "Code from the message" }).fill("222222");
      expect(await tab.getByRole("textbox").count()).toBe(1);
      await tab.getByRole("button", { name: "Check" }).click();
      await tab.waitForURL("**/?code=222222");
    });

    test("checks a wrong code, asks for another message, and goes on with the right one", async () => {
      const tab = await opened();
      const code = tab.getByRole("textbox", { name: "Code from the message" });
      await code.pressSequentially("111111");
      await code.press("Enter");
      await tab.getByText("That code is not right. 4 tries left").first().waitFor();
      await tab.getByRole("button", { name: "Send a new code" }).click();
      await tab.locator("p", { hasText: "A new code is on its way." }).waitFor();
      await code.fill("222222");
      await tab.waitForURL("**/welcome");
      expect(asked.map(([path]) => path)).toEqual(["/sign-up/check", "/sign-up/resend", "/sign-up/check"]);
    });
  });
});
