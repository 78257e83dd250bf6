import { describe, expect, test } from "vitest";
import type { StoreSubject } from "../../src/testing/store-contract.js";
import { storeContract } from "../../src/testing/store-contract.js";
import { BoundedStore, PlainStore, TwoStepStore } from "./plain-store.js";
import { wrongStores } from "./wrong-stores.js";

const contract = storeContract();

/** The sentences that a store breaks. Each case gets a new store. */
async function broken(make: () => StoreSubject): Promise<string[]> {
  const names: string[] = [];
  for (const { name, run } of contract) {
    await run(make()).catch(() => names.push(name));
  }
  return names;
}

describe("a wrong store is detected", () => {
  const holds = (run: (typeof contract)[number]["run"], subject: StoreSubject) =>
    run(subject).then(
      () => true,
      () => false,
    );

  test.each(wrongStores)("that $mistake, by: $foundBy", async ({ foundBy, make }) => {
    const [finds] = contract.filter(({ name }) => name === foundBy);
    expect(finds && (await holds(finds.run, make()))).toBe(false);
    // The store is not wrong in everything.
    for (const { run } of contract) if (await holds(run, make())) return;
    expect.unreachable("no sentence holds");
  });

  test("and every sentence of the contract detects at least one", () => {
    const found = new Set(wrongStores.map(({ foundBy }) => foundBy));
    expect(contract.map(({ name }) => name).filter((name) => !found.has(name))).toEqual([]);
  });
});

test.each([
  ["in one step, with all that it was given", () => new PlainStore()],
  ["in one step, with no more of a window than it must keep", () => new BoundedStore()],
  ["in several steps a round trip apart", () => new TwoStepStore()],
])("a correct store breaks no sentence: %s", async (_, make) => {
  expect(await broken(() => ({ store: make() }))).toEqual([]);
});

test("an error shows the part of the sentence that failed, what was expected and what came", async () => {
  class Late extends PlainStore {
    override held(): number {
      return 7;
    }
  }
  const once = contract.find(({ name }) => name === "window: an existing member of a full window is granted");
  await expect(once?.run({ store: new Late() })).rejects.toThrow("the member that fills the window: the counts: expected [ 3 ], got [ 7 ]");
});
