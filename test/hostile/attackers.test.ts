import { describe, expect, it, onTestFinished } from "vitest";
import { firstForm, formOf, strangerAtReceipts } from "./attackers-kit.js";

describe("a stranger's receipt", () => {
  it.each(["twilio", "twiliovoice", "plivo"])(
    "of 20,000 parameters for %s does not block the process (SECURITY.md#what-the-library-promises)",
    async (provider) => {
      const stranger = strangerAtReceipts();
      onTestFinished(() => stranger.close());
      expect((await stranger.post(provider, formOf(1))).status).toBe(403);
      const { status, cpu } = await stranger.post(provider, formOf(20_000)); // 98 kB; up to 256 KiB are accepted
      expect(status).toBeGreaterThanOrEqual(400);
      expect(cpu).toBeLessThan(400);
    },
  );
});

describe("the documented form", () => {
  it('after "back", takes another code in digits of another script (docs/first-form.md#express)', async () => {
    const app = await firstForm();
    onTestFinished(() => app.close());
    await expect.poll(() => app.post("/sign-up", { key: "first", phone: "06 12 34 56 78" }).catch(() => "not listening yet")).toBe("");
    expect(await app.post("/code", { key: "second", code: "\u0661\u0662\u0663\u0664" })).toBe("That is not the code. Tries left: 4.");
    expect(await app.post("/code", { key: "second", code: "\u0661\u0662\u0663\u0665" })).toBe("That is not the code. Tries left: 3."); // the same page again, by "back"
  });
});
