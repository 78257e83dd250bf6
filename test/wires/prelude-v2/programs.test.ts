import Prelude from "@prelude.so/sdk";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { numberOf } from "../../support/verifier.js";
import { type PreludeService, serve } from "./service.js";

const target = (index = 1) => ({ type: "phone_number" as const, value: numberOf(index) });

describe("a decoder of tagged enums, as in Rust: known statuses only, an id in each, a reason if blocked", () => {
  const reasons = ["expired_signature", "in_block_list", "invalid_phone_line", "invalid_phone_number", "invalid_signature", "repeated_attempts", "suspicious"];
  const Created = z.discriminatedUnion("status", [
    z.object({ status: z.literal("success"), id: z.string() }),
    z.object({ status: z.literal("retry"), id: z.string() }),
    z.object({ status: z.literal("blocked"), id: z.string(), reason: z.enum(reasons as [string]) }),
  ]);
  const Checked = z.object({ status: z.enum(["success", "failure", "expired_or_not_found"]), id: z.string() });

  it("reads each response", async () => {
    const { raw, box, wrong, clock } = await serve({ verifier: { blockedNumbers: [numberOf(2)] } });
    const create = async (index: number) =>
      Created.parse((await raw("POST", "/v2/verification", { target: target(index), signals: { ip_address: "192.0.2.7" } })).json).status;
    const check = async (code: string) => Checked.parse((await raw("POST", "/v2/verification/check", { target: target(), code })).json).status;
    expect(await check("123456")).toBe("expired_or_not_found");
    expect([await create(1), await create(2)]).toEqual(["success", "blocked"]);
    clock.advance(30_000);
    expect(await create(1)).toBe("retry");
    expect([await check(wrong()), await check(box.code()), await check(box.code())]).toEqual(["failure", "success", "expired_or_not_found"]);
  });
});

describe("a program with the SDK that maps error codes to messages for its users", () => {
  const messages: Readonly<Record<string, string>> = {
    invalid_phone_number: "InvalidPhoneNumber",
    too_many_checks: "TooManyChecks",
    too_many_attempts: "TooManyAttempts",
    premature_retry: "TooManyAttempts",
  };

  function program(client: Prelude) {
    const known = (error: unknown) => {
      if (error instanceof Prelude.APIError) return messages[(error.error as { code: string }).code] ?? "Unknown";
      throw error;
    };
    return {
      async initiate(to: string) {
        try {
          const line = await client.lookup.lookup(to);
          if (line.line_type !== "mobile") return "NotMobile";
          const { status } = await client.verification.create({ target: { type: "phone_number", value: to } });
          return status === "blocked" ? "Blocked" : "sent";
        } catch (error) {
          return known(error);
        }
      },
      async validate(to: string, code: string) {
        try {
          return (await client.verification.check({ target: { type: "phone_number", value: to }, code })).status;
        } catch (error) {
          return known(error);
        }
      },
    };
  }

  it("accepts mobile numbers of ambiguous plans, and recognizes each rejection", async () => {
    const { client, box, wrong } = await serve();
    const { initiate, validate } = program(client());
    expect(await initiate("+14155552671")).toBe("sent");
    expect(await initiate("+14155552671")).toBe("TooManyAttempts");
    expect(await initiate("+33142685300")).toBe("NotMobile");
    expect(await initiate("+3361")).toBe("InvalidPhoneNumber");
    for (let tries = 0; tries < 5; tries++) expect(await validate("+14155552671", wrong())).toBe("failure");
    expect(await validate("+14155552671", box.code())).toBe("TooManyChecks");
  });
});

it("a program finds the error code in the exception's text by a regular expression", async () => {
  const { raw, apiKey } = await serve();
  const codeIn = (text: string) => /"code"\s*:\s*"([^"]+)"/.exec(text)?.[1];
  await raw("POST", "/v2/verification", { target: target(), preferred_channel: "whatsapp" });
  const answers = [
    await raw("POST", "/v2/verification", { target: target(), preferred_channel: "whatsapp" }),
    await raw("POST", "/v2/verification", { target: { type: "phone_number", value: "0" } }),
    await raw("POST", "/v2/verification", {}, { authorization: `Bearer x${apiKey}` }),
  ];
  expect(answers.map(({ text, status }) => `${status}: ${codeIn(`${status}: ${text}`)}`)).toEqual([
    "429: premature_retry",
    "400: invalid_phone_number",
    "401: invalid_api_key",
  ]);
});

it("a program that uses fetch reads the channel, and gets 2xx for a create and a check", async () => {
  const { url, apiKey, box } = await serve();
  const post = async (path: string, body: object) => {
    const response = await fetch(`${url}/v2${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${apiKey}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(8000),
    });
    if (!response.ok) throw new Error("502");
    return (await response.json()) as { status: string; channels?: string[] };
  };
  const created = await post("/verification", { target: target(), options: { code_size: 6, preferred_channel: "rcs", locale: "en-US" } });
  expect(created).toMatchObject({ status: "success", channels: ["sms"] });
  expect((await post("/verification/check", { target: target(), code: box.code() })).status).toBe("success");
});

/** The repeats of the vendor's clients in Go and PHP; the time that they would sleep is recorded in seconds. */
async function repeating(service: PreludeService, body: object, obeysShouldRetry: boolean) {
  const slept: number[] = [];
  for (let tries = 0; ; tries++) {
    const answered = await service.raw("POST", "/v2/verification", body, { "x-stainless-retry-count": String(tries) });
    expect(answered.headers.get("content-type")).toBe("application/json");
    const should = obeysShouldRetry ? answered.headers.get("x-should-retry") : null;
    const repeats = should === null ? [408, 409, 429].includes(answered.status) || answered.status >= 500 : should === "true";
    if (!repeats || tries === 2) return { ...answered, tries: tries + 1, slept };
    // They sleep for whatever time that is.
    slept.push(Number(answered.headers.get("retry-after") ?? 0.5 * 2 ** tries));
  }
}

describe("a client that sleeps for any time in Retry-After, as in Go", () => {
  it("gets JSON in each error, and does not sleep after a rejection", async () => {
    const service = await serve();
    expect(await repeating(service, { target: target() }, true)).toMatchObject({ status: 200, tries: 1 });
    expect(await repeating(service, { target: target() }, true)).toMatchObject({ status: 429, tries: 1, slept: [], json: { code: "premature_retry" } });
    expect(await repeating(service, { target: { type: "phone_number", value: "1" } }, true)).toMatchObject({ status: 400, tries: 1 });
    (service.store as { commit: unknown }).commit = async () => Promise.reject(new Error("down"));
    expect(await repeating(service, { target: target(2) }, true)).toMatchObject({ status: 503, tries: 3, slept: [2, 2], json: { code: "internal" } });
  });
});

describe("a client that repeats a 429 despite x-should-retry, as in PHP", () => {
  it("gets the same rejection each time, and nothing changes", async () => {
    const service = await serve();
    const { raw, box, clock } = service;
    await raw("POST", "/v2/verification", { target: target() });
    expect(await repeating(service, { target: target() }, false)).toMatchObject({
      status: 429,
      tries: 3,
      slept: [0.5, 1], // no Retry-After
      json: { code: "premature_retry" },
    });
    expect(box.messages).toHaveLength(1);
    clock.advance(30_000);
    expect((await raw("POST", "/v2/verification", { target: target() })).json.status).toBe("retry");
    expect((await raw("POST", "/v2/verification/check", { target: target(), code: box.code() })).json.status).toBe("success");
  });
});

it("an identity provider's action that makes its own codes is rejected with the reason", async () => {
  const { client, box } = await serve();
  const action = client().verification.create({
    target: target(),
    metadata: { correlation_id: "tx_1" },
    options: { custom_code: "482913", locale: "en", integration: "auth0" },
    signals: { ip: "192.0.2.7", user_agent: "Mozilla/5.0" },
  });
  await expect(action).rejects.toThrow(/^400 options\.custom_code is not supported on this wire/);
  expect(box.messages).toEqual([]);
});
