import { countryCodes } from "../domain/countries.js";
import { languageErrors, type MessageTemplate, templateError } from "../domain/message.js";
import { cooldownError, guessBudgetError, lifetimeError, type Policy, withOverride } from "../domain/policy.js";
import { synchronous } from "../domain/promises.js";
import { parsePrice } from "../domain/spend.js";
import type { ReceiptSource } from "../ports/receipts.js";
import type { SmsSender } from "../ports/sms-sender.js";
import type { ValidOptions } from "./schema.js";

/** What is wrong with options that are each valid on their own. */
export function ruleErrors(options: ValidOptions): string[] {
  const { conversion, policy, customers, message, receipts, callbacks, countries, sender, lookup, lookupBeforeSend } = options;
  const own = Array.isArray(customers) ? customers.map((one, at) => [`customers.${at}.policy`, one.policy && withOverride(policy, one.policy)] as const) : [];
  const needsPrice = lookup !== undefined && parsePrice(lookup.price) === undefined;
  return [
    // Once each: policies with codes of the same length have the same errors of texts.
    ...new Set(
      [["policy", policy] as const, ...own].flatMap(([path, one]) => [
        ...(one ? policyErrors(path, one, message, spendError(sender)) : []),
        ...(conversion === "unknown" && one && one.limits.spend.length === 0 ? [`${path}.limits.spend ${needsCeiling}`] : []),
        ...(needsPrice && one && one.limits.spend.length > 0 ? [`${path}.limits.spend ${needsLookupPrice}`] : []),
      ]),
    ),
    ...languageErrors(message).map((problem) => `message.${problem}`),
    ...beforeSendErrors(lookupBeforeSend, lookup !== undefined, sender),
    ...reachErrors(countries, sender),
    ...sourceErrors(receipts?.sources, sender),
    ...fallbackErrors(sender, receipts !== undefined, callbacks.worker),
  ];
}

/** "a spend ceiling is required" (docs/contract.md#unknown-conversion). */
const needsCeiling =
  'must be set while conversion is "unknown", for example [{ amount: 50, per: "day" }]: without confirmations, the spam rules let a slow attack pass';

/** Without a price, lookups cannot count towards a ceiling (docs/contract.md#lookup-ceiling). */
const needsLookupPrice = "needs to know what a lookup costs: give lookup, or each provider of its chain, a price; 0 where it costs nothing";

/** What is wrong with a policy. `noCeiling`: why no spend ceiling can be kept. */
export function policyErrors(path: string, policy: Policy, message: MessageTemplate, noCeiling: string | undefined): string[] {
  const found = [
    [`${path}: `, guessBudgetError(policy)],
    [`${path}.`, lifetimeError(policy)],
    [`${path}.`, cooldownError(policy)],
    ["message.", templateError(message, policy.codeLength)],
    [`${path}.limits.callSpend `, policy.limits.callSpend.length > 0 ? noCeiling : undefined],
    [`${path}.limits.spend `, policy.limits.spend.length > 0 ? noCeiling : undefined],
  ];
  return found.flatMap(([start, problem]) => (problem === undefined ? [] : [`${start}${problem}`]));
}

/** Why this sender cannot keep a spend ceiling. */
export function spendError({ plan, unpriced = [] }: SmsSender): string | undefined {
  if (plan === undefined)
    return "needs to know what a message costs: send through router({ routes: [{ name, sender, price }] }), or give the sender a method plan";
  return unpriced.length === 0 ? undefined : `needs a price for every message: set price of the router's ${unpriced.map((name) => `"${name}"`).join(", ")}`;
}

function beforeSendErrors(looks: boolean, canLook: boolean, sender: SmsSender): string[] {
  if (looks) return canLook ? [] : ["lookupBeforeSend needs the option lookup, for example twilioLookup({ accountSid, authToken })"];
  return sender.readsNetwork === true ? ['sender chooses routes by what a lookup knows (network: "lookup"): set lookupBeforeSend to true'] : [];
}

/** Allowed countries that the sender has no originator for. */
function reachErrors(allowed: "all" | readonly string[], sender: SmsSender): string[] {
  const unreached = (allowed === "all" ? countryCodes : allowed).filter((country) => synchronous("sender.reaches", sender.reaches?.(country)) === false);
  if (unreached.length === 0) return [];
  const named = `${unreached.slice(0, 5).join(", ")}${unreached.length > 5 ? ` and ${unreached.length - 5} more` : ""}`;
  return [
    `sender has no source address for ${named}, which countries allows: add them, or a default, to the sender's option from; or take them out of countries`,
  ];
}

/** Why no one could carry out the sender's fallback (docs/contract.md#fallback). */
function fallbackErrors({ fallback, takesReceipts }: SmsSender, hasReceipts: boolean, hasWorker: boolean): string[] {
  if (fallback === undefined) return [];
  const problems: string[] = [];
  if (!hasReceipts && takesReceipts !== true)
    problems.push("sender has a fallback, which needs receipts: set receipts: { baseUrl, sources } and mount verifier.receipts, or leave fallback out");
  if (!hasWorker && !fallback.elsewhere)
    problems.push(
      'callbacks.worker is false, and the sender has a fallback, which a worker sends: leave it out, or say fallback: { worker: "elsewhere" } if another process runs the worker',
    );
  return problems;
}

/** Providers with two sources, and senders without one for their receipts. */
function sourceErrors(sources: readonly ReceiptSource[] | undefined, { receiptProviders = [] }: SmsSender): string[] {
  if (sources === undefined) return [];
  const providers = sources.map(({ provider }) => provider);
  const twice = new Set(providers.filter((provider, at) => providers.indexOf(provider) !== at));
  const unread = receiptProviders.filter((provider) => !providers.includes(provider));
  return [
    ...[...twice].map((provider) => `receipts.sources has more than one source of ${provider}: give one of them all its secrets`),
    ...unread.map(
      (provider) =>
        `receipts.sources has none of ${provider}, whose receipts the sender asks for: add it (phoneproof/senders/${provider}), or give the sender receipts: false`,
    ),
  ];
}
