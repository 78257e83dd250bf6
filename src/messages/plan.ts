import { stackOf } from "../core/loggers.js";
import { type Authentication, type Send, usedRoutes, withOtherRoutes, withSend } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import { messageText, registeredText, textError, withoutCode } from "../domain/message.js";
import type { Policy } from "../domain/policy.js";
import { synchronous } from "../domain/promises.js";
import type { Charge } from "../domain/quota.js";
import { openRoutes, type SendReport } from "../domain/send.js";
import { type Cost, ceilingsOf, parsePrice, spendCharges, unpricedRefusal } from "../domain/spend.js";
import { base36, minute } from "../domain/time.js";
import { defaultText } from "../options/schema.js";
import type { Channel, CodeMessage, Destination, Fallback, Network, Plan, RegisteredIds } from "../ports/sms-sender.js";
import type { Messages } from "./messages.js";
import { receiptUrl, referenceOf } from "./receipt-reference.js";

/** A message that another server made (docs/contract.md#deliver). */
export interface GivenMessage {
  /** Absent for a notice. */
  readonly code?: string | undefined;
  /** The whole text. Default: the option `message`. */
  readonly text?: string | undefined;
  /** Distinguishes it from other messages to the number. Stored only as a digest. */
  readonly identity: string;
  /** When the caller must have a response, in milliseconds since the epoch. Infinite: it waits for the carrier. */
  readonly answerBy: number;
}

/** What is known and wanted of a message besides its record. */
export interface Wanted {
  readonly network?: Network | undefined;
  /** Channels that the number is known not to be on. */
  readonly unreachable?: readonly Channel[] | undefined;
  /** Absent: a code is drawn. */
  readonly given?: GivenMessage | undefined;
  /** The channel that the request wishes for. */
  readonly channel?: Channel | undefined;
  /** It replaces a message that did not arrive. */
  readonly fallback?: true | undefined;
}

/** A message that is about to be sent. */
export interface PlannedMessage {
  /** The record with the message; it must be written before the message is sent. */
  readonly next: Authentication;
  /** Empty for a notice, which has no code. */
  readonly code: string;
  readonly wanted: Wanted;
  /** `false`: a fallback that no other route takes. */
  readonly isRouted: boolean;
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
export function planMessage(messages: Messages, auth: Authentication, policy: Policy, now: number, wanted: Wanted): PlannedMessage {
  const { keptCodes, keyring, settings, overrides, monitor, sender } = messages;
  const { given, fallback } = wanted;
  const test = settings.testNumbers.get(auth.number);
  const draw = () => test?.code ?? overrides.codeFor?.(auth.number) ?? keyring.draw(auth.codeLength ?? policy.codeLength);
  const code = given === undefined ? draw() : (given.code ?? "");
  // When an unsettled send counts as `unknown` because its process crashed. By then a running process has settled it,
  // even if the reader's clock is ahead.
  const settleBy = now + settings.sendTimeout + settings.storeTimeout + 2 * settings.clockSkew;
  // "never sent": no route and no cost.
  const destination = destinationOf(auth, auth.sends, auth.attempts + 1, wanted);
  const route = test === undefined ? planRoute(messages, destination) : undefined;
  const channel = route?.channel ?? sender.channel;
  const { fallbackAt, keptUntil }: Replacement = test === undefined ? replacementOf(messages, auth, destination, now, route?.route, given) : {};
  const texts = given?.text === undefined ? [code] : [code, given.text];
  const kept = keptUntil === undefined ? undefined : { sealed: keptCodes.seal(ownerOf(auth), texts), until: keptUntil };
  const cost: Cost = test === undefined ? parsePrice(route?.price) : "free";
  const ceilings = ceilingsOf(policy.limits, channel);
  const unpriced = unpricedRefusal(cost, ceilings, now);
  if (unpriced !== undefined)
    monitor.throttledLog.error({ customer_uuid: auth.customer }, "policy.limits.spend blocks a message: the sender gave no price for it");
  return {
    next: withSend(auth, keyring.digest(auth.id, given?.identity ?? code), now, settleBy, {
      route: route?.route,
      ...(channel !== undefined && channel !== "sms" && { channel }),
      ...(fallback && { fallback }),
      fallbackAt,
      kept,
    }),
    isRouted: fallback === undefined || route !== undefined,
    code,
    wanted,
    charges: spendCharges(auth.customer, cost, ceilings, { now, skew: settings.clockSkew }),
    price: typeof cost === "number" ? cost : undefined,
    maxPrice: typeof cost === "number" && ceilings.length > 0 ? cost : undefined,
    unpriced,
  };
}

/**
 * The route that the next send would take. "The first write names the planned route" (docs/contract.md#round-trips).
 */
function planRoute({ sender, monitor }: Messages, destination: Destination): Plan | undefined {
  try {
    return synchronous("plan", sender.plan?.(destination));
  } catch (err) {
    monitor.throttledLog.error({ err, authentication_uuid: destination.authentication_uuid }, "the sender could not plan a route");
    return undefined;
  }
}

/** `sends`: the earlier ones. */
function destinationOf(auth: Authentication, sends: readonly Send[], attempt: number, { network, unreachable, channel, fallback }: Wanted): Destination {
  const tried = usedRoutes(auth, sends);
  return {
    to: auth.number,
    authentication_uuid: auth.id,
    customer_uuid: auth.customer,
    attempt,
    country: auth.country,
    network,
    routes_tried: tried.length === 0 ? undefined : tried,
    channel: auth.byCall === "fixed line" ? "voice" : (channel ?? (auth.byCall && "voice")),
    fixed_line: auth.byCall === "fixed line" ? true : undefined,
    unreachable,
    fallback,
  };
}

/** What may follow a message on another route. Milliseconds since the epoch. */
interface Replacement {
  /** When it falls back if nothing reports its delivery by then. */
  readonly fallbackAt?: number;
  /** How long the message of a delivery is kept for a fallback. */
  readonly keptUntil?: number;
}

/** How much longer than its fallback's time a code of a delivery is kept. Milliseconds. */
const keptLonger = minute;

/**
 * Whether a message may be replaced (docs/contract.md#fallback): after silence only on a route whose receipts confirm
 * deliveries, and only if another route can follow. A delivery is kept for that (docs/contract.md#fallback-deliveries).
 */
function replacementOf(messages: Messages, auth: Authentication, destination: Destination, now: number, route?: string, given?: GivenMessage): Replacement {
  const { settings, sender } = messages;
  const rules = sender.fallback;
  if (rules === undefined) return {};
  const bySilence = rules.on.includes("silent") && confirms(messages, rules, route);
  const isKept = given?.code !== undefined && (bySilence || rules.on.some((reason) => reason !== "silent"));
  if (!(bySilence || isKept) || !mayFallBack(messages, auth, destination, route, given)) return {};
  // Not while it is being handed over, or two messages could follow it.
  const at = now + Math.max(rules.after, settings.sendTimeout);
  return { ...(bySilence && { fallbackAt: at }), ...(isKept && { keptUntil: at + keptLonger }) };
}

/** Whether silence on a route means that a message did not arrive. */
function confirms({ monitor }: Messages, rules: Fallback, route: string | undefined): boolean {
  try {
    return synchronous("fallback.confirms", rules.confirms(route));
  } catch (err) {
    monitor.throttledLog.error({ err }, "the sender could not tell whether its receipts confirm deliveries; they count as if they did not");
    return false;
  }
}

/** The kept message of a delivery; `undefined` if it cannot be decrypted. */
export function openKept({ keptCodes }: Messages, auth: Authentication): GivenMessage | undefined {
  const [code, text] = (auth.kept && keptCodes.open(ownerOf(auth), auth.kept.sealed)?.texts) ?? [];
  return code === undefined ? undefined : { code, text, identity: `${auth.purpose}\0${code}`, answerBy: Number.POSITIVE_INFINITY };
}

const ownerOf = ({ customer, id }: Authentication) => `${customer}/${id}`;

/** When a message falls back that moved to another route than the planned one. `before`: without the message. */
export function silentOn(messages: Messages, before: Authentication, { next, wanted }: PlannedMessage, report: SendReport): number | undefined {
  const { route } = report;
  if (messages.sender.fallback === undefined || route === undefined || route === next.sends.at(-1)?.route) return undefined;
  const auth = { ...before, otherRoutes: withOtherRoutes(before, openRoutes(report)) };
  return replacementOf(messages, auth, destinationOf(auth, auth.sends, next.attempts, wanted), next.lastSendAt, route, wanted.given).fallbackAt;
}

/** Whether a message may be replaced by one on another route. `auth`: without the message. */
function mayFallBack(messages: Messages, auth: Authentication, destination: Destination, route?: string, given?: GivenMessage): boolean {
  const { sender, settings } = messages;
  const used = auth.fallbacks + (destination.fallback ? 1 : 0);
  if (used >= (sender.fallback?.most ?? 0)) return false;
  if (given !== undefined && (given.code === undefined || !settings.keepCode)) return false;
  const tried = [...(destination.routes_tried ?? []), ...(route === undefined ? [] : [route])];
  return planRoute(messages, { ...destination, routes_tried: tried, channel: auth.byCall && "voice", fallback: true }) !== undefined;
}

/** The same for a message that was sent. */
export function mayReplace(messages: Messages, auth: Authentication): boolean {
  if (auth.purpose !== undefined && auth.kept === undefined) return false;
  return mayFallBack(messages, auth, destinationOf(auth, auth.sends, auth.attempts + 1, {}));
}

/** The message of a send, as passed to the sender. */
export function toMessage(messages: Messages, { next: auth, code, maxPrice, wanted }: PlannedMessage): CodeMessage {
  const { settings, keyring } = messages;
  const { receiptBase } = settings;
  const reference = receiptBase === undefined ? undefined : referenceOf(keyring, { customer: auth.customer, id: auth.id, attempt: auth.attempts });
  return {
    // After a record has ended, another one may use the same id.
    idempotency_key: `${auth.id}/${base36(auth.createdAt)}/${auth.attempts}`,
    text: writeText(messages, auth, code, wanted.given?.text),
    code,
    locale: auth.locale,
    planned_route: auth.sends.at(-1)?.route,
    max_price: maxPrice,
    expires_at: auth.expiresAt,
    replaced_at: auth.fallbackAt,
    registered: registeredAs(messages, auth),
    receipt_reference: reference,
    receipt_url: receiptBase === undefined || reference === undefined ? undefined : receiptUrl(receiptBase, reference),
    // Last: V8 takes 1.5 µs for each key that is added to a spread object, a twentieth of a flow's CPU time in all.
    ...destinationOf(auth, auth.sends.slice(0, -1), auth.attempts, wanted),
  };
}

/** The registered ids of its text, if any. */
function registeredAs({ settings }: Messages, auth: Authentication): RegisteredIds | undefined {
  const { entity, template } = registeredText(settings.message, auth)?.ids ?? {};
  if (entity === undefined && template === undefined) return undefined;
  return { ...(entity !== undefined && { entity }), ...(template !== undefined && { template }) };
}

/** The text. If the caller's `text` or `locale` fails, the message is written without it, so that no verification fails. */
function writeText({ settings, monitor }: Messages, auth: Authentication, code: string, given: string | undefined): string {
  const template = settings.message;
  if (given !== undefined && code === "") return given;
  // Operators drop other texts where one is registered.
  if (given !== undefined && registeredText(template, auth) === undefined) {
    const problem = textError(given, code, template.maxSegments);
    if (problem === undefined) return given;
    monitor.throttledLog.error({ authentication_uuid: auth.id }, `the text of a delivery ${problem}; our own text was sent`);
  }
  const recipient = { deviceType: auth.deviceType, appRealm: auth.appRealm, country: auth.country, customer: auth.customer, locale: auth.locale };
  const writes = typeof template.text === "function";
  try {
    const text = messageText(template, code, recipient);
    const problem = writes && registeredText(template, recipient) === undefined ? textError(text, code, template.maxSegments) : undefined;
    if (problem === undefined) return text;
    monitor.throttledLog.error({ authentication_uuid: auth.id }, `message.text ${problem}; the default text was sent`);
  } catch (err) {
    const stack = withoutCode(stackOf(err), { code, text: "" });
    const failed = writes ? "message.text threw; the default text was sent" : "message.locale failed; the text was sent as if it had chosen no language";
    monitor.throttledLog.error({ err: stack, authentication_uuid: auth.id }, failed);
  }
  const spare = writes ? { text: defaultText } : { locale: () => undefined };
  return messageText({ ...template, ...spare }, code, recipient);
}
