import type { Clock } from "../../src/ports/clock.js";
import type { LookupContext, LookupFacts, LookupProvider, LookupRequest, LookupResult } from "../../src/ports/lookup-provider.js";
import { nextTurn, systemClock } from "../kit/clock.js";
import { onlyOptions, optionError, requireSeconds } from "../kit/option-error.js";
import { validFacts } from "./provider.js";

const allFacts = ["carrier", "line_type", "mcc", "mnc", "number_ported"] as const;

/** A fact that a chain may require. */
export type WantedFact = (typeof allFacts)[number];

export interface LookupChainOptions {
  /** Seconds that each provider may take. Default and maximum: an even share of the lookup's remaining time. */
  readonly timeout?: number;
  /** Once these are known, no other provider is asked or paid. Default: all; lines without a network need none. */
  readonly wants?: readonly WantedFact[];
  /** Default: the platform's timers. */
  readonly clock?: Clock;
}

/** Milliseconds before the lookup's own deadline at which the chain returns, so that its result still counts. */
const answerMargin = 50;

/**
 * Combines lookup providers, called in order. If one fails or times out, the next is called; each may add missing
 * facts:
 * - an invalid fact counts as missing;
 * - a result that contradicts the known line type, country or network adds nothing;
 * - carrier, MCC and MNC come from one source, or from sources that name the same network: mixing halves would be a
 *   guess;
 * - `number_ported` comes from a source that knows it.
 *
 * The numbering plan fills in what no provider knows. The chain has a price if every provider has one: their sum, of
 * which unused providers are refunded.
 *
 * @throws TypeError for an empty list, an invalid provider, and invalid options.
 */
export function lookupChain(providers: readonly LookupProvider[], options: LookupChainOptions = {}): LookupProvider {
  const name = "lookupChain";
  onlyOptions(name, options, { timeout: true, wants: true, clock: true });
  const { timeout, wants = allFacts, clock = systemClock } = options;
  if (!Array.isArray(providers) || providers.length === 0 || !providers.every((one: unknown) => typeof (one as LookupProvider | null)?.lookup === "function"))
    throw optionError(name, "providers", "must be a list of lookup providers", "Pass for example [twilioLookup({ … }), telnyxLookup({ … })].");
  requireSeconds(name, "timeout", timeout, "Leave it out for an even share of lookupTimeout.");
  if (!Array.isArray(wants) || wants.length === 0 || !wants.every((one) => allFacts.includes(one)))
    throw optionError(name, "wants", "must be a list of facts", `Those known are ${allFacts.join(", ")}.`);
  const prices = providers.map(({ price }) => price);
  if (!prices.every((one) => one === undefined || (typeof one === "number" && one >= 0 && one <= 1e9)))
    throw optionError(name, "providers", "must each have a price from 0 to a thousand million, or none", "Pass 0 for one that costs nothing.");
  const price = prices.includes(undefined) ? undefined : (prices as number[]).reduce((sum, one) => sum + one, 0);

  return {
    price,

    async lookup(request, context) {
      const calledAt = clock.now();
      const failed: string[] = [];
      let known: LookupFacts = {};
      let spent = 0;
      let isFree = true;
      let answered = false;
      let incomplete = false;
      const pay = (result: unknown, provider: LookupProvider) => {
        const stated = statedPrice(result);
        spent += stated ?? provider.price ?? 0;
        isFree &&= stated === 0;
      };
      // A price of 0 takes the lookup's count back too: a free provider that was asked does not state it.
      const cost = () => (isFree || spent > 0 || price ? { price: spent } : {});
      for (const [index, provider] of providers.entries()) {
        const left = context.timeLeft - answerMargin - Math.max(0, clock.now() - calledAt);
        const ms = Math.min(timeout === undefined ? Number.POSITIVE_INFINITY : timeout * 1000, left / (providers.length - index));
        if (context.signal.aborted || ms < 1) {
          failed.push("timed out before all providers were asked");
          break;
        }
        try {
          const answer = await askWithin(provider, request, context, ms, clock);
          answered = true;
          pay(answer, provider);
          failed.push(...(answer?.failed ?? []));
          incomplete ||= answer?.incomplete === true;
          known = merged(known, validFacts(answer ?? {}), request.country_code);
        } catch (error) {
          pay(error, provider);
          failed.push(error instanceof Error ? error.message : "no error was thrown, but something else");
        }
        if (isEnough(known, wants)) return { ...known, ...cost(), ...(failed.length > 0 && { failed }) };
      }
      if (!answered) throw Object.assign(new Error(failed.join("; ")), cost());
      return { ...known, ...cost(), ...(failed.length > 0 ? { failed, incomplete: true } : incomplete && { incomplete }) };
    },
  };
}

/** The cost that a called provider reported, if any. */
function statedPrice(result: unknown): number | undefined {
  const stated = (result as LookupResult | null | undefined)?.price;
  return typeof stated === "number" && stated >= 0 ? stated : undefined;
}

function askWithin(provider: LookupProvider, request: LookupRequest, context: LookupContext, ms: number, clock: Clock): Promise<LookupResult | undefined> {
  const abort = new AbortController();
  return new Promise((resolve, reject) => {
    const end = (why: string) => {
      abort.abort();
      reject(new Error(why));
    };
    const over = () => end("the lookup timed out");
    // A result that arrived during a clock jump goes first.
    let isOver = false;
    const late = () => isOver || end(`a provider did not respond within ${Math.floor(ms)} ms`);
    const cancel = clock.after(ms, () => void nextTurn(late));
    context.signal.addEventListener("abort", over, { once: true });
    const done = () => {
      isOver = true;
      cancel();
      context.signal.removeEventListener("abort", over);
    };
    Promise.resolve()
      .then(() => provider.lookup(request, { signal: abort.signal, timeLeft: ms }))
      .finally(done)
      .then(resolve, reject);
  });
}

/** The known facts, with those that a later source adds, except for another country than the number's. */
function merged(known: LookupFacts, more: LookupFacts, country: string | undefined): LookupFacts {
  if (contradicts(known, more)) return known;
  const { country_code, ...others } = more;
  const facts = country === undefined || country_code === country ? more : others;
  const { carrier, mcc, mnc, ...withoutNetwork } = facts;
  return { ...(namesSameNetwork(known, more) ? facts : withoutNetwork), ...known };
}

function contradicts(known: LookupFacts, later: LookupFacts): boolean {
  const fields = ["line_type", "country_code", "mcc", "mnc"] as const;
  return fields.some((field) => known[field] !== undefined && later[field] !== undefined && known[field] !== later[field]);
}

/** Whether another source may complete a network: it has none yet, or both name the same one. */
function namesSameNetwork(known: LookupFacts, later: LookupFacts): boolean {
  if (known.carrier === undefined && known.mcc === undefined) return true;
  if (known.mcc !== undefined && known.mnc !== undefined && known.mcc === later.mcc && known.mnc === later.mnc) return true;
  return known.carrier !== undefined && known.carrier === later.carrier;
}

/** Line types that belong to a mobile network. */
const mobileKinds: readonly (string | undefined)[] = [undefined, "Mobile", "Voip", "Pager"];

function isEnough(known: LookupFacts, wants: readonly WantedFact[]): boolean {
  return wants.every((field) => known[field] !== undefined || ((field === "mcc" || field === "mnc") && !mobileKinds.includes(known.line_type)));
}
