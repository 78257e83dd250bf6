import { expect, it, vi } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { Store } from "../../src/index.js";
import { errorCode, numberOf, setUp, start } from "../support/verifier.js";

/** A store whose calls take a moment. From `end` on they are listed. */
function slowStore(inner: Store) {
  const late: string[] = [];
  let ended = false;
  const store = new Proxy(inner, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name, target);
      if (typeof own !== "function" || name === "close") return undefined;
      return async (...args: unknown[]) => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (ended) late.push(String(name));
        return Reflect.apply(own, target, args);
      };
    },
  });
  return { store, late, end: () => void (ended = true) };
}

it("close waits for everything that is stored in the background, and then the store is not used (docs/operations.md#deploy)", async () => {
  const inner = memoryStore();
  const { store, late, end } = slowStore(inner);
  const { verifier } = setUp({ store, countries: ["FR"], customers: "store", statistics: {} });
  const { customer_uuid } = await verifier.customers.create({ name: "ACME" });
  const { key } = await verifier.customers.keys.issue({ customer_uuid });
  for (let index = 0; index < 6; index++) await verifier.createAuthentication({ customer_uuid, phone_number: numberOf(1) });
  expect(await errorCode(verifier.createAuthentication({ customer_uuid, phone_number: "+14155552671" }))).toBe("unsupported_region");
  await verifier.customerOf(key);
  await verifier.close();
  end();

  const next = setUp({ store: inner, countries: ["FR"], customers: "store", statistics: {} }).verifier;
  const { sends, refused } = await next.stats({ customer_uuid, from: new Date(start - 3_600_000), to: new Date(start + 3_600_000) });
  expect({ sends, refused }).toEqual({ sends: 5, refused: 1 });
  const history = await next.history({ customer_uuid, phone_number: numberOf(1) });
  expect(history.map(({ status }) => status).sort()).toEqual([...Array(5).fill("pending"), "rate_limited"]);
  expect(await next.refusals({ customer_uuid, phone_number: "+14155552671" })).toHaveLength(1);
  expect((await next.customers.keys.list({ customer_uuid }))[0]?.last_used_on).toBe("2026-03-01");
  expect(late).toEqual([]);
});

it("close waits for a message that is being handed to the carrier, but not longer than sendTimeout", async () => {
  for (const responds of [true, false]) {
    let respond: ((result: { outcome: "accepted" }) => void) | undefined;
    const send = () => new Promise<{ outcome: "accepted" }>((resolve) => (respond = resolve));
    const { verifier, create, clock } = setUp({ sender: { send }, sendTimeout: 5 });
    const created = create();
    await vi.waitFor(() => expect(respond).toBeDefined());
    let isClosed = false;
    const closing = verifier.close().then(() => (isClosed = true));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(isClosed).toBe(false);
    if (responds) respond?.({ outcome: "accepted" });
    else clock.advance(5_000);
    await closing;
    await created;
  }
});
