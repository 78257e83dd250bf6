import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { turnstileChallenge } from "../../adapters/challenge/turnstile.js";
import { telnyxLookup } from "../../adapters/lookup/telnyx.js";
import { awsReceipts } from "../../adapters/sms/aws.js";
import { twilioReceipts } from "../../adapters/sms/twilio.js";
import { createClient } from "../../clients/client/index.js";
import { signAws, signTwilio, topicArn } from "../support/carriers/receipts.js";
import { snsCertificate } from "../support/carriers/sns-key.js";
import { base, listening, noon } from "./receipt-kit.js";

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

/** A server on the loopback interface. */
async function serve(answer: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(answer as never);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ended.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

const context = () => ({ signal: AbortSignal.timeout(20_000), timeLeft: 20_000 });

describe("the edge", () => {
  it.each([
    [
      { mobile_country_code: "311", mobile_network_code: "480" },
      { mcc: "311", mnc: "480" },
    ],
    [{ mobile_country_code: null, mobile_network_code: "004" }, {}],
    [{ mobile_network_code: "Verizon 4" }, {}],
    [{ mobile_country_code: "1", mobile_network_code: "48" }, {}],
  ])("E2: Telnyx' network code counts only with a country code of three digits: %o", async (carrier, facts) => {
    const url = await serve((_request, response) =>
      response.end(JSON.stringify({ data: { phone_number: "+14155552671", carrier: { name: "Verizon", type: "mobile", ...carrier } } })),
    );
    const looked = await telnyxLookup({ apiKey: "KEY", baseUrl: url }).lookup(
      { phone_number: "+14155552671", country_code: "US", line_type: "Unknown" },
      context(),
    );
    expect(looked).toEqual({ carrier: "Verizon", line_type: "Mobile", ...facts });
  });

  it("E5: of a siteverify answer 64 KiB are read, and the rest never is", async () => {
    let sent = 0;
    const url = await serve((_request, response) => {
      const more = (): void => {
        while (!response.destroyed && sent < 500_000_000) {
          sent += 65_536;
          if (!response.write(" ".repeat(65_536))) return void response.once("drain", more);
        }
      };
      more();
    });
    await expect(turnstileChallenge({ secret: "0x", baseUrl: url }).verify("proof", context())).rejects.toThrow("turnstileChallenge");
    expect(sent).toBeLessThan(20_000_000);
  });

  it("E9: a thousand unsigned receipts make one warning a minute, with the provider's name", async () => {
    const one = listening({ receipts: { baseUrl: base, sources: [twilioReceipts({ authToken: "t" })] } } as never);
    const ask = () =>
      one.verifier.receipts.handle({
        method: "POST",
        path: "/receipts/twilio",
        header: () => undefined,
        body: async () => ({ kind: "text", text: "MessageStatus=delivered" }),
      });
    for (let i = 0; i < 1000; i++) expect((await ask()).status).toBe(403);
    one.clock.advance(60_000);
    await ask();
    const warnings = one.log.filter(({ level }) => level === "warn");
    expect(warnings).toHaveLength(2);
    expect(warnings[1]).toMatchObject({ fields: { provider: "twilio", left_out: 999 } });
  });

  it("E13: a client leaves no listener on a signal that many calls share", async () => {
    const { signal } = new AbortController();
    let calls = 0;
    const url = await serve((_request, response) => {
      response.statusCode = 503;
      response.setHeader("retry-after", "0");
      response.end(JSON.stringify({ code: "unavailable", message: "m", doc_url: `d ${calls++}` }));
    });
    const client = createClient({ baseUrl: url, apiKey: "pp_key", customerUuid: crypto.randomUUID(), retries: 3 });
    await expect(client.lookup({ phone_number: "+33612345678" }, { signal })).rejects.toThrow();
    expect([calls, getEventListeners(signal, "abort")]).toEqual([4, []]);
  });

  it.each([
    ["RCS_QUEUED", "submitted"],
    ["RCS_SENT", "in_transit"],
    ["RCS_DELIVERED", "delivered"],
    ["RCS_READ", "delivered"],
    ["RCS_BLOCKED", "undeliverable"],
    ["RCS_SMS_FALLBACK", "in_transit"],
  ])("E1: AWS' %s is %s", async (eventType, status) => {
    const asked = await signAws({ eventType, isFinal: false, messageId: "m1", eventTimestamp: noon, context: { phoneproof: "reference" } }, { at: noon });
    const reading = await awsReceipts({ topicArn, fetch: async () => new Response(snsCertificate) }).read(asked, noon);
    expect(reading).toMatchObject({ receipts: [{ status }] });
  });

  it("E14: Twilio's partially_delivered is delivered", async () => {
    const asked = await signTwilio({ MessageSid: "SM1", MessageStatus: "partially_delivered" }, { at: noon, url: `${base}/receipts/twilio` });
    expect(await twilioReceipts({ authToken: "twilio-auth-token" }).read(asked, noon)).toMatchObject({ receipts: [{ status: "delivered" }] });
  });
});
