import type { Challenge } from "../../src/ports/challenge.js";
import { onlyOptions, requireText } from "../kit/option-fault.js";
import { type SiteverifyOptions, siteverify, siteverifyOptions } from "./siteverify.js";

export interface HcaptchaChallengeOptions extends SiteverifyOptions {
  /** Site key of the widget: proofs of your other sites are then refused. Default: any that goes with the secret. */
  readonly siteKey?: string | undefined;
}

/**
 * Checks proofs of hCaptcha: what the widget puts into `h-captcha-response`; each is good once (docs.hcaptcha.com, Verify the User Response Server Side).
 *
 * @throws TypeError for options that cannot be used.
 */
export function hcaptchaChallenge(options: HcaptchaChallengeOptions): Challenge {
  const name = "hcaptchaChallenge";
  onlyOptions(name, options, { siteKey: true, ...siteverifyOptions });
  const fields = options.siteKey === undefined ? {} : { sitekey: requireText(name, "siteKey", options.siteKey, "Leave it out for any of your sites.") };
  return siteverify(options, { name, url: "https://api.hcaptcha.com", fields });
}
