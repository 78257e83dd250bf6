import type { Store } from "../ports/store.js";

const isObject = (value: unknown) => typeof value === "object" && value !== null;

/** A store whose methods reject if their results have the wrong type: a host's store may return anything. */
export function checkedStore(store: Store): Store {
  const checked = async <T>(name: keyof Store, returned: Promise<T>, isSound: (result: unknown) => boolean): Promise<T> => {
    const result = await returned;
    if (isSound(result)) return result;
    const what = result === null ? "null" : typeof result;
    throw new TypeError(`the store's method ${name} returned ${what}: storeContract of phoneproof/testing tests what it must return`);
  };
  return {
    find: (customer, id) => checked("find", store.find(customer, id), (found) => found === undefined || isObject(found)),
    commit: (change) => checked("commit", store.commit(change), isObject),
    members: (window, limit) => checked("members", store.members(window, limit), Array.isArray),
    tally: (adds, reads) => checked("tally", store.tally(adds, reads), Array.isArray),
    lease: (until, limit, leaseUntil) => checked("lease", store.lease(until, limit, leaseUntil), Array.isArray),
    get: (key) => store.get(key),
    put: (key, value, expiry) => store.put(key, value, expiry),
    delete: (what) => store.delete(what),
    ...(store.inspect !== undefined && { inspect: async (until: number) => (await store.inspect?.(until)) ?? {} }),
  };
}
