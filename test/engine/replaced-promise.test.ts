import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readOptions } from "../../src/options/options.js";
import { neededOptions } from "../support/options.js";
import { errorCode, numberOf, setUp } from "../support/verifier.js";

beforeEach(() => void vi.stubGlobal("Promise", class extends Promise<unknown> {}));
afterEach(() => void vi.unstubAllGlobals());

/** As by zone.js or bluebird: promises of async functions are then no instances of it. */
describe("in an app that replaced the global Promise", () => {
  const bodyOf = (customer_uuid: string) => ({ customer_uuid, phone_number: numberOf(1) });

  it("a right key is recognized, and a wrong one is forbidden (docs/contract.md#key-before-body)", async () => {
    const { http, customer } = setUp();
    expect((await http("POST", "/v1/authentication", bodyOf(customer))).json).toMatchObject({ status: "pending" });
    expect(await http("POST", "/v1/authentication", bodyOf(customer), { "x-api-key": "wrong" })).toMatchObject({ status: 403, json: { code: "forbidden" } });
  });

  it("customers in the store are found, also when they are read again (docs/contract.md#customers)", async () => {
    const { verifier, http, clock } = setUp({ customers: "store" });
    const { customer_uuid } = await verifier.customers.create();
    const { key } = await verifier.customers.keys.issue({ customer_uuid });
    const statusOf = async () => (await http("POST", "/v1/authentication", bodyOf(customer_uuid), { "x-api-key": key })).status;
    expect([await statusOf(), await statusOf()]).toEqual([200, 200]);
    clock.advance(2_000);
    expect([await statusOf(), await statusOf()]).toEqual([200, 200]);
    expect(await errorCode(verifier.createAuthentication(bodyOf("6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f")))).toBe("account_invalid");
  });

  it("what a logger fails to log goes to the console (docs/contract.md#listeners)", async () => {
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    const reject = async () => {
      throw new Error("no disk");
    };
    setUp({ logger: { info: reject, warn: reject, error: reject } }).verifier.http.warn("a mounting mistake");
    await new Promise((resolve) => setImmediate(resolve));
    expect(warn).toHaveBeenCalledWith("phoneproof: a mounting mistake", {});
  });

  it("a promise instead of the options is an error that explains it", () => {
    const promised = (async () => neededOptions)();
    expect(() => readOptions(promised as never)).toThrow("the options are a promise: await it first; the function of lazyVerifier must return");
  });
});
