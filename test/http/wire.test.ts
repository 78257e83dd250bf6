import { mountings } from "./hosts.js";
import { createService } from "./service.js";
import { wireSuite } from "./wire.js";

for (const mounting of mountings) {
  wireSuite(mounting, async () => {
    const service = createService();
    return { host: await mounting.start(service.verifier), service };
  });
}
