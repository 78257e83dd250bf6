import { stat } from "node:fs/promises";
import { expect, it } from "vitest";
import { redisStore } from "../../adapters/store/redis/index.js";

/** A store of three shards with one record each; `answer` controls when each responds. */
function shards(answer: (shard: number) => Promise<unknown>) {
  return redisStore({
    cluster: true,
    shards: 3,
    async client(_script, [wake = ""], [, , leaseUntil]) {
      const shard = Number(/\{(\d)\}w$/.exec(wake)?.[1]);
      await answer(shard);
      return `=${JSON.stringify([leaseUntil === "" ? [`${shard}`] : [`${shard}`, `:c::${shard}:`, "stoken|rs|data"]])}`;
    },
  });
}

it("a process that stalls for longer than it waits for a shard leases what has arrived in the meantime (docs/contract.md#leases)", async () => {
  const stall = (): void => {
    for (const until = performance.now() + 400; performance.now() < until; );
  };
  // The first shard responds at once, then the process stalls; the other responses are there, but unread, when it
  // resumes.
  const store = shards(async (shard) => {
    if (shard === 0) return void setImmediate(stall);
    await new Promise(setImmediate);
    await stat(".");
  });
  expect((await store.lease(1_000, 10, 2_000)).map(({ id }) => id)).toEqual(["0", "1", "2"]);
});

it("a shard that never responds does not hold up the others", async () => {
  const store = shards((shard) => (shard === 1 ? new Promise(() => {}) : Promise.resolve()));
  expect((await store.lease(1_000, 10, 2_000)).map(({ id }) => id)).toEqual(["0", "2"]);
});
