import { createService } from "./service.js";

let service;

/** Creates its verifier in the first request: a Worker's global scope allows no timer. */
export const worker = {
  fetch(request) {
    service ??= createService();
    return service.fetch(request);
  },
};
