import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier, type VerifierEvent, type VerifierOptions } from "../../src/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { inbox, logger, secret, start } from "../support/verifier.js";

export const victim = "+33612345678";
/** Numbers of the victim's range of 10,000. */
export const neighbor = (index: number): string => `+336123${45_000 + index}`;

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

/** How many of the victim's neighbors get a message before the rules say no. */
export async function room({ status }: Pick<ReturnType<typeof team>, "status">, fields: { ip?: string } = {}): Promise<number> {
  let sent = 0;
  while (sent < 40 && (await status(neighbor(sent + 1), fields)) === "pending") sent++;
  return sent;
}
