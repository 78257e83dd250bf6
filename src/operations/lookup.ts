import type { LookupRequest, LookupResponse } from "../contract/lookup.js";
import type { Account } from "../access/accounts.js";
import { readNumber } from "../access/destination.js";
import type { Parts } from "../core/parts.js";

/** Lookup: what the numbering plan says, and over it what the provider knows. "Never `null`, never a guess" (docs/contract.md#lookup). */
export async function lookupNumber(parts: Parts, account: Account, request: LookupRequest): Promise<LookupResponse> {
  const { clock, eyes } = parts;
  const began = clock.now();
  try {
    const answer = await answerOf(parts, account, request);
    eyes.answered("lookup", "answered", began);
    return answer;
  } catch (fault) {
    return eyes.failed.lookup(fault);
  }
}

async function answerOf(parts: Parts, account: Account, request: LookupRequest): Promise<LookupResponse> {
  const phone = readNumber(parts, request.phone_number);
  return {
    ...(phone.country !== undefined && { country_code: phone.country }),
    line_type: phone.lineType,
    phone_number: phone.number,
    ...(await parts.facts.of(account, phone)),
  };
}
