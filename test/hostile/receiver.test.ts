import { type ChildProcess, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { inspect } from "node:util";
import { transform } from "esbuild";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type VerifyWebhookOptions, verifyWebhook, WebhookError } from "../../clients/webhooks.js";
import { freePort } from "../support/ports.js";

const root = join(import.meta.dirname, "../..");
const secretOf = (byte: number, length = 32) => `whsec_${Buffer.alloc(length, byte).toString("base64")}`;
const secret = secretOf(7);
const old = secretOf(8);
const now = Date.UTC(2026, 0, 1);
const data = { authentication_uuid: "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d", sequence: 1, attempt: 1, phone_number: "+33612****78", status: "delivered" };
const body = JSON.stringify({ type: "delivery_status", timestamp: new Date(now).toISOString(), data });

/** Headers as the service sends them. */
function signed({ at = now, by = secret, text = body as string | Uint8Array } = {}): Record<string, string> {
  const timestamp = String(Math.floor(at / 1000));
  const mac = createHmac("sha256", Buffer.from(by.slice(6), "base64"))
    .update(`msg_1.${timestamp}.`)
    .update(text)
    .digest("base64");
  return { "webhook-id": "msg_1", "webhook-timestamp": timestamp, "webhook-signature": `v1,${mac}` };
}

/** The status that was read, or `refused`; no error shows a secret. */
function read(given: Partial<VerifyWebhookOptions> = {}): string {
  try {
    return verifyWebhook({ secret, headers: signed(), body, now, ...given }).data.status;
  } catch (error) {
    expect(error).toBeInstanceOf(WebhookError);
    for (const one of [secret, old]) expect(inspect(error, { depth: 9 })).not.toContain(one.slice(6));
    return "refused";
  }
}

describe("verifyWebhook", () => {
  it("accepts any of several secrets, and none that is wrong, missing or guessable (docs/callbacks.md#the-receiver)", () => {
    for (const right of [secret, ` ${secret}\n`, [old, secret], [secret, old]]) expect(read({ secret: right })).toBe("delivered");
    expect(read({ secret: [old, secret], headers: signed({ by: old }) })).toBe("delivered");
    const wrong = [old, "", "whsec_", [], [secret, ""], secretOf(7, 23), `whsec_${"é".repeat(40)}`, undefined, [secret, undefined], Promise.resolve([secret])];
    for (const one of wrong) expect(read({ secret: one as never }), inspect(one)).toBe("refused");
  });

  it("accepts timestamps up to five minutes old or early (the types of phoneproof/webhooks)", () => {
    for (const seconds of [-300, -1, 0, 300]) expect(read({ headers: signed({ at: now + seconds * 1000 }) }), `${seconds}`).toBe("delivered");
    for (const seconds of [-301, 301, 1e6]) expect(read({ headers: signed({ at: now + seconds * 1000 }) }), `${seconds}`).toBe("refused");
    for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, 0]) expect(read({ now: wrong })).toBe("refused");
    for (const text of ["", "now", " 1767225600", "1767225600.5", "1e9", "-1", "1767225600000"])
      expect(read({ headers: { ...signed(), "webhook-timestamp": text } }), text).toBe("refused");
  });

  it("reads headers in any case and container, and rejects missing, invalid and repeated ones (the types of phoneproof/webhooks)", () => {
    const all = Object.entries(signed());
    const shapes: VerifyWebhookOptions["headers"][] = [
      new Headers(signed()),
      Object.fromEntries(all.map(([name, value]) => [name.toUpperCase(), value])),
      Object.fromEntries(all.map(([name, value]) => [name, [value]])),
      { ...signed(), "webhook-signature": `v1,AAAA v1a,BBBB ${signed()["webhook-signature"]}` },
      { ...signed(), "webhook-signature": ["v1,AAAA", signed()["webhook-signature"] as string] },
    ];
    for (const headers of shapes) expect(read({ headers }), inspect(headers)).toBe("delivered");
    for (const [name, value] of all)
      for (const wrong of [undefined, "", [], 5, `${value}x`, value.slice(0, -2)])
        expect(read({ headers: { ...signed(), [name]: wrong as never } }), name).toBe("refused");
    expect(read({ headers: { ...signed(), "webhook-id": ["msg_1", "msg_1"] } })).toBe("refused");
    for (const wrong of [undefined, null, "headers", [], 5]) expect(read({ headers: wrong as never })).toBe("refused");
  });

  it("verifies the exact bytes, and asks for the raw body when it gets a parsed one (the types of phoneproof/webhooks)", () => {
    const bytes = new TextEncoder().encode(body);
    for (const right of [body, bytes, bytes.buffer, Buffer.from(` ${body}`).subarray(1)]) expect(read({ body: right })).toBe("delivered");
    const wrong = [
      JSON.parse(body),
      {},
      undefined,
      null,
      [Buffer.from(body)],
      "",
      `${body} `,
      `\ufeff${body}`,
      body.replace("delivered", "submitted"),
      "x".repeat(1e6),
    ];
    for (const one of wrong) expect(read({ body: one as never }), inspect(one).slice(0, 60)).toBe("refused");
    expect(() => verifyWebhook({ secret, headers: signed(), body: JSON.parse(body), now })).toThrow(/raw body/);
    expect(read({ body: "not JSON", headers: signed({ text: "not JSON" }) })).toBe("refused");
  });
});

describe("the receiver of the documentation", () => {
  const [, source] = /```ts\n(\/\/ receiver\.ts[\s\S]*?)```/.exec(readFileSync(join(root, "docs/callbacks.md"), "utf8")) as unknown as [string, string];
  let program: ChildProcess;
  let port: number;

  beforeAll(async () => {
    const { code } = await transform(source, { loader: "ts" });
    port = await freePort();
    program = spawn(process.execPath, ["--input-type=module", "--eval", code], {
      cwd: root, // where the package finds itself by its name
      env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret },
      stdio: "ignore",
    });
    await vi.waitFor(async () => expect(await send("{}", {})).toBe(400), { timeout: 60_000 });
  });
  afterAll(async () => {
    if (program.exitCode === null && program.kill()) await once(program, "exit");
  });

  const send = async (text: string, headers: Record<string, string>) =>
    (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body: text })).status;

  it("accepts a signed callback and rejects a changed one (docs/callbacks.md#the-receiver)", async () => {
    expect(await send(body, signed({ at: Date.now() }))).toBe(204);
    expect(await send(body.replace("delivered", "submitted"), signed({ at: Date.now() }))).toBe(400);
  });

  it("keeps running when a client aborts a request (docs/callbacks.md#the-receiver)", async () => {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    socket.write("POST / HTTP/1.1\r\nhost: receiver\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n{");
    await once(socket, "data"); // it has begun to read
    socket.destroy();
    const isUp = async () => program.exitCode === null && (await send("{}", {}).catch(() => 0)) === 400;
    for (let asked = 0; asked < 5; asked++) expect(await isUp(), "the receiver still answers").toBe(true);
  });
});
