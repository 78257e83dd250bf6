import type { StoreDeadline } from "../core/deadline.js";
import type { Account } from "../domain/account.js";
import type { Decision } from "../domain/decision.js";
import { addressKey, networkOf } from "../domain/ip.js";
import { growth } from "../domain/spam-policy.js";
import { pastOfCountry } from "../domain/spam-rules.js";
import type { CountryState } from "./countries.js";
import type { Outside } from "./message-commit.js";
import type { Messages } from "./messages.js";

/**
 * The rules `newCountries` and `strangeNetwork` (docs/contract.md#spam-strange-network), as far as they are known
 * before a create's commit. `isNew`: the message counts towards the budget for new countries.
 */
export async function countryRules(
  parts: Messages,
  account: Account,
  deadline: StoreDeadline,
  country: string | undefined,
  ip: string | undefined,
  grows: boolean,
): Promise<Pick<CountryState, "isNew"> & Pick<Outside, "decided">> {
  if (country === undefined) return { isNew: false, decided: [] };
  if (grows) {
    const { customer, policy } = account;
    const isNew =
      policy.spam.newCountries.mode !== "off" && growth.days * (await parts.past.usualDay(deadline, pastOfCountry(customer, country))) < growth.newCountry;
    return { isNew, decided: [] };
  }
  const { isNew, alarm } = await parts.countries.stateOf(deadline, account, country);
  const network = alarm === undefined || ip === undefined ? undefined : parts.keyring.pseudonym(`network ${networkOf(addressKey(ip))}`).slice(0, 11);
  return { isNew, decided: await strangeNetwork(parts, account, deadline, country, network, alarm) };
}

/** Evaluates `strangeNetwork` by the country's alarm and the network of origin. */
export async function strangeNetwork(
  { clock, countries }: Messages,
  { customer, policy }: Account,
  deadline: StoreDeadline,
  country: string,
  network: string | undefined,
  alarm: CountryState["alarm"],
): Promise<readonly Decision[]> {
  if (alarm === undefined || network === undefined || (await countries.knowsNetwork(deadline, customer, country, network))) return [];
  const { mode } = policy.spam.strangeNetwork;
  return [{ at: clock.now(), rule: "strangeNetwork", mode: mode === "shadow" ? "shadow" : "enforce", ...alarm }];
}
