import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { transformSync } from "esbuild";
import { createVerifier } from "phoneproof";
import { fetchHandler } from "phoneproof/fetch";
import { genericHook, hooks, logtoHook, oktaHook } from "phoneproof/hooks";
import { memoryStore } from "phoneproof/memory";
import { describe, expect, it, onTestFinished } from "vitest";

const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const token = "a-token-of-24-characters!!";
const number = "+33620000001";

it("hooks send and confirm nothing for a suspended customer; Okta gets a 200 with an error, because it would send itself otherwise (docs/contract.md#key-revocation, docs/behind/index.md#okta)", async () => {
  const sent: string[] = [];
  const verifier = createVerifier({
    store: memoryStore(),
    sender: {
      send: async ({ to }) => {
        sent.push(to);
        return { outcome: "accepted" };
      },
    },
    secret: "a secret of the tests of more than 32 characters",
    countries: "all",
    conversion: "reported",
    customers: [{ customer_uuid, keys: ["an-api-key-of-more-than-32-characters"], suspended: true }],
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    callbacks: { worker: false },
  });
  onTestFinished(() => verifier.close());
  const of = { customer_uuid, conversion: "reported", token } as const;
  const handle = fetchHandler(hooks(verifier, [genericHook(of), logtoHook(of), oktaHook(of)]));
  const post = (name: string, body: object) =>
    handle(
      new Request(`https://otp.example.com/hooks/${name}`, {
        method: "POST",
        body: JSON.stringify(body),
        headers: { "content-type": "application/json", authorization: token },
      }),
    );
  const okta = await post("okta", { data: { messageProfile: { phoneNumber: number, otpCode: "482913", deliveryChannel: "SMS", msgTemplate: "482913" } } });
  expect(okta.status).toBe(200);
  expect(await okta.json()).toHaveProperty("error");
  for (const [name, body] of [
    ["generic", { to: number, code: "482913" }],
    ["generic/confirmed", { to: number }],
    ["logto", { to: number, type: "SignIn", payload: { code: "482913" } }],
  ] as const)
    expect((await post(name, body)).status, name).toBeGreaterThanOrEqual(400);
  expect(sent).toEqual([]);
});

describe("the session of docs/next.md", () => {
  it("is absent for a forged cookie, in whatever characters", async () => {
    const text = await readFile(resolve(import.meta.dirname, "../../docs/next.md"), "utf8");
    const source = /```ts\n(\/\/ lib\/session\.ts\n[\s\S]*?)```/.exec(text)?.[1] ?? "";
    const stubs = "const connection = async () => {}; const required = () => 'a secret'; const cookies = async () => globalThis.forgedCookies;";
    const body = source.replace(/^import .*from "(next\/|\.).*";$/gm, "");
    const { code } = transformSync(`${stubs}\n${body}`, { loader: "ts", format: "esm" });
    const session = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { proven: { read(): Promise<string | undefined> } };
    const read = (value: string | undefined) => {
      (globalThis as Record<string, unknown>)["forgedCookies"] = { get: () => value && { value } };
      return session.proven.read();
    };
    onTestFinished(() => void delete (globalThis as Record<string, unknown>)["forgedCookies"]);
    const later = `${Date.now() + 1_000_000}_+33612345678`;
    // The last one has the length of a signature in letters, and another one in bytes.
    for (const one of [undefined, "", "x", later, `${later}~`, `${later}~${"a".repeat(43)}`, `${later}~${"é".repeat(43)}`])
      expect(await read(one), String(one)).toBeUndefined();
  });
});
