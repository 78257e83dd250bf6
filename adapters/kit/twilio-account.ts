import { pick } from "./json.js";
import { optionError, requireText } from "./option-error.js";
import type { CarrierResponse } from "./request.js";
import { basicAuth } from "./spelling.js";

export interface TwilioAccount {
  /** `AC…`. */
  readonly accountSid: string;
  /** The account's auth token, or the secret of `apiKeySid`. */
  readonly authToken: string;
  /** `SK…`: an API key to use instead of the account's auth token; `authToken` is then its secret. */
  readonly apiKeySid?: string;
}

/** What all requests of an account have in common. @throws TypeError for missing credentials. */
export function openTwilioAccount(
  name: string,
  { accountSid, authToken, apiKeySid }: TwilioAccount,
  tokenFix = "Pass the auth token of the Twilio console, or the secret of apiKeySid.",
) {
  const fix = "Pass the Account SID (AC…) of the Twilio console.";
  const sid = requireText(name, "accountSid", accountSid, fix);
  if (/^SK/i.test(sid)) throw optionError(name, "accountSid", "is the SID of an API key", `${fix} The key's SID belongs in apiKeySid.`);
  const token = requireText(name, "authToken", authToken, tokenFix);
  const user = apiKeySid === undefined ? sid : requireText(name, "apiKeySid", apiKeySid, "Pass the SID (SK…) of an API key of the Twilio console.");
  const headers = { authorization: basicAuth(user, token) };
  const accountAt = (baseUrl: string) => `${baseUrl}/2010-04-01/Accounts/${encodeURIComponent(sid)}`;
  return {
    headers,
    /** The URL of the account. */
    accountAt,
    /** What all senders have in common. */
    api: {
      url: "https://api.twilio.com",
      errorCode: ({ json }: CarrierResponse) => pick(json, "code"),
      // "Fetch an Account resource", twilio.com/docs/iam/api/account.
      credentials: ({ baseUrl }: { readonly baseUrl: string }) => ({ url: `${accountAt(baseUrl)}.json`, method: "GET", headers }),
    },
  };
}
