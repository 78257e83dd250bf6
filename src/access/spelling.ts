import { CreateAuthenticationRequest } from "../contract/authentication.js";
import { CheckRequest } from "../contract/check.js";
import { ConfirmRequest, DeliverRequest } from "../contract/delivery.js";
import { HistoryRequest, StatsRequest } from "../contract/operator.js";
import { VerifierError } from "../errors.js";

const fields = new Set(
  [CreateAuthenticationRequest, CheckRequest, DeliverRequest, ConfirmRequest, HistoryRequest, StatsRequest].flatMap(({ shape }) => Object.keys(shape)),
);
const bare = (name: string) => name.replaceAll(/[^a-z]/gi, "").toLowerCase();
const meant = new Map([...Array.from(fields, (field) => [bare(field), field] as const), ["ipaddress", "ip"] as const]);

/**
 * Throws `bad_request` if a direct call misspells a known field, such as `deviceId` for `device_id`. Ignored like other
 * unknown fields, it would disable the limits per device.
 */
export function refuseMisspelt(request: object): void {
  for (const name in request) {
    if (fields.has(name)) continue;
    const field = meant.get(bare(name));
    if (field !== undefined && !(field in request)) throw new VerifierError("bad_request", `${name} is not a field of a request: say ${field}.`);
  }
}
