import type { Challenge } from "../../src/ports/challenge.js";
import { onlyOptions, requireText } from "../kit/option-error.js";
import { type SiteverifyOptions, siteverify, siteverifyOptions } from "./siteverify.js";

export interface HcaptchaChallengeOptions extends SiteverifyOptions {
  /** Site key of the widget: proofs from your other sites are then rejected. Default: any that matches the secret. */
  readonly siteKey?: string | undefined;
}

/**
 * Checks hCaptcha proofs: the widget's `h-captcha-response`; each is valid once (docs.hcaptcha.com, Verify the User
 * Response Server Side).
 *
 * @throws TypeError for invalid options.
 */
export function hcaptchaChallenge(options: HcaptchaChallengeOptions): Challenge {
  const name = "hcaptchaChallenge";
  onlyOptions(name, options, { siteKey: true, ...siteverifyOptions });
  const fields = options.siteKey === undefined ? {} : { sitekey: requireText(name, "siteKey", options.siteKey, "Leave it out for any of your sites.") };
  return siteverify(options, { name, url: "https://api.hcaptcha.com", fields });
}
