import { type Authentication, sendOf } from "../domain/authentication.js";
import type { Feedback } from "../ports/sms-sender.js";
import type { Messages } from "./messages.js";

/** Reports a message's outcome to the sender in the background, if its route or the carrier's id is known. */
export function sendFeedback(parts: Messages, auth: Authentication, attempt: number, event: Feedback["event"], isUnreachable = false): void {
  const { sender, monitor, inBackground } = parts;
  const send = sendOf(auth, attempt);
  if (sender.feedback === undefined || (send?.route === undefined && send?.messageId === undefined)) return;
  const { id, country } = auth;
  const { route, messageId, at, moved } = send;
  const feedback: Feedback = {
    ...(route !== undefined && { route }),
    ...(messageId !== undefined && { messageId }),
    authentication_uuid: id,
    attempt,
    event,
    ...(isUnreachable && { unreachable: true }),
    sent_at: at,
    chosen: attempt === 1 && moved === undefined,
    ...(country !== undefined && { country }),
  };
  const failed = (err: unknown) => monitor.throttledLog.error({ err, authentication_uuid: id }, "the sender failed to process feedback");
  try {
    const sending = sender.feedback(feedback);
    if (sending !== undefined) inBackground(Promise.resolve(sending).catch(failed));
  } catch (err) {
    failed(err);
  }
}
