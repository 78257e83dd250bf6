import type { Authentication, Send } from "../domain/authentication.js";
import { withSend } from "../domain/authentication.js";
import { messageText, textFault } from "../domain/message.js";
import type { Policy } from "../domain/policy.js";
import { type Cost, soundPrice } from "../domain/spend.js";
import { defaultOptions } from "../options.js";
import type { Destination, Plan, SmsMessage } from "../ports/sms-sender.js";
import type { Parts } from "./parts.js";
import { receiptUrlOf } from "./receipt-url.js";

/** The next send of an authentication: its code, the record that holds it and must be written before the message goes out, and what the message may cost. */
export function nextSend(
  parts: Parts,
  auth: Authentication,
  country: string | undefined,
  policy: Policy,
  now: number,
): { readonly code: string; readonly next: Authentication; readonly cost: Cost } {
  const { codes, settings } = parts;
  const test = settings.testNumbers.get(auth.number);
  const code = test?.code ?? codes.draw(policy.codeLength);
  // When a send that nobody settled counts as `unknown`: a crash took its process. By then its own process has settled it, also where the clock that looks is ahead.
  const settleBy = now + settings.sendTimeout + settings.storeTimeout + 2 * settings.clockSkew;
  // "never sent": no route, and no cost.
  const plan = test === undefined ? planNext(parts, auth, country) : undefined;
  const cost = test === undefined ? soundPrice(plan?.price) : "free";
  return { code, next: withSend(auth, codes.digest(auth.id, code), now, settleBy, plan?.route), cost };
}

/** The route that the next send would take. "The first write names the planned route" (architecture.md, rule 7). */
function planNext({ sender, logger }: Parts, auth: Authentication, country: string | undefined): Plan | undefined {
  try {
    return sender.plan?.(destinationOf(auth, auth.attempts + 1, country, auth.sends));
  } catch (err) {
    logger.error({ err, authentication_uuid: auth.id }, "the sender could not plan a route");
    return undefined;
  }
}

/** The message of the newest send. */
export function toMessage(parts: Parts, auth: Authentication, code: string, country: string | undefined, maxPrice?: number): SmsMessage {
  const { settings, codes } = parts;
  const send = auth.sends.at(-1);
  const receiptUrl = settings.receiptBase === undefined ? undefined : receiptUrlOf(codes, settings.receiptBase, auth);
  return {
    ...destinationOf(auth, auth.attempts, country, auth.sends.slice(0, -1)),
    text: writeText(parts, auth, code, country),
    code,
    ...(send?.route !== undefined && { planned_route: send.route }),
    ...(maxPrice !== undefined && { max_price: maxPrice }),
    ...(receiptUrl !== undefined && { receipt_url: receiptUrl }),
  };
}

/** The text; the default one where a template function fails, so that its fault costs no verification. */
function writeText({ settings, logger }: Parts, auth: Authentication, code: string, country: string | undefined): string {
  const template = settings.message;
  const recipient = { deviceType: auth.deviceType, appRealm: auth.appRealm, country, customer: auth.customer };
  if (typeof template.text !== "function") return messageText(template, code, recipient);
  try {
    const text = messageText(template, code, recipient);
    const fault = textFault(text, code, template.maxSegments);
    if (fault === undefined) return text;
    logger.error({ authentication_uuid: auth.id }, `message.text ${fault}; the default text was sent`);
  } catch (err) {
    logger.error({ err, authentication_uuid: auth.id }, "message.text threw; the default text was sent");
  }
  return messageText({ ...template, text: defaultOptions.message.text }, code, recipient);
}

/** What a sender may know of a send before it is written down; `earlier`: the sends before it. */
function destinationOf(auth: Authentication, attempt: number, country: string | undefined, earlier: readonly Send[]): Destination {
  const tried = earlier.flatMap((send) => send.route ?? []);
  return {
    to: auth.number,
    authentication_uuid: auth.id,
    customer_uuid: auth.customer,
    attempt,
    ...(country !== undefined && { country }),
    ...(tried.length > 0 && { routes_tried: tried }),
  };
}
