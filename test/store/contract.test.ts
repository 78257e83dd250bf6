import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { storeContract } from "../../src/testing/store-contract.js";

describe("the store contract on one memory store", () => {
  const store = memoryStore({ name: randomUUID() });

  for (const { name, run } of storeContract({ racers: 1_000 })) it(name, () => run({ store }));
});

describe("the store contract itself (docs/contract.md#contract-suites)", () => {
  it("names each sentence once", () => {
    const names = storeContract().map(({ name }) => name);
    expect(names.length).toBeGreaterThan(50);
    expect(new Set(names).size).toBe(names.length);
  });

  it("races 50 callers by default, and allows from 2 to 1,000", () => {
    expect(storeContract().some(({ name }) => name.includes("of 50 racing"))).toBe(true);
    expect(storeContract({ racers: 7 }).some(({ name }) => name.includes("of 7 racing"))).toBe(true);
    for (const racers of [1, 2.5, 1_001, Number.NaN]) expect(() => storeContract({ racers })).toThrow("racers must be an integer from 2 to 1,000");
  });
});
