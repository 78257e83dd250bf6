/** A rule, error code or other reason that `phoneproof why` may show. */
export interface RuleWords {
  /** Why it blocks, as a sentence. */
  readonly means: string;
  /** What to do. */
  readonly fix: string;
}

const waitOrUnlock = "Wait until there is room, or lift it once a day with `phoneproof unlock`.";
const recovers =
  "It recovers as users verify, within 36 hours at the latest if a third of the messages are verified. Put numbers of your own on `lists.safe` or in `testNumbers`.";

/** By name, with the limits of an example. `docs/no-code.md` has the same table; a test compares them. */
export const ruleWords: Readonly<Record<string, RuleWords>> = {
  "perNumber 5/600s": { means: "The number has reached the maximum number of messages for this period.", fix: waitOrUnlock },
  guesses: {
    means: "The number has had the maximum number of wrong codes for a day, over all its verifications. No code is accepted, not even the right one.",
    fix: "Wait until they no longer count, in 24 to 36 hours, or lift it once a day with `phoneproof unlock`.",
  },
  "perDevice 5/3600s": {
    means: "The device has started the maximum number of verifications for this period.",
    fix: "Wait until there is room. `unlock` does not lift it. If several users share a device, raise `policy.limits.perDevice`.",
  },
  "numbersPerDevice 3/86400s": {
    means: "The device has requested codes for the maximum number of different numbers for this period.",
    fix: "Wait until there is room, or use one of its earlier numbers. `unlock` does not lift it. If several users share a device, raise `policy.limits.numbersPerDevice`.",
  },
  "perIp 20/3600s": {
    means: "The address has started the maximum number of verifications for this period. You set this cap.",
    fix: "Wait until there is room. If many users share an address, raise `policy.limits.perIp`, or remove it: the rule `address` allows for verified users.",
  },
  "numbersPerIp 10/3600s": {
    means: "The address has requested codes for the maximum number of different numbers for this period. You set this cap.",
    fix: "Wait until there is room. If many users share an address, raise `policy.limits.numbersPerIp`, or remove it.",
  },
  "perCustomer 10000/86400s": {
    means: "The customer has sent the maximum number of messages for this period, to all numbers together.",
    fix: "Look for an attack with `phoneproof stats` first. If the traffic is honest, raise `policy.limits.perCustomer`.",
  },
  "callsPerNumber 3/86400s": {
    means: "The number has reached the maximum number of calls for this period.",
    fix: "Send a message instead, wait until there is room, or lift it once a day with `phoneproof unlock`.",
  },
  "callSpend 20/day": {
    means: "The calls of this hour or day would cost more than their ceiling.",
    fix: "Look for an attack with `phoneproof stats` first. If the traffic is honest, raise `policy.limits.callSpend`.",
  },
  "spend 50/day": {
    means: "The messages of this hour or day would cost more than the spend ceiling, or the route has no price.",
    fix: "Look for an attack with `phoneproof stats` first. If the traffic is honest, raise `policy.limits.spend`; give each route a price.",
  },
  "range 4": {
    means: "Too many codes sent to the 10,000 numbers around this one were not entered. Test messages to neighboring numbers do this too.",
    fix: recovers,
  },
  "range 5": { means: "Too many codes sent to the 100,000 numbers around this one were not entered.", fix: recovers },
  "range 6": { means: "Too many codes sent to the million numbers around this one were not entered.", fix: recovers },
  crowd: {
    means: "The 10,000 numbers around this one have had too many messages in a day, verified or not.",
    fix: "It may be an attacker who enters the codes: look at who signs up. A small country or a town looks the same. If the users are real, raise `policy.spam.crowd`: `messages` or `share`.",
  },
  country: { means: "Too many codes sent to the number's country were not entered.", fix: recovers },
  newCountries: {
    means: "Too many codes sent to countries in which hardly anyone has verified yet were not entered.",
    fix: `${recovers} Remove countries that you do not serve from \`countries\`.`,
  },
  address: {
    means: "Too many codes requested from this address were not entered.",
    fix: "It recovers as users verify, within 36 hours at the latest if a third of the messages are verified. Check that `ip` is the user's address, not your proxy's. Put networks of your own on `lists.safe`.",
  },
  calls: {
    means: "Too many codes spoken in calls to this country were not entered.",
    fix: "Send a message instead. It recovers as users verify, within 36 hours at the latest if a third of the messages are verified. Call only countries that need it: option `countries` of the sender.",
  },
  fallback: {
    means: "A message did not arrive, and no other route could take its replacement.",
    fix: "Add a route for the country, or look at `fallback` of its routes.",
  },
  strangeNetwork: {
    means: "Many codes sent to the number's country were not entered lately, and no one in that country has verified from this network within a week.",
    fix: "It recovers as users of new networks verify, and ends with the country's alarm, usually within an hour or two. Put networks that you know on `lists.safe`.",
  },
  signals: {
    means: "The device or address details in the request do not fit: the reason is shown.",
    fix: "Check what your app sends as `device_type`, `device_id` and `ip`. If it is right, set `policy.spam.signals.mode` to `shadow`.",
  },
  blockList: {
    means: "The address or device is on your block list; on a retry also the number.",
    fix: "If that is a mistake, remove the entry from `lists.block`.",
  },
  unsupported_region: {
    means: "The number belongs to a country that is not in `countries`.",
    fix: "If you serve that country, add it to `countries`.",
  },
  invalid_line: {
    means: "The number is a landline or another line that receives no codes, by the numbering plan or by a lookup.",
    fix: "Ask the user for a mobile number.",
  },
  blocked_number: {
    means: "The number, or a prefix of it, is on your block list.",
    fix: "If that is a mistake, remove the entry from `lists.block` or `blockedNumbers`.",
  },
};

/** Any other name is of one of the operator's own rules. */
export const ownRule: RuleWords = {
  means: "It is one of your own rules in `spamRules`: the reason is shown, if the rule gives one.",
  fix: "Look at that rule in your code.",
};

/** Limits differ between policies: `perNumber 5/600s` is found as `perNumber`. */
const nameOf = (rule: string) => rule.replace(/ [\d.]+\/\S+$/, "");
const byName = new Map(Object.entries(ruleWords).map(([form, words]) => [nameOf(form), words]));

export function wordsOf(rule: string): RuleWords {
  return byName.get(nameOf(rule)) ?? ownRule;
}
