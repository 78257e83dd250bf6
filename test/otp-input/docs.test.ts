import { describe, expect, test } from "vitest";
import { compileTemplate, parse } from "vue/compiler-sfc";
import { attributes } from "../../clients/otp-input/attributes.js";
import { otpWords } from "../../clients/otp-input/index.js";
import { style } from "../../clients/otp-input/style.js";
import { readPage } from "../docs/pages.js";
import { hasChromium, launchChromium } from "../support/chromium.js";

const page = readPage("docs/front-end.md");

describe("docs/front-end.md", () => {
  test("names every attribute, custom property and language, and no unknown custom property", () => {
    for (const attribute of Object.values(attributes)) expect(page.text).toContain(`\`${attribute}\``);
    const properties = (css: string) => [...new Set(css.match(/--otp-[\w-]+/g))].sort();
    expect(properties(page.text)).toEqual(properties(style));
    const names = new Intl.DisplayNames("en", { type: "language" });
    for (const tag of Object.keys(otpWords)) expect(page.text).toContain((names.of(tag) as string).replace("Traditional Chinese", "traditional"));
  });

  test.each([false, true])("its component of Vue compiles, for rendering on a server: %s", (ssr) => {
    const text = page.blocks.find(({ language }) => language === "vue")?.text as string;
    const source = parse(text).descriptor.template?.content as string;
    const compilerOptions = { isCustomElement: (tag: string) => tag === "otp-input" };
    expect(compileTemplate({ source, filename: "CodeForm.vue", id: "code-form", ssr, ssrCssVars: [], compilerOptions }).errors).toEqual([]);
  });

  test.skipIf(!hasChromium("The form of docs/front-end.md"))("without JavaScript, its form has one field with the same name", async () => {
    const form = page.blocks.find(({ language, text }) => language === "html" && text.includes("<noscript>"))?.text;
    const browser = await launchChromium();
    try {
      const tab = await browser.newPage({ javaScriptEnabled: false });
      await tab.route("http://form.example/**", (route) => route.fulfill({ contentType: "text/html", body: form as string }));
      await tab.goto("http://form.example/");
      await tab.getByRole("textbox", { name: "Code from the message" }).fill("222222");
      expect(await tab.getByRole("textbox").count()).toBe(1);
      const sent = tab.waitForRequest("**/code");
      await tab.getByRole("button", { name: "Check" }).click();
      expect((await sent).postData()).toBe("code=222222");
    } finally {
      await browser.close();
    }
  });
});
