import { readNumber } from "../access/destination.js";
import type { LookupRequest, LookupResponse } from "../contract/lookup.js";
import type { Account } from "../domain/policy.js";
import type { Context } from "./context.js";

/**
 * Looks a number up: the numbering plan, overridden by the provider's facts. "Never `null`, never a guess"
 * (docs/contract.md#lookup).
 */
export async function lookup(context: Context, account: Account, request: LookupRequest): Promise<LookupResponse> {
  const phone = readNumber(context, request.phone_number);
  const facts = await context.facts.of(account, phone);
  return {
    ...(phone.country !== undefined && { country_code: phone.country }),
    line_type: phone.lineType,
    phone_number: phone.number,
    ...facts,
  };
}
