import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier, type VerifierEvent, type VerifierOptions } from "../../src/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { inbox, logger, secret, start } from "../support/verifier.js";

export const victim = "+33612345678";

/** A service of a security team, whose time moves only when set. */
export function team(options: Partial<VerifierOptions> = {}) {
  const clock = fixedClock(start);
  const store = memoryStore({ now: () => clock.now() });
  const box = inbox();
  const log = logger();
  const events: VerifierEvent[] = [];
  const verifier = createVerifier({
    store,
    sender: box,
    secret,
    countries: ["FR", "GB"],
    conversion: "reported",
    logger: log,
    clock,
    onEvent: (event) => void events.push(event),
    callbacks: { worker: false },
    ...options,
  });
  const status = async (phone_number: string, fields: { ip?: string; device_id?: string } = {}) =>
    (await verifier.createAuthentication({ phone_number, ...fields })).status;
  return { verifier, clock, store, box, log, events, status };
}
