import { expect, test } from "vitest";
import { lastUsed } from "../../src/engine/records/last-used.js";

test("what weighs up to the most together is kept, and never more than twice that", () => {
  const held = lastUsed<number>(10, 1_000, () => 0);
  for (let key = 0; key < 100; key++) held.set(String(key), key, 1);
  const kept = Array.from({ length: 100 }, (_, key) => held.get(String(key))).filter((value) => value !== undefined);
  expect(kept.slice(-10)).toEqual([90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
  expect(kept.length).toBeLessThanOrEqual(20);
});

test("what was set an age ago is kept, and nothing from before two", () => {
  let now = 0;
  const held = lastUsed<string>(1_000, 100, () => now);
  held.set("first", "first", 1);
  now = 101;
  held.set("second", "second", 1);
  expect(held.get("first")).toBe("first");
  now = 202;
  held.set("third", "third", 1);
  expect([held.get("first"), held.get("second"), held.get("third")]).toEqual([undefined, "second", "third"]);
});

test("a clock that goes back holds nothing for longer", () => {
  let now = 1_000;
  const held = lastUsed<string>(1_000, 100, () => now);
  held.set("first", "first", 1);
  now = 0;
  held.set("second", "second", 1);
  now = 101;
  held.set("third", "third", 1);
  expect(held.get("first")).toBeUndefined();
});

test("what it lets go of is told, but where its key was set again since", () => {
  const told: [string, number][] = [];
  const held = lastUsed<number>(
    3,
    100,
    () => 0,
    (value, key) => told.push([key, value]),
  );
  for (const [value, key] of ["a", "b", "c", "b", "d", "e", "f", "g", "h", "i"].entries()) held.set(key, value);
  expect(told).toEqual([
    ["a", 0],
    ["c", 2],
    ["b", 3],
    ["d", 4],
    ["e", 5],
  ]);
  expect(held.get("f")).toBe(6);
});
