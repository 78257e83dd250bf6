import { describe, expect, onTestFinished, test } from "vitest";
import { newDesk, number } from "./support-and-admin-kit.js";

const desk = (...options: Parameters<typeof newDesk>) => {
  const made = newDesk(...options);
  onTestFinished(made.remove);
  return made;
};

describe("why", () => {
  test("no longer tells the user to wait once the limit was lifted", async () => {
    const { verifier, run, why } = desk({ policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
    const create = async () => (await verifier.createAuthentication({ phone_number: number })).status;
    expect(await create()).toBe("pending");
    expect(await create()).toBe("rate_limited");
    await expect.poll(async () => (await verifier.history({ phone_number: number })).length).toBe(2);
    expect(await why()).toContain("There is room again at");
    expect(await run("unlock", number)).toContain("the user can ask for a code again");
    expect(await why()).not.toMatch(/There is room again at|Wait until there is room/);
  });

  test("does not say that a customer's cap without perVerified grows with each verified user", async () => {
    const { verifier, code, why } = desk({ policy: { limits: { perCustomer: [{ limit: 2, window: 3600 }] } } });
    for (const phone_number of ["+33622345678", "+33632345678"]) {
      const { authentication_uuid } = await verifier.createAuthentication({ phone_number });
      expect(await verifier.check({ authentication_uuid, check_code: code() })).toMatchObject({ status: "valid" });
    }
    const { status } = await verifier.createAuthentication({ phone_number: number });
    expect(status).toBe("rate_limited");
    await expect.poll(async () => (await verifier.history({ phone_number: number })).length).toBe(1);
    const said = await why();
    expect(said).toContain("the rule perCustomer 2/3600s");
    expect(said).not.toContain("grows by 3");
  });
});

describe("stats", () => {
  test("without options, of a verifier that keeps less than a week, prints what is kept or names --days", async () => {
    const { verifier, run, module } = desk();
    await verifier.createAuthentication({ phone_number: number });
    await verifier.close();
    const printed = await run("stats", module("statistics: { keep: 6 * 86_400 }")).catch(({ message }: Error) => message);
    expect(printed).toMatch(/1 messages? sent|--days/);
  });
});
