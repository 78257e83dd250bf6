import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { afterEach, expect, it } from "vitest";
import { root } from "../package/built.js";
import { verifierWhoseStoreGoesAway } from "../support/away.js";
import { type Example, tsx } from "./process.js";

let folder: string;
let app: Example | undefined;
afterEach(async () => {
  await app?.stop();
  rmSync(folder, { recursive: true });
});

/** Copies the example to a separate project, with a store that can go down and this version of Express. */
function layOut(version: string): string {
  mkdirSync(join(root, "node_modules/.cache"), { recursive: true });
  folder = mkdtempSync(join(root, "node_modules/.cache/phoneproof-signup-"));
  for (const one of ["signup-express", "words.ts"]) cpSync(join(root, "examples", one), join(folder, one), { recursive: true });
  writeFileSync(join(folder, "signup-express/verifier.ts"), verifierWhoseStoreGoesAway);
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules/phoneproof"), "dir");
  symlinkSync(join(root, "node_modules", version), join(folder, "node_modules/express"), "dir");
  return relative(join(root, "examples"), join(folder, "signup-express/server.ts"));
}

it.each(["express", "express4"])(
  "signup-express on %s: rejects forms of other origins, shows a message for an empty form and a store that is down, and keeps running",
  async (version) => {
    const file = layOut(version);
    const AWAY = join(folder, "away");
    const { url, code } = (app = await tsx(file, { AWAY }));
    let cookie = "";
    const post = async (path: string, form?: Readonly<Record<string, string>>, origin = url) => {
      const answer = await fetch(url + path, {
        method: "POST",
        redirect: "manual",
        headers: { cookie, origin },
        ...(form && { body: new URLSearchParams(form) }),
      });
      cookie =
        answer.headers
          .getSetCookie()
          .find((one) => one.startsWith("session="))
          ?.split(";")[0] ?? cookie;
      return { status: answer.status, location: answer.headers.get("location"), text: await answer.text() };
    };
    const phone = "+33612345678";
    for (const foreign of ["http://evil.example", url.replace(/:\d+$/, ":1"), "null"])
      expect(await post("/sign-up", { phone, country: "FR" }, foreign)).toMatchObject({ status: 403 });
    expect(await post("/sign-up")).toMatchObject({ status: 400, text: expect.stringContaining('class="problem"') });
    expect(await post("/sign-up", { phone, country: "FR" })).toMatchObject({ status: 303, location: "/code" });

    writeFileSync(AWAY, "");
    for (const [path, form] of Object.entries({ "/code": { code: await code(phone) }, "/resend": undefined })) {
      const { status, text } = await post(path, form);
      expect([path, status, text]).toEqual([path, 503, expect.stringContaining("Something went wrong. Try again in a moment.")]);
      expect(text).not.toMatch(/\bat .*:\d+|Error|the store/);
    }
    rmSync(AWAY);
    expect(await post("/code", { code: await code(phone) })).toMatchObject({ status: 303, location: "/" });
  },
);
