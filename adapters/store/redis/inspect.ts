import type { StoreInspection } from "../../../src/ports/store.js";
import type { Ask } from "./commit.js";
import inspectScript from "./inspect.lua";
import type { Keys } from "./keys.js";

/** What the server tells a script, so that every client can ask, and none needs to be allowed CONFIG. On a cluster time and settings are those of the node of the first shard. */
export function inspectionOf(ask: Ask, { wakes }: Keys): (until: number) => Promise<StoreInspection> {
  return async (until) => {
    const answers = await Promise.all(wakes.map(async (wake) => (await ask(inspectScript, [wake], [String(until)])).slice(1).split("\n")));
    const [time = "", , aof = "", policy = ""] = answers[0] ?? [];
    return {
      kind: "redis",
      due: answers.reduce((sum, [, due]) => sum + Number(due), 0),
      ...(time !== "" && { time: Number(time) }),
      settings: { ...(aof !== "" && { appendonly: aof === "1" ? "yes" : "no" }), ...(policy !== "" && { "maxmemory-policy": policy }) },
    };
  };
}
