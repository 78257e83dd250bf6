import type { AuthenticationResponse } from "../contract/authentication.js";
import type { CheckResponse } from "../contract/check.js";
import type { LookupResponse } from "../contract/lookup.js";
import type { RetryResponse } from "../contract/retry.js";
import { VerifierError } from "../errors.js";
import { checkAuthentication } from "./check.js";
import { createAuthentication } from "./create.js";
import type { Account, Accounts } from "./door/account.js";
import { parseCheck, parseCreate, parseLookup, parseRetry } from "./door/parse.js";
import { type Explanation, explainAuthentication } from "./explain.js";
import { lookupNumber } from "./lookup.js";
import type { Parts } from "./parts.js";
import { retryAuthentication } from "./retry.js";

export interface CallOptions {
  /** 1 to 255 printable ASCII characters: "the same key and body answer the same result without a second message or a second count" (contract.md, Idempotency-Key). Read by create and check. */
  readonly idempotencyKey?: string | undefined;
}

/** The operations, for input that nobody has looked at yet. `caller`: the account of the request's API key; absent in direct calls, where `customer_uuid` alone tells who calls. */
export interface Operations {
  createAuthentication(input: unknown, options: CallOptions, caller?: Account): Promise<AuthenticationResponse>;
  retry(input: unknown, options: CallOptions, caller?: Account): Promise<RetryResponse>;
  check(input: unknown, options: CallOptions, caller?: Account): Promise<CheckResponse>;
  lookup(input: unknown, options: CallOptions, caller?: Account): Promise<LookupResponse>;
  explain(input: unknown): Promise<Explanation>;
}

export function createOperations(parts: Parts, accounts: Accounts): Operations {
  /** "`account_invalid` (customer_uuid is not the key's customer)" (contract.md, wire rule 5). */
  const admit = async (customerUuid: string, caller: Account | undefined): Promise<Account> => {
    if (caller === undefined) return accounts.byUuid(customerUuid);
    if (caller.customer !== customerUuid) throw new VerifierError("account_invalid", "customer_uuid is not the customer that the API key belongs to.");
    return caller;
  };

  return {
    async createAuthentication(input, { idempotencyKey }, caller) {
      const request = parseCreate(input, parts.settings);
      return createAuthentication(parts, await admit(request.customer_uuid, caller), request, soundKey(idempotencyKey));
    },
    async retry(input, _options, caller) {
      const request = parseRetry(input);
      return retryAuthentication(parts, await admit(request.customer_uuid, caller), request);
    },
    async check(input, { idempotencyKey }, caller) {
      const request = parseCheck(input);
      return checkAuthentication(parts, await admit(request.customer_uuid, caller), request, soundKey(idempotencyKey));
    },
    async lookup(input, _options, caller) {
      const request = parseLookup(input);
      return lookupNumber(parts, await admit(request.customer_uuid, caller), request);
    },
    async explain(input) {
      const request = parseRetry(input);
      return explainAuthentication(parts, await admit(request.customer_uuid, undefined), request);
    },
  };
}

function soundKey(key: string | undefined): string | undefined {
  if (key === undefined || (typeof key === "string" && /^[\x20-\x7e]{1,255}$/.test(key))) return key;
  throw new VerifierError("bad_request", "The Idempotency-Key must be 1 to 255 printable ASCII characters.");
}
