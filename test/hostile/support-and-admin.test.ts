import { describe, expect, onTestFinished, test } from "vitest";
import { newDesk, number } from "./support-and-admin-kit.js";

const desk = (...options: Parameters<typeof newDesk>) => {
  const made = newDesk(...options);
  onTestFinished(made.remove);
  return made;
};

describe("stats", () => {
  test("without options, of a verifier that keeps less than a week, prints what is kept or names --days", async () => {
    const { verifier, run, module } = desk();
    await verifier.createAuthentication({ phone_number: number });
    await verifier.close();
    const printed = await run("stats", module("statistics: { keep: 6 * 86_400 }")).catch(({ message }: Error) => message);
    expect(printed).toMatch(/1 messages? sent|--days/);
  });
});
