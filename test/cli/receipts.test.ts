import { expect, test } from "vitest";
import type { ShownMessage } from "../../src/cli/demo/messages.js";
import { readDevSettings } from "../../src/cli/settings.js";
import { startDev } from "../../src/cli/start.js";

test("a receipt from the page updates its authentication; the service's own receipt route accepts none", async () => {
  const given = { PHONEPROOF_DEV_CUSTOMER_UUID: "2f0e6f5c-3b7a-4d58-9c1e-6a1b2c3d4e5f", PHONEPROOF_DEV_API_KEY: "k".repeat(32) };
  const settings = readDevSettings(["--port", "0", "--json", "--data", "memory"], given);
  let reported: (status: string) => void = () => {};
  /** The first status that a callback reports after `submitted`. */
  const status = new Promise<string>((resolve) => (reported = resolve));
  const dev = await startDev(settings, {
    out(line) {
      const { type, status } = JSON.parse(line) as { type: string; status: string };
      if (type === "callback" && status !== "submitted") reported(status);
    },
    err() {},
  });
  const post = (path: string, body: object, headers = {}) =>
    fetch(dev.url + path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });
  try {
    const request = { customer_uuid: given.PHONEPROOF_DEV_CUSTOMER_UUID, phone_number: "+14155552671", callback_url: `${dev.url}/dev/callbacks` };
    const created = await post("/v1/authentication", request, { "x-api-key": given.PHONEPROOF_DEV_API_KEY });
    const { authentication_uuid } = (await created.json()) as ShownMessage;
    const receipt = { authentication_uuid, attempt: 1 };
    expect((await post("/receipts/dev", { ...receipt, status: "delivered" })).status).toBeGreaterThanOrEqual(400);
    expect((await post("/dev/receipts", { ...receipt, status: "undeliverable" })).status).toBe(204);
    expect(await status).toBe("undeliverable");
  } finally {
    await dev.close();
  }
});
