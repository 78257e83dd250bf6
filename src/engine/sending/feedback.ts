import type { Authentication } from "../../domain/authentication.js";
import type { Feedback } from "../../ports/sms-sender.js";
import type { Parts } from "../parts.js";

/** Tells the sender what became of a message, where its route is known. */
export function feedBack({ sender, logger }: Parts, { id, country, sends }: Authentication, attempt: number, event: Feedback["event"]): void {
  const send = sends.find((one) => one.attempt === attempt);
  if (send?.route === undefined || sender.feedback === undefined) return;
  const { route, at, moved } = send;
  try {
    const chosen = attempt === 1 && moved === undefined;
    sender.feedback({ route, authentication_uuid: id, attempt, event, sent_at: at, chosen, ...(country !== undefined && { country }) });
  } catch (err) {
    logger.error({ err, authentication_uuid: id }, "the sender failed to take feedback");
  }
}
