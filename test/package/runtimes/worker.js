import { waitUntil } from "cloudflare:workers";
import { createService } from "./service.js";

let service;

/**
 * Creates its verifier in the first request: a Worker's global scope allows no timer. Work that continues after a
 * response is passed to the platform.
 */
export const worker = {
  fetch(request) {
    service ??= createService({ waitUntil });
    return service.fetch(request);
  },
};
