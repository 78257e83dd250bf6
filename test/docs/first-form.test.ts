import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../package/built.js";
import { verifierWhoseStoreGoesAway } from "../support/away.js";
import { environmentFor } from "./environment.js";
import { readPage } from "./pages.js";
import { layOut } from "./project.js";
import { type Running, start } from "./run.js";

// The Express app of docs/first-form.md, used through simulated browsers.

const pages = [readPage("docs/install.md"), readPage("docs/first-form.md")];
const project = layOut(pages, "phoneproof-docs-form");
const file = project.fileOf("docs/first-form.md", "app.ts");
const environment = environmentFor(pages.flatMap(({ blocks }) => blocks.map(({ text }) => text)));
let app: Running;

beforeAll(async () => {
  await project.compile("unchecked");
  app = await start(file, environment);
});
afterAll(async () => {
  await app.end();
  project.remove();
});

/** Stores cookies, and follows no redirects. */
function browser({ port } = app) {
  const cookies = new Map<string, string>();
  const ask = async (path: string, form?: Readonly<Record<string, string>>, method = form ? "POST" : "GET") => {
    const headers = { cookie: [...cookies].map((pair) => pair.join("=")).join("; ") };
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      redirect: "manual",
      headers,
      method,
      ...(form && { body: new URLSearchParams(form) }),
    });
    for (const one of answer.headers.getSetCookie()) cookies.set(...((one.split(";")[0] ?? "").split("=") as [string, string]));
    return { status: answer.status, location: answer.headers.get("location"), text: await answer.text() };
  };
  return { ask, cookies };
}

const codes = ({ printed } = app) => [...printed().matchAll(/code is (\d{6})/g)].map(([, code]) => code as string);
const last = (one = app) => codes(one).at(-1) as string;
const wrong = () => String((Number(last()) + 1) % 1_000_000).padStart(6, "0");

describe("docs/first-form.md: the Express app", () => {
  it("binds a new session to the proven number, in E.164 form", async () => {
    const { ask, cookies } = browser();
    expect((await ask("/sign-up", { phone: "06 12 34 56 78" })).text).toContain('autocomplete="one-time-code"');
    const before = cookies.get("session");
    expect(await ask("/code", { code: wrong() })).toMatchObject({ status: 400, text: expect.stringContaining("Tries left: 4.") });
    expect(await ask("/code", { code: ` ${last().slice(0, 3)} ${last().slice(3)} ` })).toMatchObject({ status: 303, location: "/" });
    expect(cookies.get("session")).not.toBe(before);
    expect((await ask("/")).text).toContain("Signed in as +33612345678");
    expect(await ask("/code", { code: last() })).toMatchObject({ status: 303, location: "/" }); // the id is spent: nothing to check
  });

  it("does not sign in someone who knows the code but did not request it", async () => {
    const honest = browser();
    await honest.ask("/sign-up", { phone: "+33612345679" });
    const stranger = browser();
    expect(await stranger.ask("/code", { code: last() })).toMatchObject({ status: 303, location: "/" });
    expect((await stranger.ask("/")).text).not.toContain("Signed in");
  });

  it("shows how to correct the input, and asks to wait before the next code", async () => {
    const { ask } = browser();
    expect(await ask("/sign-up", { phone: "hello" })).toMatchObject({ status: 400, text: expect.stringContaining("not a phone number") });
    expect(await ask("/sign-up", { phone: "+4915123456789" })).toMatchObject({ status: 400, text: expect.stringContaining("cannot receive codes") });
    await ask("/sign-up", { phone: "+33612345680" });
    expect(await ask("/code", { code: "" })).toMatchObject({ status: 400, text: expect.stringContaining("Type the code") });
    expect(await ask("/resend", {})).toMatchObject({ status: 429, text: expect.stringMatching(/Wait (29|30) seconds/) });
    for (let tries = 0; tries < 4; tries++) await ask("/code", { code: wrong() });
    const fifth = await ask("/code", { code: wrong() });
    expect([fifth.text.includes("can no longer be used"), fifth.text.includes("Tries left")]).toEqual([true, false]);
    expect((await ask("/code", { code: last() })).text).toContain("can no longer be used");
  });

  it.each(["express", "express4"])("on %s: shows a message for an empty form and for a store that is down, and keeps running", async (version) => {
    const link = join(dirname(file), "../../node_modules/express");
    rmSync(link, { force: true });
    symlinkSync(join(root, "node_modules", version), link, "dir");
    writeFileSync(join(dirname(file), "verifier.js"), verifierWhoseStoreGoesAway);
    const AWAY = join(dirname(file), "away");
    const one = await start(file, { ...environment, AWAY });
    const { ask } = browser(one);
    expect(await ask("/sign-up", undefined, "POST")).toMatchObject({ status: 400, text: expect.stringContaining("not a phone number") });
    expect(await ask("/sign-up", { phone: "06 12 34 56 78" })).toMatchObject({ status: 200 });
    expect(await ask("/code", undefined, "POST")).toMatchObject({ status: 400, text: expect.stringContaining("Type the code") });

    writeFileSync(AWAY, "");
    for (const [path, form] of Object.entries({ "/sign-up": { phone: "+33612345679" }, "/code": { code: last(one) }, "/resend": {} })) {
      const { status, text } = await ask(path, form);
      expect([path, status, text]).toEqual([path, 503, expect.stringContaining("Something went wrong. Try again in a moment.")]);
      expect(text).not.toMatch(/\bat .*:\d+|Error|the store/);
    }
    rmSync(AWAY);
    expect(await ask("/code", { code: last(one) })).toMatchObject({ status: 303, location: "/" });
    expect(await one.end()).toMatchObject({ code: 0, stderr: expect.stringContaining("VerifierError") });
  });
});
