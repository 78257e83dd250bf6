import { afterEach, expect, it } from "vitest";
import { lookupChain } from "../../adapters/lookup/chain.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { hlrScript } from "../support/lookups/hlr.js";
import { type LookupScript, type RunningLookup, startLookup } from "../support/lookups/server.js";
import { telnyxLookupScript } from "../support/lookups/telnyx.js";
import { twilioLookupScript } from "../support/lookups/twilio.js";
import { vonageLookupScript } from "../support/lookups/vonage.js";
import { setUp, start } from "../support/verifier.js";

const running: RunningLookup[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.close();
});

const phone_number = "+14165550123";
const scripts = [twilioLookupScript, telnyxLookupScript, vonageLookupScript, hlrScript] as const;

/** A verifier over a chain of all four providers, each with a running server. */
async function setUpWhole() {
  const clock = fixedClock(start);
  const servers = await Promise.all(scripts.map((script: LookupScript) => startLookup(script, {})));
  running.push(...servers);
  const lookup = lookupChain(
    scripts.map((script, at) => script.provider(servers[at]!.url, { price: 0.01 })),
    { clock },
  );
  const set = setUp({ lookup, clock });
  const look = () => set.verifier.lookup({ customer_uuid: set.customer, phone_number });
  return { ...set, look, servers: servers as [RunningLookup, RunningLookup, RunningLookup, RunningLookup] };
}

it("for a number in Canada, where two providers give nothing, the third adds what it knows, and nothing is made up", async () => {
  const { look, servers, http, customer } = await setUpWhole();
  const [twilio, telnyx, vonage] = servers;
  twilio.mood = twilioLookupScript.unknown["60601, Canada without approval"];
  telnyx.mood = telnyxLookupScript.unknown["422, Canada"];
  vonage.line = { type: "mobile", carrier: "Rogers", mcc: "302", mnc: "720", ported: false };
  const known = { phone_number, country_code: "CA", line_type: "Mobile", carrier: "Rogers", mcc: "302", mnc: "720", number_ported: false };
  expect(await look()).toEqual(known);
  expect((await http("GET", `/v1/lookup/${phone_number}`, undefined, { "customer-uuid": customer })).json).toEqual(known);
  expect(
    servers.map(({ requests }) => requests.length),
    "all was known before the last, and the second lookup found it in the store",
  ).toEqual([1, 1, 1, 0]);
});

it("if all four providers fail, the numbering plan decides within `lookupTimeout`, and each failure is logged", async () => {
  const { look, servers, clock, log } = await setUpWhole();
  const [twilio, telnyx, vonage, hlr] = servers;
  twilio.mood = "hangs";
  telnyx.mood = "cut";
  vonage.mood = { status: 200, body: "<html>" };
  hlr.line = { number: "+14165550124", type: "MOBILE", carrier: "Rogers" };
  const looking = look();
  while (twilio.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  clock.advance(500);
  expect(await looking).toEqual({ phone_number, country_code: "CA", line_type: "Unknown" });
  expect(log.lines.at(-1)?.fields["reason"]).toMatch(
    /did not respond within \d+ ms; telnyxLookup: no response: SocketError, code UND_ERR_SOCKET; vonageLookup: the response is not in the provider's format; httpLookup: the response names another number, or no number/,
  );
  expect(JSON.stringify(log.lines)).not.toContain("4165550");
});
