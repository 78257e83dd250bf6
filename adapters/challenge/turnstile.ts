import type { Challenge } from "../../src/ports/challenge.js";
import { pick } from "../kit/json.js";
import { onlyOptions, requireText } from "../kit/option-error.js";
import { type SiteverifyOptions, siteverify, siteverifyOptions } from "./siteverify.js";

export interface TurnstileChallengeOptions extends SiteverifyOptions {
  /** The `action` set on the widget. Default: any. */
  readonly action?: string | undefined;
}

/**
 * Checks Cloudflare Turnstile proofs: the widget's `cf-turnstile-response`. "A Turnstile token can have up to 2048
 * characters. It is also valid for 300 seconds"; "It is recommended to validate that the action matches an expected
 * value" (developers.cloudflare.com/turnstile/get-started/server-side-validation).
 *
 * @throws TypeError for invalid options.
 */
export function turnstileChallenge(options: TurnstileChallengeOptions): Challenge {
  const name = "turnstileChallenge";
  onlyOptions(name, options, { action: true, ...siteverifyOptions });
  const action = options.action === undefined ? undefined : requireText(name, "action", options.action, "Leave it out for any action.");
  return siteverify(options, {
    name,
    url: "https://challenges.cloudflare.com/turnstile/v0",
    accepts: (answer) => action === undefined || pick(answer, "action") === action,
  });
}
