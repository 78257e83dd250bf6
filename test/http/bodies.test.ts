import { bodySuite } from "./bodies.js";
import { mountings } from "./hosts.js";
import { createService } from "./service.js";

for (const mounting of mountings.filter(({ direct }) => !direct)) {
  bodySuite(mounting, "/v1", async () => {
    const service = createService();
    return { host: await mounting.start([service.verifier, service.verifier.receipts]), service };
  });
  // Carriers sign the bytes: no parser may read them first.
  if (!mounting.readsFirst)
    bodySuite(mounting, "/receipts", async () => {
      const service = createService();
      return { host: await mounting.start(service.verifier.receipts), service };
    });
}
