import { afterEach, expect, test, vi } from "vitest";
import { mountings } from "./hosts.js";
import { createService } from "./service.js";
import { wireSuite } from "./wire.js";

afterEach(() => void vi.restoreAllMocks());

for (const mounting of mountings) {
  wireSuite(mounting, async () => {
    const service = createService();
    return { host: await mounting.start([service.verifier, service.verifier.receipts]), service };
  });

  test(`${mounting.name}: a logger that throws breaks no request`, async () => {
    const loud = () => {
      throw new Error("no disk");
    };
    const toConsole = vi.spyOn(console, "error").mockReturnValue();
    const service = createService({ info: loud, warn: loud, error: loud });
    const host = await mounting.start(service.verifier);
    await service.breakStore(true);
    const headers = { "content-type": "application/json", "x-api-key": service.customer.key };
    const body = JSON.stringify({ customer_uuid: service.customer.customer_uuid, phone_number: "+33612345678" });
    expect(await host.send({ method: "POST", path: `${host.prefix}/v1/authentication`, headers, body })).toMatchObject({ status: 503 });
    await host.close();
    expect(toConsole).toHaveBeenCalledWith("phoneproof: the store failed", expect.anything());
    if (mounting.readsFirst) return;
    vi.spyOn(console, "warn").mockReturnValue();
    const receipts = await mounting.start(service.verifier.receipts);
    expect(await receipts.send({ method: "POST", path: `${receipts.prefix}/receipts/twilio`, body: "a=b" })).toMatchObject({ status: 403 });
    await receipts.close();
  });
}
