import type { DeviceType } from "../contract/authentication.js";
import { toAsciiDigits } from "../contract/digits.js";
import { countryCodes, countryMeant } from "./countries.js";
import { segmentsOf } from "./gsm.js";
import { sameTag, spokenTags, wantedTags } from "./languages.js";
import { synchronous } from "./promises.js";

/** The recipient of a message. */
export interface Recipient {
  readonly deviceType?: DeviceType | undefined;
  readonly appRealm?: string | undefined;
  /** ISO 3166-1 alpha-2; absent for non-geographic numbers and unknown test numbers. */
  readonly country?: string | undefined;
  readonly customer?: string | undefined;
  /** The language that the request asks for, as a BCP 47 tag. */
  readonly locale?: string | undefined;
}

/**
 * Text containing `{code}`; or one text per language, by BCP 47 tag in any case, plus one under `default`; or a
 * function that returns the whole text, code included.
 */
export type MessageText = string | Readonly<Record<string, string>> | ((message: { readonly code: string } & Recipient) => string);

/** A text as registered with a country's operators, and the ids of the registration. */
export interface RegisteredText {
  /** Contains `{code}`; otherwise sent exactly as written. */
  readonly text: string;
  /**
   * Ids of the registrant and the text (India's DLT: principal entity and content template), for carriers that require
   * them.
   */
  readonly ids?: { readonly entity?: string | undefined; readonly template?: string | undefined } | undefined;
  /** Adds the last line for autofill too, because it is part of the registered text. Default false. */
  readonly autofill?: boolean | undefined;
}

/** The configured text of messages. */
export interface MessageTemplate {
  readonly text: MessageText;
  /**
   * Chooses the language of the text, if the request asks for none that it has. If it fails, none is chosen. Default:
   * the language most spoken in the number's country.
   */
  readonly locale?: ((recipient: Recipient) => string | undefined) | undefined;
  /** Domain of the last line `@domain #code` (WebOTP, iOS autofill) on WEB and IOS. Absent: no such line. */
  readonly domain?: string | undefined;
  /** Maximum number of SMS segments per message. */
  readonly maxSegments: number;
  /** By country. */
  readonly registered: Readonly<Record<string, RegisteredText>>;
}

/** The text registered in the recipient's country. */
export function registeredText({ registered }: MessageTemplate, { country }: Pick<Recipient, "country">): RegisteredText | undefined {
  return country !== undefined && Object.hasOwn(registered, country) ? registered[country] : undefined;
}

/**
 * "ANDROID with `app_realm`: the hash is the last token. WEB (and IOS) with a configured domain: last line `@domain
 * #code`" (docs/contract.md#autofill).
 */
export function messageText(template: MessageTemplate, code: string, recipient: Recipient): string {
  const registered = registeredText(template, recipient);
  const text = registered === undefined ? bodyText(template, code, recipient) : registered.text.replaceAll("{code}", code);
  if (registered !== undefined && registered.autofill !== true) return text;
  if (recipient.deviceType === "ANDROID" && recipient.appRealm !== undefined) return `${text}\n\n${recipient.appRealm}`;
  if (template.domain !== undefined && (recipient.deviceType === "WEB" || recipient.deviceType === "IOS")) return `${text}\n\n@${template.domain} #${code}`;
  return text;
}

function bodyText({ text, locale }: MessageTemplate, code: string, recipient: Recipient): string {
  if (typeof text === "function") return synchronous("message.text", text({ ...recipient, code }));
  if (typeof text === "string") return text.replaceAll("{code}", code);
  const texts = new Map(Object.entries(text).map(([tag, one]) => [sameTag(tag), one]));
  const others = locale === undefined ? spokenTags(recipient.country) : wantedTags(chosenTag(locale, recipient));
  const tag = [...wantedTags(recipient.locale), ...others].map(sameTag).find((one) => texts.has(one)) ?? "default";
  return (texts.get(tag) ?? "").replaceAll("{code}", code);
}

/** Throws if the function throws, or returns anything but a tag or nothing. */
function chosenTag(locale: NonNullable<MessageTemplate["locale"]>, recipient: Recipient): string | undefined {
  const tag: unknown = synchronous("message.locale", locale(recipient)) ?? undefined;
  if (tag === undefined || typeof tag === "string") return tag;
  throw new TypeError("message.locale must return a language tag or undefined");
}

/**
 * Returns the errors in the languages of a text, each with its path: a language that occurs twice, or a key that is no
 * language's tag, which neither a request nor a country would choose.
 */
export function languageErrors({ text, locale }: Pick<MessageTemplate, "text" | "locale">): string[] {
  if (typeof text !== "object") return [];
  const keys = Object.keys(text).filter((key) => key !== "default");
  // A function's results are up to the caller.
  const spoken = locale === undefined ? new Set(countryCodes.flatMap(spokenTags).map(sameTag)) : undefined;
  return keys.flatMap((key, at) => {
    const first = keys.findIndex((other) => sameTag(other) === sameTag(key));
    if (first < at) return [`text.${key} is for the same language as message.text.${keys[first]}: leave one out`];
    if (spoken === undefined || isLanguage(key, spoken)) return [];
    const fix = languageMeant(key, spoken);
    return [
      `text.${key} is not the BCP 47 tag of a language: ${fix === undefined ? "leave it out, or choose it by message.locale" : `for ${nameOf(fix)} say ${fix}`}`,
    ];
  });
}

/** Whether a key is a language's tag, in today's code. `BR` is rather Brazil than Breton, `br` is not. */
function isLanguage(key: string, spoken: ReadonlySet<string>): boolean {
  const [language = ""] = (canonicalTag(key) ?? "").split("-");
  if (language === "") return false;
  if (spoken.has(sameTag(key))) return true;
  const isCountry = /^[A-Z]{2}$/.test(key) && countryMeant(key) !== undefined;
  return !isCountry && language === key.split("-")[0]?.toLowerCase() && nameOf(language) !== language;
}

/** Guesses what a key means: a tag for another country, a three-letter code, an English name, or a country. */
function languageMeant(key: string, languages: ReadonlySet<string>): string | undefined {
  const [subtag = ""] = (canonicalTag(sameTag(key)) ?? key).split("-");
  if (languages.has(subtag)) return subtag;
  const named = [...languages].find((one) => nameOf(one).toLowerCase() === key.trim().toLowerCase());
  return named ?? spokenTags(countryMeant(key)).at(-1);
}

/** Returns `undefined` if it is not a BCP 47 tag. */
function canonicalTag(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch {
    return undefined;
  }
}

function nameOf(language: string): string {
  return new Intl.DisplayNames("en", { type: "language" }).of(language) ?? language;
}

/**
 * Returns what is wrong with a final text, or `undefined`. It must show the code and not exceed the maximum number
 * of segments. `content`: what it contains, for the error.
 */
export function textError(text: unknown, code: string, maxSegments: number, content = ""): string | undefined {
  if (typeof text !== "string") return "is not a string";
  if (text.includes("\0")) return "must not contain the character U+0000";
  if (!text.includes(code)) return "must contain {code}";
  if (!showsAlone(text, code)) return "must not have digits next to {code}, which would show another code";
  const segments = segmentsOf(text).length;
  return segments > maxSegments ? `costs ${segments} SMS segments${content}; shorten it, or leave out characters outside GSM-7` : undefined;
}

const digit = /\p{Nd}/u;

/** Whether a text has the code somewhere without digits next to it. A notice has none. */
function showsAlone(text: string, code: string): boolean {
  for (let at = text.indexOf(code); at >= 0 && code !== ""; at = text.indexOf(code, at + 1))
    if (!digit.test(text.charAt(at - 1)) && !digit.test(text.charAt(at + code.length))) return true;
  return code === "";
}

/** Placeholders of this library and of other templates: `{code}`, `{{code}}`, `${code}`, `{otp}`, `{#var#}`. */
const marks = /[$%#]?\{+[\s#]*([\p{L}\p{N}_.-]*)[\s#]*\}+/gu;

/** The text before the code in a last line for autofill that is written out: `@example.com #{code}`. */
const lastLine = /(?:^|\n)@\S+ $/;

/** What is wrong with a text that contains `{code}`, if anything: any other placeholder would be shown unchanged. */
export function markError(text: string): string | undefined {
  for (const { 0: mark, 1: name = "", index } of text.matchAll(marks)) {
    if (mark === "{code}" || (mark === "#{code}" && lastLine.test(text.slice(0, index)))) continue;
    if (mark.includes("{code}")) {
      const shown = mark.startsWith("{{") && mark.endsWith("}}") ? "the inner braces" : `the ${mark.replace("{code}", "")}`;
      return `has ${mark}, and phones would show ${shown}: say {code}`;
    }
    return `has ${mark}, which phones would show unchanged: ${name.toLowerCase() === "code" ? "say {code}" : "{code} is the only placeholder"}`;
  }
  return undefined;
}

/**
 * "a text that would cost a second segment is a configuration error, not a surprise" (docs/contract.md#one-segment).
 * Returns what is wrong with a template for codes of `codeLength` digits, with the path of the invalid text.
 */
export function templateError(template: MessageTemplate, codeLength: number): string | undefined {
  const { text } = template;
  const texts = typeof text === "object" ? Object.entries(text) : [["", text] as const];
  if (typeof text === "object" && text.default === undefined) return "text.default is required, for languages without a text";
  const code = "0".repeat(codeLength);
  const longest: readonly Recipient[] = [{}, { deviceType: "ANDROID", appRealm: "1".repeat(11) }, { deviceType: "WEB" }];
  const variants = [
    ...texts.map(([name, one]) => ({
      path: name === "" ? "text" : `text.${name}`,
      written: { ...template, text: one, registered: {} },
      to: {},
    })),
    ...Object.keys(template.registered).map((country) => ({
      path: `registered.${country}.text`,
      written: template,
      to: { country },
    })),
  ];
  for (const { path, written, to } of variants) {
    for (const recipient of longest) {
      const content = ` with a code of ${codeLength} digits${recipient === longest[0] ? "" : " and its last line"}`;
      const problem = textError(writtenTo(written, code, { ...recipient, ...to }), code, template.maxSegments, content);
      if (problem !== undefined) return `${path} ${problem}`;
    }
  }
  return undefined;
}

function writtenTo(template: MessageTemplate, code: string, recipient: Recipient): unknown {
  try {
    return messageText(template, code, recipient);
  } catch {
    return undefined;
  }
}

/** All but letters and digits. */
const between = /[^\p{L}\p{N}]/gu;

/**
 * Hides a code or number, also with up to three characters between its digits that are neither letters nor digits. It
 * makes no pattern of the digits: compiling one for each message would take longer than all the rest of the message.
 */
function hide(text: string, digits: string, shown: string): string {
  const marked = text.replace(between, (one) => "-".repeat(one.length));
  const [plain, wanted] = [marked.replaceAll("-", ""), digits.replaceAll("-", "")];
  const places = [...marked.matchAll(/[^-]/g)].map(({ index }) => index);
  let hidden = "";
  let end = 0;
  for (let at = plain.indexOf(wanted); wanted !== "" && at >= 0; at = plain.indexOf(wanted, at + 1)) {
    const found = places.slice(at, at + wanted.length);
    const [first = 0] = found;
    if (first < end || found.some((place, index) => place - (found[index - 1] ?? place) > 4)) continue;
    hidden += text.slice(end, first) + shown;
    end = (found.at(-1) ?? first) + 1;
  }
  return hidden + text.slice(end);
}

/** Hides the code in a carrier's response. In a message without a code of its own, any number may be one. */
export function withoutCode(response: string, { code, text }: { readonly code: string; readonly text: string }): string {
  const codes = code === "" ? (text.match(/\d{4,}/g) ?? []) : [code];
  return codes.reduce((hidden, one) => hide(hidden, one, "******"), response);
}

/** Someone else's text as one plain line: digits of every script as ASCII, and spaces for what controls a terminal. */
export function plainLine(text: string): string {
  return toAsciiDigits(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ");
}

/** Hides the code and the number in a carrier's response. The last six digits are the same in all forms of a number. */
export function withoutCodeAndNumber(response: string, message: { readonly code: string; readonly text: string; readonly to: string }): string {
  const last = message.to.slice(1).slice(-6);
  return hide(withoutCode(plainLine(response), message), last, `****${last.slice(-2)}`);
}
