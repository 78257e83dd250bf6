import { createHmac, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { CallEnds, type Callee, elementsOf, Line, type Listened, parseXml, textOf, type XmlNode } from "./callee.js";
import { type Asked, formOf, type Heard, type Hook, type Network, type Reply, startVendor, type Vendor } from "./server.js";

export const twilioAccount = { accountSid: `AC${"5".repeat(32)}`, authToken: "auth-token-of-the-tests-of-calls" };
export const contentSids = { en: `HX${"a".repeat(32)}`, fr: `HX${"b".repeat(32)}` };

/** A message or a call that Twilio accepted. */
export interface Taken {
  readonly sid: string;
  readonly form: URLSearchParams;
}

export interface Twilio extends Vendor {
  readonly messages: Taken[];
  readonly calls: Taken[];
  /** The error of requests for a number. */
  readonly errors: Map<string, readonly [status: number, code: number]>;
}

export const twilioError = (status: number, code: number, message = "Bad request"): Reply => ({
  status,
  body: { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status },
});

/** Values of `language` in Say, from the vendor's Node.js library. */
const languages = new Set(
  (
    "af-ZA am-ET ar-AE ar-XA arb bg-BG bn-IN ca-ES cmn-CN cmn-TW cs-CZ cy-GB da-DK de-AT de-DE el-GR en-AU en-CA en-GB en-GB-WLS en-IE en-IN en-NZ en-US en-ZA " +
    "es-ES es-MX es-US fi-FI fil-PH fr-CA fr-FR fr-BE gu-IN he-IL hi-IN hu-HU id-ID is-IS it-IT ja-JP kn-IN ko-KR lv-LV ml-IN mr-IN ms-MY nb-NO nl-BE nl-NL " +
    "pa-IN pl-PL pt-BR pt-PT ro-RO ru-RU sk-SK sr-RS sv-SE ta-IN te-IN th-TH tr-TR uk-UA vi-VN yue-HK zh-CN zh-HK zh-TW"
  ).split(" "),
);

/** Values of `voice` in Say, from the same library. */
const voices = new Set(
  [
    .../SayVoice = ([^;]*);/
      .exec(readFileSync(createRequire(import.meta.url).resolve("twilio/lib/twiml/VoiceResponse.d.ts"), "utf8"))![1]!
      .matchAll(/"([^"]+)"/g),
  ].map(([, voice]) => voice),
);

const sid = (prefix: string) => prefix + randomBytes(16).toString("hex");
const isUrl = (text: string) => /^https?:\/\/[^\s]+$/.test(text) && URL.canParse(text);

function takeMessage(form: URLSearchParams): Reply | undefined {
  const allowed = ["To", "From", "MessagingServiceSid", "ContentSid", "ContentVariables", "StatusCallback", "ValidityPeriod", "ProvideFeedback"];
  if ([...form.keys()].some((name) => !allowed.includes(name))) return twilioError(400, 20001, `Unknown: ${[...form.keys()]}`);
  if (!/^whatsapp:\+[1-9]\d{6,14}$/.test(form.get("To") ?? "")) return twilioError(400, 21211, "Invalid 'To' Phone Number");
  if (!/^whatsapp:\+[1-9]\d{6,14}$/.test(form.get("From") ?? "") && form.get("MessagingServiceSid") === null)
    return twilioError(400, 21910, "Invalid 'From' and 'To' pair. 'From' and 'To' should be of the same channel");
  if (!Object.values(contentSids).includes(form.get("ContentSid") ?? "")) return twilioError(400, 21655, "The ContentSid is invalid");
  try {
    const variables = JSON.parse(form.get("ContentVariables") ?? "") as Record<string, unknown>;
    if (Object.keys(variables).join() !== "1" || !/^\d{1,15}$/.test(String(variables["1"])) || typeof variables["1"] !== "string") throw new Error();
  } catch {
    return twilioError(400, 21656, "The ContentVariables Parameter is invalid");
  }
  return undefined;
}

function takeCall(form: URLSearchParams): Reply | undefined {
  const allowed = ["To", "From", "Twiml", "Timeout", "TimeLimit", "StatusCallback", "StatusCallbackEvent", "StatusCallbackMethod", "MachineDetection"];
  const more = [...form.keys()].find((name) => !allowed.includes(name) && !/^(MachineDetection|AsyncAmd)/.test(name));
  if (more !== undefined) return twilioError(400, 20001, `Unknown: ${more}`);
  if (!/^\+[1-9]\d{6,14}$/.test(form.get("To") ?? "")) return twilioError(400, 21211, "Invalid 'To' Phone Number");
  if (!/^\+[1-9]\d{6,14}$/.test(form.get("From") ?? "")) return twilioError(400, 21212, "Invalid 'From' Phone Number");
  const twiml = form.get("Twiml") ?? "";
  if (twiml === "" || twiml.length > 4_000) return twilioError(400, 21626, "Twiml is missing or longer than 4000 characters");
  for (const name of ["Timeout", "TimeLimit"])
    if (form.has(name) && !(/^\d+$/.test(form.get(name)!) && Number(form.get(name)) >= 1 && Number(form.get(name)) <= (name === "Timeout" ? 600 : 14_400)))
      return twilioError(400, 21220, `Invalid ${name}`);
  if (form.has("StatusCallback") && !isUrl(form.get("StatusCallback")!)) return twilioError(400, 21609, "Invalid 'StatusCallback' URL");
  if (form.getAll("StatusCallbackEvent").some((event) => !["initiated", "ringing", "answered", "completed"].includes(event)))
    return twilioError(400, 21626, "Invalid StatusCallbackEvents");
  if (form.has("MachineDetection") && !["Enable", "DetectMessageEnd"].includes(form.get("MachineDetection")!))
    return twilioError(400, 20001, "MachineDetection");
  return undefined;
}

/** Messages.json for WhatsApp, and Calls.json. */
export async function startTwilio(host?: string): Promise<Twilio> {
  const [messages, calls]: [Taken[], Taken[]] = [[], []];
  const errors = new Map<string, readonly [number, number]>();
  const { accountSid, authToken } = twilioAccount;
  const answer = (asked: Asked): Reply => {
    if (asked.headers.authorization !== `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString("base64")}`) return twilioError(401, 20003, "Authenticate");
    const kind = /^\/2010-04-01\/Accounts\/AC5{32}\/(Messages|Calls)\.json$/.exec(asked.path)?.[1];
    if (asked.method !== "POST" || kind === undefined) return twilioError(404, 20404, "The requested resource was not found");
    const form = formOf(asked) ?? new URLSearchParams();
    const error = errors.get((form.get("To") ?? "").replace("whatsapp:", ""));
    if (error !== undefined) return twilioError(error[0], error[1], `Cannot reach ${form.get("To")}: ${asked.body}`);
    const wrong = kind === "Calls" ? takeCall(form) : takeMessage(form);
    if (wrong !== undefined) return wrong;
    const taken = { sid: sid(kind === "Calls" ? "CA" : "SM"), form };
    (kind === "Calls" ? calls : messages).push(taken);
    return {
      status: 201,
      body: { sid: taken.sid, status: "queued", to: form.get("To"), from: form.get("From"), account_sid: accountSid, price: null, error_code: null },
    };
  };
  return Object.assign(await startVendor(answer, host), { messages, calls, errors });
}

/** `X-Twilio-Signature`: HMAC-SHA-1 over the URL and the sorted fields, in base64. */
export function signTwilio(url: string, fields: Readonly<Record<string, string>>, token: string = twilioAccount.authToken): string {
  const text = Object.keys(fields)
    .sort()
    .reduce((all, name) => all + name + fields[name], url);
  return createHmac("sha1", token).update(text).digest("base64");
}

export function twilioPost(url: string, fields: Readonly<Record<string, string>>, token?: string): Hook & { readonly body: string } {
  return {
    url,
    headers: { "content-type": "application/x-www-form-urlencoded; charset=UTF-8", "x-twilio-signature": signTwilio(url, fields, token) },
    body: new URLSearchParams(fields).toString(),
  };
}

export const messageStatus = ({ sid, form }: Taken, status: string, more: Record<string, string> = {}): Hook & { readonly body: string } =>
  twilioPost(form.get("StatusCallback") ?? "no StatusCallback", {
    AccountSid: twilioAccount.accountSid,
    ApiVersion: "2010-04-01",
    ChannelPrefix: "whatsapp",
    From: form.get("From") ?? "",
    To: form.get("To") ?? "",
    MessageSid: sid,
    SmsSid: sid,
    MessageStatus: status,
    SmsStatus: status,
    ...more,
  });

const about = ({ sid, form }: Taken, status: string) => ({
  AccountSid: twilioAccount.accountSid,
  ApiVersion: "2010-04-01",
  CallSid: sid,
  CallStatus: status,
  Called: form.get("To") ?? "",
  Caller: form.get("From") ?? "",
  Direction: "outbound-api",
  From: form.get("From") ?? "",
  To: form.get("To") ?? "",
});

/** One status callback of a call, as if the call had requested it. */
export const callStatus = (call: Taken, status: string, more: Record<string, string> = {}): Hook & { readonly body: string } =>
  twilioPost(call.form.get("StatusCallback") ?? "no StatusCallback", {
    ...about(call, status),
    Timestamp: "Mon, 02 Nov 2026 12:00:00 +0000",
    CallbackSource: "call-progress-events",
    SequenceNumber: "3",
    ...more,
  });

/** A key that is pressed at a Gather. */
export const keyPress = (call: Taken, action: string, Digits: string, token?: string): Hook & { readonly body: string } =>
  twilioPost(action, { ...about(call, "in-progress"), msg: "Gather End", ...(Digits !== "none" && { Digits }) }, token);

export const actionOf = (call: Taken): string | undefined => gathers(parseXml(call.form.get("Twiml") ?? ""))[0]?.attributes["action"];
const gathers = (node: XmlNode): XmlNode[] => [
  ...(node.name === "Gather" ? [node] : []),
  ...node.children.flatMap((child) => (typeof child === "string" ? [] : gathers(child))),
];

/** Posts the requested events of a call that ends without an answer. */
export async function unanswered(call: Taken, status: "busy" | "no-answer" | "failed" | "canceled", network: Network): Promise<number[]> {
  const answers: number[] = [];
  for (const [event, at] of [
    ["initiated", "initiated"],
    ["ringing", "ringing"],
    ["completed", status],
  ] as const)
    if (eventsOf(call).includes(event))
      answers.push((await network(callStatus(call, at, event === "completed" ? { CallDuration: "0", Duration: "0" } : {}))).status);
  return answers;
}

const eventsOf = ({ form }: Taken): string[] => {
  if (!form.has("StatusCallback")) return [];
  const asked = form.getAll("StatusCallbackEvent");
  return asked.length === 0 ? ["completed"] : asked;
};

/** Plays a call to a callee, as Twilio does, and posts its events. */
export async function playCall(call: Taken, callee: Callee, network?: Network): Promise<Listened> {
  const { form } = call;
  const answers: number[] = [];
  const tell = async (hook: Hook): Promise<Heard> => {
    if (network === undefined) throw new Error(`no network, but ${hook.url}`);
    const answer = await network(hook);
    answers.push(answer.status);
    return answer;
  };
  const event = async (name: string, status: string, more: Record<string, string> = {}) => {
    if (eventsOf(call).includes(name)) await tell(callStatus(call, status, more));
  };
  const detects = form.has("MachineDetection") && form.get("AsyncAmd") !== "true";
  const answeredBy = !detects ? undefined : callee.kind === "person" ? "human" : callee.recognised === false ? "unknown" : "machine_start";
  const line = new Line(callee, Number(form.get("TimeLimit") ?? 14_400));
  await event("initiated", "initiated");
  await event("ringing", "ringing");
  await event("answered", "in-progress", answeredBy === undefined ? {} : { AnsweredBy: answeredBy });
  let keys = callee.presses;
  const speak = (node: XmlNode): void => {
    const { language = "en-US", loop = "1", voice = "man" } = node.attributes;
    if (node.name === "Pause") {
      line.wait(Number(node.attributes["length"] ?? 1));
      return;
    }
    if (node.name !== "Say") throw new Error(`<${node.name}> is no speech`);
    if (!languages.has(language)) throw new Error(`Say in ${language}`);
    if (!voices.has(voice) || (/^Google\./.test(voice) && !voice.startsWith(`Google.${language}-`))) throw new Error(`Say in ${language} by ${voice}`);
    for (let i = 0; i < Number(loop); i++) line.say(textOf(node), language);
  };
  /** Returns the document to continue with. */
  const run = async (document: XmlNode): Promise<XmlNode | undefined> => {
    if (document.name !== "Response") throw new Error(`<${document.name}> is no document`);
    for (const verb of elementsOf(document)) {
      if (verb.name === "Hangup") return undefined;
      if (verb.name !== "Gather") {
        speak(verb);
        continue;
      }
      const { action, method = "POST", timeout = "5", numDigits, actionOnEmptyResult, finishOnKey = "#", input = "dtmf" } = verb.attributes;
      if (action === undefined || !isUrl(action) || method !== "POST" || !input.includes("dtmf")) throw new Error("a Gather that asks nobody");
      // A key interrupts the speech; `finishOnKey` is not a digit.
      const pressed = keys === undefined || keys === finishOnKey ? undefined : keys;
      const first = elementsOf(verb)[0];
      if (keys !== undefined && first?.name === "Say") line.heard.push({ text: textOf(first).slice(0, 10), language: first.attributes["language"] ?? "en-US" });
      if (keys !== undefined) line.wait(1);
      else {
        for (const prompt of elementsOf(verb)) speak(prompt);
        line.wait(Number(timeout));
      }
      keys = undefined;
      if (pressed === undefined && actionOnEmptyResult !== "true") continue;
      const digits = pressed === undefined ? "" : pressed.slice(0, Number(numDigits ?? pressed.length));
      const answer = await tell(keyPress(call, action, digits));
      if (answer.status !== 200) {
        line.say("We are sorry, an application error has occurred. Goodbye.", "en-US");
        return undefined;
      }
      if (!/^(text|application)\/xml\b/.test(answer.type)) throw new Error(`12300: Invalid Content-Type ${answer.type}`);
      return parseXml(answer.text);
    }
    return undefined;
  };
  try {
    for (let document: XmlNode | undefined = parseXml(form.get("Twiml") ?? ""); document !== undefined; ) document = await run(document);
  } catch (error) {
    if (!(error instanceof CallEnds)) throw error;
  }
  const seconds = Math.ceil(line.seconds);
  await event("completed", "completed", { CallDuration: String(seconds), Duration: "1", ...(answeredBy !== undefined && { AnsweredBy: answeredBy }) });
  return { heard: line.heard, seconds, answers };
}
