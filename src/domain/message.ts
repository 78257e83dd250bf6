import type { DeviceType } from "../contract/authentication.js";

/** Text of the messages. */
export interface MessageTemplate {
  /** Text with `{code}` in it. */
  readonly text: string;
  /** Domain for the last line `@domain #code` (WebOTP, iOS autofill) on WEB and IOS; absent: no such line. */
  readonly domain?: string | undefined;
}

export interface Recipient {
  readonly deviceType?: DeviceType | undefined;
  readonly appRealm?: string | undefined;
}

/**
 * "ANDROID with `app_realm`: the hash is the last token. WEB (and IOS) with a configured domain: last line `@domain #code`" (contract.md, Messages).
 */
export function messageText(template: MessageTemplate, code: string, recipient: Recipient): string {
  const text = template.text.replaceAll("{code}", code);
  if (recipient.deviceType === "ANDROID" && recipient.appRealm !== undefined) return `${text}\n\n${recipient.appRealm}`;
  if (template.domain !== undefined && (recipient.deviceType === "WEB" || recipient.deviceType === "IOS")) return `${text}\n\n@${template.domain} #${code}`;
  return text;
}

/** The alphabet of GSM 03.38: one septet each. */
const gsm7 = new Set("@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà");
/** Its extension table: two septets each. */
const gsm7Extension = new Set("\f^{}\\[~]|€");

/** How many SMS segments a text costs: 160 septets alone or 153 each in GSM-7, else 70 UTF-16 units alone or 67 each in UCS-2. */
export function segmentCount(text: string): number {
  let septets = 0;
  for (const character of text) {
    if (gsm7.has(character)) septets += 1;
    else if (gsm7Extension.has(character)) septets += 2;
    else return text.length <= 70 ? 1 : Math.ceil(text.length / 67);
  }
  return septets <= 160 ? 1 : Math.ceil(septets / 153);
}

/** "a text that would cost a second segment is a configuration fault, not a surprise" (contract.md, Messages). Answers what is wrong with a template for codes of `codeLength` digits. */
export function templateFault(template: MessageTemplate, codeLength: number): string | undefined {
  if (!template.text.includes("{code}")) return "must contain {code}";
  const code = "0".repeat(codeLength);
  const longest: readonly Recipient[] = [{ deviceType: "ANDROID", appRealm: "0".repeat(11) }, { deviceType: "WEB" }];
  const segments = Math.max(...longest.map((recipient) => segmentCount(messageText(template, code, recipient))));
  return segments > 1 ? `costs ${segments} SMS segments with its last line; shorten it, or leave out characters outside GSM-7` : undefined;
}
