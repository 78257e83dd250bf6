import { expect } from "vitest";
import { ending, eventually, type Service } from "./kit.js";

/** Creates until `cap` messages went out, then expects `rate_limited`: earlier failures must not stay counted. */
export async function usesUpCap(one: Service, cap: number, from = 1_000): Promise<void> {
  let next = from;
  await eventually("the cap is used up", async () => {
    await ending(one.create(next++));
    return one.sender.messages.length >= cap;
  });
  await one.verifier.flush();
  expect(await ending(one.create(next++))).toBe("rate_limited");
  expect(one.sender.messages).toHaveLength(cap);
}
