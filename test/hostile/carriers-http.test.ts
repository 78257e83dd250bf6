import { createHmac } from "node:crypto";
import { plivoReceipts } from "phoneproof/senders/plivo";
import { twilioWhatsappSender } from "phoneproof/senders/twilio";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Answer, carrier, context, message, report } from "./carriers-http-kit.js";

const account = { accountSid: `AC${"0".repeat(32)}`, authToken: "token", from: "+15005550006" };

async function at(answer: Answer): Promise<string> {
  const { url, close } = await carrier(answer);
  onTestFinished(close);
  return url;
}

describe("receipts", () => {
  it("of a subaccount of Plivo are authentic by the main account's V2 signature, as by its V3 signature", async () => {
    const signed = "https://api.example.com/receipts/plivo12345";
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      "x-plivo-signature-v2": createHmac("sha256", "subaccount").update(signed).digest("base64"),
      "x-plivo-signature-ma-v2": createHmac("sha256", "main").update(signed).digest("base64"),
      "x-plivo-signature-v2-nonce": "12345",
    };
    const request = report("https://api.example.com/receipts/plivo?r=reference", headers, "MessageUUID=1&Status=delivered&To=33612345678");
    const reading = await plivoReceipts({ authToken: "main" }).read(request, Date.now());
    expect(reading).toMatchObject({ receipts: [{ messageId: "1", status: "delivered" }] });
  });
});
