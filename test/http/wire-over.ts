import { afterEach, expect, test, vi } from "vitest";
import type { Mounting } from "./hosts.js";
import { createService } from "./service.js";
import { wireSuite } from "./wire.js";

/** The wire over one way of mounting, on the memory store. */
export function wireOver(mounting: Mounting): void {
  afterEach(() => void vi.restoreAllMocks());

  wireSuite(mounting, async () => {
    const service = createService();
    return { host: await mounting.start([service.verifier, service.verifier.receipts]), service };
  });

  test(`${mounting.name}: a logger that throws does not break requests`, async () => {
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
