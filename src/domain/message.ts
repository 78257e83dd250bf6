import type { DeviceType } from "../contract/authentication.js";
import { segmentsOf } from "./gsm.js";

/** Whom a message goes to. */
export interface Recipient {
  readonly deviceType?: DeviceType | undefined;
  readonly appRealm?: string | undefined;
  /** ISO 3166-1 alpha-2. */
  readonly country?: string | undefined;
  readonly customer?: string | undefined;
}

/** Text with `{code}` in it; or one for each language, by BCP 47 tag, with one under `default`; or a function that answers the whole text, code included. */
export type MessageText = string | Readonly<Record<string, string>> | ((message: { readonly code: string } & Recipient) => string);

/** A text as it is registered with the operators of a country, and under which ids. */
export interface RegisteredText {
  /** With `{code}` in it; sent to the byte. */
  readonly text: string;
  /** Ids of who registered it and of the text itself (India's DLT: principal entity and content template), for the carriers that ask for them. */
  readonly ids?: { readonly entity?: string | undefined; readonly template?: string | undefined } | undefined;
  /** Whether the last line for autofill is added all the same, since it is part of what was registered. Default false. */
  readonly autofill?: boolean | undefined;
}

/** How messages are written. */
export interface MessageTemplate {
  readonly text: MessageText;
  /** Which of the languages. Default: the one most spoken in the number's country. */
  readonly locale?: ((recipient: Recipient) => string | undefined) | undefined;
  /** Domain for the last line `@domain #code` (WebOTP, iOS autofill) on WEB and IOS; absent: no such line. */
  readonly domain?: string | undefined;
  /** SMS segments that a message may cost. */
  readonly maxSegments: number;
  /** By country. */
  readonly registered: Readonly<Record<string, RegisteredText>>;
}

/** The text that is registered in the recipient's country. */
export function registeredText({ registered }: MessageTemplate, { country }: Pick<Recipient, "country">): RegisteredText | undefined {
  return country !== undefined && Object.hasOwn(registered, country) ? registered[country] : undefined;
}

/**
 * "ANDROID with `app_realm`: the hash is the last token. WEB (and IOS) with a configured domain: last line `@domain #code`" (docs/contract.md#autofill).
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
  if (typeof text === "function") return text({ ...recipient, code });
  if (typeof text === "string") return text.replaceAll("{code}", code);
  const tag = (locale ?? mainLanguage)(recipient);
  const language = tag?.split("-")[0];
  return (text[tag ?? "default"] ?? text[language ?? "default"] ?? text.default ?? "").replaceAll("{code}", code);
}

/** The language most spoken in the number's country, as the platform's data has it. */
function mainLanguage({ country }: Recipient): string | undefined {
  return country === undefined ? undefined : new Intl.Locale("und", { region: country }).maximize().language;
}

/** What is wrong with a text as it would be sent, or `undefined`: it must hold the code, and cost no more segments than it may. */
export function textFault(text: unknown, code: string, maxSegments: number): string | undefined {
  if (typeof text !== "string") return "is not a string";
  if (!text.includes(code)) return "must contain {code}";
  const segments = segmentCount(text);
  return segments > maxSegments ? `costs ${segments} SMS segments with its last line; shorten it, or leave out characters outside GSM-7` : undefined;
}

/** Marks in a text, of ours and of other templates: `{code}`, `{{code}}`, `${code}`, `{otp}`, `{#var#}`. */
const marks = /[$%#]?\{+[\s#]*([\p{L}\p{N}_.-]*)[\s#]*\}+/gu;

/** What stands before the code in a last line for autofill, which may be written out: `@example.com #{code}`. */
const lastLine = /(?:^|\n)@\S+ $/;

/** What is wrong with a text that `{code}` is replaced in, if anything: any other mark would go to phones as it stands. */
export function markFault(text: string): string | undefined {
  for (const { 0: mark, 1: name = "", index } of text.matchAll(marks)) {
    if (mark === "{code}" || (mark === "#{code}" && lastLine.test(text.slice(0, index)))) continue;
    if (mark.includes("{code}")) {
      const shown = mark.startsWith("{{") && mark.endsWith("}}") ? "the inner braces" : `the ${mark.replace("{code}", "")}`;
      return `has ${mark}, and phones would show ${shown}: say {code}`;
    }
    return `has ${mark}, which phones would show as it stands: ${name.toLowerCase() === "code" ? "say {code}" : "{code} is the only mark there is"}`;
  }
  return undefined;
}

/** How many SMS segments a text costs. */
export function segmentCount(text: string): number {
  return segmentsOf(text).length;
}

/**
 * "a text that would cost a second segment is a configuration fault, not a surprise" (docs/contract.md#one-segment). Answers what is wrong with a template for codes of `codeLength` digits, with the path of the text at fault.
 */
export function templateFault(template: MessageTemplate, codeLength: number): string | undefined {
  const { text } = template;
  const texts = typeof text === "object" ? Object.entries(text) : [["", text] as const];
  if (typeof text === "object" && text.default === undefined) return "text.default must be there, for languages that have no text of their own";
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
      const fault = textFault(writtenTo(written, code, { ...recipient, ...to }), code, template.maxSegments);
      if (fault !== undefined) return `${path} ${fault}`;
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
