import type { Page } from "playwright-core";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasChromium } from "../support/chromium.js";
import { field, openPages, type Pages } from "./pages.js";

describe.skipIf(!hasChromium("<otp-input> in React"))("<otp-input> in React", () => {
  let pages: Pages;
  beforeAll(async () => {
    pages = await openPages("test/otp-input/fixtures/react.tsx");
  });
  afterAll(() => pages?.close());

  const message = (page: Page) => page.locator("otp-input p");

  // React renders state changed in a custom event on a later turn.
  async function use(page: Page) {
    await field(page).pressSequentially("111111");
    await expect.poll(() => page.locator("output").innerText()).toBe("111111 0");
    await expect.poll(() => message(page).innerText()).toBe("That code is not right. 2 tries left");
    // The wrong code is selected: typing replaces it.
    await page.keyboard.type("333333");
    await expect.poll(() => message(page).innerText()).toBe("That code is not right. 1 try left");
    await page.getByRole("button", { name: "Send a new code" }).click();
    await expect.poll(() => page.locator("output").innerText()).toBe("333333 1");
    await field(page).focus();
    await page.keyboard.type("222222");
    await expect.poll(() => message(page).innerText()).toBe("Your number is verified.");
    expect(await page.evaluate(() => [...new FormData(document.forms[0])])).toEqual([["code", "222222"]]);
  }

  test("accepts properties, and fires its events", () => pages.on("<div id=root></div>", use));

  test("renders on a server and hydrates without warnings", async () => {
    const { CodeForm } = await import("./fixtures/react.js");
    const html = renderToString(createElement(CodeForm));
    expect(html).toContain('<otp-input name="code" label="Code" required=""');
    await pages.on(`<div id=root>${html}</div>`, use);
  });

  test("accepts attributes", () =>
    pages.on("<div id=root data-status=invalid></div>", async (page) => {
      await expect.poll(() => message(page).innerText()).toBe("That code is not right. 2 tries left");
      await expect.poll(() => page.getByRole("button").innerText()).toBe("Send a new code");
    }));
});
