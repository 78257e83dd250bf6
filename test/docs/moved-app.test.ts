import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { movedApp } from "./moved-app.js";
import type { Page } from "./pages.js";

const written = (name: string) => readFileSync(join(import.meta.dirname, `fixtures/${name}`), "utf8");

describe("docs/migrate/twilio-verify.md: a sign-up written for Twilio, with the page's one line and credentials", () => {
  const app = written("twilio-sign-up.ts");
  /** The one line of the page. */
  const newLine = (page: Page) => /^client\.verify\.baseUrl = "[^"]+";/m.exec(page.blocks.find(({ name }) => name === "app.ts")?.text ?? "")?.[0] ?? "";
  /** Inserts the line after the one that creates the client, as on the page, with the address of our service. */
  const moved = (page: Page) =>
    app.replace(/^const client = .*;$/m, (line) => `${line}\n${newLine(page).replace(/"[^"]+"/, 'process.env["VERIFY_ADDRESS"] ?? ""')}`);
  const { page, post, get, codeOf, wrong } = movedApp("twilio-verify", moved, async (VERIFY_ADDRESS, { page, environment }) => {
    // The page's shell lines print these variables.
    const lines = page.blocks.find(({ language, text }) => language === "sh" && text.includes("VERIFY_SERVICE_SID="))?.text ?? "";
    const { stdout } = await promisify(execFile)("sh", ["-c", lines], {
      env: { PATH: process.env["PATH"], PHONEPROOF_API_KEY: environment["PHONEPROOF_API_KEY"] } as never,
    });
    const printed = stdout
      .trim()
      .split(" ")
      .map((pair) => pair.split("=") as [string, string]);
    return { ...Object.fromEntries(printed), VERIFY_ADDRESS };
  });
  const status = (sid: unknown) => get(`/status/${sid}`);

  it("only one line differs", () => {
    expect(newLine(page)).not.toBe("");
    expect(moved(page).split("\n").length - app.split("\n").length).toBe(1);
  });

  it("proves a number: start, start again too early, status, wrong code, right code, which works once", async () => {
    const to = "+33612345678";
    const [started, { sid, ...more }] = await post("/start", { to });
    expect([started, more]).toEqual([200, { status: "pending", messages: 1 }]);
    expect(await post("/start", { to })).toEqual([429, { problem: "Wait a moment before you request another code." }]);
    expect(await status(sid)).toEqual([200, { status: "pending", to, since: expect.stringMatching(/:\d\d\.000Z$/) }]);
    expect(await post("/check", { to, code: await wrong(to) })).toEqual([401, { problem: "That is not the code." }]);
    expect(await post("/check", { to, code: await codeOf(to) })).toEqual([200, { proven: to }]);
    expect(await post("/check", { to, code: await codeOf(to) })).toEqual([404, { problem: "This code has expired or was used. Request a new one." }]);
    expect(await status(sid)).toEqual([404, { problem: "This code has expired or was used. Request a new one." }]);
  });

  it("a canceled sign-up proves nothing, and can start again", async () => {
    const to = "+33612345679";
    const [, { sid }] = await post("/start", { to });
    const code = await codeOf(to);
    expect(await post("/cancel", { sid: String(sid) })).toEqual([200, { status: "canceled" }]);
    expect(await status(sid)).toMatchObject([200, { status: "canceled" }]);
    expect((await post("/check", { to, code }))[0]).toBe(404);
    const [again, { sid: next }] = await post("/start", { to });
    expect([again, next === sid]).toEqual([200, false]);
    expect(await post("/check", { to, code: await codeOf(to, 2) })).toEqual([200, { proven: to }]);
  });

  it("the app's own messages for each failure appear as before", async () => {
    const to = "+33612345680";
    await post("/start", { to });
    for (let i = 0; i < 5; i++) expect((await post("/check", { to, code: await wrong(to) }))[0]).toBe(401);
    expect(await post("/check", { to, code: await codeOf(to) })).toEqual([429, { problem: "Too many wrong codes. Try again in ten minutes." }]);
    expect(await post("/start", { to })).toEqual([429, { problem: "Too many messages. Try again in ten minutes." }]);
    expect(await post("/start", { to: "0612345678" })).toEqual([400, { problem: "This is not a valid number or code." }]);
    expect(await post("/check", { to, code: "12" })).toEqual([400, { problem: "This is not a valid number or code." }]);
    expect(await post("/start", { to: "+33142685300" })).toEqual([403, { problem: "This is a landline." }]);
    expect(await post("/start", { to: "+4915112345678" })).toEqual([403, { problem: "This country is not served." }]);
  });
});

describe("docs/migrate/prelude-v2.md: a sign-up written for Prelude, with the page's variables and no new line", () => {
  const { page, post, codeOf, wrong } = movedApp(
    "prelude-v2",
    () => written("prelude-sign-up.ts"),
    async (PRELUDE_BASE_URL, { environment }) => ({ PRELUDE_BASE_URL, API_TOKEN: environment["PHONEPROOF_API_KEY"] ?? "" }),
  );

  it("the page names both variables", () => {
    expect(page.text).toMatch(/Node\.js, TypeScript \| `PRELUDE_BASE_URL`, `API_TOKEN`/);
  });

  it("proves a number: create, create again too early, wrong code, right code, which works once", async () => {
    const to = "+33612345678";
    const [started, { id, ...more }] = await post("/start", { to });
    expect([started, more]).toEqual([200, { status: "success", method: "message" }]);
    expect(await post("/start", { to })).toEqual([429, { problem: "Wait a moment before you request another code." }]);
    expect(await post("/check", { to, code: await wrong(to) })).toEqual([401, { problem: "That is not the code." }]);
    expect(await post("/check", { to, code: await codeOf(to) })).toEqual([200, { proven: to, id }]);
    expect(await post("/check", { to, code: await codeOf(to) })).toEqual([404, { problem: "This code has expired or was used. Request a new one." }]);
  });

  it("the app's own messages for each failure appear as before", async () => {
    const to = "+33612345680";
    await post("/start", { to });
    for (let i = 0; i < 5; i++) expect((await post("/check", { to, code: await wrong(to) }))[0]).toBe(401);
    expect(await post("/check", { to, code: await codeOf(to) })).toEqual([429, { problem: "Too many wrong codes. Request a new one." }]);
    expect(await post("/start", { to: "0612345678" })).toEqual([400, { problem: "This is not a valid number." }]);
    expect(await post("/start", { to: "+33142685300" })).toEqual([403, { problem: "Not sent: invalid_phone_line." }]);
    expect(await post("/start", { to: "+4915112345678" })).toEqual([400, { problem: "This country is not served." }]);
  });
});
