import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test as base, expect } from "@playwright/test";
import { createTestVerifier, type TestVerifier } from "phoneproof/testing";
import { createApp } from "./app.js";

/** Each test has its own verifier and server, so that tests can run in parallel. */
const test = base.extend<{ phone: TestVerifier; address: string }>({
  phone: async ({ browserName: _ }, use) => {
    const phone = createTestVerifier();
    await use(phone);
    await phone.close();
  },
  address: async ({ phone }, use) => {
    const server = createApp(phone.verifier).listen(0, "127.0.0.1");
    await once(server, "listening");
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    server.closeAllConnections();
    server.close();
  },
});

test.beforeEach(async ({ page, address }) => {
  await page.goto(address);
  await page.getByLabel("Mobile number").fill("+33 6 12 34 56 78");
  await page.getByRole("button", { name: "Send me a code" }).click();
  await expect(page.getByRole("heading")).toHaveText("Enter the code");
});

test("signs up by the code that came", async ({ page, phone }) => {
  await page.getByLabel("Code").fill(phone.inbox.codeFor("+33612345678"));
  await page.getByRole("button", { name: "Continue" }).click();
  await expect(page.getByText("+33612345678 is yours.")).toBeVisible();
});

test("five wrong codes are the end of it", async ({ page, phone }) => {
  const right = phone.inbox.codeFor("+33612345678");
  const wrong = right === "000000" ? "111111" : "000000";
  for (const code of [...Array(5).fill(wrong), right]) {
    await page.getByLabel("Code").fill(code);
    await page.getByRole("button", { name: "Continue" }).click();
    await expect(page.getByRole("alert")).toBeVisible();
  }
  await expect(page.getByRole("alert")).toHaveText("This code is over. Please begin again.");
});

test("a new code comes once the wait is over", async ({ page, phone }) => {
  const resend = page.getByRole("button", { name: "Send another code" });
  await resend.click();
  await expect(page.getByRole("alert")).toHaveText("Please wait a little.");
  phone.clock.advance(30_000);
  await resend.click();
  await expect(page.getByRole("alert")).toHaveText("A new code is on its way.");
  await page.getByLabel("Code").fill(phone.inbox.codeFor("+33612345678"));
  await page.getByRole("button", { name: "Continue" }).click();
  await expect(page.getByRole("heading")).toHaveText("Welcome");
  expect(phone.inbox.messages).toHaveLength(2);
});
