import { expect, it, vi } from "vitest";
import type { Fetch } from "../../adapters/kit/transport.js";
import { type AwsTextMessage, awsReceipts, awsSender } from "../../adapters/sms/aws.js";
import { signV4 } from "../../adapters/sms/sigv4.js";
import { awsCarrier, awsCredentials, awsOptions } from "../support/carriers/aws.js";
import { aMessage, aReceipt, inTime, reference } from "../support/carriers/messages.js";
import { certificateUrl, signSns, topicArn } from "../support/carriers/receipts.js";
import { startCarrier } from "../support/carriers/server.js";
import { snsCertificate } from "../support/carriers/sns-key.js";

const now = Date.UTC(2027, 0, 1);

it("sigv4: gives the signature in AWS's own example", () => {
  // "post-vanilla" of the Signature Version 4 test suite.
  const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
  const headers = signV4(
    { host: "example.amazonaws.com", headers: {}, body: "" },
    { region: "us-east-1", service: "service" },
    credentials,
    Date.UTC(2015, 7, 30, 12, 36),
  );
  expect(headers["authorization"]).toBe(
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
  );
});

it("requests credentials for each message, and does not send without them", async () => {
  const carrier = await startCarrier(awsCarrier, "accepts");
  let asked = 0;
  const sender = awsSender({
    ...awsOptions,
    baseUrl: carrier.url,
    credentials: async () => {
      asked += 1;
      if (asked === 2) throw new Error("no credentials just now");
      return asked === 3 ? ({} as typeof awsCredentials) : awsCredentials;
    },
  });
  const outcomes = [
    await sender.send(aMessage(), inTime()),
    await sender.send(aMessage(), inTime()),
    await sender.send(aMessage(), inTime()),
    await sender.send(aMessage(), inTime()),
  ];
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(["accepted", "rejected", "rejected", "accepted"]);
  expect(carrier.requests).toHaveLength(2);
  await carrier.close();
});

class Command {
  constructor(readonly input: AwsTextMessage) {}
}

/** A client with the interface of the SDK's, whose responses the test chooses. */
function clientThat(answer: (command: Command, options: { abortSignal: AbortSignal }) => Promise<unknown>) {
  const seen: AwsTextMessage[] = [];
  const send = (command: Command, options: { abortSignal: AbortSignal }) => {
    seen.push(command.input);
    return answer(command, options);
  };
  return {
    seen,
    sender: awsSender({ client: { send }, command: Command, from: { GB: "ACME", US: "+15005550006" }, configurationSet: "otp", extra: { TimeToLive: 600 } }),
  };
}

const fault = (name: string, $fault: "client" | "server", httpStatusCode: number) =>
  Object.assign(new Error(`${name} +14155552671 493817`), { name, $fault, $metadata: { httpStatusCode } });

it("passes SendTextMessage's input to the SDK's client, and nothing without a sender or after an abort", async () => {
  const { sender, seen } = clientThat(async () => ({ MessageId: "m1" }));
  expect(await sender.send(aMessage({ receipt_reference: reference }), inTime())).toEqual({ outcome: "accepted", messageId: "m1" });
  expect(seen).toEqual([
    {
      DestinationPhoneNumber: "+14155552671",
      MessageBody: "Your code is 493817.",
      MessageType: "TRANSACTIONAL",
      OriginationIdentity: "+15005550006",
      ConfigurationSetName: "otp",
      TimeToLive: 600,
      Context: { phoneproof: reference },
    },
  ]);
  expect(await sender.send(aMessage({ country: "FR" }), inTime())).toMatchObject({
    outcome: "rejected",
    reason: "not sent: option from names no sender for FR",
  });
  expect(await sender.send(aMessage(), { signal: AbortSignal.abort(), deadline: 0, timeLeft: 0 })).toMatchObject({ outcome: "rejected" });
  expect(seen).toHaveLength(1);
});

it.each<[string, unknown, string, string]>([
  ["a validation", fault("ValidationException", "client", 400), "rejected", "ValidationException"],
  ["throttling", fault("ThrottlingException", "client", 400), "rejected", "ThrottlingException"],
  ["a client's fault without a status", Object.assign(new Error("x"), { name: "ValidationException", $fault: "client" }), "rejected", "ValidationException"],
  // What the SDK throws for a response without a type that it knows: `$fault` is "client" at any status.
  ["a page of status 503", fault("503", "client", 503), "unknown", "503"],
  ["a page of status 408", fault("408", "client", 408), "unknown", "408"],
  ["a page of status 403", fault("403", "client", 403), "rejected", "403"],
  [
    "a conflict, by its reason",
    Object.assign(fault("ConflictException", "client", 400), { Reason: "DESTINATION_PHONE_NUMBER_OPTED_OUT" }),
    "rejected",
    "ConflictException.DESTINATION_PHONE_NUMBER_OPTED_OUT",
  ],
  ["an internal error", fault("InternalServerException", "server", 500), "unknown", "InternalServerException"],
  ["no credentials", Object.assign(new Error("x"), { name: "CredentialsProviderError" }), "rejected", "CredentialsProviderError: x"],
  [
    "no connection",
    Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", syscall: "connect", $metadata: { attempts: 1 } }),
    "rejected",
    "not sent: no connection, code ECONNREFUSED",
  ],
  ["a cut connection", Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }), "unknown", "socket hang up"],
  ["that its region is missing", new Error("Region is missing"), "unknown", "Region is missing"],
  ["a time-out", Object.assign(new Error("x"), { name: "TimeoutError" }), "unknown", "TimeoutError: x"],
  ["nothing", undefined, "unknown", "an error without a name"],
])("an error of the SDK's client gives the right outcome: %s", async (_, error, outcome, reason) => {
  const { sender } = clientThat(() => Promise.reject(error));
  expect(await sender.send(aMessage(), inTime())).toEqual({ outcome, reason });
});

it("the SDK's client gets the abort signal, and an abort gives `unknown`", async () => {
  const abort = new AbortController();
  const { sender } = clientThat(
    (_, { abortSignal }) =>
      new Promise((_, reject) => abortSignal.addEventListener("abort", () => reject(Object.assign(new Error("x"), { name: "AbortError" })))),
  );
  const sending = sender.send(aMessage(), { signal: abort.signal, deadline: 0, timeLeft: 0 });
  abort.abort();
  expect(await sending).toEqual({ outcome: "unknown", reason: "no response in time" });
});

it("a response of the SDK's client without an id gives `unknown`", async () => {
  const { sender } = clientThat(async () => "garbage");
  expect(await sender.send(aMessage(), inTime())).toMatchObject({ outcome: "unknown" });
});

/** A stand-in for the addresses of SNS. */
function sns(answers: (url: string) => Response | Promise<Response>) {
  const seen: string[] = [];
  const fetch: Fetch = async (url, init) => {
    seen.push(url);
    expect(init).toMatchObject({ method: "GET", redirect: "manual" });
    return answers(url);
  };
  return { seen, source: awsReceipts({ topicArn, fetch }) };
}

const event = JSON.stringify({ eventType: "TEXT_DELIVERED", messageId: "m1" });
const delivered = { receipts: [{ messageId: "m1", status: "delivered" }] };

it("verifies signatures of both versions, with and without a subject, and fetches the certificate once", async () => {
  const { seen, source } = sns(() => new Response(snsCertificate));
  const fields = [{ SignatureVersion: "1" }, { SignatureVersion: "2" }, { Subject: "sms" }];
  const readings = await Promise.all(fields.map((field) => source.read(signSns({ Message: event, ...field }, { at: now }), now)));
  expect(readings).toEqual([delivered, delivered, delivered]);
  expect(seen).toEqual([certificateUrl]);
});

it.each([
  ["another topic, well signed by SNS", { TopicArn: "arn:aws:sns:eu-west-1:999999999999:sms-events" }],
  ["a certificate from elsewhere", { SigningCertURL: "https://sns.eu-west-1.amazonaws.com.evil.example/SimpleNotificationService-0123.pem" }],
  ["a certificate from a bucket", { SigningCertURL: "https://s3.eu-west-1.amazonaws.com/SimpleNotificationService-0123.pem" }],
  ["a certificate from another region", { SigningCertURL: "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123.pem" }],
  ["a certificate by http", { SigningCertURL: "http://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123.pem" }],
  ["a certificate from another port", { SigningCertURL: "https://sns.eu-west-1.amazonaws.com:8443/SimpleNotificationService-0123.pem" }],
  ["a certificate with a name before the host", { SigningCertURL: "https://sns.eu-west-1.amazonaws.com@evil.example/SimpleNotificationService-0123.pem" }],
  ["a certificate at another path", { SigningCertURL: "https://sns.eu-west-1.amazonaws.com/?x=SimpleNotificationService-0123.pem" }],
  ["a certificate with a query (E3)", { SigningCertURL: "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123.pem?a=1" }],
  ["a certificate with an empty query (E3)", { SigningCertURL: "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123.pem?" }],
  ["a certificate with a fragment (E3)", { SigningCertURL: "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123.pem#a" }],
  ["a certificate that is no URL", { SigningCertURL: "SimpleNotificationService.pem" }],
])("rejects %s without fetching anything", async (_, fields) => {
  const { seen, source } = sns(() => new Response(snsCertificate));
  expect(await source.read(signSns({ Message: event, ...fields }, { at: now }), now)).toMatchObject({ refused: "signature" });
  expect(seen).toEqual([]);
});

it("rejects a certificate that is expired, not yet valid, forbidden or missing", async () => {
  const { source } = sns(() => new Response(snsCertificate));
  for (const then of [Date.UTC(2019, 0, 1), Date.UTC(2200, 0, 1)])
    expect(await source.read(signSns({ Message: event }, { at: then }), then)).toMatchObject({ refused: "signature" });
  for (const status of [403, 404, 410]) {
    const { source } = sns(() => new Response(snsCertificate, { status }));
    expect(await source.read(signSns({ Message: event }, { at: now }), now)).toMatchObject({ refused: "signature" });
  }
});

it("asks SNS to retry while its certificate cannot be fetched or read, and fetches it no more than once in five seconds", async () => {
  const answers = [
    () => Promise.reject(new TypeError("fetch failed")),
    () => new Response(null, { status: 503 }),
    () => new Response(null, { status: 429 }),
    () => new Response(null, { status: 302, headers: { location: "https://evil.example" } }),
    () => new Response("<html>maintenance</html>"),
    () => new Response(snsCertificate),
  ];
  const { seen, source } = sns(() => answers[seen.length - 1]!());
  const request = signSns({ Message: event }, { at: now });
  const again = { refused: "unavailable" };
  for (const seconds of [0, 0, 4.999, 5, 5, 9.999, 10, 15, 20, 24.999]) expect(await source.read(request, now + seconds * 1000)).toMatchObject(again);
  expect(seen).toHaveLength(5);
  expect(await source.read(request, now + 25_000)).toEqual(delivered);
  expect(seen).toHaveLength(6);
});

it("50 forged old posts cause no fetch, and 50 forged new ones cause one fetch each, five at a time and not repeated at once", async () => {
  let [under, most] = [0, 0];
  const { seen, source } = sns(async () => {
    most = Math.max(most, ++under);
    await new Promise((resolve) => setImmediate(resolve));
    under--;
    return new Response("no such certificate", { status: 404 });
  });
  const post = (i: number, at: number) =>
    source.read(
      signSns({ Message: event, SigningCertURL: `https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-${i}.pem` }, { at, secret: "another" }),
      now,
    );
  const old = await Promise.all(Array.from({ length: 50 }, (_, i) => post(i, now - 3_600_001)));
  expect(new Set(old.map((reading) => JSON.stringify(reading))).size).toBe(1);
  expect(old[0]).toMatchObject({ refused: "expired" });
  expect(seen).toEqual([]);
  await Promise.all(Array.from({ length: 50 }, (_, i) => post(i, now)));
  for (let i = 0; i < 50; i += 1) await post(i, now);
  expect([seen.length, most]).toEqual([50, 5]);
});

it("made-up certificate names do not block the genuine one: 2,000 one after the other, then 90 that hang", async () => {
  const hung: (() => void)[] = [];
  const { source } = sns(async (url) => {
    if (url === certificateUrl) return new Response(snsCertificate);
    if (url.includes("hangs")) await new Promise<void>((resolve) => hung.push(resolve));
    return new Response(null, { status: 404 });
  });
  const post = (name: string) =>
    source.read(
      signSns({ Message: event, SigningCertURL: `https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-${name}.pem` }, { at: now, secret: "another" }),
      now,
    );
  for (let i = 0; i < 2_000; i++) await post(`one-${i}`);
  const many = Array.from({ length: 90 }, (_, i) => post(`hangs-${i}`));
  const genuine = source.read(signSns({ Message: event }, { at: now }), now);
  const more = setInterval(() => {
    for (const resolve of hung.splice(0)) resolve();
  }, 1);
  expect(await genuine).toEqual(delivered);
  await Promise.all(many);
  clearInterval(more);
});

it("made-up names ten times as fast as the fetches do not block the genuine one: one of SNS's fifty attempts succeeds", async () => {
  let state = 1;
  const random = vi.spyOn(Math, "random").mockImplementation(() => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  });
  const waiting: (() => void)[] = [];
  const { source } = sns(async (url) => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return url === certificateUrl ? new Response(snsCertificate) : new Response(null, { status: 404 });
  });
  let names = 0;
  const flood = () => {
    const SigningCertURL = `https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-${names++}.pem`;
    void source.read(signSns({ Message: event, SigningCertURL }, { at: now, secret: "another" }), now);
  };
  const tries: unknown[] = [];
  const genuine = () => void source.read(signSns({ Message: event }, { at: now }), now).then((reading) => tries.push(reading));
  for (let round = 0; round < 500 && !tries.some((reading) => "receipts" in (reading as object) && !("reply" in (reading as object))); round++) {
    for (let i = 0; i < 50; i++) flood();
    if (round % 10 === 0) genuine();
    for (const answer of waiting.splice(0)) answer();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(tries).toContainEqual(delivered);
  random.mockRestore();
});

it("a made-up certificate name in many waiting envelopes is fetched once", async () => {
  const hung: (() => void)[] = [];
  const { seen, source } = sns(async () => {
    await new Promise<void>((resolve) => hung.push(resolve));
    return new Response(null, { status: 404 });
  });
  const post = (name: string) => {
    const SigningCertURL = `https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-${name}.pem`;
    return source.read(signSns({ Message: event, SigningCertURL }, { at: now, secret: "another" }), now);
  };
  const all = [...Array.from({ length: 5 }, (_, i) => post(`${i}`)), ...Array.from({ length: 50 }, () => post("one"))];
  const more = setInterval(() => {
    for (const resolve of hung.splice(0)) resolve();
  }, 1);
  await Promise.all(all);
  clearInterval(more);
  expect(seen).toHaveLength(6);
});

it("sends and receives events in the European Sovereign Cloud, which has its own domain", async () => {
  const asked: string[] = [];
  const fetch: Fetch = async (url) => {
    asked.push(url);
    return new Response('{"MessageId":"m1"}');
  };
  await awsSender({ ...awsOptions, region: "eusc-de-east-1", fetch }).send(aMessage(), inTime());
  const arn = "arn:aws-eusc:sns:eusc-de-east-1:123456789012:sms-events";
  const SigningCertURL = "https://sns.eusc-de-east-1.amazonaws.eu/SimpleNotificationService-0123.pem";
  await awsReceipts({ topicArn: arn, fetch }).read(signSns({ Message: event, TopicArn: arn, SigningCertURL }, { at: now }), now);
  expect(asked).toEqual(["https://sms-voice.eusc-de-east-1.amazonaws.eu/", SigningCertURL]);
});

it("caches a bounded number of certificates", async () => {
  const { seen, source } = sns(() => new Response(snsCertificate));
  const read = (i: number) =>
    source.read(signSns({ Message: event, SigningCertURL: `https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-${i}.pem` }, { at: now }), now);
  for (let i = 0; i < 20; i += 1) await read(i);
  await read(19);
  expect(seen).toHaveLength(20);
  await read(0);
  expect(seen).toHaveLength(21);
});

const confirmation = (subscribeUrl: string) => ({
  Type: "SubscriptionConfirmation",
  Message: "You have chosen to subscribe",
  Token: "2336412f37",
  SubscribeURL: subscribeUrl,
});
const confirmUrl = `https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${topicArn}&Token=2336412f37`;

it("confirms a subscription by its URL once the message is verified", async () => {
  const { seen, source } = sns((url) => new Response(url === certificateUrl ? snsCertificate : "<ConfirmSubscriptionResponse/>"));
  expect(await source.read(signSns(confirmation(confirmUrl), { at: now }), now)).toEqual({ receipts: [] });
  expect(seen).toEqual([certificateUrl, confirmUrl]);
});

it.each([
  ["elsewhere", "https://evil.example/?Action=ConfirmSubscription"],
  ["inside the network", `http://169.254.169.254/?Action=ConfirmSubscription&TopicArn=${topicArn}`],
  ["another region", confirmUrl.replace("sns.eu-west-1", "sns.us-east-1")],
  ["another action", confirmUrl.replace("ConfirmSubscription", "Publish")],
  ["another topic", confirmUrl.replace("123456789012", "999999999999")],
])("does not fetch an invalid SubscribeURL: %s", async (_, url) => {
  const { seen, source } = sns(() => new Response(snsCertificate));
  expect(await source.read(signSns(confirmation(url), { at: now }), now)).toMatchObject({ refused: "signature" });
  expect(seen).toEqual([certificateUrl]);
});

it("does not confirm a forged or old subscription, and asks SNS to retry when the confirmation fails", async () => {
  const { seen, source } = sns((url) => (url === certificateUrl ? new Response(snsCertificate) : new Response(null, { status: 500 })));
  expect(await source.read(signSns(confirmation(confirmUrl), { at: now, secret: "another" }), now)).toMatchObject({ refused: "signature" });
  expect(await source.read(signSns(confirmation(confirmUrl), { at: now - 3_600_001 }), now)).toMatchObject({ refused: "expired" });
  expect(seen).toEqual([certificateUrl]);
  expect(await source.read(signSns(confirmation(confirmUrl), { at: now }), now)).toMatchObject({
    refused: "unavailable",
    reason: "SubscribeURL returned status 500",
  });
});

it("accepts the end of a subscription, and rejects raw message delivery with the fix", async () => {
  const { source } = sns(() => new Response(snsCertificate));
  expect(await source.read(signSns({ ...confirmation(confirmUrl), Type: "UnsubscribeConfirmation" }, { at: now }), now)).toEqual({ receipts: [] });
  expect(await source.read(aReceipt({ body: event }), now)).toEqual({ refused: "malformed", reason: expect.stringContaining("raw message delivery") });
});
