import { CreateAuthenticationRequest } from "../contract/authentication.js";
import { CheckRequest } from "../contract/check.js";
import { ConfirmRequest, DeliverRequest } from "../contract/delivery.js";
import { HistoryRequest, StatsRequest } from "../contract/operator.js";
import { VerifierError } from "../errors.js";

const fields = new Set(
  [CreateAuthenticationRequest, CheckRequest, DeliverRequest, ConfirmRequest, HistoryRequest, StatsRequest].flatMap(({ shape }) => Object.keys(shape)),
);
const bare = (name: string) => name.replaceAll(/[^a-z]/gi, "").toLowerCase();
const meant = new Map([...Array.from(fields, (field) => [bare(field), field] as const), ["ipaddress", "ip"] as const, ["phone", "phone_number"] as const]);

/** Options of calls, by what they are called among the fields. */
const options = new Map([
  ["idempotencykey", "createAuthentication(request, { idempotencyKey })"],
  ["scope", "verifications.start(request, { scope })"],
  ["usedup", "verifications.start(request, { usedUp })"],
]);

/**
 * Throws `bad_request` if a direct call misspells a known field, such as `deviceId` for `device_id`, or has an option
 * among its fields. Ignored like other unknown fields, it would disable the limits per device, or send twice.
 * `hasKey`: the idempotency key is a field, as in `deliver`.
 */
export function refuseMisspelt(request: object, hasKey: boolean): void {
  for (const name in request) {
    const option = hasKey ? undefined : options.get(bare(name));
    if (option !== undefined) throw new VerifierError("bad_request", `${name} is not a field of a request: it is an option, as in ${option}.`);
    if (fields.has(name)) continue;
    const field = meant.get(bare(name));
    if (field !== undefined && !(field in request)) throw new VerifierError("bad_request", `${name} is not a field of a request: say ${field}.`);
  }
}
