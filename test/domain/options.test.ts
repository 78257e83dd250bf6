import { describe, expect, it } from "vitest";
import { createVerifier, VerifierError } from "../../src/index.js";
import { setUp } from "../support/verifier.js";

/** The message of the fault that these options are answered with. */
function faultOf(options: object): string {
  try {
    setUp(options as never);
  } catch (error) {
    expect(error).toBeInstanceOf(VerifierError);
    expect((error as VerifierError).code).toBe("invalid_options");
    return (error as VerifierError).message;
  }
  return "no fault";
}

describe("options: a fault names the option's path and the mend", () => {
  it.each([
    [{ store: {} }, "store must be a store, for example memoryStore(): an object with the methods find, compareAndSwap"],
    [{ sender: undefined }, "sender must be an SMS sender: an object with the methods send"],
    [{ secret: "short" }, "secret must have at least 32 characters; make one with: openssl rand -base64 32"],
    [{ secret: ["x".repeat(32), "short"] }, "secret.1 must have at least 32 characters"],
    [{ countries: undefined }, 'countries must be "all" or a list of ISO 3166-1 alpha-2 codes'],
    [{ countries: [] }, "countries must name at least one country"],
    [{ countries: ["fr"] }, "countries.0 must be an ISO 3166-1 alpha-2 code in capitals"],
    [{ customers: [] }, "customers must hold at least one customer"],
    [{ customers: [{ customer_uuid: "x", keys: ["k".repeat(40)] }] }, "customers.0.customer_uuid must be a UUID"],
    [
      { customers: [{ customer_uuid: "11111111-2222-3333-4444-555555555555", keys: ["short"] }] },
      "customers.0.keys.0 must be an API key of at least 32 characters",
    ],
    [{ policy: { codeLength: 3 } }, "policy.codeLength must be 4 to 10"],
    [{ policy: { lifetime: 0 } }, "policy.lifetime must be more than 0"],
    [{ policy: { lifetime: "600" } }, "policy.lifetime must be a number of seconds"],
    [{ policy: { limits: { perIp: [{ limit: 0, window: 60 }] } } }, "policy.limits.perIp.0.limit must be 1 or more"],
    [{ policy: { lifeTime: 600 } }, "policy.lifeTime is not an option"],
    [{ sendTimout: 5 }, "sendTimout is not an option"],
    [{ testNumbers: ["0044"] }, "testNumbers.0 must be in E.164 form"],
    [{ spamRules: [{ judge: () => undefined }] }, "spamRules.0 must have a name"],
    [{ callbacks: { allowOrigins: ["http://localhost:3000/"] } }, "callbacks.allowOrigins.0 must be an origin"],
    [{ logger: {} }, "logger must be a logger: an object with the methods info, warn, error"],
  ])("%j", (options, message) => {
    expect(faultOf(options)).toContain(message);
  });

  it("every fault is named at once", () => {
    expect(faultOf({ secret: "short", countries: undefined, nope: 1 }).match(/secret|countries must|nope is not/g)).toEqual([
      "secret",
      "countries must",
      "nope is not",
    ]);
  });

  it("no options at all", () => {
    expect(() => (createVerifier as unknown as () => void)()).toThrow(VerifierError);
  });
});
