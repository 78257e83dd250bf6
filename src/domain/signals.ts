import type { Authentication } from "./authentication.js";
import type { Decision, RuleMode } from "./decision.js";

/** What the caller's resolver knows about an address. */
export interface IpInfo {
  /** ISO 3166-1 alpha-2, in capitals. With any other text, the result is ignored and logged. */
  readonly country?: string | undefined;
  /** The kind of network, as named by the resolver; `hosting`, `proxy`, `vpn` and `tor` count against an attempt. */
  readonly kind?: string | undefined;
}

/** ANDROID_ID: 64 bits in hexadecimal. */
const androidId = /^[0-9a-f]{1,16}$/i;
/** identifierForVendor: a UUID. */
const vendorId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const suspectKinds: ReadonlySet<string> = new Set(["hosting", "proxy", "vpn", "tor"]);

type SignalFields = Pick<Authentication, "deviceType" | "country"> & { readonly deviceId?: string | undefined };

/**
 * "device_type against the shape of device_id, ip against the caller's country resolver: shadow by default"
 * (docs/contract.md#spam-signals). Returns the mismatch in words, or `undefined`.
 */
function signalsError({ deviceType, deviceId, country }: SignalFields, ip: IpInfo = {}): string | undefined {
  if (deviceType === "ANDROID" && deviceId !== undefined && vendorId.test(deviceId)) return "device_id looks like an iOS device's, device_type is ANDROID";
  if (deviceType === "IOS" && deviceId !== undefined && !vendorId.test(deviceId))
    return `device_id does not look like an iOS device's${androidId.test(deviceId) ? " but of an Android one's" : ""}, device_type is IOS`;
  if (ip.kind !== undefined && suspectKinds.has(ip.kind)) return `the ip is in a network of kind ${ip.kind}`;
  if (ip.country !== undefined && country !== undefined && ip.country !== country) return `the ip is in ${ip.country}, the number in ${country}`;
  return undefined;
}

/** The rule based on a create's fields alone. */
export function signalDecisions(mode: RuleMode, fields: SignalFields, ip: IpInfo | undefined, now: number): Decision[] {
  const reason = mode === "off" ? undefined : signalsError(fields, ip);
  return reason === undefined ? [] : [{ at: now, rule: "signals", mode: mode === "shadow" ? "shadow" : "enforce", reason }];
}
