import { invalidParameter } from "./errors.js";
import type { Service, ServiceList } from "./responses.js";
import { sidOf } from "./sids.js";

const nothing = { rate_limits: "RateLimits", messaging_configurations: "MessagingConfigurations", entities: "Entities", webhooks: "Webhooks" };
const links = { verifications: "Verifications", verification_checks: "VerificationCheck", ...nothing, access_tokens: "AccessTokens" };

/** The one service of a customer. `base`: the address of `/v2`. */
export function serviceOf(customer: string, base: string, friendlyName: string, codeLength: number): Service {
  const sid = sidOf("VA", customer);
  const url = `${base}/v2/Services/${sid}`;
  return {
    sid,
    account_sid: sidOf("AC", customer),
    friendly_name: friendlyName,
    code_length: codeLength,
    lookup_enabled: false,
    psd2_enabled: false,
    skip_sms_to_landlines: true,
    dtmf_input_required: false,
    tts_name: null,
    do_not_share_warning_enabled: false,
    custom_code_enabled: false,
    push: { include_date: false, apn_credential_sid: null, fcm_credential_sid: null },
    totp: { issuer: null, time_step: null, code_length: null, skew: null },
    whatsapp: { msg_service_sid: null, from: null },
    passkeys: null,
    default_template_sid: null,
    verify_event_subscription_enabled: false,
    date_created: null,
    date_updated: null,
    url,
    links: Object.fromEntries(Object.entries(links).map(([name, path]) => [name, `${url}/${path}`])),
  };
}

/** The page of a customer's services that a request asks for. */
export function pageOf(service: Service, base: string, query: URLSearchParams): ServiceList {
  const page = wholeNumber(query.get("Page"), 0);
  const page_size = wholeNumber(query.get("PageSize"), 50);
  const pageUrl = (number: number) => `${base}/v2/Services?PageSize=${page_size}&Page=${number}`;
  return {
    meta: { page, page_size, first_page_url: pageUrl(0), previous_page_url: null, next_page_url: null, key: "services", url: pageUrl(page) },
    services: page === 0 ? [service] : [],
  };
}

const wholeNumber = (text: string | null, otherwise: number): number => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : otherwise);

/** What does the work of a service's setting here. Others have nothing that does. */
const options: Readonly<Record<string, string>> = {
  CodeLength: "codeLength of twilioVerify",
  DefaultTemplateSid: "message.text of the verifier",
  DoNotShareWarningEnabled: "message.text of the verifier",
  FriendlyName: "friendlyName of twilioVerify",
  LookupEnabled: "lookupBeforeSend of the verifier",
};

/** Throws for the first field of an update that asks for something else than the service is. */
export function refuseChanges(service: Service, asked: Readonly<Record<string, string>>): void {
  for (const [field, value] of Object.entries(asked)) {
    if (String(settingOf(service, field)) === value) continue;
    const option = options[field];
    const fix = option === undefined ? "there is no such setting here; leave it out" : `set the option ${option} instead`;
    throw invalidParameter(field, `Services are not changed over this API: ${fix}.`);
  }
}

/** `Push.IncludeDate` → the value of `push.include_date`. */
const settingOf = (service: unknown, field: string): unknown =>
  field.split(".").reduce((within: unknown, name) => {
    const key = name.replace(/(?<=.)[A-Z]/g, "_$&").toLowerCase();
    return typeof within === "object" && within !== null && Object.hasOwn(within, key) ? (within as Record<string, unknown>)[key] : undefined;
  }, service);
