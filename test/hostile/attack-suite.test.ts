import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { transformSync } from "esbuild";
import { createVerifier, type HttpHandler, type Verifier, type VerifierOptions } from "phoneproof";
import { fetchHandler } from "phoneproof/fetch";
import { genericHook, hooks, logtoHook, oktaHook } from "phoneproof/hooks";
import { memoryStore } from "phoneproof/memory";
import { preludeV2 } from "phoneproof/prelude-v2";
import { httpReceipts } from "phoneproof/senders/http";
import { type FixedClock, fixedClock } from "phoneproof/testing";
import { twilioVerify } from "phoneproof/twilio-verify";
import { describe, expect, it, onTestFinished } from "vitest";

const mine = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const key = "an-api-key-of-more-than-32-characters";
const token = "a-token-of-24-characters!!";
const number = "+33620000001";

interface Target {
  readonly verifier: Verifier;
  readonly clock: FixedClock;
  /** The numbers that got a message. */
  readonly sent: string[];
}

const off = { mode: "off" } as const;
const noSpamRules = { range: off, crowd: off, country: off, newCountries: off, address: off };

function target({ policy, ...options }: Partial<VerifierOptions> = {}): Target {
  const clock = fixedClock(Date.parse("2026-03-01T12:00:00Z"));
  const sent: string[] = [];
  const verifier = createVerifier({
    store: memoryStore({ now: () => clock.now() }),
    sender: {
      send: async ({ to }) => {
        sent.push(to);
        return { outcome: "accepted" };
      },
    },
    secret: "a secret of the tests of more than 32 characters",
    countries: "all",
    conversion: "reported",
    clock,
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    callbacks: { worker: false },
    ...options,
    policy: { spam: noSpamRules, ...policy },
  });
  onTestFinished(() => verifier.close());
  return { verifier, clock, sent };
}

const customers = [{ customer_uuid: mine, keys: [key] }];

/** Posts to handlers that are mounted as the docs mount them. */
function door(handlers: readonly (Verifier | HttpHandler)[]) {
  const handle = fetchHandler(handlers as Parameters<typeof fetchHandler>[0]);
  return async (path: string, body?: string, headers: Record<string, string> = {}) => {
    const type = { "content-type": "application/json" };
    const init = body === undefined ? { headers } : { method: "POST", body, headers: { ...type, ...headers } };
    const response = await handle(new Request(`https://otp.example.com${path}`, init));
    return { status: response.status, text: await response.text() };
  };
}

describe("hooks", () => {
  it("of a suspended customer send and confirm nothing, and Okta is told no in a 200, as it would send itself (docs/contract.md#key-revocation, docs/behind/index.md#okta)", async () => {
    const { verifier, sent } = target({ customers: [{ ...customers[0], suspended: true } as (typeof customers)[0]] });
    const of = { customer_uuid: mine, conversion: "reported", token } as const;
    const post = door([hooks(verifier, [genericHook(of), logtoHook(of), oktaHook(of)])]);
    const headers = { authorization: token };
    const okta = JSON.stringify({ data: { messageProfile: { phoneNumber: number, otpCode: "482913", deliveryChannel: "SMS", msgTemplate: "482913" } } });
    const told = await post("/hooks/okta", okta, headers);
    expect(told.status).toBe(200);
    expect(JSON.parse(told.text)).toHaveProperty("error");
    for (const [path, body] of [
      ["generic", { to: number, code: "482913" }],
      ["generic/confirmed", { to: number }],
      ["logto", { to: number, type: "SignIn", payload: { code: "482913" } }],
    ] as const)
      expect((await post(`/hooks/${path}`, JSON.stringify(body), headers)).status, path).toBeGreaterThanOrEqual(400);
    expect(sent).toEqual([]);
  });
});

describe("an operator", () => {
  it("sees in phoneproof_http_answers_total who is turned away at each door, not only at /v1 (docs/watching.md#metrics)", async () => {
    const { verifier } = target({ customers, receipts: { baseUrl: "https://otp.example.com", sources: [httpReceipts({ statuses: { D: "delivered" } })] } });
    const hooked = hooks(verifier, [genericHook({ customer_uuid: mine, conversion: "reported", token })]);
    const post = door([verifier, verifier.receipts, preludeV2(verifier), twilioVerify(verifier), hooked]);
    const counted = () =>
      verifier
        .metrics()
        .split("\n")
        .filter((line) => line.startsWith("phoneproof_http_answers_total{"))
        .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    const missed: string[] = [];
    for (const [path, status] of [
      ["/v1/check", 403],
      ["/v2/verification", 401],
      [`/v2/Services/VA${mine.replaceAll("-", "")}/Verifications`, 401],
      ["/hooks/generic", 401],
      ["/receipts/http", 403],
    ] as const) {
      const before = counted();
      const answer = await post(path, '{"id":"1","status":"D"}', { "x-api-key": "none", authorization: "Bearer none" });
      expect(answer.status, path).toBe(status);
      if (counted() !== before + 1) missed.push(path);
    }
    expect(missed).toEqual([]);
  });
});

describe("a caller", () => {
  it("is told one length of metadata.correlation_id, whatever is wrong with it (docs/migrate/prelude-v2.md, docs/errors.md#bad_request: the message names what the field must be)", async () => {
    const { verifier } = target({ customers });
    const post = door([preludeV2(verifier)]);
    const told = async (correlation_id: string) => {
      const body = JSON.stringify({ target: { type: "phone_number", value: number }, metadata: { correlation_id } });
      return (await post("/v2/verification", body, { authorization: `Bearer ${key}` })).text;
    };
    const lengths = [await told("x".repeat(81)), await told("a\u0000b")].map((text) => /(\d+) (?:printable )?characters/.exec(text)?.[1]);
    expect(new Set(lengths).size, lengths.join(" and ")).toBe(1);
  });
});

describe("a visitor of the page's app", () => {
  it("who forges a cookie has no session, whatever its letters (docs/next.md#the-session)", async () => {
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
