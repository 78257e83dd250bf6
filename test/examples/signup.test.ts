import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hasChromium, launchChromium } from "../support/chromium.js";
import { type Example, nextDev, tsx } from "./process.js";

const apps = [
  { name: "signup-express", start: () => tsx("signup-express/server.ts"), cookie: "session" },
  { name: "signup-next", start: () => nextDev("signup-next"), cookie: "pending" },
];

describe.skipIf(!hasChromium("the sign-up examples"))("the sign-up examples in a browser", () => {
  let browser: Browser;
  const running = new Map<string, Example>();
  /** Pages that request a code before all tests and the next one after them, so that the cool-downs pass meanwhile. */
  const patient = new Map<string, Page>();
  let visits = 0;

  beforeAll(async () => {
    browser = await launchChromium();
    for (const { name, start } of apps) {
      const app = await start();
      running.set(name, app);
      const page = await open(app);
      patient.set(name, page);
      await askFor(page, "+33602345670");
    }
  });
  afterAll(async () => {
    await browser?.close();
    for (const app of running.values()) await app.stop();
  });

  /** Opens a page in a new browser session. */
  async function open(app: Example, path = "/"): Promise<Page> {
    // Each session has its own address, as reported by a proxy, and each number its own range: spam rules count the
    // unverified messages of both.
    const context = await browser.newContext({ extraHTTPHeaders: { "x-forwarded-for": `198.51.100.${++visits}` } });
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(app.url + path, { waitUntil: "networkidle" });
    return page;
  }

  const heading = (page: Page, text: string) => page.getByRole("heading", { name: text }).waitFor();
  const field = (page: Page) => page.getByRole("textbox", { name: "Code" });
  const tries = (page: Page, left: number) => page.getByText(`${left} ${left === 1 ? "try" : "tries"} left`, { exact: true }).waitFor();
  const wrongFor = (right: string) => (right === "000000" ? "000001" : "000000");

  async function askFor(page: Page, phone: string): Promise<void> {
    await page.getByLabel("Mobile number").fill(phone);
    await page.getByRole("button", { name: "Send me a code" }).click();
    await heading(page, "Type the code");
    await field(page).waitFor();
  }

  describe.each(apps)("examples/$name", ({ name, cookie }) => {
    let app: Example;
    beforeAll(() => {
      app = running.get(name) as Example;
    });
    const visit = (path?: string) => open(app, path);

    it("verifies a number in national form; the session has it in E.164 form until the user signs out", async () => {
      const page = await visit();
      await page.getByLabel("Country").selectOption("GB");
      await askFor(page, "07400 123456");
      await page.getByText("+447400123456").waitFor();
      await field(page).fill(await app.code("+447400123456"));
      await heading(page, "Welcome");
      await page.getByText("+447400123456").waitFor();
      const cookies = await page.context().cookies();
      expect(cookies.length).toBeGreaterThanOrEqual(2);
      for (const one of cookies) expect(one).toMatchObject({ httpOnly: true, sameSite: "Lax" });

      await page.goto(`${app.url}/code`);
      await heading(page, "Welcome");
      await page.getByRole("button", { name: "Sign out" }).click();
      await heading(page, "Create your account");
    });

    it("shows a message for an invalid number, another country and a landline, and leaves the input in the field", async () => {
      const page = await visit();
      for (const [phone, words] of [
        ["06 12", "This number is too short."],
        ["+49 1512 3456789", "We do not send codes to this country yet."],
        ["01 23 45 67 89", "This line takes no text messages. Give a mobile number."],
      ] as const) {
        await page.getByLabel("Mobile number").fill(phone);
        await page.getByRole("button", { name: "Send me a code" }).click();
        await page.getByText(words).waitFor();
        await expect.poll(() => page.getByLabel("Mobile number").inputValue()).toBe(phone);
      }
    });

    it("a wrong code shows the tries left, also after a reload; the last one leads back to the first form", async () => {
      const page = await visit();
      await askFor(page, "06 12 34 56 70");
      const wrong = wrongFor(await app.code("+33612345670"));
      for (const left of [4, 3, 2, 1]) {
        await field(page).fill(wrong);
        await tries(page, left);
        if (left === 4) await page.reload({ waitUntil: "networkidle" });
        if (left === 4) await tries(page, 4);
      }
      await field(page).fill(wrong);
      await heading(page, "Create your account");
      await page.getByText("There were too many wrong codes.").waitFor();
      await page.goto(`${app.url}/code`);
      await page.getByText("Ask for a code first.").waitFor();
    });

    it("another browser cannot use the code, with or without its own sign-up; no page or readable cookie contains the id", async () => {
      const page = await visit();
      await askFor(page, "06 22 34 56 70");
      const code = await app.code("+33622345670");
      const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-/;
      expect(await page.content()).not.toContain("authentication_uuid");
      for (const { value } of await page.context().cookies()) {
        expect(value).not.toMatch(uuid);
        expect(Buffer.from(value, "base64url").toString("latin1")).not.toMatch(uuid);
      }

      const other = await visit("/code");
      await other.getByText("Ask for a code first.").waitFor();
      await askFor(other, "06 32 34 56 70");
      await field(other).fill(code);
      await tries(other, 4);

      // A forged cookie is not accepted.
      const [mine] = (await page.context().cookies()).filter(({ name }) => name === cookie);
      const forgedValue = `${mine?.value[0] === "A" ? "B" : "A"}${mine?.value.slice(1)}`;
      await other.context().addCookies([{ name: cookie, value: forgedValue, url: app.url }]);
      await other.goto(`${app.url}/code`);
      await other.getByText("Ask for a code first.").waitFor();
    });

    it("a code form without its cookie leads back to the first form, with a message", async () => {
      const page = await visit();
      await askFor(page, "06 42 34 56 70");
      await page.context().clearCookies();
      await field(page).fill(await app.code("+33642345670"));
      await page.getByText("Ask for a code first.").waitFor();
    });

    it("a form of another site is rejected", async () => {
      const page = await visit();
      await page.route("http://evil.example/", (route) =>
        route.fulfill({
          contentType: "text/html",
          body: `<form method="post" action="${app.url}/sign-up"><input name="phone" value="+33652345670"><button>Win</button></form>`,
        }),
      );
      await page.goto("http://evil.example/");
      const [answer] = await Promise.all([
        page.waitForResponse((response) => response.url().startsWith(app.url)),
        page.getByRole("button", { name: "Win" }).click(),
      ]);
      expect(answer.status()).toBeGreaterThanOrEqual(400);
    });

    it("back and forward show the current state: the code form while a code is pending, the welcome page afterwards", async () => {
      const page = await visit();
      await askFor(page, "06 62 34 56 70");
      await page.goBack();
      await page.getByRole("link", { name: "I have a code" }).waitFor();
      await page.goForward();
      await field(page).fill(await app.code("+33662345670"));
      await heading(page, "Welcome");
      await page.goBack({ waitUntil: "commit" });
      // The navigation back may still be in progress and interrupt the reload.
      await vi.waitFor(() => page.reload(), { timeout: 60_000 });
      await heading(page, "Welcome");
    });

    it("the keyboard alone is enough to sign up and out", async () => {
      const page = await visit();
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.keyboard.type("0672345670");
      await page.keyboard.press("Enter");
      await field(page).waitFor();
      await expect.poll(() => page.evaluate("document.activeElement.localName")).toBe("otp-input");
      await page.keyboard.type(await app.code("+33672345670"));
      await heading(page, "Welcome");
      const focused = () => page.evaluate("document.activeElement.textContent");
      // A page that is still changing takes the focus back.
      await expect.poll(() => page.keyboard.press("Tab").then(focused)).toBe("Sign out");
      await page.keyboard.press("Enter");
      await heading(page, "Create your account");
    });
  });

  it.concurrent.for(apps)(
    "examples/$name: after the countdown another message can be requested, and then a call, whose code is valid",
    async ({ name }, { expect }) => {
      const app = running.get(name) as Example;
      const page = patient.get(name) as Page;
      const button = page.getByRole("button", { name: /new code/i });
      const call = page.getByRole("button", { name: /call me instead/i });
      const isWaiting = () => button.getAttribute("aria-disabled");
      await expect.poll(isWaiting, { interval: 1_000 }).toBe("false");
      expect(await call.count()).toBe(0);
      await button.click();
      await page.getByText("A new code is on its way.", { exact: true }).waitFor();
      await expect.poll(isWaiting).toBe("true");
      await expect.poll(() => button.innerText()).toMatch(/\d/);
      await expect.poll(() => call.innerText()).toMatch(/^Call me instead \(in \d+ seconds\)$/);
      await app.code("+33602345670", 2);
      await expect.poll(() => call.innerText(), { timeout: 90_000, interval: 1_000 }).toBe("Call me instead");
      await call.click();
      await field(page).fill(await app.code("+33602345670", 3));
      await heading(page, "Welcome");
      expect(app.printed()).toContain("Call to +33602345670");
    },
  );
});
