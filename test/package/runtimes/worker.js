import { waitUntil } from "cloudflare:workers";
import { createService } from "./service.js";

let service;

/** Builds its verifier with the first request: a Worker's global scope allows no timer. What goes on after an answer is told to the platform. */
export const worker = {
  fetch(request) {
    service ??= createService({ waitUntil });
    return service.fetch(request);
  },
};
