import { synchronous } from "../../src/domain/promises.js";
import type { Receipt, ReceiptSource } from "../../src/ports/receipts.js";
import type { Channel, CodeMessage, SmsSender } from "../../src/ports/sms-sender.js";
import { type AnswerTest, openPath, openTest } from "../kit/answer-test.js";
import { isRecord, parseJson, pick } from "../kit/json.js";
import { onlyOptions, optionError, requireFields, requireText } from "../kit/option-error.js";
import type { CarrierResponse } from "../kit/request.js";
import { fill, fillEach, fillJson, type JsonTemplate, openMethod, refuseStrangers, type Template, texts } from "../kit/template.js";
import { isHeader } from "../kit/transport.js";
import { type Placeholder, placeholders } from "./http-template.js";
import { type CarrierOptions, carrierSender } from "./kit/carrier-sender.js";
import { idToken, rejectedWith } from "./kit/outcomes.js";
import { bodyText, type CarrierReport, isoTime, malformed, openUrlSecret, readReports } from "./kit/report.js";

export type { AnswerTest, JsonTemplate };

const channels: Readonly<Record<Channel, true>> = { sms: true, whatsapp: true, telegram: true, viber: true, rcs: true, voice: true };

/** A carrier's response. */
export type HttpResponse = CarrierResponse;

export interface HttpSenderOptions extends Omit<CarrierOptions, "baseUrl" | "extra" | "conversions"> {
  /** As in `httpReceipts`. Default: `"http"`. */
  readonly provider?: string;
  /** The channel of its messages, for example `"viber"`. Default: `"sms"`. */
  readonly channel?: Channel;
  /**
   * A template with the placeholders `{to}` (`+14155552671`), `{to_digits}` (`14155552671`), `{text}`, `{code}`, `{from}`,
   * `{country}`, `{authentication_uuid}`, `{attempt}`; for receipts `{receipt_url}` and `{reference}`, which the carrier
   * should echo; for texts outside GSM-7 `{is_unicode}` (1, else 0) and `{coding}` (2, else 0, as in Kannel). They are
   * percent-encoded in URLs. Or a function of the message, which must do its own escaping.
   */
  readonly url: Template | ((message: CodeMessage, from: string | undefined) => string);
  /** Default: POST, or GET without `form`, `json` and `body`. */
  readonly method?: "POST" | "PUT" | "GET";
  readonly headers?: Readonly<Record<string, Template>>;
  /** Form fields; templates, as `url`. */
  readonly form?: Readonly<Record<string, Template>>;
  readonly json?: JsonTemplate;
  /** Any other body; the function must do its own escaping. Set its `content-type` in `headers`. */
  readonly body?: (message: CodeMessage, from: string | undefined) => string;
  /** Test for acceptance: a response of 200 to 299 that does not match counts as unknown. Default: all match. */
  readonly accepted?: AnswerTest;
  /** Test for rejection, checked first: at any status, a match means that the message was definitely not sent. */
  readonly rejected?: AnswerTest;
  /** The message id: a path in the response's JSON, a regular expression on its text (first group), or a function. */
  readonly messageId?: string | RegExp | ((answer: HttpResponse) => string | undefined);
  /** Where the carrier's error code is, for reasons: a path in the response's JSON. */
  readonly errorCode?: string;
  /**
   * `true`: the carrier posts all receipts to one URL and names its own message id, which is then stored for the
   * lookup. Needs `messageId` and `httpReceipts({ secret, … })`. Default: `false`.
   */
  readonly receiptsById?: boolean;
}

/**
 * Sends through any carrier with an HTTP API: local aggregators, Kannel's `sendsms`. The request is a template. Tests
 * on the response decide the outcome; otherwise the status does, as for every HTTP sender: 400 to 499 is rejected, 500
 * and above unknown.
 *
 * @throws TypeError for an unknown placeholder, a template with neither `{text}` nor `{code}`, more than one body, a
 * missing or unused `from`, and invalid options.
 */
export function httpSender(options: HttpSenderOptions): SmsSender {
  const name = "httpSender";
  onlyOptions(name, options, {
    provider: true,
    channel: true,
    url: true,
    method: true,
    headers: true,
    form: true,
    json: true,
    body: true,
    accepted: true,
    rejected: true,
    messageId: true,
    errorCode: true,
    receiptsById: true,
    from: true,
    receipts: true,
    fetch: true,
    timeout: true,
  });
  const provider = requireProvider(name, options.provider);
  const { url, headers = {}, form, json, body, receiptsById = false } = options;
  const templates = openTemplates(name, options);
  const method = openMethod(name, options.method, form !== undefined || json !== undefined || body !== undefined, ["GET", "POST", "PUT"]);
  const usesFrom = templates.some((template) => template.includes("{from}"));
  if (usesFrom && options.from === undefined)
    throw optionError(name, "from", "is missing, and the template has {from} in it", "Pass a sender id or number, a map by country, or a function.");
  if (!usesFrom && body === undefined && typeof url !== "function" && options.from !== undefined)
    throw optionError(name, "from", "is not used", "Put {from} into the template, or leave the option out.");
  if (receiptsById && options.messageId === undefined)
    throw optionError(name, "messageId", "is missing, and receiptsById finds messages by it", "Say where the carrier's id is in its response.");
  const isAccepted = openTest(name, "accepted", options.accepted);
  const isRejected = openTest(name, "rejected", options.rejected);
  const idOf = openMessageId(name, options.messageId);
  const codeOf = openPath(name, "errorCode", options.errorCode);

  const { channel } = options;
  if (channel !== undefined && !Object.hasOwn(channels, channel))
    throw optionError(name, "channel", `must be one of ${Object.keys(channels).join(", ")}`, "Leave it out for SMS.");
  return carrierSender<string>(name, options, {
    provider,
    ...(channel !== undefined && { channel }),
    url: typeof url === "function" ? "https://carrier.invalid" : new URL(fill(url, () => "0")).origin,
    fromElse: true,
    fromAnyForm: true,
    asksForReceipts: receiptsById || templates.some((template) => /\{(receipt_url|reference)\}/.test(template)),
    receiptsById,
    request(message, { from }) {
      const value = (key: Placeholder) => placeholders[key](message, from);
      const plain = (template: Template) => fill(template, value);
      const named = Object.fromEntries(Object.entries(headers).map(([key, template]) => [key.toLowerCase(), plain(template).replace(/[\r\n]+/g, " ")]));
      return {
        method,
        url: typeof url === "function" ? synchronous("url", url(message, from)) : fill(url, (key: Placeholder) => encodeURIComponent(value(key))),
        headers: named,
        ...(form !== undefined && { form: new URLSearchParams(fillEach(form, plain)) }),
        ...(json !== undefined && { json: fillJson(json, plain) }),
        ...(body !== undefined && { body: synchronous("body", body(message, from)) }),
      };
    },
    judgeFirst: (answer) => (isRejected?.(answer) === true ? rejectedWith(codeOf(answer)) : undefined),
    accepted(answer) {
      if (isAccepted?.(answer) === false) return { outcome: "unknown", reason: "the carrier's response is not in the expected format" };
      const messageId = idToken(idOf(answer));
      return messageId === undefined ? { outcome: "accepted" } : { outcome: "accepted", messageId };
    },
    errorCode: codeOf,
  });
}

/** The last segment of a receipts route. */
function requireProvider(name: string, provider = "http"): string {
  if (typeof provider !== "string" || !/^[a-z]+$/.test(provider))
    throw optionError(name, "provider", "must be lower-case letters", 'Pass for example "kannel".');
  return provider;
}

/** Returns all templates of the options, checked. */
function openTemplates(name: string, options: HttpSenderOptions): string[] {
  const { url } = options;
  if (typeof url !== "function") {
    requireText(name, "url", url, 'Pass the carrier\'s address, for example "https://sms.example/send?to={to}".');
    if (!URL.canParse(fill(url, () => "0"))) throw optionError(name, "url", "is not a URL", "Pass an absolute one that starts with https:// or http://.");
  }
  const bodies = [options.form, options.json, options.body].filter((body) => body !== undefined);
  if (bodies.length > 1) throw optionError(name, "form", "json and body exclude each other", "Keep one of them.");
  const templates = [
    ...(typeof url === "function" ? [] : [url]),
    ...Object.values(options.headers ?? {}),
    ...texts(options.form ?? null),
    ...texts(options.json ?? null),
  ];
  requireFields(name, "headers", options.headers);
  requireFields(name, "form", options.form);
  for (const [header, value] of Object.entries(options.headers ?? {}))
    if (!isHeader(header, "")) throw optionError(name, `headers.${header}`, "is not a header name", "Header names hold letters, digits and hyphens.");
    else requireText(name, `headers.${header}`, value, "Pass a text, with placeholders where you like.");
  for (const [field, value] of Object.entries(options.form ?? {}))
    if (typeof value !== "string") throw optionError(name, `form.${field}`, "is not a string", "A form contains only strings: put it in quotes.");
  const known = Object.keys(placeholders);
  refuseStrangers(name, templates, known, `Those known are ${known.map((name) => `{${name}}`).join(", ")}.`);
  if (options.body === undefined && typeof url !== "function" && !templates.some((template) => /\{(text|code)\}/.test(template))) {
    throw optionError(name, "url, form or json", "has neither {text} nor {code} in it", "Put {text} where the message goes.");
  }
  return templates;
}

function openMessageId(name: string, rule: HttpSenderOptions["messageId"]): (answer: HttpResponse) => unknown {
  if (rule === undefined) return () => undefined;
  if (typeof rule === "function") return (answer) => synchronous("messageId", rule(answer));
  if (rule instanceof RegExp) return (answer) => new RegExp(rule).exec(answer.text)?.[1];
  const path = requireText(name, "messageId", rule, 'Pass a path such as "data.0.id", a regular expression with a group, or a function.').split(".");
  return (answer) => pick(answer.json, ...path);
}

const statuses: readonly Receipt["status"][] = ["submitted", "in_transit", "delivered", "undeliverable", "unknown"];

export interface HttpReceiptsOptions {
  /** Last segment of the route: lower-case letters. Default: `http`. */
  readonly provider?: string;
  /** Maps the carrier's status words, in any case, to ours. Unlisted words are ignored. */
  readonly statuses: Readonly<Record<string, Receipt["status"]>>;
  /**
   * Name of the field with the status: in the query, in a form, or a path in JSON (`"data.status"`). Default: `status`.
   */
  readonly status?: string;
  /**
   * Name of the field with the carrier's message id. Default: `id`. Reports at a message's own URL need none.
   */
  readonly messageId?: string;
  /** Name of the field in which the carrier echoes `{reference}`. */
  readonly reference?: string;
  /** Name of the field with a time: ISO 8601 (UTC unless it names a zone), or seconds or milliseconds since the epoch. */
  readonly at?: string;
  /** Name of the field with an error code. */
  readonly error?: string;
  /**
   * Where the list of reports is, for carriers that send several at once: a path in JSON, or a form field that holds
   * JSON (`"response"`). Not needed if the whole body is a list.
   */
  readonly reports?: string;
  /**
   * For carriers that post to one URL set in their dashboard: a secret of 16 or more letters, digits, `-`, `.`, `_` or
   * `~` in that URL, `https://…/receipts/<provider>?key=<secret>`. A list allows rotation. Default: none; receipts are
   * then authenticated by `{receipt_url}` and `{reference}` only.
   */
  readonly secret?: string | readonly string[];
}

/**
 * Receipts for `httpSender` carriers: GET with a query, or POST with a form or JSON, one or several at once. They are
 * unsigned. Our reference authenticates them, in the message's own URL or in an echoed field; or a secret in the
 * dashboard's URL, which also allows lookup by the carrier's id (`receiptsById` of `httpSender`).
 *
 * @throws TypeError for an invalid provider name, missing `statuses`, a guessable secret, and an unknown option.
 */
export function httpReceipts(options: HttpReceiptsOptions): ReceiptSource {
  const name = "httpReceipts";
  onlyOptions(name, options, {
    provider: true,
    statuses: true,
    status: true,
    messageId: true,
    reference: true,
    at: true,
    error: true,
    reports: true,
    secret: true,
  });
  const provider = requireProvider(name, options.provider);
  const words = new Map(Object.entries(options.statuses ?? {}).map(([word, status]) => [word.toLowerCase(), status]));
  if (words.size === 0)
    throw optionError(name, "statuses", "is missing", 'Pass the carrier\'s words, for example { DELIVRD: "delivered", UNDELIV: "undeliverable" }.');
  for (const [word, status] of Object.entries(options.statuses))
    if (!statuses.includes(status)) throw optionError(name, `statuses.${word}`, "is not a status", `Pass one of ${statuses.join(", ")}.`);
  const bearsSecret = options.secret === undefined ? undefined : openUrlSecret(name, options.secret);

  const reportOf = (field: (key: string) => unknown, byUrl: boolean): CarrierReport => {
    const maybe = (key: string | undefined) => (key === undefined ? undefined : field(key));
    const status = field(options.status ?? "status");
    return {
      messageId: field(options.messageId ?? "id"),
      status: typeof status === "number" ? String(status) : status,
      at: timeOf(maybe(options.at)),
      error: maybe(options.error),
      reference: maybe(options.reference),
      ...(bearsSecret !== undefined && { idSpace: provider }),
      byUrl,
    };
  };

  return {
    provider,
    async read(request) {
      const text = bodyText(request);
      if (text === undefined || !URL.canParse(request.url)) return malformed("the request has no absolute URL, or its body is not UTF-8");
      const json = parseJson(text);
      const query = new URL(request.url).searchParams;
      const form = new URLSearchParams(text);
      const list = Array.isArray(json) ? json : options.reports === undefined ? undefined : listAt(options.reports, json, form);
      const inBody = (item: unknown) => (key: string) =>
        typeof item === "object" && item !== null ? pick(item, ...key.split(".")) : (form.get(key) ?? query.get(key) ?? undefined);
      const vouched = bearsSecret?.(request) === true;
      return readReports(
        (list ?? [json]).map((item: unknown) => reportOf(inBody(item), !vouched)),
        words,
        vouched,
      );
    },
  };
}

/** Returns the list of reports at a JSON path, or in a form field as JSON. */
function listAt(path: string, json: unknown, form: URLSearchParams): readonly unknown[] | undefined {
  const found = isRecord(json) ? pick(json, ...path.split(".")) : parseJson(form.get(path) ?? "");
  return Array.isArray(found) ? found : undefined;
}

/** The smallest number read as milliseconds; as seconds it would be in the year 5138. */
const firstMillisecond = 1e11;

/** Parses ISO 8601, or seconds or milliseconds since the epoch. */
function timeOf(value: unknown): number | undefined {
  const number = typeof value === "number" || (typeof value === "string" && /^\d{9,16}$/.test(value)) ? Number(value) : undefined;
  if (number === undefined) return isoTime(value);
  return number < firstMillisecond ? number * 1000 : number;
}
