import type * as z from "zod";
import { type Conversion, conversions } from "../../contract/conversion.js";
import { DeliverRequest as Fields } from "../../contract/delivery.js";
import type { ConfirmRequest, DeliverRequest } from "../../contract/direct.js";
import type { HttpResponse } from "../../http/message.js";
import type { Outcome } from "./answer.js";
import { type Authenticate, byToken, type TokenOptions } from "./authentic.js";
import { optionError } from "./option-error.js";
import { textOf, toAddress, toNumber } from "./read.js";

/** Options of every hook. */
export interface HookOptions {
  /** Its place in the path: `/hooks/<name>`. Lower-case letters, digits and hyphens. Default: the server's name. */
  readonly name?: string | undefined;
  /** The customer whose limits apply. Leave it out if the verifier was created without `customers`. */
  readonly customer_uuid?: string | undefined;
  /** How soon sign-ins are reported to `/hooks/<name>/confirmed`. Default: the verifier's option `conversion`. */
  readonly conversion?: Conversion | undefined;
  /**
   * Whether to believe what the server says about the user's IP address. Most servers read it from a header that users
   * can set, unless a proxy overwrites it. Default `"ignore"`; for `oktaHook`, `"trust"`.
   */
  readonly ip?: "trust" | "ignore" | undefined;
  /** Milliseconds, 100 to 600,000, after which to answer even if the carrier has not. Default: what the server needs. */
  readonly within?: number | undefined;
  /** How long the server's codes are valid, in seconds, 30 to 3,600, if a request does not say so. Default 300. */
  readonly expiresIn?: number | undefined;
}

/** Options of hooks whose server sends a fixed token. */
export interface TokenHookOptions extends HookOptions, TokenOptions {}

/** What a hook finds in a request, as the server sent it. The kit normalises each field, or omits it. */
export interface Message {
  readonly phone_number: unknown;
  readonly code?: unknown;
  /** If it does not contain the code, the verifier's own text is sent instead. */
  readonly text?: unknown;
  readonly purpose?: unknown;
  readonly locale?: unknown;
  readonly ip?: unknown;
  readonly user_id?: unknown;
  readonly known?: boolean | undefined;
  /** Seconds. */
  readonly expires_in?: unknown;
  /** The server's id of the event, or a `repeatKey`. */
  readonly idempotency_key?: string | undefined;
  /** A call is `unsupported`: nothing is sent. */
  readonly channel?: "sms" | "voice" | undefined;
  /** An earlier sign-in that this request reveals. With `conversion: "late"`, it is confirmed first. */
  readonly signedIn?: Confirmation | undefined;
}

/** Who got in, and when. */
export interface Confirmation {
  readonly phone_number?: unknown;
  readonly delivery_uuid?: unknown;
  /** A timestamp, or milliseconds since the epoch. Default: now. */
  readonly at?: unknown;
}

/** How a server reports that a user got in. */
export interface Confirmed {
  readonly authenticate: Authenticate;
  /** Returns `"nobody"` if the body reports something else, and `undefined` if it is malformed. */
  read(body: unknown): Confirmation | "nobody" | undefined;
}

/** What makes a hook: how its server authenticates, how it asks, and which answer it understands. */
export interface HookApi {
  /** The defaults of the options. */
  readonly defaults: Pick<HookOptions, "ip" | "within" | "expiresIn"> & { readonly name: string };
  /** The names of its own options. */
  readonly options: readonly string[];
  /** `/hooks/<name>/<secret>` is a route too, for servers that cannot set a header. */
  readonly secretInPath?: boolean;
  /** Its server sends the code itself unless it gets a response in its form, so a body that is too large or late gets one. */
  readonly failsOpen?: boolean;
  readonly authenticate: Authenticate;
  /** `body`: the JSON value, or the fields of a form. `now`: milliseconds since the epoch. */
  read(body: unknown, now: number): Message;
  write(outcome: Outcome): HttpResponse;
  /** Absent: there is no `/hooks/<name>/confirmed`. */
  readonly confirmed?: Confirmed | undefined;
}

/** A hook, for `hooks(verifier, [hook])`. */
export interface Hook extends HookApi {
  readonly settings: HookOptions & { readonly name: string };
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const common = ["name", "customer_uuid", "conversion", "ip", "within", "expiresIn"];

/** Makes a hook. `owner`: the function that the user calls, for errors. @throws TypeError for an invalid option. */
export function makeHook(owner: string, options: HookOptions, api: HookApi): Hook {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const settings: Hook["settings"] = { ...api.defaults, ...Object.fromEntries(given.filter(([option]) => common.includes(option))) };
  const { name, customer_uuid, conversion = "unknown", ip = "ignore", within = 1000, expiresIn = 300 } = settings;
  const known = [...api.options, ...common];
  const unknown = given.find(([option]) => !known.includes(option));
  if (unknown !== undefined) throw optionError(owner, unknown[0], "is not an option", `Remove it or fix its spelling; there are: ${known.join(", ")}.`);
  const require = (holds: boolean, option: string, form: string) => {
    if (!holds) throw optionError(owner, option, `must be ${form}`, "Leave it out for the default.");
  };
  require(/^[a-z0-9-]{1,64}$/.test(name), "name", "1 to 64 lower-case letters, digits or hyphens");
  require(customer_uuid === undefined || uuid.test(String(customer_uuid)), "customer_uuid", "a UUID");
  require(conversions.includes(conversion), "conversion", '"reported", "late" or "unknown"');
  require(ip === "trust" || ip === "ignore", "ip", '"trust" or "ignore"');
  require(Number.isInteger(within) && within >= 100 && within <= 600_000, "within", "a whole number of milliseconds from 100 to 600000");
  require(Number.isInteger(expiresIn) && expiresIn >= 30 && expiresIn <= 3600, "expiresIn", "a whole number of seconds from 30 to 3600");
  return { ...api, settings };
}

/** For a server that sends a fixed token. `readConfirmed`: reads what it posts to `/hooks/<name>/confirmed`. */
interface TokenHookApi extends Pick<HookApi, "defaults" | "secretInPath" | "failsOpen" | "read" | "write"> {
  readonly readConfirmed?: Confirmed["read"];
}

/** Makes a hook that accepts one token for all its routes. @throws TypeError for an invalid option. */
export function makeTokenHook(owner: string, options: TokenHookOptions, { readConfirmed, ...api }: TokenHookApi): Hook {
  const authenticate = byToken(owner, options);
  const confirmed = readConfirmed && { authenticate, read: readConfirmed };
  return makeHook(owner, options, { ...api, options: ["token", "header"], authenticate, confirmed });
}

/** Returns `undefined` without a number, or without both code and text. */
export function toDeliver(message: Message, { customer_uuid, conversion, ip, within, expiresIn }: HookOptions): DeliverRequest | undefined {
  const [phone_number, code, text] = [toNumber(message.phone_number), textOf(message.code), textOf(message.text)];
  if (phone_number === undefined || (code === undefined && text === undefined)) return undefined;
  const purpose = textOf(message.purpose);
  const seconds = Number(message.expires_in);
  return {
    ...{ customer_uuid, conversion, within, phone_number, code },
    text: code === undefined ? text : text?.includes(code) ? validOr(Fields.shape.text, text) : undefined,
    purpose: textOf(purpose?.replace(/[^\w.:-]+/g, "-").slice(0, 64)),
    locale: validOr(Fields.shape.locale, message.locale),
    ip: ip === "trust" ? validOr(Fields.shape.ip, toAddress(message.ip)) : undefined,
    correlation_id: validOr(Fields.shape.correlation_id, message.user_id),
    known: message.known,
    expires_in: seconds > 0 ? Math.min(3600, Math.max(30, Math.round(seconds))) : expiresIn,
    idempotency_key: validOr(Fields.shape.idempotency_key, message.idempotency_key),
  };
}

/** Returns `undefined` without a number and an id. */
export function toConfirm({ phone_number, delivery_uuid, at }: Confirmation, { customer_uuid }: HookOptions): ConfirmRequest | undefined {
  const when = { customer_uuid, at: at as ConfirmRequest["at"] };
  const [id, number] = [textOf(delivery_uuid), toNumber(phone_number)];
  if (id !== undefined) return { ...when, delivery_uuid: id };
  return number === undefined ? undefined : { ...when, phone_number: number };
}

/** The value, if the verifier accepts it: a side fact in another form must not stop the message. */
function validOr<S extends z.ZodType>(field: S, value: unknown): z.output<S> | undefined {
  return field.safeParse(value).data;
}
