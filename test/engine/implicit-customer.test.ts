import { describe, expect, expectTypeOf, it, test } from "vitest";
import type * as z from "zod";
import { expressHandlers } from "../../adapters/http/express.js";
import { fastifyPlugin } from "../../adapters/http/fastify.js";
import { fetchHandler } from "../../adapters/http/fetch.js";
import type { Mountable } from "../../adapters/http/mounted.js";
import { nextHandlers } from "../../adapters/http/next.js";
import { nodeHandler } from "../../adapters/http/node.js";
import type { CreateAuthenticationRequest as CreateBody } from "../../src/contract/authentication.js";
import type { CheckRequest as CheckBody } from "../../src/contract/check.js";
import type { HistoryRequest as HistoryInput, StatsRequest as StatsInput } from "../../src/contract/operator.js";
import type { CheckRequest, CreateAuthenticationRequest, HistoryRequest, StatsRequest, Verifier } from "../../src/index.js";
import { errorCode, numberOf, onePerTenMinutes, setUp, start } from "../support/verifier.js";

const implicit = "00000000-0000-0000-0000-000000000000";
const phone_number = numberOf(1);
const unknown = "3f0e6f5c-3b7a-4d58-9c1e-6a1b2c3d4e5f";

/** Every direct call that is made for a customer. */
const calls: [name: string, call: (verifier: Verifier, customer?: { customer_uuid: string }) => Promise<unknown>, answer: unknown][] = [
  ["createAuthentication", (verifier, of) => verifier.createAuthentication({ ...of, phone_number }), { status: "pending" }],
  ["retry", (verifier, of) => verifier.retry({ ...of, authentication_uuid: unknown }), "invalid_auth_uuid"],
  ["check", (verifier, of) => verifier.check({ ...of, authentication_uuid: unknown, check_code: "123456" }), "invalid_auth_uuid"],
  ["lookup", (verifier, of) => verifier.lookup({ ...of, phone_number }), { country_code: "FR" }],
  ["explain", (verifier, of) => verifier.explain({ ...of, authentication_uuid: unknown }), "invalid_auth_uuid"],
  ["history", (verifier, of) => verifier.history({ ...of, phone_number }), []],
  ["refusals", (verifier, of) => verifier.refusals({ ...of, phone_number }), []],
  ["erase", (verifier, of) => verifier.erase({ ...of, phone_number }), { erased: 0 }],
  ["unlock", (verifier, of) => verifier.unlock({ ...of, phone_number }), { unlocked: true }],
  ["stats", (verifier, of) => verifier.stats({ ...of, from: new Date(start), to: new Date(start + 1) }), { sends: 0 }],
  ["webhookSecrets", (verifier, of) => verifier.webhookSecrets(of?.customer_uuid), [expect.stringMatching(/^whsec_/)]],
  ["redeliver", (verifier, of) => verifier.redeliver({ ...of, authentication_uuid: unknown, sequence: 1 }), false],
];

const outcome = (call: Promise<unknown>) => call.catch((error: { code: string; message: string }) => error);

describe("a verifier without customers (docs/contract.md#implicit-customer)", () => {
  test.each(calls)("%s needs no customer_uuid", async (_name, call, answer) => {
    const { verifier } = setUp({ customers: undefined, statistics: {} });
    const got = await outcome(call(verifier));
    if (typeof answer === "string") expect(got).toMatchObject({ code: answer });
    else expect(got).toEqual(Array.isArray(answer) || typeof answer === "boolean" ? answer : expect.objectContaining(answer as object));
  });

  test.each(calls)("%s without customer_uuid is bad_request if the verifier has customers", async (_name, call) => {
    const { verifier, customer } = setUp({ statistics: {} });
    expect(await outcome(call(verifier))).toMatchObject({ code: "bad_request", message: expect.stringContaining("customer_uuid is required") });
    expect(await errorCode(call(verifier, { customer_uuid: customer }))).not.toBe("bad_request");
  });

  it("has one customer with a fixed UUID: its authentications continue under a verifier that lists it", async () => {
    const { verifier, store, clock, box } = setUp({ customers: undefined });
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number });
    expect(box.messages[0]?.customer_uuid).toBe(implicit);
    const later = setUp({ store, clock, customers: [{ customer_uuid: implicit, keys: ["k".repeat(40)] }] });
    expect((await later.verifier.check({ customer_uuid: implicit, authentication_uuid, check_code: box.code() })).status).toBe("valid");
    expect(await errorCode(verifier.createAuthentication({ customer_uuid: unknown, phone_number }))).toBe("account_invalid");
    expect((await verifier.createAuthentication({ customer_uuid: implicit, phone_number })).status).toBe("pending");
  });

  it("applies `policy` to it", async () => {
    const { verifier } = setUp({ customers: undefined, policy: onePerTenMinutes });
    expect((await verifier.createAuthentication({ phone_number })).status).toBe("pending");
    expect((await verifier.createAuthentication({ phone_number })).status).toBe("rate_limited");
  });

  const mounts: [name: string, mount: (handler: Mountable) => unknown][] = [
    ["express", expressHandlers],
    ["fastify", fastifyPlugin],
    ["fetch", fetchHandler],
    ["next", nextHandlers],
    ["node", nodeHandler],
  ];
  test.each(mounts)("%s: mounting /v1 throws an error with the fix; receipts and metrics can be mounted", (_name, mount) => {
    const { verifier } = setUp({ customers: undefined });
    expect(() => mount(verifier)).toThrow(/option customers.*verifier\.createAuthentication/);
    for (const handler of [verifier.receipts, verifier.metricsHandler, setUp().verifier]) expect(mount(handler)).toBeDefined();
  });

  it("a direct call of `handle` gives 500, and the log has the fix", async () => {
    const { http, log } = setUp({ customers: undefined });
    expect(await http("POST", "/v1/authentication", { customer_uuid: implicit, phone_number })).toMatchObject({
      status: 500,
      json: { code: "internal_server_error" },
    });
    expect(log.lines.map(({ fields }) => String(fields["err"])).join()).toContain("option customers");
  });

  it("diagnose reports nothing about customers", async () => {
    const { verifier } = setUp({ customers: undefined });
    expect((await verifier.diagnose()).filter(({ about }) => about === "customers")).toEqual([]);
  });

  it("the types of direct calls are those of the parsed requests, with customer_uuid optional", () => {
    type Named<T> = Readonly<Omit<T, "customer_uuid"> & { customer_uuid?: string | undefined }>;
    type Flat<T> = { [K in keyof T]: T[K] };
    expectTypeOf<Flat<CreateAuthenticationRequest>>().toEqualTypeOf<Flat<Named<CreateBody>>>();
    expectTypeOf<Flat<CheckRequest>>().toEqualTypeOf<Flat<Named<CheckBody>>>();
    expectTypeOf<Flat<HistoryRequest>>().toEqualTypeOf<Flat<Named<z.input<typeof HistoryInput>>>>();
    expectTypeOf<Flat<StatsRequest>>().toEqualTypeOf<Flat<Named<z.input<typeof StatsInput>>>>();
  });
});
