import { join } from "node:path";
import { expect, test } from "vitest";
import { runServe } from "../../src/cli/serve/run.js";
import { readServeSettings } from "../../src/cli/serve/settings.js";
import * as served from "./hooks-verifier.js";

test("serves the hooks of a module without customers; /v1 is then not served", async () => {
  const lines: Record<string, unknown>[] = [];
  const errors: string[] = [];
  const stop = new AbortController();
  const settings = readServeSettings([join(import.meta.dirname, "hooks-verifier.ts"), "--port", "0"], {});
  const out = { out: (text: string) => lines.push(JSON.parse(text)), err: (text: string) => errors.push(text) };
  const running = runServe(settings, out as never, stop.signal);
  const started = () => lines.find(({ type }) => type === "listening");
  await expect.poll(() => started() ?? errors[0]).toMatchObject({ type: "listening" });
  const post = (path: string, token: string, body: object) =>
    fetch(`${started()?.["url"]}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
  const asked = { to: "+33612345678", type: "SignIn", payload: { code: "482913" } };
  expect((await post("/hooks/logto", "the token of Logto", asked)).status).toBe(200);
  expect(served.sender.messages.map(({ to, code }) => [to, code])).toEqual([["+33612345678", "482913"]]);
  expect((await post("/hooks/generic", "wrong", asked)).status).toBe(401);
  expect((await post("/v1/authentication", "none", {})).status).toBe(404);
  expect((await fetch(`${started()?.["url"]}/healthz`)).status).toBe(200);
  await expect.poll(() => lines.filter(({ type }) => type === "request").map(({ route }) => route)).toContain("/hooks/logto");
  expect(JSON.stringify(lines)).not.toContain("482913");
  stop.abort();
  expect(await running).toBe(0);
});
