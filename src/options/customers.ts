import * as z from "zod";
import { keyError } from "./api-key.js";
import { checkedText, duration, flag, object, secondsOrNone, text, wholeIn } from "./fields.js";
import { checkedBy } from "./option-errors.js";
import type { policySchema } from "./policy.js";
import { webhookSecretError } from "./secret.js";

/** How long a key still works after its replacement, unless set, in seconds. */
export const defaultKeyOverlap = 86_400;

/** Customers in the options, those that a source returns, and what the calls of `verifier.customers` accept. */
export function customerSchemas(PolicyChange: ReturnType<typeof policySchema>) {
  const customer_uuid = z.guid("must be a UUID").toLowerCase();
  const webhookSecrets = secretsWithout(webhookSecretError);
  const suspended = flag().nullish();
  const keys = z.array(checkedText(keyError), "must be a list of API keys");
  const ConfiguredCustomer = object({
    customer_uuid,
    webhookSecrets,
    suspended,
    keys: keys.min(1, "must hold at least one API key"),
    policy: PolicyChange.nullish(),
  });
  /** The policy is read separately, and once. A weak secret is no reason to lock its customer out. */
  const SourcedCustomer = z.object(
    { customer_uuid, webhookSecrets: secretsWithout((secret) => webhookSecretError(secret, true)), suspended, policy: z.unknown().optional() },
    "must be { customer_uuid, policy?, webhookSecrets? }",
  );

  const name = text()
    .regex(/^[^\p{C}]{1,128}$/u, "must be 1 to 128 printable characters")
    .nullish();
  const key_id = text()
    .toLowerCase()
    .regex(/^[0-9a-f]{16}$/, "must be 16 hexadecimal digits (see keys list)");
  /** The rest of a record's 64 KiB is for the keys. */
  const policy = PolicyChange.refine((one) => JSON.stringify(one).length <= 16_384, "must be at most 16 KiB as JSON").nullish();
  const CustomerCalls = {
    create: object({ name, policy, webhookSecrets, customer_uuid: customer_uuid.optional(), suspended, keys: keys.default([]) }),
    update: object({ name, policy, webhookSecrets, customer_uuid }),
    named: object({ customer_uuid }),
    list: object({ limit: wholeIn(1, 1_000).default(100), after: customer_uuid.optional() }),
    issue: object({ customer_uuid, name }),
    rotate: object({ customer_uuid, name, key_id: key_id.optional(), overlap: duration(defaultKeyOverlap, secondsOrNone()) }),
    revoke: object({ customer_uuid, key_id }),
  };
  return { ConfiguredCustomer, SourcedCustomer, CustomerCalls };
}

function secretsWithout(errorOf: (secret: string) => string | undefined) {
  return z
    .array(text().trim().superRefine(checkedBy(errorOf)), "must be a list")
    .min(1, "must hold at least one secret; leave it out for those made of the verifier's own")
    .max(10, "must hold at most 10 secrets: each adds a signature to one header")
    .nullish();
}
