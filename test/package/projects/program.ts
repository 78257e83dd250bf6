import { createVerifier, generateApiKey, type SmsSender } from "phoneproof";
import { memoryStore } from "phoneproof/memory";

const codes: string[] = [];
const sender: SmsSender = {
  async send({ code }) {
    codes.push(code);
    return { outcome: "accepted" };
  },
};
const customer_uuid = "5f0c7f3e-1d2b-4c3a-9e8f-7a6b5c4d3e2f";
const { key } = generateApiKey();
const verifier = createVerifier({ store: memoryStore(), sender, secret: key, countries: ["FR"], customers: [{ customer_uuid, keys: [key] }] });

/** Compiled as an ES module and as CommonJS, which has no `await` here. */
async function main(): Promise<void> {
  const { authentication_uuid, status } = await verifier.createAuthentication({ customer_uuid, phone_number: "+33612345678" });
  const checked = await verifier.check({ customer_uuid, authentication_uuid, check_code: codes[0] ?? "" });
  console.log(status, checked.status);
  await verifier.close();
}
void main();
