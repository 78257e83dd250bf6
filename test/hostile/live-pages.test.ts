import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { hasChromium, launchChromium } from "../support/chromium.js";
import { bundle, documented, servePage } from "./live-pages-kit.js";

describe.skipIf(!hasChromium("Live pages"))("live pages", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());

  /** Opens a page with this body and script. */
  async function open(body: string, script: string, modules?: Record<string, string>) {
    const site = await servePage(body, await bundle(script, modules));
    const context = await browser.newContext();
    onTestFinished(async () => {
      await context.close();
      await site.close();
    });
    const page = await context.newPage();
    return { page, show: () => page.goto(site.url) };
  }

  test("a React form with an action tells the user that the code is wrong", async () => {
    const { page, show } = await open(
      '<div id="root"></div>',
      `import "phoneproof/otp-input";
       import { useActionState } from "react";
       import { createRoot } from "react-dom/client";
       const check = async (_before, form) => ({ status: "invalid", remaining_checks: 4, entered: form.get("code") });
       function CodeForm() {
         const [answer, act] = useActionState(check, { status: "pending" });
         return (
           <form action={act}>
             <otp-input name="code" label="Code" required answer={answer} onotp-complete={(event) => event.target.form.requestSubmit()} />
             <p id="entered">{answer.entered}</p>
           </form>
         );
       }
       createRoot(document.getElementById("root")).render(<CodeForm />);`,
    );
    await show();
    await page.locator("otp-input").pressSequentially("123456");
    await expect.poll(() => page.locator("#entered").textContent()).toBe("123456"); // the answer has arrived, and is rendered
    const shown = await page.locator("body").ariaSnapshot();
    expect(shown).toContain("That code is not right. 4 tries left");
  });

  // Next.js keeps a page that the user left, hidden by <Activity>, if `cacheComponents` is on, as create-next-app sets it.
  test("the documented form of Next.js asks for a number after a sign-in and a sign-out", async () => {
    const actions = 'export const signUp = async () => ({ step: "code", message: "We sent a code." });';
    const { page, show } = await open(
      '<div id="root"></div>',
      `import { Activity } from "react";
       import { createRoot } from "react-dom/client";
       import { SignUpForm } from "./form";
       const root = createRoot(document.getElementById("root"));
       window.render = (mode) => root.render(<Activity mode={mode}><SignUpForm start={{ step: "number" }} /></Activity>);
       window.render("visible");`,
      { "./form": await documented("next.md", "app/sign-up/form.tsx"), "./actions": actions },
    );
    await show();
    await page.getByLabel("Your mobile number").fill("06 12 34 56 78");
    await page.getByRole("button", { name: "Send me a code" }).click();
    await expect.poll(() => page.getByLabel("The code").isVisible()).toBe(true);
    await page.evaluate("render('hidden')"); // signed in on the first page, and out again
    await expect.poll(() => page.getByLabel("The code").isVisible()).toBe(false);
    await page.evaluate("render('visible')"); // "Sign up": the server renders the number form
    await expect.poll(() => page.locator("form").isVisible()).toBe(true);
    expect(await page.getByLabel("Your mobile number").isVisible()).toBe(true);
  });
});
