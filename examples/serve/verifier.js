// verifier.js
import { createVerifier } from "phoneproof";
import { twilioReceipts, twilioSender } from "phoneproof/senders/twilio";

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: see .env.example`);
  return value;
}

const authToken = required("TWILIO_AUTH_TOKEN");
const baseUrl = process.env.PUBLIC_URL; // where Twilio reaches /receipts/twilio; without it there are no delivery receipts

// phoneproof serve passes the store: the SQLite file that --data names
export const verifier = ({ store }) =>
  createVerifier({
    store,
    sender: twilioSender({
      accountSid: required("TWILIO_ACCOUNT_SID"),
      authToken,
      from: required("TWILIO_FROM"), // a number of your Twilio account
      baseUrl: process.env.TWILIO_BASE_URL || undefined, // of another region, for example https://api.ie1.twilio.com
    }),
    secret: required("PHONEPROOF_SECRET"),
    countries: ["FR", "GB", "US"], // countries allowed to receive messages
    customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: [required("PHONEPROOF_API_KEY")] }],
    ...(baseUrl && { receipts: { baseUrl, sources: [twilioReceipts({ authToken })] } }),
  });
