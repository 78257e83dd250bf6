import type { Decision } from "../domain/decision.js";
import { addressKey, networkOf } from "../domain/ip.js";
import type { StoreBudget } from "../core/deadline.js";
import type { Account } from "../access/accounts.js";
import type { Parts } from "../core/parts.js";
import type { CountryState } from "./countries.js";

/** What a country's state says of a message before it is claimed. */
export interface CountryRules {
  /** The message counts in the pot of new countries. */
  readonly isNew: boolean;
  readonly decided: readonly Decision[];
}

/** The rules `newCountries` and `strangeNetwork` (docs/contract.md#spam-strange-network), as far as they are known before the commit of a create. */
export async function countryRules(
  parts: Parts,
  account: Account,
  budget: StoreBudget,
  country: string | undefined,
  ip: string | undefined,
  now: number,
): Promise<CountryRules> {
  if (country === undefined) return { isNew: false, decided: [] };
  const { isNew, alarm } = await parts.countries.stateOf(budget, account, country);
  const network = alarm === undefined || ip === undefined ? undefined : parts.codes.mask(`network ${networkOf(addressKey(ip))}`).slice(0, 11);
  return { isNew, decided: await strangeNetwork(parts, account, budget, country, network, alarm, now) };
}

/** What the rule `strangeNetwork` says of a message, by its country's alarm and the network it came from. */
export async function strangeNetwork(
  { countries }: Parts,
  { customer, policy }: Account,
  budget: StoreBudget,
  country: string,
  network: string | undefined,
  alarm: CountryState["alarm"],
  now: number,
): Promise<readonly Decision[]> {
  if (alarm === undefined || network === undefined || (await countries.knowsNetwork(budget, customer, country, network))) return [];
  const { mode } = policy.spam.strangeNetwork;
  return [{ at: now, rule: "strangeNetwork", mode: mode === "shadow" ? "shadow" : "enforce", ...alarm }];
}
