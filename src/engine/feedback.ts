import type { Authentication } from "../domain/authentication.js";
import type { Feedback } from "../ports/sms-sender.js";
import { countryOf } from "./destination.js";
import type { Parts } from "./parts.js";

/** Tells the sender what became of a message, where its route is known. */
export function feedBack(parts: Parts, auth: Authentication, attempt: number, event: Feedback["event"]): void {
  const route = auth.sends.find((send) => send.attempt === attempt)?.route;
  if (route === undefined || parts.sender.feedback === undefined) return;
  const country = countryOf(parts, auth.number);
  try {
    parts.sender.feedback({ route, authentication_uuid: auth.id, attempt, event, ...(country !== undefined && { country }) });
  } catch (err) {
    parts.logger.error({ err, authentication_uuid: auth.id }, "the sender failed to take feedback");
  }
}
