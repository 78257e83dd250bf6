import { AwsV4Signer } from "aws4fetch";
import { awsSender } from "../../../adapters/sms/aws.js";
import { type CarrierScript, json, type SeenRequest } from "./server.js";

export const awsCredentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", sessionToken: "session/token==" };
export const awsOptions = { region: "eu-west-1", credentials: awsCredentials, from: "ACME", configurationSet: "otp" };

const problem = (status: number, type: string, fields: Record<string, string> = {}) =>
  json(status, { __type: `com.amazonaws.pinpointsmsvoicev2#${type}`, Message: "…", ...fields });

/** Signs the request again with npm's aws4fetch, an independent implementation. */
async function isSigned({ url, headers, body }: SeenRequest): Promise<boolean> {
  const names = /SignedHeaders=([^,]+)/.exec(headers["authorization"] ?? "")?.[1]?.split(";") ?? [];
  for (const name of ["host", "x-amz-date", "x-amz-target", "x-amz-security-token"]) if (!names.includes(name)) return false;
  const signed = names
    .filter((name) => name !== "host" && name !== "x-amz-date" && name !== "x-amz-security-token")
    .map((name): [string, string] => [name, headers[name] ?? ""]);
  const signer = new AwsV4Signer({
    ...awsCredentials,
    url: url.href,
    method: "POST",
    service: "sms-voice",
    region: "eu-west-1",
    headers: signed,
    body,
    datetime: headers["x-amz-date"] ?? "",
    allHeaders: true,
  });
  return (await signer.sign()).headers.get("authorization") === headers["authorization"];
}

/**
 * SendTextMessage in the JSON 1.0 protocol:
 * docs.aws.amazon.com/pinpoint/latest/apireference_smsvoicev2/API_SendTextMessage.html.
 */
export const awsCarrier: CarrierScript = {
  name: "aws",
  async take(request, index) {
    const { method, url, headers, body } = request;
    if (!(await isSigned(request)))
      return {
        reply: json(400, { __type: "InvalidSignatureException", message: "The request signature we calculated does not match the signature you provided." }),
      };
    if (
      method !== "POST" ||
      url.pathname !== "/" ||
      headers["x-amz-target"] !== "PinpointSMSVoiceV2.SendTextMessage" ||
      headers["content-type"] !== "application/x-amz-json-1.0"
    ) {
      return { reply: json(400, { __type: "UnknownOperationException" }) };
    }
    const asked = JSON.parse(body) as Record<string, string> & { Context?: Record<string, string> };
    if (!/^\+[1-9]\d{6,14}$/.test(asked["DestinationPhoneNumber"] ?? "") || !asked["MessageBody"] || asked["MessageType"] !== "TRANSACTIONAL")
      return { reply: problem(400, "ValidationException") };
    return {
      message: {
        to: asked["DestinationPhoneNumber"] ?? "",
        text: asked["MessageBody"],
        from: asked["OriginationIdentity"],
        reference: `${asked.Context?.["phoneproof"]} ${asked["ConfigurationSetName"]}`,
      },
      reply: json(200, { MessageId: `7d1f5c1e-0000-4000-8000-${String(index).padStart(12, "0")}` }),
    };
  },
  refusal: problem(400, "ValidationException", { Reason: "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION" }),
  throttled: problem(400, "ThrottlingException"),
  failure: problem(500, "InternalServerException"),
  sender: (baseUrl) => awsSender({ ...awsOptions, baseUrl }),
};
