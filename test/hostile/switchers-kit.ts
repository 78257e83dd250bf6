import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Prelude from "@prelude.so/sdk";
import twilio from "twilio";
import { nodeHandler } from "../../adapters/http/node.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier, type SmsSender } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { preludeV2 } from "../../src/wires/prelude-v2/index.js";
import { type TwilioVerifyOptions, twilioVerify } from "../../src/wires/twilio-verify/index.js";
import { logger, numberOf, secret, start } from "../support/verifier.js";

const customer = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const token = "k".repeat(40);
const number = numberOf(1);

export interface Sent {
  readonly route: string;
  readonly code: string;
}

/** A team that switched: one service with both wires, whose sender has SMS and calls, and the unmodified clients. */
export async function switched(options: TwilioVerifyOptions = {}) {
  const clock = fixedClock(start);
  const sent: Sent[] = [];
  const down = new Set<string>();
  const log = logger();
  const carrier = (route: string): SmsSender["send"] => {
    return async ({ code }) => {
      if (down.has(route)) return { outcome: "rejected", reason: "the carrier is down" };
      sent.push({ route, code });
      return { outcome: "accepted" };
    };
  };
  const verifier = createVerifier({
    store: memoryStore(),
    sender: router({
      routes: [
        { name: "sms", sender: { send: carrier("sms") } },
        { name: "call", sender: { channel: "voice", send: carrier("call") } },
      ],
    }),
    secret,
    countries: ["FR"],
    customers: [{ customer_uuid: customer, keys: [token] }],
    clock,
    clockSkew: 0,
    callbacks: { worker: false },
    logger: log,
  });
  const server = createServer(nodeHandler([verifier, twilioVerify(verifier, options), preludeV2(verifier)]));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const digits = customer.replaceAll("-", "");
  const client = twilio(`AC${digits}`, token);
  client.verify.baseUrl = url;
  const service = client.verify.v2.services(`VA${digits}`);
  const prelude = new Prelude({ apiToken: token, baseURL: url, maxRetries: 0 });
  return {
    verifier,
    customer,
    service,
    sent,
    down,
    log: log.lines,
    /** Past every cool-down. */
    pause: () => clock.advance(121_000),
    /** A create by Twilio's client. */
    twilio: (channel: string, to = number) => service.verifications.create({ to, channel }),
    /** A create by Prelude's client. */
    prelude: (options: Prelude.VerificationCreateParams.Options = {}) =>
      prelude.verification.create({ target: { type: "phone_number", value: number }, options }),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await verifier.close();
    },
  };
}

/** What a client throws: the vendors' errors have different types. */
export interface Rejection {
  readonly code?: number;
  readonly status?: number;
  readonly message: string;
  readonly details?: { readonly reason?: string };
}

/** The error of a call that must fail. */
export const rejection = (call: Promise<unknown>): Promise<Rejection> =>
  call.then(
    (answer) => Promise.reject(new Error(`the call succeeded: ${JSON.stringify(answer)}`)),
    (error) => error as Rejection,
  );
