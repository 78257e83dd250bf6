import { randomUUID } from "node:crypto";
import { type LookupRequest, type LookupResponse, lineTypes } from "../contract/lookup.js";
import { lookupCharges } from "../domain/quota.js";
import type { LookupFacts, LookupProvider } from "../ports/lookup-provider.js";
import { withTimeout } from "./clock/budget.js";
import type { Account } from "./door/account.js";
import { readNumber } from "./door/destination.js";
import { newBudget, type Parts } from "./parts.js";

/** Lookup: what the numbering plan says, and over it what the provider knows. "Never `null`, never a guess" (contract.md, wire rule 4). */
export async function lookupNumber(parts: Parts, account: Account, request: LookupRequest): Promise<LookupResponse> {
  const phone = readNumber(parts, request.phone_number);
  const plan: LookupResponse = {
    ...(phone.country !== undefined && { country_code: phone.country }),
    line_type: phone.lineType,
    phone_number: phone.number,
  };
  if (parts.lookup === undefined || phone.test) return plan;
  return { ...plan, ...(await ask(parts, account, parts.lookup, plan)) };
}

/** "A sender or lookup that throws, hangs or answers nonsense never takes the request down with it": then there are no facts. */
async function ask(parts: Parts, account: Account, provider: LookupProvider, plan: LookupResponse): Promise<LookupFacts> {
  const { clock, logger, settings, store } = parts;
  const abort = new AbortController();
  try {
    const charges = lookupCharges(account.customer, randomUUID(), account.policy, { now: clock.now(), skew: settings.clockSkew });
    const counted = await newBudget(parts).call(() => store.commit({ claims: charges.map(({ claim }) => claim) }));
    if (!counted.done) {
      logger.warn({ rule: charges[counted.refusedBy ?? 0]?.rule }, "the ceiling of lookups is reached; the numbering plan alone answers");
      return {};
    }
    const { phone_number, country_code, line_type } = plan;
    const answer = await withTimeout(clock, settings.lookupTimeout, () =>
      provider.lookup({ phone_number, line_type, ...(country_code !== undefined && { country_code }) }, { signal: abort.signal }),
    );
    return soundFacts(answer ?? {});
  } catch (err) {
    abort.abort(err);
    logger.error({ err }, "the lookup provider failed; the numbering plan alone answers");
    return {};
  }
}

/** The fields of a provider's answer that have the form of the specification; the others are left out. */
function soundFacts(answer: LookupFacts): LookupFacts {
  const { carrier, country_code, line_type, mcc, mnc, number_ported } = answer;
  return {
    ...(typeof carrier === "string" && carrier !== "" && { carrier }),
    ...(matches(country_code, /^[A-Z]{2}$/) && { country_code }),
    ...(line_type !== undefined && lineTypes.includes(line_type) && { line_type }),
    ...(matches(mcc, /^\d{3}$/) && { mcc }),
    ...(matches(mnc, /^\d{2,3}$/) && { mnc }),
    ...(typeof number_ported === "boolean" && { number_ported }),
  };
}

function matches(value: unknown, form: RegExp): value is string {
  return typeof value === "string" && form.test(value);
}
