import { fork } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundle } from "../store/processes.js";
import type { Task, Told } from "./one-commit-process.js";

describe("what stays in the memory of a process", () => {
  let built: Awaited<ReturnType<typeof bundle>>;
  beforeAll(async () => {
    built = await bundle(new URL("./one-commit-process.ts", import.meta.url));
  });
  afterAll(() => built && rmSync(built.outDir, { recursive: true }));

  const heapAfter = async (task: Omit<Extract<Task, { do: "forget" }>, "do">) => {
    const child = fork(built.script, [JSON.stringify({ do: "forget", ...task } satisfies Task)], { execArgv: ["--expose-gc"] });
    const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`the process ended with ${code}`)));
    const [told] = (await Promise.race([once(child, "message"), ended])) as [Extract<Told, { traces: unknown }>];
    ended.catch(() => {});
    child.disconnect();
    return told;
  };

  it.each([
    [true, 2, false],
    [true, 2, true],
    [true, 10, true],
    [false, 2, false],
    [false, 10, true],
  ])(
    "no string in the heap contains the number (erased: %s) %s lifetimes later, with other traffic: %s (docs/privacy.md)",
    async (erased, lifetimes, traffic) => {
      const { traces, steps } = await heapAfter({ erased, lifetimes, traffic });
      expect(steps).toEqual(
        expect.arrayContaining(["retry: approved", "right: valid", "over HTTP: 200", "more: rate_limited", ...(erased ? ["erase: done"] : [])]),
      );
      expect(traces).toEqual([]);
    },
  );
});
