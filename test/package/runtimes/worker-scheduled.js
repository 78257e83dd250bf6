import { createService } from "./service.js";

const service = createService({ worker: false });

/** Creates its verifier in the global scope, and delivers callbacks only in its scheduled event. */
export const worker = {
  fetch: service.fetch,
  async scheduled() {
    await service.verifier.flush();
  },
};
