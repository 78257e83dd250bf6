import type { Identity } from "../settings.js";

/** Quotes a text for a POSIX shell. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * A curl command for each route, to paste into a POSIX shell from top to bottom. The first stores the authentication's
 * UUID in `$AUTH`, which the next two use. The code in the third is wrong on purpose (`invalid`).
 */
export function curls(url: string, { customer_uuid, api_key }: Pick<Identity, "customer_uuid" | "api_key">) {
  const key = `-H ${shellQuoted(`x-api-key: ${api_key}`)}`;
  const post = (path: string, data: string) => `curl -sS -w '\\n' ${shellQuoted(`${url}${path}`)} ${key} -H 'content-type: application/json' -d ${data}`;
  const kept = `'"$AUTH"'`;
  return [
    {
      title: "Create: send a code",
      command: `ANSWER=$(${post("/v1/authentication", shellQuoted(JSON.stringify({ customer_uuid, phone_number: "+14155552671" })))}); printf '%s\\n' "$ANSWER"; AUTH=$(printf '%s' "$ANSWER" | sed -n 's/.*"authentication_uuid":"\\([^"]*\\)".*/\\1/p')`,
    },
    { title: "Retry: send another one", command: post("/v1/retry", `'{"customer_uuid":"${customer_uuid}","authentication_uuid":"${kept}"}'`) },
    {
      title: "Check: enter the code from the message",
      command: post("/v1/check", `'{"customer_uuid":"${customer_uuid}","authentication_uuid":"${kept}","check_code":"000000"}'`),
    },
    {
      title: "Lookup",
      command: `curl -sS -w '\\n' ${shellQuoted(`${url}/v1/lookup/+14155552671`)} ${key} -H ${shellQuoted(`customer-uuid: ${customer_uuid}`)}`,
    },
  ];
}
