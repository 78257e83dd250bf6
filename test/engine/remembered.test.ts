import { expect, test } from "vitest";
import { numberOf, setUp } from "../support/verifier.js";

test("a check reads no record if this process made the authentication, even if it has made 8,500 others since", async () => {
  const { store } = setUp();
  let finds = 0;
  const set = setUp({
    store: {
      find: (customer, id) => {
        finds++;
        return store.find(customer, id);
      },
      commit: (change) => store.commit(change),
      members: (window, limit) => store.members(window, limit),
      tally: (adds, reads) => store.tally(adds, reads),
      lease: (until, limit, leaseUntil) => store.lease(until, limit, leaseUntil),
      get: (key) => store.get(key),
      put: (key, value, life) => store.put(key, value, life),
      delete: (what) => store.delete(what),
    },
  });
  const { authentication_uuid } = await set.create();
  const code = set.box.code();
  for (let others = 1; others <= 8_500; others++) await set.create({ phone_number: numberOf(others + 1) });
  expect(await set.check(authentication_uuid, set.wrong())).toMatchObject({ status: "invalid" });
  expect(finds).toBe(0);
  expect(await set.check(authentication_uuid, code)).toMatchObject({ status: "valid" });
  expect(finds, "beside a right code's answer it looks whether it was erased meanwhile").toBeLessThanOrEqual(1);
});
