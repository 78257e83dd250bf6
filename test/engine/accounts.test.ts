import { createHash } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { configuredCustomers, createAccounts, generateApiKey } from "../../src/access/accounts.js";
import { defaultPolicy } from "../../src/domain/policy.js";
import { VerifierError } from "../../src/errors.js";
import { readOptions } from "../../src/options/options.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { neededOptions } from "../support/options.js";

const settings = readOptions(neededOptions);
const uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const { key, digest } = generateApiKey();
const clock = fixedClock();
let reported: string[] = [];

/** Accounts of a source that returns the same for every query. */
function accountsOf(answer: () => unknown) {
  const outage = { on: false, failures: 0, failed: ({ err }: Readonly<Record<string, unknown>>) => void reported.push((err as Error).message), worked() {} };
  return createAccounts({ findByKeyDigest: answer as never, find: answer as never }, settings, clock, outage);
}

/** The outcome by key, by UUID and for webhook secrets: an error's code, or the result. */
async function outcomes(answer: () => unknown) {
  const accounts = accountsOf(answer);
  const asked = [() => accounts.byKey(key), () => accounts.byUuid(uuid), () => accounts.webhookSecrets(uuid)];
  return Promise.all(asked.map(async (one) => one()).map((said) => said.catch((error: unknown) => (error instanceof VerifierError ? error.code : error))));
}

beforeEach(() => void (reported = []));

describe("results of a customer source", () => {
  it.each([
    ["undefined", () => undefined],
    ["null", () => null],
    ["a promise of null", async () => null],
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what the row is about.
    ["a thenable of null that is no Promise", () => ({ then: (resolve: (value: null) => void) => resolve(null) })],
  ])("%s: the customer is unknown, and nothing is reported", async (_what, answer) => {
    expect(await outcomes(answer)).toEqual(["forbidden", "account_invalid", [expect.stringMatching(/^whsec_/)]]);
    expect(reported).toEqual([]);
  });

  it("a customer may have `null` or `undefined` in optional fields, and unknown fields", async () => {
    const account = { customer: uuid, policy: defaultPolicy };
    const derived = [expect.stringMatching(/^whsec_/)];
    expect(await outcomes(() => ({ customer_uuid: uuid.toUpperCase(), policy: null, webhookSecrets: null, plan: "gold" }))).toEqual([
      account,
      account,
      derived,
    ]);
    expect(await outcomes(async () => ({ customer_uuid: uuid, policy: { checks: undefined } }))).toEqual([account, account, derived]);
    const own = [`whsec_${"a".repeat(32)}`];
    expect((await outcomes(() => ({ customer_uuid: uuid, webhookSecrets: own })))[2]).toEqual(own);
  });

  it("the deadline applies to a thenable that is not a Promise too", async () => {
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what the row is about.
    const asked = outcomes(() => ({ then: () => undefined }));
    clock.advance(settings.storeTimeout);
    expect(await asked).toEqual(["unavailable", "unavailable", "unavailable"]);
    expect(reported).toEqual(Array(3).fill("no response within 2000 ms"));
  });

  it.each([
    ["a text", "customer", "customer must be { customer_uuid, policy?, webhookSecrets? }"],
    ["false", false, "customer must be { customer_uuid"],
    ["a list", [], "customer must be { customer_uuid"],
    ["no UUID", { customer_uuid: 5 }, "customer.customer_uuid must be a UUID"],
    ["no secrets", { customer_uuid: uuid, webhookSecrets: ["x"] }, "customer.webhookSecrets.0 must be whsec_"],
  ])("an invalid customer (%s) is reported and gives 503", async (_what, answer, report) => {
    expect(await outcomes(() => answer)).toEqual(["unavailable", "unavailable", "unavailable"]);
    expect(reported).toHaveLength(3);
    for (const line of reported) expect(line).toContain(report);
  });

  it.each([
    ["a text", "junk", "policy must be an object"],
    ["a field that is none", { check: 1 }, "policy.check is not an option"],
    ["a field out of bounds", { limits: { perIp: [{ limit: 0, window: 1 }] } }, "policy.limits.perIp.0.limit must be 1 or more"],
    ["one that breaks the guess budget", { codeLength: 4 }, "the guess budget is broken"],
  ])("an invalid policy (%s) is reported and gives 503 where the policy is needed", async (_what, policy, report) => {
    const [byKey, byUuid, secrets] = await outcomes(() => ({ customer_uuid: uuid, policy }));
    expect([byKey, byUuid, secrets]).toEqual(["unavailable", "unavailable", [expect.stringMatching(/^whsec_/)]]);
    expect(reported).toHaveLength(2);
    for (const line of reported) expect(line).toContain(report);
  });

  it("a customer other than the requested one is reported and gives 503", async () => {
    const other = "00000000-0000-0000-0000-000000000001";
    expect(await outcomes(() => ({ customer_uuid: other }))).toEqual([{ customer: other, policy: defaultPolicy }, "unavailable", "unavailable"]);
    expect(reported).toEqual(Array(2).fill("the customer source was asked for one customer and returned another"));
  });

  it("a policy is checked once as long as the source returns the same object", async () => {
    const policy = { checks: 2 };
    const accounts = accountsOf(() => ({ customer_uuid: uuid, policy }));
    const [one, two] = [await accounts.byKey(key), await accounts.byUuid(uuid)];
    expect(one.policy).toEqual({ ...defaultPolicy, checks: 2 });
    expect(two.policy).toBe(one.policy);
  });
});

it("a customer's key may be in its list twice, also as its digest", async () => {
  const source = configuredCustomers([{ customer_uuid: uuid, keys: [key, digest, key] }]);
  expect(source.findByKeyDigest(digest.slice("sha256:".length))).toMatchObject({ customer_uuid: uuid });
});

describe("a key without its underscore (docs/contract.md#api-keys)", () => {
  const bare = key.replace("_", "");
  const accounts = (keys: string[]) => {
    const source = configuredCustomers([{ customer_uuid: uuid, keys }]);
    return createAccounts(source, settings, clock, { on: false, failures: 0, failed() {}, worked() {} });
  };

  it("is the same key, in a request and in the configuration", async () => {
    for (const configured of [key, bare, digest]) for (const sent of [key, bare]) expect((await accounts([configured]).byKey(sent)).customer).toBe(uuid);
    await expect(accounts([generateApiKey().key]).byKey(bare)).rejects.toThrow("no valid API key");
  });

  it("is not recognized if its checksum is wrong or its form differs", async () => {
    const wrong = bare.slice(0, -1) + (bare.endsWith("0") ? "1" : "0");
    const own = [`pp${"k".repeat(49)}`, `pp${"k".repeat(48)}`, `PP${bare.slice(2)}`];
    for (const one of [wrong, ...own]) await expect(accounts([key]).byKey(one)).rejects.toThrow("no valid API key");
    const digestOf = (one: string) => `sha256:${createHash("sha256").update(one).digest("hex")}`;
    for (const one of own) for (const configured of [one, digestOf(one)]) expect((await accounts([configured]).byKey(one)).customer).toBe(uuid);
  });
});
