import type { StoreDeadline } from "../core/deadline.js";
import type { Account } from "../domain/account.js";
import type { Decision } from "../domain/decision.js";
import { addressKey, networkOf } from "../domain/ip.js";
import { growth } from "../domain/spam-policy.js";
import { pastOfCountry } from "../domain/spam-rules.js";
import type { CountryState } from "./countries.js";
import type { Messages } from "./messages.js";

/** Results of the country rules before a message is claimed. */
export interface CountryRules {
  /** The message counts towards the budget for new countries. */
  readonly isNew: boolean;
  readonly decided: readonly Decision[];
}

/**
 * The rules `newCountries` and `strangeNetwork` (docs/contract.md#spam-strange-network), as far as they are known
 * before a create's commit.
 */
export async function countryRules(
  parts: Messages,
  account: Account,
  deadline: StoreDeadline,
  country: string | undefined,
  ip: string | undefined,
  grows: boolean,
  now: number,
): Promise<CountryRules> {
  if (country === undefined) return { isNew: false, decided: [] };
  if (grows) {
    const { customer, policy } = account;
    const isNew =
      policy.spam.newCountries.mode !== "off" && growth.days * (await parts.past.usualDay(deadline, pastOfCountry(customer, country))) < growth.newCountry;
    return { isNew, decided: [] };
  }
  const { isNew, alarm } = await parts.countries.stateOf(deadline, account, country);
  const network = alarm === undefined || ip === undefined ? undefined : parts.keyring.pseudonym(`network ${networkOf(addressKey(ip))}`).slice(0, 11);
  return { isNew, decided: await strangeNetwork(parts, account, deadline, country, network, alarm, now) };
}

/** Evaluates `strangeNetwork` by the country's alarm and the network of origin. */
export async function strangeNetwork(
  { countries }: Messages,
  { customer, policy }: Account,
  deadline: StoreDeadline,
  country: string,
  network: string | undefined,
  alarm: CountryState["alarm"],
  now: number,
): Promise<readonly Decision[]> {
  if (alarm === undefined || network === undefined || (await countries.knowsNetwork(deadline, customer, country, network))) return [];
  const { mode } = policy.spam.strangeNetwork;
  return [{ at: now, rule: "strangeNetwork", mode: mode === "shadow" ? "shadow" : "enforce", ...alarm }];
}
