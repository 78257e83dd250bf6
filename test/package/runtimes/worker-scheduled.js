import { createService } from "./service.js";

const service = createService({ worker: false });

/** Builds its verifier in the global scope, and delivers callbacks in its scheduled event alone. */
export const worker = {
  fetch: service.fetch,
  async scheduled() {
    await service.verifier.flush();
  },
};
