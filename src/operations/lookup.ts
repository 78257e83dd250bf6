import { readNumber } from "../access/destination.js";
import type { LookupRequest, LookupResponse } from "../contract/lookup.js";
import type { Account } from "../domain/account.js";
import type { Context } from "./context.js";

/** Lookup: what the numbering plan says, and over it what the provider knows. "Never `null`, never a guess" (docs/contract.md#lookup). */
export async function lookupNumber(parts: Context, account: Account, request: LookupRequest): Promise<LookupResponse> {
  const { clock, monitor } = parts;
  const began = clock.now();
  try {
    const answer = await answerOf(parts, account, request);
    monitor.answered("lookup", "answered", began);
    return answer;
  } catch (fault) {
    return monitor.failed.lookup(fault);
  }
}

async function answerOf(parts: Context, account: Account, request: LookupRequest): Promise<LookupResponse> {
  const phone = readNumber(parts, request.phone_number);
  return {
    ...(phone.country !== undefined && { country_code: phone.country }),
    line_type: phone.lineType,
    phone_number: phone.number,
    ...(await parts.facts.of(account, phone)),
  };
}
