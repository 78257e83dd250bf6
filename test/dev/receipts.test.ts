import { expect, test } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { ShownMessage } from "../../src/dev/messages.js";
import { readDevSettings } from "../../src/dev/settings.js";
import { startDev } from "../../src/dev/start.js";
import { decodeRecord } from "../../src/engine/records/codec.js";

test("a receipt from the page reaches the record of its authentication; none is taken over the service's own route", async () => {
  const settings = readDevSettings(["--port", "0", "--json"], {});
  const dev = await startDev(settings, { out() {}, err() {} });
  try {
    const created = await fetch(`${dev.url}/v1/authentication`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": settings.api_key },
      body: JSON.stringify({ customer_uuid: settings.customer_uuid, phone_number: "+14155552671" }),
    });
    const { authentication_uuid } = (await created.json()) as ShownMessage;
    // The demo's store is in memory, one for the whole process.
    const deliveries = async () => {
      const record = await memoryStore().find(settings.customer_uuid, authentication_uuid);
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
