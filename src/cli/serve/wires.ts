import type { Verifier } from "../../create-verifier.js";
import type { HttpHandler } from "../../http/message.js";
import { preludeV2 } from "../../wires/prelude-v2/index.js";
import { twilioVerify } from "../../wires/twilio-verify/index.js";

/** The wires that can be served alongside `/v1`. */
export const wires = {
  "prelude-v2": preludeV2,
  "twilio-verify": twilioVerify,
} as const satisfies Record<string, (verifier: Verifier) => HttpHandler>;

export type WireName = keyof typeof wires;

export const wireNames = Object.keys(wires) as WireName[];
