import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OtpAnswer } from "../../clients/otp-input/index.js";
import { hasChromium } from "../support/chromium.js";
import { addScript, element, field, openPages, type PageOptions, type Pages, told, watch } from "./pages.js";

const at = (seconds: number) => new Date(Date.UTC(2026, 2, 1, 12, 0, seconds)).toISOString();

/** Stops the page's clock at noon until a test runs it. It starts earlier, as it runs until then and cannot go back. */
const noon: Pick<PageOptions, "before"> = { before: (page) => page.clock.install({ time: at(-3_600) }).then(() => page.clock.pauseAt(at(0))) };

describe.skipIf(!hasChromium("<otp-input>"))("<otp-input>", () => {
  let pages: Pages;
  beforeAll(async () => {
    pages = await openPages("clients/otp-input/index.ts");
  });
  afterAll(() => pages?.close());

  const value = (page: Page) => element(page, (otp) => otp.value);
  const message = (page: Page) => page.locator("otp-input p");
  const resend = (page: Page) => page.locator("otp-input [part=resend]");
  const call = (page: Page) => page.locator("otp-input [part=call]");
  const spoken = (page: Page) => page.getByRole("status").textContent();
  const completions = async (page: Page) => (await told(page)).filter((one) => one.startsWith("otp-complete")).map((one) => one.slice("otp-complete ".length));
  /** Records announcements from now on. */
  const listen = async (page: Page) => {
    await page.evaluate(() => {
      const said: (string | null)[] = [];
      Object.assign(globalThis, { said });
      const live = document.querySelector("otp-input")?.shadowRoot?.querySelector("[role=status]") as Element;
      new MutationObserver(() => said.push(live.textContent)).observe(live, { childList: true, characterData: true, subtree: true });
    });
    return () => page.evaluate(() => (globalThis as unknown as { said: string[] }).said);
  };
  const paste = async (page: Page, text: string) => {
    await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
    await field(page).press("Control+V");
  };

  describe("the field", () => {
    test("is one real input, for autofill and the numeric keyboard", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        expect(await field(page).count()).toBe(1);
        const named = await field(page).evaluate((input) => Object.fromEntries([...input.attributes].map(({ name, value }) => [name, value])));
        expect(named).toMatchObject({ autocomplete: "one-time-code", inputmode: "numeric", enterkeyhint: "done" });
        expect(named).not.toHaveProperty("maxlength");
      }));

    test("accepts digits, and fires otp-complete once when all are entered", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await watch(page);
        await field(page).pressSequentially("12a34 5");
        expect(await value(page)).toBe("12345");
        await page.keyboard.type("67");
        expect(await value(page)).toBe("123456");
        expect((await told(page)).filter((one) => one.startsWith("otp"))).toEqual(["otp-complete 123456"]);
        await page.keyboard.press("Backspace");
        await page.keyboard.type("9");
        expect((await told(page)).filter((one) => one.startsWith("otp"))).toEqual(["otp-complete 123456", "otp-complete 123459"]);
      }));

    test("fires input and change like any field", () =>
      pages.on("<otp-input></otp-input><button>elsewhere</button>", async (page) => {
        await watch(page);
        await field(page).pressSequentially("12");
        await page.keyboard.press("Tab");
        expect(await told(page)).toEqual(["input", "input", "change"]);
      }));

    const pasted: [text: string, value: string][] = [
      ["Your code is 123 456", "123456"],
      ["٤٨٢٩١٣", "482913"],
      ["482-913", "482913"],
      ["Code: 482913\n\n@example.com #482913", "482913"],
      ["48", "48"],
      ["nothing", ""],
      ["+33 6 12 34 56 78", ""],
    ];
    test.each(pasted)("pasted %j: %j", (text, expected) =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await watch(page);
        await field(page).focus();
        await paste(page, text);
        await expect.poll(() => value(page)).toBe(expected);
        expect((await told(page)).includes(`otp-complete ${expected}`)).toBe(expected.length === 6);
      }),
    );

    test("a pasted message replaces the digits in the field", () =>
      pages.on("<otp-input value=11></otp-input>", async (page) => {
        await field(page).press("End");
        await paste(page, "Your code is 482913");
        await expect.poll(() => value(page)).toBe("482913");
      }));

    test("text that a keyboard or browser inserts at once is accepted, also with separators or digits of other scripts", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await watch(page);
        await field(page).focus();
        for (const [text, expected] of [
          ["482-913", "482913"],
          ["१२३४५६", "123456"],
        ] as const) {
          await field(page).selectText();
          await page.keyboard.insertText(text);
          expect(await value(page)).toBe(expected);
        }
        expect((await told(page)).filter((one) => one.startsWith("otp"))).toEqual(["otp-complete 482913", "otp-complete 123456"]);
      }));

    const inserted: [typed: string, text: string, completed: string][] = [
      ["12", "123456", "123456"],
      ["12", "Your code is 482 913", "482913"],
      ["123", "456", "123456"],
    ];
    test.each(inserted)("after %s, a keyboard's suggestion %j gives %s", (typed, text, completed) =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await watch(page);
        await field(page).pressSequentially(typed);
        await page.keyboard.insertText(text);
        expect(await completions(page)).toEqual([completed]);
      }),
    );

    test("in a full field, a digit replaces the one at the caret", () =>
      pages.on("<otp-input value=123456></otp-input>", async (page) => {
        await watch(page);
        const { x, y, width, height } = (await page.locator("otp-input [part~=box]").nth(2).boundingBox()) as DOMRect;
        await page.mouse.click(x + width * 0.3, y + height / 2);
        await page.keyboard.type("7");
        expect(await completions(page)).toEqual(["127456"]);
        await page.keyboard.press("End");
        await page.keyboard.type("8");
        expect(await value(page)).toBe("127456");
      }));

    const undone: [what: string, typed: string, does: (page: Page) => Promise<unknown>][] = [
      ["a code that was pasted over digits", "12", (page) => paste(page, "123456")],
      ["a message that was pasted", "12", (page) => paste(page, "Your code is 482 913")],
      ["digits that were pasted with what is none", "12", (page) => paste(page, "3-4")],
      ["what a keyboard suggested", "12", (page) => page.keyboard.insertText("482-913")],
      ["a digit typed over another", "123456", (page) => page.keyboard.press("ArrowLeft").then(() => page.keyboard.type("7"))],
      ["a digit typed after what is none", "12", (page) => page.keyboard.type("a3")],
    ];
    test.each(undone)("%s can be undone and redone in one step, without otp-complete", (_, typed, does) =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await field(page).pressSequentially(typed);
        await page.keyboard.press("ArrowLeft");
        await page.keyboard.press("ArrowRight");
        await does(page);
        await expect.poll(() => value(page)).not.toBe(typed);
        const after = await value(page);
        await watch(page);
        await page.keyboard.press("Control+Z");
        expect(await value(page)).toBe(typed);
        await page.keyboard.press("Control+Shift+Z");
        expect(await value(page)).toBe(after);
        expect(await told(page)).toEqual(["input", "input"]);
      }),
    );

    test("digits are inserted even if document.execCommand is not supported", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await watch(page);
        await page.evaluate(() => Object.assign(document, { execCommand: () => false }));
        await field(page).pressSequentially("12");
        await page.keyboard.insertText("482-913");
        expect(await completions(page)).toEqual(["482913"]);
      }));

    test("composed text replaces the same digits as typed text when the composition ends", () =>
      pages.on("<otp-input value=123456></otp-input>", async (page) => {
        await watch(page);
        const devtools = await page.context().newCDPSession(page);
        const compose = async (text: string) => {
          await devtools.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length });
          await devtools.send("Input.insertText", { text });
        };
        await field(page).press("Home");
        await page.keyboard.press("ArrowRight");
        await compose("７");
        await compose("१२३४५६");
        expect(await completions(page)).toEqual(["173456", "123456"]);
      }));

    test("composed text is accepted when the composition ends, and not changed before", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await field(page).focus();
        const devtools = await page.context().newCDPSession(page);
        await devtools.send("Input.imeSetComposition", { text: "１２３", selectionStart: 3, selectionEnd: 3 });
        expect(await field(page).inputValue()).toBe("１２３");
        await devtools.send("Input.insertText", { text: "１２３" });
        expect(await value(page)).toBe("123");
      }));

    test("during a composition, value has the digits and nothing else, as the form has", () =>
      pages.on("<form><otp-input name=code></otp-input></form>", async (page) => {
        await field(page).pressSequentially("12");
        const devtools = await page.context().newCDPSession(page);
        await devtools.send("Input.imeSetComposition", { text: "abc", selectionStart: 3, selectionEnd: 3 });
        expect(await element(page, (otp) => [otp.value, new FormData(otp.form as HTMLFormElement).get("code")])).toEqual(["12", "12"]);
      }));

    test("digits typed in the middle stay there, with the caret after them", () =>
      pages.on("<otp-input value=1256></otp-input>", async (page) => {
        await field(page).press("Home");
        await page.keyboard.press("ArrowRight");
        await page.keyboard.press("ArrowRight");
        await page.keyboard.type("3x4");
        expect(await value(page)).toBe("123456");
        expect(await field(page).evaluate((input: HTMLInputElement) => input.selectionStart)).toBe(4);
      }));

    test("never scrolls, so that the last digit stays in the last box", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await field(page).pressSequentially("123456");
        expect(await field(page).evaluate((input) => [input.scrollLeft, (input.parentElement as Element).scrollLeft])).toEqual([0, 0]);
      }));

    test("length sets the number of digits, and a code of ten fits a narrow page", () =>
      pages.on(
        "<otp-input length=10></otp-input>",
        async (page) => {
          await watch(page);
          await field(page).pressSequentially("1234567890");
          expect(await told(page)).toContain("otp-complete 1234567890");
          const fits = await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
          expect(fits).toBe(true);
          await element(page, (otp) => {
            otp.length = 4;
          });
          expect(await value(page)).toBe("1234");
          await expect.poll(() => page.locator("otp-input [part~=box]").count()).toBe(4);
        },
        { viewport: { width: 320, height: 600 } },
      ));

    test.each(["", "0", "six", "-1", "13"])("an invalid length=%j gives six digits", (length) =>
      pages.on(`<otp-input length="${length}"></otp-input>`, async (page) => {
        expect(await element(page, (otp) => otp.length)).toBe(6);
      }),
    );

    test("the box of the next digit is active, and boxes with a digit are filled", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        const parts = () => page.locator("otp-input [part~=box]").evaluateAll((boxes) => boxes.map((box) => box.getAttribute("part")));
        await field(page).pressSequentially("12");
        expect(await parts()).toEqual(["box filled", "box filled", "box active", "box", "box", "box"]);
        await page.keyboard.press("ArrowLeft");
        expect((await parts())[1]).toBe("box filled active");
        await page.keyboard.type("3456");
        await page.keyboard.press("End");
        expect((await parts())[5]).toBe("box filled active");
        await field(page).selectText();
        await expect.poll(async () => new Set(await parts())).toEqual(new Set(["box filled active"]));
      }));
  });

  test("the last digit fires input, with the full value, and then otp-complete", () =>
    pages.on("<otp-input value=12345></otp-input>", async (page) => {
      await watch(page);
      await element(page, (otp) => otp.addEventListener("input", () => document.dispatchEvent(new CustomEvent("change", { detail: { code: otp.value } }))));
      await field(page).press("End");
      await page.keyboard.type("x6");
      expect(await told(page)).toEqual(["change 123456", "input", "otp-complete 123456"]);
    }));

  describe("a message that the browser reads (WebOTP)", () => {
    /** Simulates a phone: records requests, each of which cancels the previous; `deliver` resolves the last one. */
    const phone: PageOptions = {
      before: (page) =>
        page.addInitScript(() => {
          const asked: { otp: unknown; aborted: () => boolean }[] = [];
          let deliver: (code: string) => void = () => undefined;
          let cancel: () => void = () => undefined;
          Object.assign(globalThis, {
            OTPCredential: class {},
            asked: () => asked.map(({ otp, aborted }) => [otp, aborted()]),
            deliver: (code: string) => deliver(code),
          });
          navigator.credentials.get = ({ otp, signal }: CredentialRequestOptions & { otp?: unknown } = {}) =>
            new Promise((resolve, reject) => {
              asked.push({ otp, aborted: () => signal?.aborted === true });
              deliver = (code) => resolve({ code } as never);
              cancel();
              cancel = () => reject(new DOMException("cancelled", "AbortError"));
              signal?.addEventListener("abort", () => reject(signal.reason));
            });
        }),
    };
    const asked = (page: Page) => page.evaluate(() => (globalThis as unknown as { asked(): [unknown, boolean][] }).asked());
    const deliver = (page: Page, code: string) => page.evaluate((sent) => (globalThis as unknown as { deliver(code: string): void }).deliver(sent), code);
    const sms = { transport: ["sms"] };

    test("is requested from the start, and its code acts as if typed", () =>
      pages.on(
        "<otp-input></otp-input>",
        async (page) => {
          await watch(page);
          expect(await asked(page)).toEqual([[sms, false]]);
          await deliver(page, "482913");
          await expect.poll(() => value(page)).toBe("482913");
          expect(await told(page)).toEqual(["input", "otp-complete 482913"]);
        },
        phone,
      ));

    const ends: [what: string, does: (page: Page) => Promise<unknown>][] = [
      ["the element is taken away", (page) => element(page, (otp) => otp.remove())],
      ["its form is sent", (page) => page.evaluate(() => document.forms[0]?.requestSubmit())],
      ["the code is typed", (page) => field(page).pressSequentially("123456")],
      ["it is disabled", (page) => element(page, (otp) => void (otp.disabled = true))],
      ...["valid", "expired_auth", "rate_limited"].map((status): [string, (page: Page) => Promise<unknown>] => [
        `it is told ${status}`,
        (page) => element(page, (otp, told) => void (otp.answer = { status: told }), status).then(() => field(page).focus()),
      ]),
    ];
    test.each(ends)("is no longer requested once %s", (_, does) =>
      pages.on(
        "<form><otp-input name=code></otp-input></form>",
        async (page) => {
          await page.evaluate(() => document.forms[0]?.addEventListener("submit", (event) => event.preventDefault()));
          await does(page);
          await expect.poll(() => asked(page)).toEqual([[sms, true]]);
        },
        phone,
      ),
    );

    test("is requested again after a resend, but not while a request is pending", () =>
      pages.on(
        `<otp-input next-retry-at="${at(0)}"></otp-input>`,
        async (page) => {
          await resend(page).click();
          expect(await asked(page)).toEqual([[sms, false]]);
          await field(page).pressSequentially("111111");
          await element(page, (otp) => {
            otp.status = "approved";
          });
          await expect
            .poll(() => asked(page))
            .toEqual([
              [sms, true],
              [sms, false],
            ]);
        },
        phone,
      ));

    test("is not requested if the page starts with a status that expects none", () =>
      pages.on("<otp-input status=valid></otp-input>", async (page) => expect(await asked(page)).toEqual([]), phone));

    test("goes to the focused one of two fields", () =>
      pages.on(
        "<otp-input></otp-input><otp-input></otp-input>",
        async (page) => {
          expect(await asked(page)).toHaveLength(2);
          await field(page).first().focus();
          expect(await asked(page)).toHaveLength(3);
          await deliver(page, "482913");
          await expect.poll(() => field(page).evaluateAll((all) => all.map((one) => (one as HTMLInputElement).value))).toEqual(["482913", ""]);
        },
        phone,
      ));

    test("that never arrives causes no error", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await field(page).pressSequentially("123456");
        expect(await value(page)).toBe("123456");
      }));
  });

  describe("the button for another message", () => {
    test("is hidden until the page sets nextRetryAt", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        expect(await resend(page).isVisible()).toBe(false);
        await element(page, (otp) => {
          otp.nextRetryAt = "now";
        });
        expect(await resend(page).innerText()).toBe("Send a new code");
      }));

    test("counts down the seconds, and then fires otp-resend", () =>
      pages.on(
        `<otp-input next-retry-at="${at(30)}"></otp-input>`,
        async (page) => {
          await watch(page);
          expect(await resend(page).innerText()).toBe("New code in 30 seconds");
          await resend(page).click({ force: true });
          expect(await resend(page).getAttribute("aria-disabled")).toBe("true");
          expect(await told(page)).toEqual([]);
          await page.clock.runFor(1_000);
          expect(await resend(page).innerText()).toBe("New code in 29 seconds");
          await page.clock.runFor(28_001);
          expect(await resend(page).innerText()).toBe("New code in 1 second");
          await page.clock.runFor(1_000);
          expect(await resend(page).innerText()).toBe("Send a new code");
          await resend(page).click();
          expect(await told(page)).toEqual(["otp-resend"]);
        },
        noon,
      ));

    test("fires once for a double click, and can be pressed again after three seconds without a response", () =>
      pages.on(
        `<otp-input next-retry-at="${at(0)}"></otp-input>`,
        async (page) => {
          await watch(page);
          await resend(page).dblclick();
          expect(await told(page)).toEqual(["otp-resend"]);
          await page.clock.runFor(3_000);
          await resend(page).click();
          expect(await told(page)).toEqual(["otp-resend", "otp-resend"]);
        },
        noon,
      ));

    test("a clock that is set back during the countdown does not lengthen it", () =>
      pages.on(
        "<otp-input></otp-input>",
        async (page) => {
          await element(page, (otp) => {
            otp.answer = { status: "pending", created_at: "2026-02-28T12:00:00.000Z", next_retry_at: "2026-02-28T12:00:30.000Z", remaining_retry: 3 };
          });
          await page.clock.runFor(2_000);
          await page.clock.setSystemTime("2026-02-28T12:00:02Z"); // the phone got the right time from its network
          await page.clock.runFor(1_000);
          expect(await resend(page).innerText()).toBe("New code in 28 seconds");
          // The same time in a response without `created_at`
          await element(page, (otp) => {
            otp.answer = { status: "invalid", next_retry_at: "2026-02-28T12:00:30.000Z" };
          });
          expect(await resend(page).innerText()).toBe("New code in 28 seconds");
          // A new countdown by the right clock
          await element(page, (otp) => {
            otp.answer = { status: "approved", created_at: "2026-02-28T12:00:03.000Z", next_retry_at: "2026-02-28T12:01:03.000Z" };
          });
          expect(await resend(page).innerText()).toBe("New code in 60 seconds");
        },
        noon,
      ));

    test("accepts a response object unchanged, and uses its created_at as the server's time", () =>
      pages.on(
        "<otp-input></otp-input>",
        async (page) => {
          // The device is a day off.
          await element(page, (otp) => {
            otp.answer = {
              status: "approved",
              created_at: "2026-03-02T12:00:00.000Z",
              next_retry_at: "2026-03-02T12:01:00.000Z",
              remaining_retry: 3,
              remaining_checks: 5,
            };
          });
          expect(await resend(page).innerText()).toBe("New code in 60 seconds");
          expect(await message(page).innerText()).toBe("A new code is on its way.");
          const { nextRetryAt, remainingRetry, remainingChecks } = await element(page, ({ nextRetryAt, remainingRetry, remainingChecks }) => ({
            nextRetryAt,
            remainingRetry,
            remainingChecks,
          }));
          expect([nextRetryAt, remainingRetry, remainingChecks]).toEqual(["2026-03-02T12:01:00.000Z", 3, 5]);
          // Fields that are missing from a response do not change.
          await element(page, (otp) => {
            otp.answer = { status: "invalid", remaining_checks: 4 };
          });
          expect(await resend(page).innerText()).toBe("New code in 60 seconds");
          expect(await message(page).innerText()).toBe("That code is not right. 4 tries left");
        },
        noon,
      ));

    test.each([
      ["create", { status: "pending", remaining_retry: 0 }, false],
      ["retry", { status: "denied", remaining_retry: 3, next_retry_at: at(0) }, true],
    ] as const)("after a %s whose message no carrier accepted, shows this, and offers another message if one is left", (_, answer, offered) =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await element(page, (otp, answered) => void (otp.answer = { ...answered, carrier_refused: true }), answer);
        expect(await message(page).innerText()).toBe("We could not send a code to this number.");
        expect(await message(page).getAttribute("part")).toBe("message error");
        expect(await resend(page).isVisible()).toBe(offered);
        // Some pages merge the response of a check into the previous response.
        await element(page, (otp) => void (otp.answer = { ...otp.answer, status: "valid" }));
        expect(await message(page).innerText()).toBe("Your number is verified.");
      }),
    );

    const gone: [attributes: string][] = [
      ["remaining-retry=0"],
      ...["valid", "expired_auth", "rate_limited", "spam_detected", "no_attempt"].map((one): [string] => [`status=${one}`]),
    ];
    test.each(gone)("is hidden with %s, as no message can follow", (attributes) =>
      pages.on(`<otp-input next-retry-at="${at(0)}" ${attributes}></otp-input>`, async (page) => {
        expect(await resend(page).isVisible()).toBe(false);
      }),
    );

    describe("and for a call instead", () => {
      const shown = async (page: Page) => Promise.all([resend(page), call(page)].map(async (one) => ((await one.isVisible()) ? one.innerText() : "")));
      const answer = (page: Page, given: OtpAnswer) => element(page, (otp, answered) => void (otp.answer = answered), given);

      const offers: [attributes: string, offered: boolean][] = [
        ["", false],
        ["remaining-retry=0 call-after=1", false],
        ["call-after=1", true],
        ["call-after=2", false],
        ["remaining-retry=4 call-after=2", false],
        ["remaining-retry=3 call-after=2", true],
        ["remaining-retry=1 call-after=2", true],
        ["remaining-retry=3", false],
        ["remaining-retry=3 call-after=soon", false],
        ["remaining-retry=2 retries=2 call-after=2", false],
        ["remaining-retry=1 retries=2 call-after=2", true],
        ["remaining-retry=6 retries=6 call-after=2", false],
        ["remaining-retry=3 call-after=2 status=valid", false],
        ["remaining-retry=3 call-after=2 status=expired_auth", false],
      ];
      test.each(offers)("with %s: %j", (attributes, offered) =>
        pages.on(`<otp-input next-retry-at="${at(0)}" ${attributes}></otp-input>`, async (page) => {
          expect(await call(page).isVisible()).toBe(offered);
        }),
      );

      test("is offered after the second message, counts down next to the other button, and requests a call", () =>
        pages.on(
          "<otp-input call-after=2></otp-input>",
          async (page) => {
            await watch(page);
            await answer(page, { status: "pending", created_at: at(0), next_retry_at: at(30), remaining_retry: 4 });
            expect(await shown(page)).toEqual(["New code in 30 seconds", ""]);
            await page.clock.runFor(30_000);
            await resend(page).click();
            await answer(page, { status: "approved", created_at: at(30), next_retry_at: at(90), remaining_retry: 3 });
            expect(await shown(page)).toEqual(["New code in 60 seconds", "Call me instead (in 60 seconds)"]);
            await call(page).click({ force: true });
            expect(await call(page).getAttribute("aria-disabled")).toBe("true");
            await page.clock.runFor(60_000);
            expect(await shown(page)).toEqual(["Send a new code", "Call me instead"]);
            await call(page).click();
            expect(await told(page)).toEqual(["otp-resend", "otp-resend voice"]);
          },
          noon,
        ));

      test("pressing one button pauses both until the response, and does not shorten the wait for a call", () =>
        pages.on(
          `<otp-input next-retry-at="${at(0)}" call-after=1></otp-input>`,
          async (page) => {
            await watch(page);
            await call(page).dblclick();
            await resend(page).click({ force: true });
            expect(await told(page)).toEqual(["otp-resend voice"]);
            expect(await shown(page)).toEqual(["New code in 3 seconds", "Call me instead (in 3 seconds)"]);
            await answer(page, { status: "denied", next_retry_at: at(40) });
            await page.clock.runFor(3_000);
            await resend(page).click();
            expect(await told(page)).toEqual(["otp-resend voice", "otp-resend"]);
            expect(await shown(page)).toEqual(["New code in 3 seconds", "Call me instead (in 37 seconds)"]);
          },
          noon,
        ));

      test("a denied call has its own countdown, separate from that of the message", () =>
        pages.on(
          "<otp-input call-after=1></otp-input>",
          async (page) => {
            await answer(page, { status: "pending", created_at: at(0), next_retry_at: at(30), remaining_retry: 4 });
            await page.clock.runFor(30_000);
            await call(page).click();
            await answer(page, { status: "denied", created_at: at(30), next_retry_at: at(60), remaining_retry: 4 });
            await page.clock.runFor(3_000);
            expect(await shown(page)).toEqual(["Send a new code", "Call me instead (in 27 seconds)"]);
            // A check returns the time of the next message, as before.
            await answer(page, { status: "invalid", next_retry_at: at(30), remaining_retry: 4, remaining_checks: 4 });
            expect(await shown(page)).toEqual(["Send a new code", "Call me instead (in 27 seconds)"]);
            await page.clock.runFor(27_000);
            expect(await shown(page)).toEqual(["Send a new code", "Call me instead"]);
            await call(page).click();
            await answer(page, { status: "approved", created_at: at(60), next_retry_at: at(120), remaining_retry: 3 });
            expect(await shown(page)).toEqual(["New code in 60 seconds", "Call me instead (in 60 seconds)"]);
          },
          noon,
        ));

      test("a denied message makes both buttons wait", () =>
        pages.on(
          `<otp-input next-retry-at="${at(0)}" call-after=1></otp-input>`,
          async (page) => {
            await call(page).click();
            await page.clock.runFor(3_000);
            await resend(page).click();
            await answer(page, { status: "denied", next_retry_at: at(60), remaining_retry: 4 });
            expect(await shown(page)).toEqual(["New code in 57 seconds", "Call me instead (in 57 seconds)"]);
          },
          noon,
        ));

      test("a call that no carrier accepted makes both buttons wait again", () =>
        pages.on(
          `<otp-input next-retry-at="${at(0)}" call-after=1></otp-input>`,
          async (page) => {
            await call(page).click();
            await answer(page, { status: "denied", carrier_refused: true, next_retry_at: at(60), remaining_retry: 4 });
            expect(await shown(page)).toEqual(["New code in 60 seconds", "Call me instead (in 60 seconds)"]);
          },
          noon,
        ));

      test("works by keyboard, has an accessible name, and is disabled with the element", () =>
        pages.on(`<otp-input next-retry-at="${at(0)}" call-after=1></otp-input>`, async (page) => {
          await watch(page);
          expect(await page.locator("otp-input").ariaSnapshot()).toBe(
            '- textbox "Verification code"\n- button "Send a new code"\n- button "Call me instead"\n- status',
          );
          for (const key of ["Tab", "Tab", "Tab", "Enter"]) await page.keyboard.press(key);
          expect(await told(page)).toEqual(["otp-resend voice"]);
          await element(page, (otp) => void (otp.disabled = true));
          await expect.poll(() => call(page).isDisabled()).toBe(true);
        }));

      test("is announced when it appears and when its time differs, not with every wait of the other button", () =>
        pages.on(
          "<otp-input call-after=2></otp-input>",
          async (page) => {
            const said = await listen(page);
            await answer(page, { status: "approved", next_retry_at: at(60), remaining_retry: 3 });
            await page.clock.runFor(10_000);
            await answer(page, { status: "invalid", remaining_checks: 4 });
            await page.clock.runFor(50_000);
            await call(page).click();
            await answer(page, { status: "denied", next_retry_at: at(100), remaining_retry: 3 });
            await page.clock.runFor(41_000);
            expect(await said()).toEqual([
              "A new code is on its way. New code in 60 seconds Call me instead (in 60 seconds)",
              "That code is not right. 4 tries left New code in 50 seconds",
              "New code in 30 seconds",
              "You can ask for a new code now.",
              "A new code cannot be sent yet. New code in 3 seconds Call me instead (in 40 seconds)",
              "You can ask for a new code now.",
              "Call me instead (in 30 seconds)",
              "Call me instead",
            ]);
          },
          noon,
        ));

      test("is placed next to the other button, or below it if there is no room, also from right to left", () =>
        pages.on(
          `<otp-input lang=ar next-retry-at="${at(0)}" call-after=1></otp-input>`,
          async (page) => {
            expect(await call(page).innerText()).toBe("الاتصال بي بدلًا من ذلك");
            const boxes = () => Promise.all([resend(page), call(page)].map(async (one) => (await one.boundingBox()) as DOMRect));
            const [message, instead] = (await boxes()) as [DOMRect, DOMRect];
            expect(instead.y).toBe(message.y);
            expect(instead.x + instead.width).toBeLessThan(message.x);
            await page.setViewportSize({ width: 200, height: 600 });
            const [above, below] = (await boxes()) as [DOMRect, DOMRect];
            expect(below.y).toBeGreaterThanOrEqual(above.y + above.height);
            expect(Math.round(below.x + below.width)).toBe(Math.round(above.x + above.width));
          },
          { html: 'lang="ar" dir="rtl"', viewport: { width: 600, height: 600 } },
        ));
    });

    test("a removed element stops counting down, and continues when it is back", () =>
      pages.on(
        `<otp-input next-retry-at="${at(30)}"></otp-input>`,
        async (page) => {
          await page.evaluate(() => Object.assign(globalThis, { kept: document.querySelector("otp-input") }));
          await element(page, (otp) => otp.remove());
          await page.clock.runFor(5_000);
          const there = () => (globalThis as unknown as { kept: Element }).kept.shadowRoot?.querySelector("button")?.textContent;
          expect(await page.evaluate(there)).toBe("New code in 30 seconds");
          await page.evaluate(() => document.body.append((globalThis as unknown as { kept: Element }).kept));
          expect(await resend(page).innerText()).toBe("New code in 25 seconds");
          await page.clock.runFor(1_000);
          expect(await resend(page).innerText()).toBe("New code in 24 seconds");
        },
        noon,
      ));
  });

  describe("words", () => {
    const rows: [attributes: string, lang: string, text: string][] = [
      ["status=pending", "en", "Your code is on its way."],
      ["status=approved", "fr", "Un nouveau code est en route."],
      ["status=denied", "de", "Ein neuer Code kann noch nicht gesendet werden."],
      ["status=invalid remaining-checks=1", "en-GB", "That code is not right. 1 try left"],
      ["status=invalid remaining-checks=3", "pl", "Kod jest nieprawidłowy. Pozostały 3 próby"],
      ["status=invalid", "ja", "コードが正しくありません。"],
      ["status=invalid remaining-checks=0", "en", "Too many attempts. Please try again later."],
      ["status=rate_limited", "zh-TW", "嘗試次數過多，請稍後再試。"],
      ["status=expired_auth", "ar", "انتهت صلاحية هذا الرمز. يُرجى البدء من جديد."],
      ["status=without_attempt", "it", "Non è stato possibile inviare un codice a questo numero."],
      ["status=carrier_refused", "pt", "Não foi possível enviar um código para este número."],
      ["status=unavailable", "es", "Algo ha ido mal. Inténtalo de nuevo."],
      ["status=valid", "sv", "Your number is verified."],
    ];
    test.each(["constructor", "toString", "__proto__"])("the status %s is an error like any unknown one, and prints no object internals", (status) =>
      pages.on(`<otp-input status="${status}"></otp-input>`, async (page) => {
        expect(await message(page).getAttribute("class")).toBe("message error");
        expect(await message(page).textContent()).not.toMatch(/function|native|object/);
      }),
    );

    test("are shown for every status, in the language of the page", () =>
      pages.on(rows.map(([attributes, lang]) => `<div lang="${lang}"><otp-input ${attributes}></otp-input></div>`).join(""), async (page) => {
        expect(await message(page).allInnerTexts()).toEqual(rows.map(([, , text]) => text));
      }));

    test("follow the `lang` of the nearest ancestor, also through shadow roots, and change with it", () =>
      pages.on('<section lang="fr"><div></div></section>', async (page) => {
        await page.evaluate(() => {
          const otp = document.createElement("otp-input");
          otp.status = "valid";
          document.querySelector("div")?.attachShadow({ mode: "open" }).append(otp);
        });
        expect(await message(page).innerText()).toBe("Votre numéro est vérifié.");
        await page.evaluate(() => document.querySelector("section")?.setAttribute("lang", "nl"));
        expect(await message(page).innerText()).toBe("Je nummer is geverifieerd.");
        await element(page, (otp) => {
          otp.lang = "tr";
        });
        expect(await message(page).innerText()).toBe("Numaranız doğrulandı.");
      }));

    test("are in the visitor's language if the page has none", () =>
      pages.on("<otp-input status=valid></otp-input>", async (page) => expect(await message(page).innerText()).toBe("Il tuo numero è verificato."), {
        html: "",
        locale: "it-IT",
      }));

    test("run from right to left in Arabic, while the code runs from left to right", () =>
      pages.on(
        "<otp-input label='الرمز' value=12 status=invalid></otp-input>",
        async (page) => {
          const boxes = await page
            .locator("otp-input [part~=box]")
            .evaluateAll((all) => all.map((box) => [box.getBoundingClientRect().left, box.getAttribute("part")]));
          const lefts = boxes.map(([left]) => left as number);
          expect([...lefts].sort((a, b) => a - b)).toEqual(lefts);
          expect(boxes.map(([, part]) => String(part).includes("filled"))).toEqual([true, true, false, false, false, false]);
          const right = (selector: string) => page.locator(`otp-input ${selector}`).evaluate((one) => Math.round(one.getBoundingClientRect().right));
          expect(await right("[part=field]")).toBe(await right("[part=label]"));
          expect(await message(page).evaluate((one) => getComputedStyle(one).direction)).toBe("rtl");
        },
        { html: 'lang="ar" dir="rtl"' },
      ));
  });

  describe("for screen readers", () => {
    /** The description that the browser exposes to a screen reader. */
    const described = async (page: Page) => {
      const devtools = await page.context().newCDPSession(page);
      const { nodes } = (await devtools.send("Accessibility.getFullAXTree")) as { nodes: { role?: { value?: unknown }; description?: { value?: unknown } }[] };
      return nodes.find(({ role }) => role?.value === "textbox")?.description?.value ?? "";
    };
    const names: [what: string, body: string, name: string][] = [
      ["nothing said", "<otp-input></otp-input>", "Verification code"],
      ["a label of the page", "<label for=c>Code from the message</label><otp-input id=c></otp-input>", "Code from the message"],
      ["a label around it", "<label>Your code <otp-input></otp-input></label>", "Your code"],
      ["a label of its own", "<otp-input label='The code'></otp-input>", "The code"],
      ["aria-label", "<otp-input aria-label='Six digits'></otp-input>", "Six digits"],
      ["aria-labelledby", "<b id=a>Code</b> <b id=b>by SMS</b><otp-input aria-label=Other label=Seen aria-labelledby='a b none'></otp-input>", "Code by SMS"],
      ["aria-labelledby of nothing", "<otp-input aria-labelledby=none></otp-input>", "Verification code"],
    ];
    test.each(names)("its name, with %s: %s %s", (_, body, name) =>
      pages.on(body, async (page) => expect(await page.getByRole("textbox", { name, exact: true }).count()).toBe(1)),
    );

    test("its description is the text of aria-describedby, followed by its own, also in a shadow tree and after a change", () =>
      pages.on("<div></div>", async (page) => {
        await page.evaluate(() => {
          const [otp, hint] = [document.createElement("otp-input"), document.createElement("p")];
          hint.id = "hint";
          hint.textContent = "Look at your phone.";
          otp.status = "pending";
          otp.setAttribute("aria-describedby", "hint");
          document.querySelector("div")?.attachShadow({ mode: "open" }).append(hint, otp);
        });
        expect(await described(page)).toBe("Look at your phone. Your code is on its way.");
        await page.locator("#hint").evaluate((hint) => void (hint.textContent = "It may take a minute."));
        await field(page).focus();
        expect(await described(page)).toBe("It may take a minute. Your code is on its way.");
        await element(page, (otp) => otp.removeAttribute("aria-describedby"));
        expect(await described(page)).toBe("Your code is on its way.");
      }));

    test("a click on its label focuses the field", () =>
      pages.on("<label for=c>Code</label><otp-input id=c></otp-input>", async (page) => {
        await page.getByText("Code", { exact: true }).click();
        await page.keyboard.type("12");
        expect(await value(page)).toBe("12");
      }));

    test("a wrong code is marked invalid until it is changed, and described by the message with the tries left", () =>
      pages.on("<otp-input value=111111></otp-input>", async (page) => {
        await field(page).focus();
        await element(page, (otp) => {
          otp.answer = { status: "invalid", remaining_checks: 2 };
        });
        expect(await described(page)).toBe("That code is not right. 2 tries left");
        expect(await field(page).getAttribute("aria-invalid")).toBe("true");
        expect(await spoken(page)).toBe("That code is not right. 2 tries left");
        // The next typed digit replaces the wrong code.
        await page.keyboard.type("2");
        expect(await value(page)).toBe("2");
        expect(await field(page).getAttribute("aria-invalid")).toBe("false");
        expect(await described(page)).toBe("That code is not right. 2 tries left");
      }));

    test("the same response is announced each time", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        const tell = () => element(page, (otp) => void (otp.answer = { status: "invalid", remaining_checks: 2 }));
        await tell();
        const first = await spoken(page);
        await tell();
        expect(await spoken(page)).not.toBe(first);
        expect((await spoken(page))?.trim()).toBe(first);
      }));

    test("a wait is announced when it begins, every half minute and when it is over, not every second", () =>
      pages.on(
        "<otp-input></otp-input>",
        async (page) => {
          const said = await listen(page);
          await element(page, (otp) => {
            otp.answer = { status: "approved", next_retry_at: "2026-03-01T12:01:10.000Z" };
          });
          await page.clock.runFor(80_000);
          expect(await said()).toEqual([
            "A new code is on its way. New code in 70 seconds",
            "New code in 60 seconds",
            "New code in 30 seconds",
            "You can ask for a new code now.",
          ]);
        },
        noon,
      ));

    test("the boxes are not announced, and only the field and the button are tab stops", () =>
      pages.on(`<otp-input next-retry-at="${at(0)}"></otp-input><a href="#">after</a>`, async (page) => {
        const stops: string[] = [];
        for (let i = 0; i < 3; i++) {
          await page.keyboard.press("Tab");
          stops.push(
            await page.evaluate(() => {
              const here = document.activeElement as Element;
              return (here.shadowRoot?.activeElement ?? here).tagName;
            }),
          );
        }
        expect(stops).toEqual(["INPUT", "BUTTON", "A"]);
        expect(await page.locator("otp-input").ariaSnapshot()).toBe('- textbox "Verification code"\n- button "Send a new code"\n- status');
      }));
  });

  describe("in a form", () => {
    const fields = (page: Page) => page.evaluate(() => [...new FormData(document.forms[0])]);

    test("its value is submitted under its name, unless it is disabled", () =>
      pages.on("<form><fieldset><otp-input name=code value=123></otp-input></fieldset></form>", async (page) => {
        expect(await fields(page)).toEqual([["code", "123"]]);
        await field(page).press("End");
        await page.keyboard.type("456");
        expect(await fields(page)).toEqual([["code", "123456"]]);
        await page.evaluate(() => document.querySelector("fieldset")?.toggleAttribute("disabled"));
        expect(await fields(page)).toEqual([]);
        expect(await field(page).isDisabled()).toBe(true);
        await page.evaluate(() => document.querySelector("fieldset")?.toggleAttribute("disabled"));
        expect(await field(page).isDisabled()).toBe(false);
        await element(page, (otp) => {
          otp.disabled = true;
        });
        expect(await field(page).isDisabled()).toBe(true);
      }));

    test.each([
      ["by itself", "<form><otp-input name=code disabled></otp-input></form>", "otp-input"],
      ["with its fieldset", "<form><fieldset disabled><otp-input name=code></otp-input></fieldset></form>", "fieldset"],
    ])("a field that is enabled again (%s) takes the focus at once", (_, body, disabled) =>
      pages.on(body, async (page) => {
        const focused = await page.evaluate((name) => {
          document.querySelector(name)?.removeAttribute("disabled");
          document.querySelector("otp-input")?.focus();
          return document.activeElement?.localName;
        }, disabled);
        expect(focused).toBe("otp-input");
      }),
    );

    test("Enter submits the form only with a complete code", () =>
      pages.on("<form action=/sent><otp-input name=code required></otp-input></form>", async (page) => {
        const invalid = () => element(page, (otp) => [otp.validity.valueMissing, otp.validity.tooShort, otp.checkValidity(), otp.validationMessage]);
        expect(await invalid()).toEqual([true, false, false, "Enter the whole code."]);
        await field(page).pressSequentially("12345");
        expect(await invalid()).toEqual([false, true, false, "Enter the whole code."]);
        await page.keyboard.press("Enter");
        expect(new URL(page.url()).pathname).toBe("/");
        await page.keyboard.type("6");
        expect(await invalid()).toEqual([false, false, true, ""]);
        await page.keyboard.press("Enter");
        await page.waitForURL("**/sent?code=123456");
      }));

    describe("that is submitted on otp-complete", () => {
      const form = (page: Page) =>
        page.evaluate(() => {
          const sent: string[] = [];
          Object.assign(globalThis, { sent });
          const [form] = document.forms as unknown as [HTMLFormElement];
          form.addEventListener("submit", (event) => {
            event.preventDefault();
            sent.push(String(new FormData(form).get("code")));
          });
          form.addEventListener("otp-complete", () => form.requestSubmit());
        });
      const sent = (page: Page) => page.evaluate(() => (globalThis as unknown as { sent: string[] }).sent);

      test("Enter right after the last digit submits nothing, even if held down; the next Enter does", () =>
        pages.on("<form><otp-input name=code></otp-input></form>", async (page) => {
          await form(page);
          await field(page).pressSequentially("123456");
          await page.keyboard.down("Enter");
          await page.keyboard.down("Enter");
          await page.keyboard.up("Enter");
          expect(await sent(page)).toEqual(["123456"]);
          await page.keyboard.press("Enter");
          await page.keyboard.press("Enter");
          expect(await sent(page)).toEqual(["123456", "123456", "123456"]);
        }));

      test("Enter submits the code after it was edited, set by a program or got a status", () =>
        pages.on("<form><otp-input name=code></otp-input></form>", async (page) => {
          await form(page);
          await field(page).pressSequentially("123456");
          await page.keyboard.press("Backspace");
          await page.keyboard.press("Enter");
          expect(await sent(page)).toEqual(["123456"]);
          await page.keyboard.type("7");
          await element(page, (otp) => void (otp.value = "222222"));
          await page.keyboard.press("Enter");
          await page.evaluate(() => document.forms[0]?.requestSubmit());
          await element(page, (otp) => void (otp.status = "unavailable"));
          await page.keyboard.press("Enter");
          expect(await sent(page)).toEqual(["123456", "123457", "222222", "222222", "222222"]);
        }));
    });

    test("an empty field is valid if it is not required", () =>
      pages.on("<form><otp-input name=code></otp-input></form>", async (page) => expect(await element(page, (otp) => otp.checkValidity())).toBe(true)));

    test("a code that was wrong makes the form invalid until it is changed", () =>
      pages.on("<form><otp-input name=code value=123456></otp-input></form>", async (page) => {
        await element(page, (otp) => {
          otp.status = "invalid";
        });
        expect(await element(page, (otp) => [otp.validity.customError, otp.validationMessage])).toEqual([true, "That code is not right."]);
        await field(page).press("End");
        await page.keyboard.press("Backspace");
        await page.keyboard.type("7");
        expect(await element(page, (otp) => otp.checkValidity())).toBe(true);
      }));

    test("another code that a page sets after a wrong one is valid for the form", () =>
      pages.on("<form><otp-input name=code value=123456></otp-input></form>", async (page) => {
        const changed = (change: object) => element(page, (otp, all) => [Object.assign(otp, all).checkValidity(), otp.value], change);
        expect(await changed({ status: "invalid" })).toEqual([false, "123456"]);
        expect(await changed({ value: "123456" })).toEqual([false, "123456"]);
        expect(await changed({ value: "" })).toEqual([true, ""]);
        expect(await changed({ value: "123456" })).toEqual([false, "123456"]);
        expect(await changed({ value: "222222" })).toEqual([true, "222222"]);
        expect(await changed({ answer: { status: "invalid" } })).toEqual([false, "222222"]);
      }));

    test("a field that a page empties after a wrong code stays marked as wrong, but valid for the form", () =>
      pages.on("<form><otp-input name=code value=123456></otp-input></form>", async (page) => {
        await element(page, (otp) => void Object.assign(otp, { status: "invalid", value: "" }));
        expect(await field(page).getAttribute("aria-invalid")).toBe("true");
        expect(await element(page, (otp) => otp.checkValidity())).toBe(true);
      }));

    test("reset restores its initial value, and hides the message", () =>
      pages.on("<form><otp-input name=code value=12 status=invalid></otp-input></form>", async (page) => {
        await field(page).press("End");
        await page.keyboard.type("34");
        await page.evaluate(() => document.forms[0]?.reset());
        expect(await value(page)).toBe("12");
        expect(await fields(page)).toEqual([["code", "12"]]);
        expect(await message(page).isVisible()).toBe(false);
      }));

    test.each([
      ["an answer", { answer: { status: "invalid", remaining_checks: 4 } }],
      ["properties", { status: "invalid", remainingChecks: 4 }],
    ])("%s set right before a reset, as by React, stays until the next reset", (_, response: object) =>
      pages.on("<form><otp-input name=code></otp-input></form>", async (page) => {
        await field(page).pressSequentially("123456");
        await element(
          page,
          (otp, given) => {
            Object.assign(otp, given);
            otp.form?.reset();
          },
          response,
        );
        expect(await value(page)).toBe("");
        expect(await message(page).innerText()).toBe("That code is not right. 4 tries left");
        expect(await spoken(page)).toBe("That code is not right. 4 tries left");
        await page.evaluate(() => document.forms[0]?.reset());
        expect(await message(page).isVisible()).toBe(false);
      }),
    );

    test("the typed digits are restored when the user returns to the page", () =>
      pages.on("<form><otp-input name=code></otp-input></form>", async (page) => {
        await field(page).pressSequentially("1234");
        await page.goto(`${page.url()}elsewhere`);
        await page.goBack();
        await expect.poll(() => value(page)).toBe("1234");
      }));

    test("setting its value by a program fires no event", () =>
      pages.on("<form><otp-input name=code></otp-input></form>", async (page) => {
        await watch(page);
        await element(page, (otp) => {
          otp.value = "482 913";
        });
        expect(await fields(page)).toEqual([["code", "482913"]]);
        expect(await told(page)).toEqual([]);
      }));
  });

  describe("in a page", () => {
    test("without scripts, the content of <noscript> is the field", () =>
      pages.on(
        "<form action=/sent><otp-input name=code><noscript><input name=code autocomplete=one-time-code></noscript></otp-input><button>Send</button></form>",
        async (page) => {
          await field(page).fill("123456");
          await page.getByRole("button").click();
          expect(new URL(page.url()).search).toBe("?code=123456");
        },
        { javaScriptEnabled: false },
      ));

    test("with scripts, the content of <noscript> is not submitted", () =>
      pages.on("<form><otp-input name=code value=1><noscript><input name=code></noscript></otp-input></form>", async (page) => {
        expect(await page.evaluate(() => [...new FormData(document.forms[0])])).toEqual([["code", "1"]]);
      }));

    test("properties that were set before the script loaded are applied", () =>
      pages.on(
        "<otp-input></otp-input>",
        async (page) => {
          await element(page, (otp) => void Object.assign(otp, { length: 4, value: "12", answer: { status: "invalid", remaining_checks: 3 } }));
          await addScript(page);
          expect(await value(page)).toBe("12");
          expect(await page.locator("otp-input [part~=box]").count()).toBe(4);
          expect(await message(page).innerText()).toBe("That code is not right. 3 tries left");
          await element(page, (otp) => {
            otp.length = 8;
          });
          expect(await page.locator("otp-input").getAttribute("length")).toBe("8");
        },
        { script: "after" },
      ));

    test("a value that was set before the script loaded takes precedence over the attribute", () =>
      pages.on(
        "<otp-input value=99></otp-input>",
        async (page) => {
          await element(page, (otp) => void (otp.value = "12"));
          await addScript(page);
          expect(await value(page)).toBe("12");
          await element(page, (otp) => otp.setAttribute("value", "34"));
          expect(await value(page)).toBe("34");
        },
        { script: "after" },
      ));

    test("loading the script twice changes nothing", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        await addScript(page);
        await field(page).pressSequentially("1");
        expect(await value(page)).toBe("1");
      }));

    test("properties are reflected in attributes, and empty values remove them", () =>
      pages.on("<otp-input></otp-input>", async (page) => {
        const attributes = () => element(page, (otp) => otp.getAttributeNames().map((name) => `${name}=${otp.getAttribute(name)}`));
        await element(page, (otp) => {
          Object.assign(otp, {
            status: "denied",
            nextRetryAt: new Date(0),
            remainingChecks: 0,
            remainingRetry: 2,
            name: "code",
            label: "Code",
            disabled: true,
            required: true,
          });
        });
        expect(await attributes()).toEqual([
          "status=denied",
          "next-retry-at=1970-01-01T00:00:00.000Z",
          "remaining-checks=0",
          "remaining-retry=2",
          "name=code",
          "label=Code",
          "disabled=",
          "required=",
        ]);
        await element(page, (otp) => {
          Object.assign(otp, {
            status: "",
            nextRetryAt: null,
            remainingChecks: null,
            remainingRetry: undefined,
            name: "",
            label: "",
            disabled: false,
            required: false,
          });
        });
        expect(await attributes()).toEqual([]);
      }));

    test("in a flex row it is as wide as its boxes, but no wider than the available space", () =>
      pages.on("<div id=row><otp-input></otp-input></div>", async (page) => {
        const width = () => page.locator("otp-input [part=field]").evaluate((one) => Math.round(one.getBoundingClientRect().width));
        const style = (css: string) =>
          page.evaluate((text) => document.getElementById("row")?.style.setProperty(...(text.split(":") as [string, string])), css);
        await style("display:flex");
        expect(await width()).toBe(6 * 52 + 5 * 8);
        await style("width:200px");
        expect(await width()).toBe(200);
      }));

    test.each([
      ["dark on white", "#1b1d21", "#ffffff"],
      ["dark on grey", "#1b1d21", "#f0f0f0"],
      ["light on black", "#eceef0", "#0f1113"],
      ["light on grey", "#eceef0", "#22262b"],
    ])("%s: its texts have a contrast of 4.5:1 and its borders one of 3:1", (_, ink, ground) =>
      pages.on(`<otp-input next-retry-at="${at(0)}"></otp-input>`, async (page) => {
        await page.evaluate(([color, background]) => Object.assign(document.body.style, { color, background }), [ink, ground]);
        const contrast = (selector: string, of: string) =>
          page
            .locator(`otp-input ${selector}`)
            .first()
            .evaluate(
              (one, [name, ground]) => {
                const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true }) as CanvasRenderingContext2D;
                const luminance = (...layers: string[]) => {
                  for (const layer of layers) {
                    canvas.fillStyle = layer;
                    canvas.fillRect(0, 0, 1, 1);
                  }
                  const [red = 0, green = 0, blue = 0] = [...canvas.getImageData(0, 0, 1, 1).data].map((byte) => ((byte / 255 + 0.055) / 1.055) ** 2.4);
                  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
                };
                const [above = 0, below = 0] = [luminance(ground, getComputedStyle(one).getPropertyValue(name)), luminance(ground)].sort((a, b) => b - a);
                return (above + 0.05) / (below + 0.05);
              },
              [of, ground] as const,
            );
        expect(await contrast("[part~=box]", "border-top-color")).toBeGreaterThan(3);
        expect(await contrast("button", "color")).toBeGreaterThan(4.5);
        for (const status of ["invalid", "valid", "pending"]) {
          await element(page, (otp, told) => void (otp.status = told), status);
          expect(await contrast("p", "color")).toBeGreaterThan(4.5);
        }
        await element(page, (otp) => void (otp.nextRetryAt = "2100-01-01"));
        expect(Number(await resend(page).evaluate((one) => getComputedStyle(one).opacity))).toBeGreaterThan(0.7);
      }),
    );

    test("a following button does not touch the boxes, unless the page sets the margin to 0", () =>
      pages.on("<otp-input></otp-input><button id=next>Check</button>", async (page) => {
        const bottom = await page.locator("otp-input [part=field]").evaluate((one) => one.getBoundingClientRect().bottom);
        const space = () => page.locator("#next").evaluate((one, above) => one.getBoundingClientRect().top - above, bottom);
        expect(await space()).toBeGreaterThanOrEqual(12);
        await element(page, (otp) => otp.style.setProperty("margin", "0"));
        expect(await space()).toBeLessThan(2);
      }));

    test("a selection is marked by the boxes, not by a bar across them; a page can show the bar", () =>
      pages.on("<otp-input value=123456></otp-input>", async (page) => {
        await element(page, (otp) => otp.style.setProperty("--otp-gap", "24px"));
        const boxes = page.locator("otp-input [part~=box]");
        const { x = 0, y = 0, width = 0, height = 0 } = (await boxes.first().boundingBox()) ?? {};
        const gap = () => page.screenshot({ clip: { x: x + width + 8, y: y + height / 2 - 4, width: 8, height: 8 } });
        const empty = await gap();
        await element(page, (otp) => otp.focus());
        await element(page, (otp) => otp.select());
        await expect.poll(() => page.locator("otp-input [part~=active]").count()).toBe(6);
        expect(empty.equals(await gap())).toBe(true);
        await page.evaluate(() => {
          const sheet = new CSSStyleSheet();
          sheet.replaceSync("otp-input::part(input)::selection { background: Highlight }");
          document.adoptedStyleSheets = [sheet];
        });
        await expect.poll(async () => empty.equals(await gap())).toBe(false);
      }));

    test("it uses the page's colours and custom properties", () =>
      pages.on("<otp-input value=1 status=invalid></otp-input>", async (page) => {
        const colour = (selector: string, of: string) =>
          page
            .locator(`otp-input ${selector}`)
            .first()
            .evaluate((one, name) => getComputedStyle(one).getPropertyValue(name), of);
        const before = await colour("[part~=message]", "color");
        await page.evaluate(() => document.body.style.setProperty("color", "white"));
        expect(await colour("[part=input]", "color")).toBe("rgb(255, 255, 255)");
        expect(await colour("[part~=message]", "color")).not.toBe(before);
        await page.evaluate(() => document.body.style.setProperty("--otp-error", "rgb(1, 2, 3)"));
        await page.evaluate(() => document.body.style.setProperty("--otp-size", "20px"));
        expect(await colour("[part~=message]", "color")).toBe("rgb(1, 2, 3)");
        expect(
          await page
            .locator("otp-input [part~=box]")
            .first()
            .evaluate((box) => Math.round(box.getBoundingClientRect().width)),
        ).toBe(20);
      }));
  });
});
