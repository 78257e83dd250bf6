import { meetsChallengeOnce } from "../access/challenge.js";
import { askCustomRules, askIpInfo, withListed } from "../access/custom-rules.js";
import { blockedNumber, forbiddenSince, lookAgain, lookBeforeSend, readAgain } from "../access/destination.js";
import type { CreateAuthenticationRequest } from "../contract/authentication.js";
import type { StoreDeadline } from "../core/deadline.js";
import type { Authentication } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import { addressKey, networkOf } from "../domain/ip.js";
import type { PhoneNumber } from "../domain/phone-number.js";
import type { Account } from "../domain/policy.js";
import { signalDecisions } from "../domain/signals.js";
import { growth } from "../domain/spam-policy.js";
import { originOf, pastOfCountry } from "../domain/spam-rules.js";
import type { CountryState } from "../messages/countries.js";
import type { Outside } from "../messages/message-commit.js";
import type { Messages } from "../messages/messages.js";
import { unreachableChannels } from "../messages/unreachable.js";
import { isTestNumber, type Settings } from "../options/options.js";
import type { Context } from "./context.js";

/** For a message that is not sent in any case. */
export const nothingAsked: Outside = { safe: false, proof: false, decided: [], fired: [] };

/** Whether a create asks anything but the store; it must do that only once. */
export function asksOthers({ spamRules, lists, lookupBeforeSend }: Settings, { proof }: CreateAuthenticationRequest): boolean {
  return spamRules.length > 0 || lists.block !== undefined || proof !== undefined || lookupBeforeSend;
}

/**
 * Asks once about a create: lists, the caller's own rules and resolver, the challenge, a lookup; then the country's
 * state. `proofName`: of a call under a key. `grows`: no one reports whether its code is entered. `origin`: as its record
 * stores it. Throws `blocked_number` and `invalid_line`.
 */
export async function askAboutCreate(
  context: Context,
  account: Account,
  deadline: StoreDeadline,
  request: CreateAuthenticationRequest,
  phone: PhoneNumber,
  id: string,
  proofName: string | undefined,
  grows = false,
): Promise<Outside & Pick<Authentication, "origin" | "byCall">> {
  const { clock, keyring, lists, settings } = context;
  const { spam } = account.policy;
  const { ip, channel, device_id: deviceId, device_type: deviceType, proof: given } = request;
  const { number, country, lineType } = phone;
  const listed = await lists.judge({ number, ip, deviceId });
  if (listed.block?.kind === "number") throw blockedNumber();
  const now = clock.now();
  const candidate = () => {
    const { proof: _, ...fields } = request;
    const ofNumber = { phone_number: number, line_type: lineType, ...(country !== undefined && { country_code: country }) };
    return { ...fields, ...ofNumber, authentication_uuid: id, attempt: 1, now };
  };
  const isListed = listed.block !== undefined;
  const [own, ipInfo, proof, found, unreachable] = await Promise.all([
    askCustomRules(context, candidate),
    askIpInfo(context, account, ip),
    !isListed && meetsChallengeOnce(context, proofName, given, ip),
    !isListed && settings.lookupBeforeSend ? lookBeforeSend(context, account, phone) : undefined,
    unreachableChannels(context, deadline, account.customer, number),
  ]);
  const safe = listed.safe || isTestNumber(settings, number);
  const { isNew, strange } = await countryState(context, account, deadline, safe ? undefined : country, ip, grows);
  const signals = signalDecisions(spam.signals.mode, { deviceType, deviceId, country }, ipInfo, clock.now());
  const origin = originOf(ip, own.cells, { pot: isNew, safe, grows, strange }, spam, keyring.pseudonym);
  const isFixed = phone.lineType === "FixedLine" || found?.isFixed === true;
  const byCall = isFixed ? "fixed line" : channel === "voice" ? "wished" : undefined;
  const fired = withListed(listed.safe || proof ? [] : own.decisions, listed, now);
  return { ip, deviceId, network: found?.network, unreachable, safe, proof, decided: signals, fired, origin, byCall };
}

/**
 * Asks about a retry that its record allows: the country's state, and lists, own rules and a lookup, if configured.
 * `isStart`: a start by number or a delivery, which throws `blocked_number` as a create does.
 */
export async function askAboutRetry(context: Context, account: Account, deadline: StoreDeadline, auth: Authentication, isStart = false): Promise<Outside> {
  const { clock, lists, settings } = context;
  const { number, attempts, deviceType, origin } = auth;
  const now = clock.now();
  const decided = await strangeSince(context, account, deadline, auth);
  const unreachable = await unreachableChannels(context, deadline, account.customer, number);
  const phone = readAgain(context, number);
  const forbidden = forbiddenSince(context, phone);
  if (!asksAboutRetries(settings)) return { ...nothingAsked, decided, unreachable, fired: forbidden };
  const listed = await lists.judge({ number });
  if (isStart && listed.block !== undefined) throw blockedNumber();
  const candidate = () => ({
    customer_uuid: account.customer,
    phone_number: number,
    line_type: phone?.lineType ?? "Unknown",
    ...(phone?.country !== undefined && { country_code: phone.country }),
    ...(deviceType !== undefined && { device_type: deviceType }),
    authentication_uuid: auth.id,
    attempt: attempts + 1,
    now,
  });
  const [own, network] = await Promise.all([askCustomRules(context, candidate), lookAgain(context, account, phone)]);
  // To the record, a test number is safe as well; the caller's own rules still judge it.
  const isSafe = listed.safe || (origin?.s === 1 && !isTestNumber(settings, number));
  const fired = withListed(isSafe ? forbidden : [...forbidden, ...own.decisions], listed, now);
  return { network, unreachable, safe: listed.safe, proof: false, decided, fired };
}

/** Whether retries use lists, own rules or a lookup: then the record must be read first. */
export function asksAboutRetries({ spamRules, lists, lookupBeforeSend }: Settings): boolean {
  return spamRules.length > 0 || lists.block !== undefined || lists.safe !== undefined || lookupBeforeSend;
}

/**
 * What a create's cells need to know of its country before the commit. `isNew`: the message counts towards the budget
 * for new countries. `strange`: it counts for the rule `strangeNetwork`.
 */
async function countryState(
  parts: Messages,
  account: Account,
  deadline: StoreDeadline,
  country: string | undefined,
  ip: string | undefined,
  grows: boolean,
): Promise<Pick<CountryState, "isNew"> & { readonly strange: boolean }> {
  if (country === undefined) return { isNew: false, strange: false };
  if (grows) {
    const { customer, policy } = account;
    const isNew =
      policy.spam.newCountries.mode !== "off" && growth.days * (await parts.past.usualDay(deadline, pastOfCountry(customer, country))) < growth.newCountry;
    return { isNew, strange: false };
  }
  const { isNew, alarm } = await parts.countries.stateOf(deadline, account, country);
  const network = alarm === undefined || ip === undefined ? undefined : parts.keyring.pseudonym(`network ${networkOf(addressKey(ip))}`).slice(0, 11);
  return { isNew, strange: await isStrange(parts, account, deadline, country, network) };
}

/** Whether no one verified from the network in this country (docs/contract.md#spam-strange-network). */
async function isStrange({ countries }: Messages, { customer }: Account, deadline: StoreDeadline, country: string, network: string | undefined) {
  return network !== undefined && !(await countries.knowsNetwork(deadline, customer, country, network));
}

/** Rejects the retry of a record that was made before its country's alarm: its messages are in no cell of the rule. */
async function strangeSince(parts: Messages, account: Account, deadline: StoreDeadline, auth: Authentication): Promise<readonly Decision[]> {
  const { country, origin = {} } = auth;
  if (country === undefined || origin.t === 1) return [];
  const alarm = parts.countries.alarmOf(account, country);
  if (alarm === undefined || !(await isStrange(parts, account, deadline, country, origin.w))) return [];
  const { mode } = account.policy.spam.strangeNetwork;
  return [{ at: parts.clock.now(), rule: "strangeNetwork", mode: mode === "shadow" ? "shadow" : "enforce", ...alarm }];
}
