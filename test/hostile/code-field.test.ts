import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { hasChromium, launchChromium } from "../support/chromium.js";
import { type DocumentedApp, hold, isUnbroken, type Pages, press, servePages, slow, startDocumented } from "./code-field-kit.js";

describe.skipIf(!hasChromium("the code field in pages"))("the code field in pages", () => {
  let browser: Browser;
  let pages: Pages;
  let frontEnd: DocumentedApp;
  let firstForm: DocumentedApp;
  let numbers = 10;
  const nextNumber = () => `06 12 34 91 ${numbers++}`;

  beforeAll(async () => {
    [browser, pages, frontEnd, firstForm] = await Promise.all([launchChromium(), servePages(), startDocumented("front-end"), startDocumented("first-form")]);
  });
  afterAll(async () => {
    await Promise.all([browser?.close(), pages?.close(), frontEnd?.stop(), firstForm?.stop()]);
  });

  async function visit(url: string) {
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    await page.goto(url);
    await page.locator("[name=phone]").fill(nextNumber());
    return page;
  }

  async function openElement(body: string, options?: Parameters<Browser["newContext"]>[0]) {
    const page = await pages.open(browser, body, options);
    onTestFinished(() => page.close());
    return page;
  }

  test("Enter does not submit a verified code again", async () => {
    const page = await openElement(`<form><otp-input name="code" required></otp-input><button>Check</button></form>`);
    await page.evaluate(`
      const [form] = document.forms;
      const otp = document.querySelector("otp-input");
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        form.dataset.submits = Number(form.dataset.submits ?? 0) + 1;
        otp.answer = { status: "valid" };
      });
      otp.addEventListener("otp-complete", () => form.requestSubmit());
    `);
    await page.locator("otp-input").locator("input").pressSequentially("123456");
    await page.getByText("Your number is verified.").first().waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    expect(await page.locator("form").getAttribute("data-submits")).toBe("1");
  });

  test("a late response to a wrong code leaves the digits typed since then", async () => {
    const page = await openElement(`<otp-input></otp-input>`);
    await page.keyboard.press("Tab");
    await page.keyboard.type("111111"); // the page sends it; the response takes a while
    await page.keyboard.press("Control+A");
    await page.keyboard.type("23");
    await page.evaluate(`document.querySelector("otp-input").answer = { status: "invalid", remaining_checks: 4 }`);
    await page.getByText("That code is not right.").first().waitFor();
    await page.keyboard.type("4567");
    expect(await page.locator("otp-input").locator("input").inputValue()).toBe("234567");
  });

  test("a late response to a wrong code does not keep the corrected one from being sent", async () => {
    const page = await openElement(`<form onsubmit="return false"><otp-input name="code" required></otp-input><button>Check</button></form>`);
    await page.evaluate(`
      const [form] = document.forms;
      form.addEventListener("submit", () => (form.dataset.sent = (form.dataset.sent ?? "") + "[" + new FormData(form).get("code") + "]"));
    `);
    await page.locator("otp-input").locator("input").focus();
    await page.keyboard.type("111111");
    await press(page.getByRole("button", { name: "Check" }));
    await page.locator("otp-input").locator("input").focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Backspace");
    await page.keyboard.type("2");
    await page.evaluate(`document.querySelector("otp-input").answer = { status: "invalid", remaining_checks: 4 }`);
    await page.getByText("That code is not right.").first().waitFor();
    await press(page.getByRole("button", { name: "Check" }));
    expect(await page.locator("form").getAttribute("data-sent")).toBe("[111111][111112]");
  });

  // In the capturing phase, listeners also see the event of the inner field: a limit that docs/front-end.md states.
  test("a listener sees one input event per change, with the new value in the form", async () => {
    const page = await openElement(`<form><otp-input name="code"></otp-input></form>`);
    await page.evaluate(`
      const [form] = document.forms;
      form.addEventListener("input", () => (form.dataset.seen = (form.dataset.seen ?? "") + "[" + new FormData(form).get("code") + "]"));
    `);
    await page.locator("otp-input").locator("input").pressSequentially("12");
    expect(await page.locator("form").getAttribute("data-seen")).toBe("[1][12]");
  });

  test("in forced colors, the borders of filled boxes are whole", async () => {
    const page = await openElement(`<otp-input value="12"></otp-input>`, { forcedColors: "active", reducedMotion: "reduce" });
    const box = await page.locator("otp-input").locator(".box").first().boundingBox();
    if (!box) throw new Error("no box");
    // The right border of the first box, between the rounded corners.
    const border = { x: Math.round(box.x + box.width) - 1, y: box.y + box.height * 0.22, height: box.height * 0.56 };
    expect(await isUnbroken(page, border)).toBe(true);
  });

  describe.each(["/", "/react.html"])("docs/front-end.md at %s", (path) => {
    test("a double click on the first button sends one message", async () => {
      const page = await visit(frontEnd.url + path);
      const before = frontEnd.codes().length;
      const held = await hold(page, "/sign-up/number");
      await press(page.getByRole("button"), 2);
      await held.letGo();
      await page.locator("otp-input").waitFor();
      await expect.poll(() => frontEnd.codes().length).toBeGreaterThan(before);
      expect(frontEnd.codes()).toHaveLength(before + 1);
    });

    test("pressing Check while the right code is on its way does not end in an error", async () => {
      const page = await visit(frontEnd.url + path);
      const before = frontEnd.codes().length;
      await page.getByRole("button").click();
      await page.locator("otp-input").waitFor();
      await expect.poll(() => frontEnd.codes().length).toBe(before + 1);
      const held = await hold(page, "/sign-up/check");
      await page
        .locator("otp-input")
        .locator("input")
        .pressSequentially(frontEnd.codes().at(-1) as string);
      await press(page.getByRole("button", { name: "Check" }));
      await held.letGo();
      const message = page.locator("otp-input").locator(".message");
      await page.waitForFunction(`document.querySelector("otp-input").status !== "pending"`);
      await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
      expect(await message.innerText()).toBe("Your number is verified.");
    });
  });

  describe("docs/first-form.md on a slow connection", () => {
    test("a double click on the first button sends one message", async () => {
      const page = await visit(firstForm.url);
      const before = firstForm.codes().length;
      await slow(page);
      await press(page.getByRole("button"), 2);
      await page.locator("[name=code]").waitFor();
      await expect.poll(() => firstForm.codes().length).toBeGreaterThan(before);
      expect(firstForm.codes()).toHaveLength(before + 1);
    });

    test("a double click on Continue with the right code signs in", async () => {
      const page = await visit(firstForm.url);
      const before = firstForm.codes().length;
      await page.getByRole("button").click();
      await page.locator("[name=code]").waitFor();
      await expect.poll(() => firstForm.codes().length).toBe(before + 1);
      await page.locator("[name=code]").fill(firstForm.codes().at(-1) as string);
      await slow(page);
      await press(page.getByRole("button", { name: "Continue" }), 2);
      await page.locator("[name=code]").waitFor({ state: "detached" });
      expect(await page.locator("body").innerText()).toContain("Signed in as");
    });
  });
});
