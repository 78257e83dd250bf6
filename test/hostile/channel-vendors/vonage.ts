import { createHash, createHmac, generateKeyPairSync, randomUUID, verify } from "node:crypto";
import { CallEnds, type Callee, Line, type Listened, parseXml, textOf } from "./callee.js";
import { readTemplate } from "./meta.js";
import { type Asked, type Hook, jsonOf, type Network, type Reply, startVendor, type Vendor } from "./server.js";

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
export const vonageAccount = {
  apiKey: "a1b2c3d4",
  apiSecret: "api-secret-of-the-tests",
  signatureSecret: "signature-secret-of-the-tests-0123456789",
  applicationId: "78d335fa-323d-0114-9c3d-d6f0d48968cf",
  privateKey: pair.privateKey.export({ type: "pkcs8", format: "pem" }) as string,
};
/** Another application's key. */
export const strangeKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" }) as string;

export interface VonageMessage {
  readonly message_uuid: string;
  readonly to: string;
  readonly code: string;
  readonly language: string;
  readonly client_ref: string | undefined;
  readonly webhook_url: string | undefined;
}

type Action = Readonly<Record<string, unknown>> & { readonly action?: string };
export interface VonageCall {
  readonly uuid: string;
  readonly to: string;
  readonly from: string;
  readonly ncco: readonly Action[];
  readonly event_url: string | undefined;
  readonly machine_detection: string | undefined;
  readonly ringing_timer: number | undefined;
  readonly length_timer: number | undefined;
}

export interface Vonage extends Vendor {
  readonly messages: VonageMessage[];
  readonly calls: VonageCall[];
  readonly errors: Map<string, Reply>;
}

export const problem = (status: number, title: string, detail = title): Reply => ({
  status,
  type: "application/problem+json",
  body: { type: `https://developer.vonage.com/api-errors#${title}`, title, detail, instance: randomUUID() },
});

const part = (text: string | undefined): Record<string, unknown> => JSON.parse(Buffer.from(text ?? "", "base64url").toString()) as Record<string, unknown>;

/** The application of a valid JSON Web Token: RS256, used once, and for at most a day. */
function applicationOf(authorization: string | undefined, used: Set<string>): string | undefined {
  try {
    const [head, body, signature] = (authorization ?? "").replace(/^Bearer /, "").split(".");
    const [{ alg }, { application_id, iat, exp, jti }] = [part(head), part(body)];
    const now = Date.now() / 1000;
    if (alg !== "RS256" || typeof jti !== "string" || used.has(jti) || typeof iat !== "number" || Math.abs(now - iat) > 300) return undefined;
    if (exp !== undefined && (typeof exp !== "number" || exp < now || exp - iat > 86_400)) return undefined;
    if (!verify("RSA-SHA256", Buffer.from(`${head}.${body}`), pair.publicKey, Buffer.from(signature ?? "", "base64url"))) return undefined;
    used.add(jti);
    return String(application_id);
  } catch {
    return undefined;
  }
}

/** Some of the text-to-speech languages of developer.vonage.com. */
const languages = new Set(
  "ar cmn-CN cmn-TW yue-CN da-DK de-DE en-AU en-GB en-IN en-US en-ZA es-ES es-MX es-US fr-CA fr-FR hi-IN id-ID it-IT ja-JP ko-KR nl-NL pl-PL pt-BR pt-PT ru-RU sv-SE tr-TR vi-VN".split(
    " ",
  ),
);

/** The reason why Vonage would not run an NCCO. */
function nccoError(ncco: unknown): string | undefined {
  if (!Array.isArray(ncco) || ncco.length === 0) return "ncco is no list";
  for (const action of ncco as Action[]) {
    if (action.action === "talk") {
      const { text, language = "en-US", loop = 1 } = action;
      if (typeof text !== "string" || text === "" || text.length > 1500) return "text";
      if (typeof language !== "string" || !languages.has(language)) return `language ${String(language)}`;
      if (typeof loop !== "number" || loop < 0) return "loop";
      if (text.startsWith("<")) {
        if (!text.startsWith("<speak>")) return "SSML without speak";
        parseXml(text);
      }
    } else if (action.action === "input") {
      const {
        type,
        eventUrl,
        eventMethod = "POST",
        dtmf,
      } = action as { type?: unknown; eventUrl?: unknown; eventMethod?: unknown; dtmf?: Record<string, unknown> };
      if (!Array.isArray(type) || type.join() !== "dtmf" || eventMethod !== "POST") return "input";
      if (!Array.isArray(eventUrl) || eventUrl.length !== 1 || !URL.canParse(String(eventUrl[0]))) return "eventUrl";
      if (dtmf?.["timeOut"] !== undefined && !(Number(dtmf["timeOut"]) >= 0 && Number(dtmf["timeOut"]) <= 10)) return "timeOut";
      if (dtmf?.["maxDigits"] !== undefined && !(Number(dtmf["maxDigits"]) >= 1 && Number(dtmf["maxDigits"]) <= 20)) return "maxDigits";
    } else return `action ${String(action.action)}`;
  }
  return undefined;
}

function takeMessage(body: Record<string, unknown>): Omit<VonageMessage, "message_uuid"> | string {
  const { from, to, channel, message_type, custom, client_ref, webhook_url, webhook_version = "v1", ttl, whatsapp, ...rest } = body;
  if (Object.keys(rest).length > 0) return `unknown: ${Object.keys(rest)}`;
  if (channel !== "whatsapp" || message_type !== "custom" || webhook_version !== "v1") return "channel, message_type, webhook_version";
  if (typeof from !== "string" || !/^[1-9]\d{6,14}$/.test(from)) return "from";
  if (typeof to !== "string" || !/^[1-9]\d{6,14}$/.test(to)) return "to";
  if (client_ref !== undefined && (typeof client_ref !== "string" || client_ref.length > 100)) return "client_ref";
  if (webhook_url !== undefined && !URL.canParse(String(webhook_url))) return "webhook_url";
  const { type, template, ...more } = (custom ?? {}) as Record<string, unknown>;
  if (type !== "template" || Object.keys(more).length > 0) return "custom";
  const read = readTemplate(template);
  return typeof read === "number" ? `custom.template: ${read}` : { to, ...read, client_ref: client_ref as string, webhook_url: webhook_url as string };
}

function takeCall(body: Record<string, unknown>): Omit<VonageCall, "uuid"> | string {
  const { to, from, ncco, event_url, event_method = "POST", machine_detection, ringing_timer, length_timer, ...rest } = body;
  if (Object.keys(rest).length > 0) return `unknown: ${Object.keys(rest)}`;
  const number = (one: unknown): string | undefined => {
    const { type, number: digits } = (one ?? {}) as Record<string, unknown>;
    return type === "phone" && typeof digits === "string" && /^[1-9]\d{6,14}$/.test(digits) ? digits : undefined;
  };
  const [callee, caller] = [Array.isArray(to) && to.length === 1 ? number(to[0]) : undefined, number(from)];
  if (callee === undefined || caller === undefined) return "to, from";
  const fault = nccoError(ncco);
  if (fault !== undefined) return `ncco: ${fault}`;
  if (event_method !== "POST" || (event_url !== undefined && !(Array.isArray(event_url) && event_url.length === 1 && URL.canParse(String(event_url[0])))))
    return "event_url";
  if (machine_detection !== undefined && machine_detection !== "hangup" && machine_detection !== "continue") return "machine_detection";
  if (ringing_timer !== undefined && !(Number(ringing_timer) >= 1 && Number(ringing_timer) <= 120)) return "ringing_timer";
  if (length_timer !== undefined && !(Number(length_timer) >= 1 && Number(length_timer) <= 7200)) return "length_timer";
  return { to: callee, from: caller, ncco, event_url: (event_url as string[] | undefined)?.[0], machine_detection, ringing_timer, length_timer } as VonageCall;
}

/** `/v1/messages` for WhatsApp, and `/v1/calls`. */
export async function startVonage(host?: string): Promise<Vonage> {
  const [messages, calls]: [VonageMessage[], VonageCall[]] = [[], []];
  const errors = new Map<string, Reply>();
  const used = new Set<string>();
  const basic = `Basic ${Buffer.from(`${vonageAccount.apiKey}:${vonageAccount.apiSecret}`).toString("base64")}`;
  const answer = (asked: Asked): Reply => {
    if (asked.method !== "POST" || !["/v1/messages", "/v1/calls"].includes(asked.path)) return problem(404, "not-found");
    const application = applicationOf(asked.headers.authorization, used);
    if (application !== vonageAccount.applicationId && !(asked.path === "/v1/messages" && asked.headers.authorization === basic))
      return problem(401, "unauthorized");
    const body = jsonOf(asked);
    if (body === undefined) return problem(415, "unsupported-media");
    const error = errors.get(asked.path === "/v1/messages" ? String(body["to"]) : String((body["to"] as { number: string }[])[0]?.number));
    if (error !== undefined) return error;
    const taken = asked.path === "/v1/messages" ? takeMessage(body) : takeCall(body);
    if (typeof taken === "string") return problem(asked.path === "/v1/messages" ? 422 : 400, "invalid-params", `${taken}: ${asked.body}`);
    const uuid = randomUUID();
    if ("ncco" in taken) {
      calls.push({ uuid, ...taken });
      return { status: 201, body: { uuid, status: "started", direction: "outbound", conversation_uuid: `CON-${uuid}` } };
    }
    messages.push({ message_uuid: uuid, ...taken });
    return { status: 202, body: { message_uuid: uuid } };
  };
  return Object.assign(await startVendor(answer, host), { messages, calls, errors });
}

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** `Authorization: Bearer`, a JSON Web Token, HS256, with the hash of the body. */
export function signVonage(
  body: string,
  now: number,
  { secret = vonageAccount.signatureSecret, claims = {}, head = { alg: "HS256", typ: "JWT" } } = {},
): string {
  const text = `${base64url(head)}.${base64url({
    iat: Math.floor(now / 1000),
    jti: randomUUID(),
    iss: "Vonage",
    payload_hash: createHash("sha256").update(body).digest("hex"),
    api_key: vonageAccount.apiKey,
    application_id: vonageAccount.applicationId,
    ...claims,
  })}`;
  return `Bearer ${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

export function vonagePost(url: string | undefined, payload: object, now: number, how?: Parameters<typeof signVonage>[2]): Hook & { readonly body: string } {
  const body = JSON.stringify(payload);
  return { url: url ?? "no event_url", headers: { "content-type": "application/json", authorization: signVonage(body, now, how) }, body };
}

export const vonageStatus = (message: VonageMessage, status: string, now: number, more: object = {}): Hook & { readonly body: string } =>
  vonagePost(
    message.webhook_url,
    {
      message_uuid: message.message_uuid,
      to: message.to,
      from: "447700900000",
      timestamp: new Date(now).toISOString(),
      status,
      channel: "whatsapp",
      ...(message.client_ref !== undefined && { client_ref: message.client_ref }),
      ...more,
    },
    now,
  );

/** One event of a call. */
export const callEvent = (call: VonageCall, status: string, now: number, more: object = {}): Hook & { readonly body: string } =>
  vonagePost(
    call.event_url,
    {
      from: call.from,
      to: call.to,
      uuid: call.uuid,
      conversation_uuid: `CON-${call.uuid}`,
      status,
      direction: "outbound",
      timestamp: new Date(now).toISOString(),
      ...more,
    },
    now,
  );

export const inputUrlOf = (call: VonageCall): string | undefined =>
  (call.ncco.find(({ action }) => action === "input")?.["eventUrl"] as string[] | undefined)?.[0];

export const inputEvent = (
  call: VonageCall,
  url: string,
  digits: string,
  now: number,
  how?: Parameters<typeof signVonage>[2],
): Hook & { readonly body: string } =>
  vonagePost(
    url,
    {
      speech: { results: [] },
      dtmf: { digits, timed_out: digits === "" },
      from: call.from,
      to: call.to,
      uuid: call.uuid,
      conversation_uuid: `CON-${call.uuid}`,
      timestamp: new Date(now).toISOString(),
    },
    now,
    how,
  );

/** Plays a call to a callee, as Vonage does, and posts its events. */
export async function playVonageCall(call: VonageCall, callee: Callee, now: () => number, network?: Network): Promise<Listened> {
  const answers: number[] = [];
  const tell = async (hook: Hook) => {
    if (network === undefined) throw new Error(`no network, but ${hook.url}`);
    const answer = await network(hook);
    answers.push(answer.status);
    return answer;
  };
  const event = async (status: string, more: object = {}) => {
    if (call.event_url !== undefined) await tell(callEvent(call, status, now(), more));
  };
  const line = new Line(callee, call.length_timer ?? 7200);
  await event("started");
  await event("ringing");
  await event("answered", { start_time: null, rate: "", network: null });
  const machine = call.machine_detection !== undefined && callee.kind === "mailbox" && callee.recognised !== false;
  if (machine) await event("machine");
  let keys = callee.presses;
  let ncco: readonly Action[] | undefined = machine && call.machine_detection === "hangup" ? undefined : call.ncco;
  try {
    while (ncco !== undefined) {
      const fault = nccoError(ncco);
      if (fault !== undefined) throw new Error(`ncco: ${fault}`);
      let next: readonly Action[] | undefined;
      for (const action of ncco) {
        if (action.action === "talk") {
          const { text, language = "en-US", loop = 1, bargeIn } = action as { text: string; language?: string; loop?: number; bargeIn?: boolean };
          const said = text.startsWith("<speak>") ? textOf(parseXml(text)) : text;
          // With bargeIn, a key ends the talk and counts for the input that follows.
          if (bargeIn === true && keys !== undefined) {
            line.say(said.slice(0, 10), language);
            continue;
          }
          for (let i = 0; i < loop; i++) line.say(said, language);
          continue;
        }
        const { eventUrl, dtmf = {} } = action as { eventUrl: string[]; dtmf?: { timeOut?: number; maxDigits?: number } };
        const digits = (keys ?? "").slice(0, dtmf.maxDigits ?? 4);
        keys = undefined;
        line.wait(digits === "" ? (dtmf.timeOut ?? 3) : 1);
        const answer = await tell(inputEvent(call, eventUrl[0]!, digits, now()));
        if (answer.status !== 200) continue;
        const body: unknown = answer.text === "" ? undefined : JSON.parse(answer.text);
        // A list in the response replaces the remaining actions.
        if (Array.isArray(body) && body.length > 0) {
          next = body as Action[];
          break;
        }
      }
      ncco = next;
    }
  } catch (error) {
    if (!(error instanceof CallEnds)) throw error;
  }
  const seconds = Math.ceil(line.seconds);
  await event("completed", {
    duration: String(seconds),
    price: "0.01",
    rate: "0.10",
    start_time: "2026-11-02T12:00:00.000Z",
    end_time: "2026-11-02T12:00:30.000Z",
    network: "20801",
  });
  return { heard: line.heard, seconds, answers };
}
