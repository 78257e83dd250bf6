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
