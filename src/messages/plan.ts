import type { Authentication, Send } from "../domain/authentication.js";
import { withSend } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import { messageText, registeredText, textFault } from "../domain/message.js";
import type { Policy } from "../domain/policy.js";
import type { Charge } from "../domain/quota.js";
import { type Cost, parsePrice, spendCharges, unpricedRefusal } from "../domain/spend.js";
import { base36 } from "../domain/time.js";
import { defaultText } from "../options/schema.js";
import type { CodeMessage, Network, Plan, RegisteredIds } from "../ports/sms-sender.js";
import type { GivenMessage } from "./given-message.js";
import type { Messages } from "./messages.js";
import { receiptUrl, referenceOf } from "./receipt-reference.js";

/** A message that is about to be sent. */
export interface PlannedMessage {
  /** The record with the message; it must be written before the message is sent. */
  readonly next: Authentication;
  /** Empty for a notice, which has no code. */
  readonly code: string;
  /** The whole text, if another server wrote it. */
  readonly text?: string | undefined;
  readonly network?: Network | undefined;
  /** The price of the planned route, if the sender gives prices. */
  readonly price?: number | undefined;
  /** The highest price allowed; absent: no ceiling applies. */
  readonly maxPrice?: number | undefined;
  /** The claims of spend ceilings. */
  readonly charges: readonly Charge[];
  /** Present if there is a ceiling, but the sender gave no price. */
  readonly unpriced?: Decision | undefined;
}

/** Plans the next message of an authentication: its code, route and maximum price. */
export function planMessage(
  messages: Messages,
  auth: Authentication,
  policy: Policy,
  now: number,
  network: Network | undefined,
  given: GivenMessage | undefined,
): PlannedMessage {
  const { keyring, settings, overrides, logger } = messages;
  const test = settings.testNumbers.get(auth.number);
  const draw = () => test?.code ?? overrides.codeFor?.(auth.number) ?? keyring.draw(auth.codeLength ?? policy.codeLength);
  const code = given === undefined ? draw() : (given.code ?? "");
  // When an unsettled send counts as `unknown` because its process crashed. By then a running process has settled it,
  // even if the reader's clock is ahead.
  const settleBy = now + settings.sendTimeout + settings.storeTimeout + 2 * settings.clockSkew;
  // "never sent": no route and no cost.
  const route = test === undefined ? planRoute(messages, auth, network) : undefined;
  const cost: Cost = test === undefined ? parsePrice(route?.price) : "free";
  const ceilings = policy.limits.spend;
  const unpriced = unpricedRefusal(cost, ceilings, now);
  if (unpriced !== undefined) logger.error({ customer_uuid: auth.customer }, "policy.limits.spend blocks a message: the sender gave no price for it");
  return {
    next: withSend(auth, keyring.digest(auth.id, given?.identity ?? code), now, settleBy, route?.route),
    code,
    text: given?.text,
    network,
    charges: spendCharges(auth.customer, cost, ceilings, { now, skew: settings.clockSkew }),
    price: typeof cost === "number" ? cost : undefined,
    maxPrice: typeof cost === "number" && ceilings.length > 0 ? cost : undefined,
    unpriced,
  };
}

/**
 * The route that the next send would take. "The first write names the planned route" (docs/contract.md#round-trips).
 */
function planRoute({ sender, logger }: Messages, auth: Authentication, network: Network | undefined): Plan | undefined {
  try {
    return sender.plan?.({
      to: auth.number,
      authentication_uuid: auth.id,
      customer_uuid: auth.customer,
      attempt: auth.attempts + 1,
      country: auth.country,
      network,
      routes_tried: routesOf(auth.sends, auth.sends.length),
    });
  } catch (err) {
    logger.error({ err, authentication_uuid: auth.id }, "the sender could not plan a route");
    return undefined;
  }
}

/** The message of a send, as passed to the sender. */
export function toMessage(messages: Messages, { next: auth, code, text, maxPrice, network }: PlannedMessage): CodeMessage {
  const { settings, keyring } = messages;
  const { receiptBase } = settings;
  const reference = receiptBase === undefined ? undefined : referenceOf(keyring, { customer: auth.customer, id: auth.id, attempt: auth.attempts });
  return {
    to: auth.number,
    authentication_uuid: auth.id,
    customer_uuid: auth.customer,
    attempt: auth.attempts,
    country: auth.country,
    network,
    routes_tried: routesOf(auth.sends, auth.sends.length - 1),
    // After a record has ended, another one may use the same id.
    idempotency_key: `${auth.id}/${base36(auth.createdAt)}/${auth.attempts}`,
    text: writeText(messages, auth, code, text),
    code,
    locale: auth.locale,
    planned_route: auth.sends.at(-1)?.route,
    max_price: maxPrice,
    expires_at: auth.expiresAt,
    registered: registeredAs(messages, auth),
    receipt_reference: reference,
    receipt_url: receiptBase === undefined || reference === undefined ? undefined : receiptUrl(receiptBase, reference),
  };
}

/** The registered ids of its text, if any. */
function registeredAs({ settings }: Messages, auth: Authentication): RegisteredIds | undefined {
  const { entity, template } = registeredText(settings.message, auth)?.ids ?? {};
  if (entity === undefined && template === undefined) return undefined;
  return { ...(entity !== undefined && { entity }), ...(template !== undefined && { template }) };
}

/** The text. If a template function fails, the default text is used, so that no verification fails. */
function writeText({ settings, logger }: Messages, auth: Authentication, code: string, given: string | undefined): string {
  const template = settings.message;
  if (given !== undefined && code === "") return given;
  // Operators drop other texts where one is registered.
  if (given !== undefined && registeredText(template, auth) === undefined) {
    const fault = textFault(given, code, template.maxSegments);
    if (fault === undefined) return given;
    logger.error({ authentication_uuid: auth.id }, `the text of a delivery ${fault}; our own text was sent`);
  }
  const recipient = { deviceType: auth.deviceType, appRealm: auth.appRealm, country: auth.country, customer: auth.customer, locale: auth.locale };
  if (typeof template.text !== "function" || registeredText(template, recipient) !== undefined) return messageText(template, code, recipient);
  try {
    const text = messageText(template, code, recipient);
    const fault = textFault(text, code, template.maxSegments);
    if (fault === undefined) return text;
    logger.error({ authentication_uuid: auth.id }, `message.text ${fault}; the default text was sent`);
  } catch (err) {
    logger.error({ err, authentication_uuid: auth.id }, "message.text threw; the default text was sent");
  }
  return messageText({ ...template, text: defaultText }, code, recipient);
}

/** The routes of the first `count` sends; absent if no send has a route. */
function routesOf(sends: readonly Send[], count: number): readonly string[] | undefined {
  if (count <= 0) return undefined;
  const tried = sends.slice(0, count).flatMap((send) => send.route ?? []);
  return tried.length === 0 ? undefined : tried;
}
