import { createHmac } from "node:crypto";
import { sha256Hex } from "./kit/signature.js";

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/**
 * Returns the headers that sign a POST to the root of an AWS endpoint ("Create a signed AWS API request",
 * docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
 *
 * @param now Milliseconds since the epoch; AWS rejects a time more than five minutes off its own.
 */
export function signV4(
  request: { readonly host: string; readonly headers: Readonly<Record<string, string>>; readonly body: string },
  scope: { readonly region: string; readonly service: string },
  credentials: AwsCredentials,
  now: number,
): Record<string, string> {
  const time = new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, "");
  const day = time.slice(0, 8);
  const headers: Record<string, string> = {
    ...request.headers,
    "x-amz-date": time,
    ...(credentials.sessionToken === undefined ? {} : { "x-amz-security-token": credentials.sessionToken }),
  };
  // `host` is signed here and set by fetch.
  const signed = Object.entries({ ...headers, host: request.host }).sort(([a], [b]) => (a < b ? -1 : 1));
  const names = signed.map(([name]) => name).join(";");
  const canonical = ["POST", "/", "", ...signed.map(([name, value]) => `${name}:${value.trim()}`), "", names, sha256Hex(request.body)].join("\n");
  const credentialScope = `${day}/${scope.region}/${scope.service}/aws4_request`;
  const content = ["AWS4-HMAC-SHA256", time, credentialScope, sha256Hex(canonical)].join("\n");
  const key = [day, scope.region, scope.service, "aws4_request"].reduce(hmac, Buffer.from(`AWS4${credentials.secretAccessKey}`));
  headers["authorization"] =
    `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${credentialScope}, SignedHeaders=${names}, Signature=${hmac(key, content).toString("hex")}`;
  return headers;
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
