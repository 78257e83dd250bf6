import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { environmentFor } from "./environment.js";
import { readPage } from "./pages.js";
import { layOut, sharedPage } from "./project.js";
import { type Running, start } from "./run.js";

const written = readFileSync(join(import.meta.dirname, "fixtures/twilio-sign-up.ts"), "utf8");
const page = readPage("docs/migrate/twilio-verify.md");

/** The one line of the page, with the address of the moved service. */
const [newLine = ""] = /^client\.verify\.baseUrl = "[^"]+";/m.exec(page.blocks.find(({ name }) => name === "app.ts")?.text ?? "") ?? [];
const address = newLine.replace(/"[^"]+"/, 'process.env["VERIFY_ADDRESS"] ?? ""');
/** The line goes after the one that makes the client, as on the page. */
const moved = written.replace(/^const client = .*;$/m, (line) => `${line}\n${address}`);

const app = { path: "docs/moved-app.md", text: "", blocks: [{ language: "ts", name: "app.ts", text: moved, line: 1, notRun: undefined }] };
const project = layOut([page, readPage(sharedPage), app], "phoneproof-docs-moved-app");
const environment = environmentFor(page.blocks.map(({ text }) => text));
const running: Running[] = [];

const begin = async (file: string, more: Readonly<Record<string, string>>): Promise<Running> => {
  const one = await start(file, { ...environment, PORT: "0", ...more });
  running.push(one);
  return one;
};

/** What the page's shell lines print, as variables. */
async function credentials(): Promise<Record<string, string>> {
  const lines = page.blocks.find(({ language, text }) => language === "sh" && text.includes("VERIFY_SERVICE_SID="))?.text ?? "";
  const { stdout } = await promisify(execFile)("sh", ["-c", lines], {
    env: { PATH: process.env["PATH"], PHONEPROOF_API_KEY: environment["PHONEPROOF_API_KEY"] } as never,
  });
  return Object.fromEntries(
    stdout
      .trim()
      .split(" ")
      .map((pair) => pair.split("=") as [string, string]),
  );
}

let service: Running;
let url: string;

beforeAll(async () => {
  expect(await project.compile()).toBe("");
  service = await begin(project.fileOf(page.path, "service.ts"), {});
  const signUp = await begin(project.fileOf(app.path, "app.ts"), { ...(await credentials()), VERIFY_ADDRESS: `http://127.0.0.1:${service.port}` });
  url = `http://127.0.0.1:${signUp.port}`;
});
afterAll(async () => {
  for (const one of running) await one.end();
  project.remove();
});

const post = async (path: string, form: Record<string, string>) => {
  const response = await fetch(url + path, { method: "POST", body: new URLSearchParams(form) });
  return [response.status, await response.json()] as [number, Record<string, unknown>];
};
const status = async (sid: unknown) => {
  const response = await fetch(`${url}/status/${sid}`);
  return [response.status, await response.json()] as [number, Record<string, unknown>];
};
/** The code of the nth message that the service printed for a number. */
async function codeOf(to: string, nth = 1): Promise<string> {
  const messages = () => service.printed().split(`SMS to ${to} `).slice(1);
  await expect.poll(() => messages().length).toBe(nth);
  return /\b\d{6}\b/.exec(messages().at(-1) ?? "")?.[0] ?? "no code";
}
const wrong = async (to: string): Promise<string> => ((await codeOf(to)) === "000000" ? "000001" : "000000");

describe("docs/migrate/twilio-verify.md: a sign-up written against Twilio, with the page's one line and credentials", () => {
  it("one line is all that differs", () => {
    expect(newLine).not.toBe("");
    expect(moved.split("\n").length - written.split("\n").length).toBe(1);
  });

  it("a number is proven: start, too early again, status, wrong code, right code, once", async () => {
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

  it("a canceled sign-up proves nothing, and can begin again", async () => {
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
