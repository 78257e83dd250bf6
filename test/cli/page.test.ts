import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasChromium, launchChromium } from "../support/chromium.js";
import { type Demo, startDemo } from "./demo.js";

/** Evaluated by the browser's debugger, to which the page's Content-Security-Policy does not apply. */
const axe = readFile(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const desktop = { width: 1280, height: 800 };
const phone = { width: 375, height: 812 };

describe.skipIf(!hasChromium("The page of phoneproof dev"))("the page of phoneproof dev", () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
  });

  /** Uses a fresh demo and browser profile; fails on any script error, blocked resource or request outside the demo. */
  async function onPage(
    run: (page: Page, demo: Demo) => Promise<void>,
    { viewport = desktop, options = [] as readonly string[], tolerated = /status of 400/ } = {},
  ) {
    const demo = await startDemo(["--port", "0", ...options]);
    const context = await browser.newContext({ viewport });
    const faults: string[] = [];
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(60_000);
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("console", (line) => line.type() === "error" && !tolerated.test(line.text()) && faults.push(line.text()));
      page.on("request", (request) => request.url().startsWith(`${demo.url}/`) || faults.push(request.url()));
      await page.goto(demo.url);
      await page.getByText("Local demo", { exact: true }).waitFor();
      await run(page, demo);
      expect(faults).toEqual([]);
    } finally {
      await context.close();
      await demo.stop();
    }
  }

  const status = (page: Page, name: string) => page.locator("#status code", { hasText: new RegExp(`^${name}$`) }).waitFor();
  const number = (page: Page) => page.getByLabel("Phone number");
  const code = (page: Page) => page.getByLabel("Code from the message");
  const lookup = (page: Page) => page.getByRole("textbox", { name: "Look up a number" });
  const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
  const calls = (page: Page) => page.locator("#calls > li");
  const unfold = async (page: Page) => {
    const folded = page.locator("details:not([open]) > summary");
    while ((await folded.count()) > 0) await folded.first().click();
  };
  const facts = (page: Page) => page.locator("#facts dd").allInnerTexts();
  const wrongFor = (right: string) => (right === "000000" ? "000001" : "000000");

  async function create(page: Page, demo: Demo, to = "+1 (415) 555-2671") {
    await number(page).fill(to);
    await press(page, "Send code");
    await status(page, "pending");
    return demo.sms();
  }

  test("verifies a number: message, wrong code, retry denied during the cool-down, right code, already_validated", () =>
    onPage(async (page, demo) => {
      const sms = await create(page, demo);
      expect(sms.to).toBe("+14155552671");
      const message = page.getByRole("log", { name: "Messages" }).getByRole("listitem").filter({ hasText: "to +14155552671" });
      await message.getByText(sms.text, { exact: true }).waitFor();
      await expect.poll(() => code(page).getAttribute("autocomplete")).toBe("one-time-code");
      await expect.poll(() => code(page).getAttribute("inputmode")).toBe("numeric");

      await code(page).fill(wrongFor(sms.code));
      await press(page, "Check code");
      await status(page, "invalid");
      await expect.poll(() => page.locator("#status").innerText()).toContain("4 tries left");
      await expect.poll(() => page.locator("#wrong").innerText()).toBe("1 of 5");

      await press(page, "Send again");
      await status(page, "denied");
      await expect.poll(() => page.locator("#remaining").innerText()).toBe("4");
      const cooldown = page.locator("#cooldown");
      const before = await cooldown.innerText();
      expect(before).toMatch(/^in 0:[0-3]\d$/);
      await expect.poll(() => cooldown.innerText()).not.toBe(before);
      await expect.poll(() => page.locator("#lifetime").innerText()).toMatch(/^9:\d\d$/);

      await message.getByRole("button", { name: sms.code }).click();
      await expect.poll(() => code(page).inputValue()).toBe(sms.code);
      await press(page, "Check code");
      await status(page, "valid");
      await expect.poll(() => page.locator("[aria-current=step]").innerText()).toBe("Verified");

      await press(page, "Check again");
      await status(page, "already_validated");
      await expect.poll(() => page.locator("#status").innerText()).toContain("Never treat this response as success");
      await press(page, "Send again");
      await status(page, "already_validated");
    }));

  test("an approved retry sends another message and lowers the number of retries left", () =>
    onPage(
      async (page, demo) => {
        const first = await create(page, demo);
        await press(page, "Send again");
        await status(page, "approved");
        const second = await demo.sms();
        await page.getByRole("log").getByRole("button", { name: second.code }).waitFor();
        await expect.poll(() => page.locator("#remaining").innerText()).toBe("1");
        await expect.poll(() => page.locator("#cooldown").innerText()).toMatch(/^in [0-6]:\d\d$/);
        expect(second.authentication_uuid).toBe(first.authentication_uuid);
      },
      { options: ["--cooldown", "0,300"] },
    ));

  test("a retry that was denied during the cool-down is approved when it is over", () =>
    onPage(
      async (page, demo) => {
        await create(page, demo);
        await press(page, "Send again");
        await status(page, "denied");
        await expect.poll(() => page.locator("#cooldown").innerText()).toBe("now");
        await expect.poll(() => page.locator("#status").innerText()).toBe("");
        await press(page, "Send again");
        await status(page, "approved");
      },
      { options: ["--cooldown", "2,300"] },
    ));

  test("if the carrier rejects the message, the page shows that nothing was sent and closes the verification", () =>
    onPage(
      async (page) => {
        await number(page).fill("+14155552671");
        await press(page, "Send code");
        await status(page, "pending");
        expect(await page.locator("#status").innerText()).toContain("Nothing was sent");
        expect(await page.locator("#code-step > p").innerText()).toContain("Not sent to +14155552671");
        expect(await facts(page)).toEqual(["closed", "none", "0", "0 of 5"]);
        await page.getByRole("button", { name: "Start a new verification" }).waitFor();
        await calls(page).filter({ hasText: "/v1/authentication" }).locator("summary").first().click();
        await page.getByText("No message sent · ").waitFor();
      },
      { options: ["--fail", "rejected"] },
    ));

  test("the page shows the recipient in E.164 form, however it was entered", () =>
    onPage(async (page, demo) => {
      expect((await create(page, demo, "+33 (0)6 12 34 56 77")).to).toBe("+33612345677");
      await expect.poll(() => page.locator("#code-step > p").innerText()).toContain("Sent to +33612345677");
    }));

  test("a button below a message sends its receipt once, and the receipt is still shown after a reload", () =>
    onPage(
      async (page, demo) => {
        const listed = page.getByRole("log", { name: "Messages" }).getByRole("listitem");
        await create(page, demo);
        await listed.nth(0).getByRole("button", { name: "Delivered" }).click();
        await listed.nth(0).getByText("Delivered", { exact: true }).waitFor();
        await expect.poll(() => listed.nth(0).getByRole("button").count()).toBe(1);
        await press(page, "Send again");
        await status(page, "approved");
        const second = await demo.sms();
        await listed.nth(1).getByRole("button", { name: "Undeliverable" }).click();
        await listed.nth(1).getByText("Undeliverable", { exact: true }).waitFor();
        // No call depends on a receipt: the code of an undeliverable message is still valid.
        await listed.nth(1).getByRole("button", { name: second.code }).click();
        await press(page, "Check code");
        await status(page, "valid");
        await page.reload();
        await expect.poll(() => page.locator("#messages li > :last-child").allInnerTexts()).toEqual(["Delivered", "Undeliverable"]);
      },
      { options: ["--cooldown", "0,300"] },
    ));

  test("delayed messages appear when delivered by hand, and the code of an earlier one is still valid", () =>
    onPage(
      async (page, demo) => {
        const listed = page.getByRole("log", { name: "Messages" }).getByRole("listitem");
        await page.getByLabel("Delay messages").check();
        const first = await create(page, demo);
        await listed.getByText("Message 1 is still on its way.").waitFor();
        expect(await page.getByRole("log").innerText()).not.toContain(first.code);
        await page.getByLabel("Delay messages").uncheck();
        await press(page, "Send again");
        await status(page, "approved");
        const second = await demo.sms();
        await listed.nth(1).getByRole("button", { name: second.code }).waitFor();
        expect(await page.getByRole("log").innerText()).not.toContain(first.code);
        await press(page, "Deliver now");
        await listed.nth(0).getByRole("button", { name: first.code }).click();
        await expect.poll(() => code(page).inputValue()).toBe(first.code);
        await press(page, "Check code");
        await status(page, "valid");
      },
      { options: ["--cooldown", "0,300"] },
    ));

  test("a message of unknown outcome has no receipt buttons", () =>
    onPage(
      async (page, demo) => {
        const sms = await create(page, demo);
        const message = page.getByRole("log", { name: "Messages" }).getByRole("listitem");
        await message.getByText("Delivery unknown: no receipt will arrive.").waitFor();
        await expect.poll(() => message.getByRole("button").allInnerTexts()).toEqual([sms.code]);
      },
      { options: ["--fail", "unknown"] },
    ));

  test("five wrong codes lock the verification, even for the right code: countdowns stop, and a text and a button offer a new start", () =>
    onPage(async (page, demo) => {
      const sms = await create(page, demo);
      const again = page.getByRole("button", { name: "Start a new verification" });
      for (let wrong = 1; wrong <= 5; wrong++) {
        await expect.poll(() => again.isVisible()).toBe(false);
        await code(page).fill(wrongFor(sms.code));
        await press(page, "Check code");
        await page.getByText(`${wrong} of 5`, { exact: true }).waitFor();
      }
      await again.waitFor();
      await expect.poll(() => facts(page)).toEqual(["closed", "none", "0", "5 of 5"]);
      await expect.poll(() => page.locator("#status").innerText()).toContain("it was the last try. Start a new verification.");
      await code(page).fill(sms.code);
      await press(page, "Check code");
      await status(page, "rate_limited");
      await expect.poll(() => page.locator("#status").innerText()).toContain("Start a new verification");
      await expect.poll(() => facts(page)).toEqual(["closed", "none", "0", "5 of 5"]);
      await again.click();
      expect(await page.evaluate("document.activeElement.id")).toBe("phone_number");
      await expect.poll(() => page.locator("#status").innerText()).toBe("");
      await press(page, "Send code");
      await status(page, "pending");
      await expect.poll(() => again.isVisible()).toBe(false);
    }));

  test("at expiry, countdowns stop, a text and a button offer a new start, and the service returns expired_auth", () =>
    onPage(
      async (page, demo) => {
        const sms = await create(page, demo);
        await status(page, "expired_auth");
        await expect.poll(() => facts(page)).toEqual(["expired", "none", "0", "0 of 5"]);
        await expect.poll(() => page.locator("#status").innerText()).toContain("Start a new verification");
        await expect.poll(() => page.getByRole("button", { name: "Start a new verification" }).isVisible()).toBe(true);
        await code(page).fill(sms.code);
        await press(page, "Check code");
        await calls(page).filter({ hasText: "expired_auth" }).waitFor();
        await status(page, "expired_auth");
      },
      { options: ["--lifetime", "1"] },
    ));

  test("buttons try spam, a landline and a code that expires soon", () =>
    onPage(async (page, demo) => {
      await press(page, "Spam");
      await press(page, "Send code");
      await status(page, "spam_detected");
      const flagged = calls(page).filter({ hasText: "spam_detected" });
      await flagged.locator("summary").first().click();
      await flagged.getByText("demo blocked it. The demo flags this number").waitFor();
      for (const shortcut of await page.locator(".samples button").all()) {
        await number(page).fill("");
        await shortcut.click();
        expect(await number(page).inputValue(), await shortcut.innerText()).toMatch(/^[+\d][\d ]{9,}$/);
      }
      await press(page, "Landline");
      await press(page, "Send code");
      await expect.poll(() => page.locator("#phone_number-error").innerText()).toContain("kind of line");
      const expiry = page.getByRole("button", { name: "Expires in 15 s" });
      await expiry.click();
      await expect.poll(() => expiry.getAttribute("aria-pressed")).toBe("true");
      const sms = await create(page, demo);
      await expect.poll(() => page.locator("#lifetime").innerText()).toMatch(/^0:1[0-5]$/);
      await code(page).fill(sms.code);
      await press(page, "Check code");
      await status(page, "valid");
      await page.getByRole("button", { name: "Start a new verification" }).click();
      await expiry.click();
      await create(page, demo);
      await expect.poll(() => page.locator("#lifetime").innerText()).toMatch(/^(9:5\d|10:00)$/);
    }));

  test("every button next to the field fills in a number", () =>
    onPage(async (page) => {
      const buttons = page.locator(".samples button");
      expect(await buttons.count()).toBe(7);
      for (const button of await buttons.all()) {
        await number(page).fill("");
        await button.click();
        expect(await number(page).inputValue()).toMatch(/^[+\d][\d ]{9,}$/);
      }
    }));

  test("errors are shown at the field that they concern, in the service's words", () =>
    onPage(async (page, demo) => {
      await press(page, "No country code");
      await expect.poll(() => number(page).inputValue()).toBe("06 12 34 56 78");
      await press(page, "Send code");
      const fault = page.locator("#phone_number-error");
      await expect.poll(() => fault.innerText()).toContain("not a valid number in E.164 form");
      expect(await page.locator("#phone_number-hint").innerText()).toMatch(
        /^The country code is missing.*In France, 06\s12\s34\s56\s78 is \+33\s6\s12\s34\s56\s78\.$/,
      );
      await number(page).fill("+1 415 55");
      await press(page, "Send code");
      await expect.poll(() => fault.innerText()).toContain("phone_number");
      await expect.poll(() => number(page).getAttribute("aria-invalid")).toBe("true");
      await expect.poll(() => number(page).getAttribute("aria-describedby")).toContain("phone_number-error");

      await number(page).fill("+14155552671");
      await page.getByText("More options").click();
      for (const [field, value] of [
        ["ip", "300.1.1.1"],
        ["app_realm", "too short"],
        ["app_realm", "abcdefghijk"],
      ] as const) {
        await page.getByLabel(field, { exact: true }).fill(value);
        await press(page, "Send code");
        await expect.poll(() => page.locator(`#${field}-error`).innerText()).toContain(field === "ip" ? "ip" : "app_realm");
        await expect.poll(() => fault.innerText()).toBe("");
        await page.getByLabel(field, { exact: true }).fill("");
      }

      await page.getByLabel("device_type").selectOption("WEB");
      const sms = await create(page, demo, "+14155552671");
      expect(sms.text).toMatch(/\n@localhost #\d{6}$/);
      await code(page).fill(" - ");
      await press(page, "Check code");
      await expect.poll(() => page.locator("#code-error").innerText()).toContain("check_code");
    }));

  test("the sixth message to a number is rate_limited and not sent", () =>
    onPage(async (page, demo) => {
      for (let sent = 1; sent <= 5; sent++) {
        await create(page, demo);
        await press(page, "Change number");
      }
      await press(page, "Send code");
      await status(page, "rate_limited");
      await expect.poll(() => number(page).isVisible()).toBe(true);
      await expect.poll(() => page.getByRole("log").getByRole("listitem").count()).toBe(5);
    }));

  test("lookup lists known and unavailable fields, and shows its errors", () =>
    onPage(async (page) => {
      const field = lookup(page);
      await field.fill("+33 6 12 34 56 78");
      await press(page, "Look up");
      const result = page.locator("#lookup-result");
      await expect.poll(() => result.innerText()).toContain("FR · France");
      await expect.poll(() => result.innerText()).toMatch(/line_type\s+Mobile/);
      await expect.poll(() => result.innerText()).toMatch(/number_ported\s+not available offline/);
      await field.fill("12");
      await press(page, "Look up");
      await expect.poll(() => page.locator("#lookup-error").innerText()).toContain("phone_number");
      await expect.poll(() => result.innerText()).toBe("");
    }));

  test("calls are listed as sent over HTTP, also those from outside the page, with their explanation and a curl command that repeats them", () =>
    onPage(async (page, demo) => {
      const sms = await create(page, demo);
      const row = calls(page).filter({ hasText: "POST /v1/authentication" });
      await row.locator("summary").first().click();
      const box = (name: string) => row.getByRole("group", { name, exact: true });
      expect(JSON.parse(await box("Request body").innerText())).toEqual({
        customer_uuid: demo.customer_uuid,
        phone_number: "+14155552671",
        callback_url: `${demo.url}/dev/callbacks`,
      });
      expect(JSON.parse(await box("Response body").innerText())).toMatchObject({ authentication_uuid: sms.authentication_uuid, status: "pending" });
      await expect.poll(() => row.innerText()).toMatch(/1 message sent \(accepted\) · 5 tries and 4 messages left · expires in (10:00|9:59)\./);
      await row.getByText("Full explanation").click();
      expect(JSON.parse(await box("Explanation").innerText())).toMatchObject({ authentication_uuid: sms.authentication_uuid, left: { checks: 5 } });
      const curl = await box("curl command").innerText();
      expect(curl).toContain(`-H 'x-api-key: ${demo.api_key}'`);
      const repeated = await promisify(execFile)("sh", ["-c", curl]);
      expect(JSON.parse(repeated.stdout)).toMatchObject({ status: "pending" });
      await calls(page).filter({ hasText: "from outside this page" }).waitFor();
      await expect.poll(() => calls(page).filter({ hasText: "POST /v1/authentication" }).count()).toBe(2);
      await promisify(execFile)("curl", ["-sS", `${demo.url}/v1/check`, "-H", "x-api-key: wrong", "-d", "no JSON"]);
      const refused = calls(page).filter({ hasText: "forbidden" });
      await refused.locator("summary").click();
      await refused.getByText("No body.").waitFor();
      // The newest first.
      await expect.poll(() => calls(page).first().innerText()).toContain("forbidden");
      await page.reload();
      await expect
        .poll(() =>
          calls(page)
            .filter({ hasText: /POST|Callback/ })
            .count(),
        )
        .toBe(5);
      await expect.poll(() => calls(page).first().innerText()).toContain("forbidden");
    }));

  test("callbacks are listed as they arrive, with their body; a checkbox turns them off", () =>
    onPage(async (page, demo) => {
      const sms = await create(page, demo);
      const callbacks = calls(page).filter({ hasText: "Callback" });
      await callbacks.filter({ hasText: "submitted" }).waitFor();
      await page.getByRole("log").getByRole("button", { name: "Delivered" }).click();
      const last = callbacks.filter({ hasText: "Callback 2" });
      await last.filter({ hasText: "delivered" }).waitFor();
      await last.locator("summary").click();
      expect(JSON.parse(await last.getByRole("group", { name: "Callback" }).innerText())).toMatchObject({
        type: "delivery_status",
        data: { authentication_uuid: sms.authentication_uuid, sequence: 2, attempt: 1, status: "delivered", phone_number: "+14155****71" },
      });
      await press(page, "Change number");
      await page.getByText("More options").click();
      await page.getByLabel("callback_url").uncheck();
      await create(page, demo, "+447400123456");
      const bare = calls(page).filter({ hasText: "POST /v1/authentication" }).first();
      await expect.poll(() => calls(page).filter({ hasText: "POST /v1/authentication" }).count()).toBe(2);
      await bare.locator("summary").click();
      const sent = await bare.getByRole("group", { name: "Request body" }).innerText();
      expect(JSON.parse(sent)).toEqual({ customer_uuid: demo.customer_uuid, phone_number: "+447400123456" });
    }));

  test("the newest eight calls are shown, and older ones on request", () =>
    onPage(async (page, demo) => {
      const lookup = `${demo.url}/v1/lookup/+33612345678`;
      for (let call = 0; call < 12; call++) await fetch(lookup, { headers: { "x-api-key": demo.api_key, "customer-uuid": demo.customer_uuid } });
      const older = page.getByRole("button", { name: "Show 4 older" });
      await older.waitFor();
      const visible = () => page.evaluate("[...document.querySelectorAll('#calls > li')].filter((row) => row.checkVisibility()).length");
      await expect.poll(() => visible()).toBe(8);
      await older.click();
      await expect.poll(() => visible()).toBe(12);
      expect(await page.evaluate("document.activeElement.closest('li') === document.querySelectorAll('#calls > li')[8]")).toBe(true);
    }));

  test("the live regions exist before the first response and lookup, for screen readers, and lists and timers have their roles", () =>
    onPage(async (page, demo) => {
      const region = page.getByRole("status");
      await expect.poll(() => region.innerText()).toBe("");
      await page.evaluate("window.before = [document.querySelector('#status'), document.querySelector('#lookup-result')]");
      expect(await page.evaluate("before.map((element) => element.checkVisibility())")).toEqual([true, true]);
      await create(page, demo);
      await expect.poll(() => region.innerText()).toContain("Code sent");
      await lookup(page).fill("+33 6 12 34 56 78");
      await press(page, "Look up");
      await page.getByText("FR · France").waitFor();
      expect(await page.evaluate("[before[0] === document.querySelector('[role=status]'), before[1] === document.querySelector('#lookup-result')]")).toEqual([
        true,
        true,
      ]);
      await expect.poll(() => page.getByRole("log", { name: "Messages" }).getByRole("list").count()).toBe(1);
      expect(await page.evaluate("[...document.querySelectorAll('[role=timer]')].map((timer) => timer.parentElement.tagName)")).toEqual(["DD", "DD"]);
      await expect.poll(() => page.getByRole("definition").count()).toBeGreaterThan(3);
      await expect.poll(() => page.getByRole("timer", { name: "Code expires in" }).innerText()).toMatch(/^(10:00|9:5\d)$/);
    }));

  test("messages, their notice and calls add no tab stop before the form", () =>
    onPage(
      async (page, demo) => {
        const before = () =>
          page.evaluate(
            "(() => { const all = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]')].filter((e) => e.checkVisibility()); return all.slice(0, all.findIndex((e) => e.closest('#verify'))).map((e) => e.id || e.className); })()",
          );
        expect(await before()).toEqual([]);
        await create(page, demo);
        await page.locator("#notice").waitFor();
        expect(await before()).toEqual([]);
      },
      { viewport: phone },
    ));

  test.each([
    ["light", 1280],
    ["dark", 390],
  ] as const)("axe finds no error in the %s page at %i px, in any state", async (colorScheme, width) => {
    await onPage(
      async (page, demo) => {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        const faults = async (state: string) => {
          await page.evaluate(await axe);
          const { violations } = (await page.evaluate("axe.run()")) as { violations: { id: string; nodes: { html: string }[] }[] };
          expect(
            violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`),
            state,
          ).toEqual([]);
        };
        await faults("at the start");
        await page.getByText("More options").click();
        await page.getByRole("button", { name: "Expires in 15 s" }).click();
        await number(page).fill("12");
        await press(page, "Send code");
        await expect.poll(() => page.locator("#phone_number-error").innerText()).not.toBe("");
        await faults("a fault at its field");
        await page.getByRole("button", { name: "Expires in 15 s" }).click();
        const sms = await create(page, demo);
        await lookup(page).fill("+33612345678");
        await press(page, "Look up");
        await page.getByText("FR · France").waitFor();
        await unfold(page);
        await page.locator("#calls pre").first().waitFor();
        await faults("everything unfolded");
        for (let wrong = 1; wrong <= 5; wrong++) {
          await code(page).fill(wrongFor(sms.code));
          await press(page, "Check code");
          await page.getByText(`${wrong} of 5`, { exact: true }).waitFor();
        }
        await faults("locked");
        await page.getByRole("button", { name: "Start a new verification" }).click();
        const next = await create(page, demo);
        await code(page).fill(next.code);
        await press(page, "Check code");
        await status(page, "valid");
        await faults("verified");
      },
      { viewport: { width, height: 900 } },
    );
  });

  test("the keyboard alone reaches everything, and every tab stop has a visible focus", () =>
    onPage(async (page, demo) => {
      /** Tabs until the focus is on the element with this text or id; fails at a stop without a visible focus. */
      const tabTo = async (wanted: string) => {
        for (let stops = 0; stops < 40; stops++) {
          await page.keyboard.press("Tab");
          const [name, outline] = (await page.evaluate(
            "(() => { const e = document.activeElement; return [e.id || e.textContent.trim(), getComputedStyle(e).outlineStyle]; })()",
          )) as [string, string];
          if (name === wanted) return;
          expect(`${name}: ${outline}`).not.toContain(": none");
        }
        throw new Error(`the keyboard does not reach ${wanted}`);
      };
      await tabTo("phone_number");
      await page.keyboard.type("+447400123456");
      await page.keyboard.press("Enter");
      await status(page, "pending");
      const sms = await demo.sms();
      // The focus is already in the code field.
      await page.keyboard.type(wrongFor(sms.code));
      await page.keyboard.press("Enter");
      await status(page, "invalid");
      // The wrong code is selected: typing replaces it.
      await tabTo("retry");
      await page.keyboard.press("Enter");
      await status(page, "denied");
      await tabTo(sms.code);
      await page.keyboard.press("Enter");
      await expect.poll(() => code(page).inputValue()).toBe(sms.code);
      await page.keyboard.press("Enter");
      await status(page, "valid");
      await tabTo("lookup");
      await page.keyboard.type("+447400123456");
      await page.keyboard.press("Enter");
      await expect.poll(() => page.locator("#lookup-result").innerText()).toContain("GB");
    }));

  test.each([375, 390])("at %i px nothing is wider than the screen, no word is broken, and tapping the notice of a message fills in its code", (width) =>
    onPage(
      async (page, demo) => {
        const overflow = () =>
          page.evaluate(
            "[...document.querySelectorAll('main *')].filter((e) => !e.closest('pre') && e.getBoundingClientRect().right > innerWidth).length + Math.max(0, document.documentElement.scrollWidth - innerWidth)",
          );
        const broken = () => page.evaluate(brokenWords);
        await page.getByText("More options").click();
        expect(await overflow()).toBe(0);
        expect(await broken()).toEqual([]);
        await press(page, "No country code");
        await press(page, "Send code");
        await expect.poll(() => page.locator("#phone_number-error").innerText()).not.toBe("");
        expect(await overflow()).toBe(0);
        expect(await broken()).toEqual([]);
        const sms = await create(page, demo, "+4915123456789");
        await page.getByRole("button", { name: `Messages Tap to fill in ${sms.text}` }).click();
        await expect.poll(() => code(page).inputValue()).toBe(sms.code);
        expect(await overflow()).toBe(0);
        expect(await broken()).toEqual([]);
        await press(page, "Check code");
        await status(page, "valid");
        await lookup(page).fill("+4915123456789");
        await press(page, "Look up");
        await expect.poll(() => page.locator("#lookup-result").innerText()).toContain("Germany");
        await unfold(page);
        expect(await overflow()).toBe(0);
        expect(await broken()).toEqual([]);
      },
      { viewport: { ...phone, width } },
    ),
  );

  test("the page reports a stopped demo, and uses the new key of one that starts again on the same port", () =>
    onPage(
      async (page, demo) => {
        const { port } = new URL(demo.url);
        await demo.stop();
        await page.getByText("The demo is not running").waitFor();
        const again = await startDemo(["--port", port]);
        try {
          await page.getByText("Local demo", { exact: true }).waitFor();
          await create(page, again);
        } finally {
          await again.stop();
        }
      },
      { tolerated: /ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET)/ },
    ));

  test.each(["light", "dark"] as const)("every text of the %s page has a contrast of at least 4.5", async (colorScheme) => {
    await onPage(async (page, demo) => {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const sms = await create(page, demo);
      for (const state of ["pending", "invalid", "denied", "valid", "already_validated"]) {
        if (state === "invalid") await code(page).fill(wrongFor(sms.code));
        if (state === "valid") await code(page).fill(sms.code);
        if (state === "denied") await press(page, "Send again");
        else if (state !== "pending") await press(page, state === "already_validated" ? "Check again" : "Check code");
        await status(page, state);
        expect(await page.evaluate(lowContrast), state).toEqual([]);
      }
    });
  });
});

/** Words that are split across lines, outside scrolling boxes. */
const brokenWords = `(() => {
  const broken = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.parentElement.checkVisibility() || node.parentElement.closest("script, noscript, option, pre")) continue;
    for (const { 0: word, index } of node.data.matchAll(/\\S+/g)) {
      const range = new Range();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) broken.push(word);
    }
  }
  return broken;
})()`;

/** Texts whose contrast with the nearest opaque background is below 4.5:1 (WCAG 2, AA). */
const lowContrast = `(() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map((part) => (colour.startsWith("color(") ? part * 255 : Number(part)));
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => { for (let e = element; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3) return c; } return [255, 255, 255]; };
  const faults = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === "" || !element.checkVisibility() || element.closest("script, noscript, option")) continue;
    const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(ground(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faults.push(node.data.trim() + ": " + ratio.toFixed(2));
  }
  return faults;
})()`;
