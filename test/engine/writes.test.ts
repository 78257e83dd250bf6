import { expect, test } from "vitest";
import type { Change, CommitResult, Store } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { errorCode, setUp } from "../support/verifier.js";

/** A memory store whose commits are replaced by `commit`. */
function storeWith(commit: (change: Change, store: Store) => Promise<CommitResult>): Store {
  const { store } = setUp();
  return new Proxy(store, { get: (_target, name: keyof Store) => (name === "commit" ? (change: Change) => commit(change, store) : store[name]?.bind(store)) });
}

test("a record stores the tokens of its last sixteen writes, the newest first", async () => {
  const written: (readonly string[])[] = [];
  const store = storeWith((change, own) => {
    if (change.record !== undefined) written.push(change.record.tokens);
    return own.commit(change);
  });
  const set = setUp({ store, policy: { checks: 20, codeLength: 8 } });
  const { authentication_uuid } = await set.create();
  for (let guess = 0; guess < 19; guess++) expect(await set.check(authentication_uuid, "0")).toMatchObject({ status: "invalid" });
  expect(written.map(({ length }) => length)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 16, 16, 16]);
  expect(written.at(-1)?.slice(1)).toEqual(written.at(-2)?.slice(0, 15));
});

test("create gives 503 if the store never accepts the new record and shows no conflicting one", async () => {
  let asked = 0;
  const set = setUp({
    store: storeWith(async () => {
      if (++asked > 1_000) throw new Error("asked without end");
      return { done: false };
    }),
  });
  expect(await errorCode(set.create())).toBe("unavailable");
  expect(asked).toBeLessThanOrEqual(1_000);
  expect(set.box.messages).toEqual([]);
});

test("a message that the planned route accepts takes one write, and explain has the reason in this process (docs/contract.md#round-trips)", async () => {
  let commits = 0;
  const set = setUp({
    store: storeWith((change, own) => {
      commits++;
      return own.commit(change);
    }),
    sender: router({ routes: [{ name: "one", sender: { send: async () => ({ outcome: "accepted", messageId: "m" }) } }] }),
  });
  const { authentication_uuid } = await set.create();
  expect(commits).toBe(1);
  const { decisions } = await set.verifier.explain({ authentication_uuid, customer_uuid: set.customer });
  expect(decisions).toMatchObject([{ rule: "one", outcome: "accepted", reason: "planned, the only route: accepted" }]);
});
