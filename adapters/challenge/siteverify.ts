import type { Challenge } from "../../src/ports/challenge.js";
import { parseJson, pick } from "../kit/json.js";
import { type OptionNames, optionError, requireSeconds, requireText } from "../kit/option-error.js";
import { connectionCode, openTransport, readText, type TransportOptions } from "../kit/transport.js";

/** The part of `fetch` that the challenges use; the global `fetch` and compatible clients match it. */
export type Fetch = (
  url: string,
  init: { readonly method: string; readonly headers: Record<string, string>; readonly body: string; readonly redirect: "manual"; readonly signal: AbortSignal },
) => Promise<{ readonly status: number; readonly body?: object | null; text(): Promise<string> }>;

/** Options of every challenge provider. */
export interface SiteverifyOptions {
  /** The site's secret key, from the provider's console. */
  readonly secret: string;
  /** The hostname or hostnames of the page, as the provider reports them. Default: any that the site key allows. */
  readonly hostname?: string | readonly string[] | undefined;
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch | undefined;
  /** The provider's API base URL, without `/siteverify`. Default: the provider's public one. */
  readonly baseUrl?: string | undefined;
  /** Seconds to wait for the provider's whole response. Default and maximum: until the verifier gives up, after 2 s. */
  readonly timeout?: number | undefined;
}

export const siteverifyOptions: OptionNames<SiteverifyOptions> = { secret: true, hostname: true, fetch: true, baseUrl: true, timeout: true };

/** The provider-specific part of a challenge. */
interface Provider {
  /** Name of the factory, for errors. */
  readonly name: string;
  readonly url: string;
  /** Form fields in addition to `secret`, `response` and `remoteip`. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Whether a proof that the provider accepts is valid for us. */
  readonly accepts?: (answer: unknown) => boolean;
}

/** Error codes that concern the proof. All others are configuration or provider errors. */
const proofCodes = /^((missing|invalid|expired)-input-response|timeout-or-duplicate|(invalid-or-)?already-seen-response)$/;

/** A host as providers report it: ASCII, without a wildcard, and without a dot at its end. */
const hostForm = /^[a-z\d_-]+(\.[a-z\d_-]+)*$/i;

const hostFix = 'Pass for example "example.com". Name each host: pass a list instead of commas or wildcards, and "xn--…" for letters beyond ASCII.';

/**
 * The request that the providers share: POST `secret`, `response` and `remoteip`; the response is JSON with `success`.
 * Each proof can be checked once: "The siteverify API will only validate a token once" (Turnstile); the others do the
 * same.
 *
 * Returns false if the proof is invalid, expired, used or from another page. Throws if it could not be checked: wrong
 * options, provider or network errors; the message contains neither secret nor proof.
 *
 * @throws TypeError for invalid options.
 */
export function siteverify(options: SiteverifyOptions, { name, url, fields, accepts = () => true }: Provider): Challenge {
  const { hostname, timeout } = options;
  const secret = requireText(name, "secret", options.secret, "Take the secret key of your site from the provider's console.");
  requireSeconds(name, "timeout", timeout, "Leave it out to wait until the verifier gives up.");
  const { baseUrl, fetch } = openTransport(name, options as TransportOptions, url);
  const hosts = hostname === undefined ? undefined : [hostname].flat();
  if (hosts?.length === 0) throw optionError(name, "hostname", "is an empty list", "Leave it out for any host.");
  for (const host of hosts ?? [])
    if (typeof host !== "string" || !hostForm.test(host)) throw optionError(name, "hostname", "must be a host without scheme and port", hostFix);
  const expected = new Set(hosts?.map((host) => host.toLowerCase()));

  return {
    async verify(proof, { ip, signal }) {
      const form = new URLSearchParams({ secret, response: proof, ...(ip !== undefined && { remoteip: ip }), ...fields });
      const headers = { "content-type": "application/x-www-form-urlencoded", accept: "application/json" };
      const until = timeout === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(timeout * 1000))]);
      let status: number;
      let text: string;
      try {
        const response = await fetch(`${baseUrl}/siteverify`, { method: "POST", headers, body: form.toString(), redirect: "manual", signal: until });
        status = response.status;
        text = response.body ? await readText(response) : ((await response.text?.()) ?? "");
        until.throwIfAborted();
      } catch (error) {
        // Never the message, which may contain anything.
        throw new Error(`${name}: no response from the provider: ${until.aborted ? "timed out" : (connectionCode(error) ?? (error as Error | null)?.name)}`);
      }
      const answer = parseJson(text);
      const success = pick(answer, "success");
      const codes = [pick(answer, "error-codes") ?? []].flat().filter((code) => typeof code === "string" && /^[\w-]{1,64}$/.test(code)) as string[];
      if (success === false && codes.every((code) => proofCodes.test(code))) return false;
      if (success !== true || status < 200 || status > 299)
        throw new Error(`${name}: the provider could not check the proof: HTTP ${status}${codes.length > 0 ? `, ${codes.join(", ")}` : ""}`);
      const host = pick(answer, "hostname");
      return accepts(answer) && (expected.size === 0 || (typeof host === "string" && expected.has(host.toLowerCase())));
    },
  };
}
