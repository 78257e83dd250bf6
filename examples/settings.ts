import { required } from "./required.js";

/** Settings of every example. First run `export PHONEPROOF_SECRET="$(openssl rand -base64 32)" PHONEPROOF_API_KEY="$(openssl rand -base64 32)"`. */
export const settings = {
  secret: required("PHONEPROOF_SECRET"),
  customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f",
  apiKey: required("PHONEPROOF_API_KEY"),
  port: Number(process.env.PORT ?? 3000),
};

/** Prints how to try the app. */
export function invite(port: number): void {
  console.log(`listening on http://127.0.0.1:${port}

curl http://127.0.0.1:${port}/v1/authentication -H 'x-api-key: ${settings.apiKey}' -H 'content-type: application/json' \\
  -d '{"customer_uuid":"${settings.customer_uuid}","phone_number":"+33612345678"}'
`);
}
