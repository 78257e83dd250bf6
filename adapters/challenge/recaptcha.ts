import type { Challenge } from "../../src/ports/challenge.js";
import { pick } from "../kit/json.js";
import { onlyOptions, optionError, requireText } from "../kit/option-error.js";
import { type SiteverifyOptions, siteverify, siteverifyOptions } from "./siteverify.js";

export interface RecaptchaChallengeOptions extends SiteverifyOptions {
  /** reCAPTCHA v3: the lowest score that passes, 0 (a bot) to 1. Default: 0.5. If set, v2 fails: it has no score. */
  readonly minScore?: number | undefined;
  /** reCAPTCHA v3: the `action` that the page set. Default: any. */
  readonly action?: string | undefined;
}

/**
 * Checks reCAPTCHA v2 and v3 proofs: `g-recaptcha-response`, or the result of `grecaptcha.execute`. "Each reCAPTCHA
 * user response token is valid for two minutes, and can only be verified once to prevent replay attacks"
 * (developers.google.com/recaptcha/docs/verify); "By default, you can use a threshold of 0.5"
 * (developers.google.com/recaptcha/docs/v3).
 * Where google.com is unreachable, set `baseUrl: "https://www.recaptcha.net/recaptcha/api"`.
 *
 * @throws TypeError for invalid options.
 */
export function recaptchaChallenge(options: RecaptchaChallengeOptions): Challenge {
  const name = "recaptchaChallenge";
  onlyOptions(name, options, { minScore: true, action: true, ...siteverifyOptions });
  const { minScore } = options;
  if (minScore !== undefined && !(typeof minScore === "number" && minScore >= 0 && minScore <= 1))
    throw optionError(name, "minScore", "must be a number from 0 to 1", "Leave it out for 0.5.");
  const action = options.action === undefined ? undefined : requireText(name, "action", options.action, "Leave it out for any action.");
  const passes = (score: unknown) => (score === undefined ? minScore === undefined : typeof score === "number" && score >= (minScore ?? 0.5));
  return siteverify(options, {
    name,
    url: "https://www.google.com/recaptcha/api",
    accepts: (answer) => passes(pick(answer, "score")) && (action === undefined || pick(answer, "action") === action),
  });
}
