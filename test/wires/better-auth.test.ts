import { createServer } from "node:http";
import Prelude from "@prelude.so/sdk";
import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { APIError } from "better-auth/api";
import { phoneNumber } from "better-auth/plugins";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { nodeHandler } from "../../adapters/http/node.js";
import { preludeV2 } from "../../src/wires/prelude-v2/index.js";
import { type Host, listen } from "../http/hosts.js";
import { createService } from "../http/service.js";

const number = "+33612345678";

describe("better-auth's phone number plugin, whose hooks call @prelude.so/sdk", () => {
  const service = createService();
  let host: Host;
  let call: (path: string, body: object) => Promise<{ status: number; token?: string; user?: { phoneNumber?: string }; code?: string }>;

  beforeAll(async () => {
    host = await listen(createServer(nodeHandler(preludeV2(service.verifier))));
    // An app that does not know phoneproof: only the address changes.
    vi.stubEnv("PRELUDE_BASE_URL", `http://127.0.0.1:${host.port}`);
    const prelude = new Prelude({ apiToken: service.customer.key });
    const targetOf = (value: string) => ({ type: "phone_number", value }) as const;
    const auth = betterAuth({
      secret: "a secret of the tests, long enough to be one",
      baseURL: "http://localhost:3000",
      database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
      rateLimit: { enabled: false },
      plugins: [
        phoneNumber({
          async sendOTP({ phoneNumber }) {
            const { status } = await prelude.verification.create({ target: targetOf(phoneNumber) }).catch((error) => {
              throw new APIError("TOO_MANY_REQUESTS", { code: error.error?.code, message: error.message });
            });
            if (status === "blocked") throw new APIError("BAD_REQUEST", { code: status });
          },
          async verifyOTP({ phoneNumber, code }) {
            return (await prelude.verification.check({ target: targetOf(phoneNumber), code })).status === "success";
          },
          signUpOnVerification: { getTempEmail: (value) => `${value}@phones.example` },
        }),
      ],
    });
    call = async (path, body) => {
      const headers = { "content-type": "application/json", origin: "http://localhost:3000" };
      const url = `http://localhost:3000/api/auth/phone-number${path}`;
      const response = await auth.handler(new Request(url, { method: "POST", headers, body: JSON.stringify(body) }));
      return { ...((await response.json()) as object), status: response.status };
    };
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await host?.close();
  });

  const codes = async () => (await service.sent()).map(({ code }) => code);

  test("signs a user in with the code of the message, once, and with no other", async () => {
    expect(await call("/send-otp", { phoneNumber: number })).toMatchObject({ status: 200 });
    const [code = ""] = await codes();
    expect(await call("/verify", { phoneNumber: number, code: code === "000000" ? "000001" : "000000" })).toMatchObject({ status: 400, code: "INVALID_OTP" });
    expect(await call("/verify", { phoneNumber: number, code })).toMatchObject({ status: 200, token: expect.any(String), user: { phoneNumber: number } });
    expect(await call("/verify", { phoneNumber: number, code })).toMatchObject({ status: 400 });
  });

  test("a request within the cool-down is rejected and sends nothing; after it another code is sent", async () => {
    expect(await call("/send-otp", { phoneNumber: "+33612345679" })).toMatchObject({ status: 200 });
    const before = await codes();
    expect(await call("/send-otp", { phoneNumber: "+33612345679" })).toMatchObject({ status: 429, code: "premature_retry" });
    expect(await codes()).toEqual(before);
    await service.pass(31_000);
    expect(await call("/send-otp", { phoneNumber: "+33612345679" })).toMatchObject({ status: 200 });
    expect(await call("/verify", { phoneNumber: "+33612345679", code: (await codes()).at(-1) })).toMatchObject({ status: 200, token: expect.any(String) });
  });
});
