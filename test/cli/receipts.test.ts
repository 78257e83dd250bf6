import { expect, test, vi } from "vitest";
import type { ShownMessage } from "../../src/cli/demo/messages.js";
import { readDevSettings } from "../../src/cli/settings.js";
import { startDev } from "../../src/cli/start.js";
import { decodeRecord } from "../../src/core/records/codec.js";
import type { Store } from "../../src/index.js";

/** The demo's store, which it keeps to itself. */
const stores = vi.hoisted(() => [] as Store[]);
vi.mock("../../adapters/store/memory/index.js", async (original) => {
  const { memoryStore } = await original<typeof import("../../adapters/store/memory/index.js")>();
  return {
    memoryStore: () => {
      const store = memoryStore();
      stores.push(store);
      return store;
    },
  };
});

test("a receipt from the page reaches the record of its authentication; none is taken over the service's own route", async () => {
  const given = { PHONEPROOF_DEV_CUSTOMER_UUID: "2f0e6f5c-3b7a-4d58-9c1e-6a1b2c3d4e5f", PHONEPROOF_DEV_API_KEY: "k".repeat(32) };
  const settings = readDevSettings(["--port", "0", "--json", "--data", "memory"], given);
  const dev = await startDev(settings, { out() {}, err() {} });
  try {
    const created = await fetch(`${dev.url}/v1/authentication`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": given.PHONEPROOF_DEV_API_KEY },
      body: JSON.stringify({ customer_uuid: given.PHONEPROOF_DEV_CUSTOMER_UUID, phone_number: "+14155552671" }),
    });
    const { authentication_uuid } = (await created.json()) as ShownMessage;
    const deliveries = async () => {
      const record = await stores[0]?.find(given.PHONEPROOF_DEV_CUSTOMER_UUID, authentication_uuid);
      return record && decodeRecord(record, () => undefined).sends.map(({ delivery }) => delivery);
    };
    const post = (path: string, body: object) =>
      fetch(dev.url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    const receipt = { authentication_uuid, attempt: 1, status: "undeliverable" };
    expect((await post("/receipts/dev", receipt)).status).toBeGreaterThanOrEqual(400);
    expect(await deliveries()).toEqual([undefined]);
    expect((await post("/dev/receipts", receipt)).status).toBe(204);
    expect(await deliveries()).toEqual(["undeliverable"]);
  } finally {
    await dev.close();
  }
});
