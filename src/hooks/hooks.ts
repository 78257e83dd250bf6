import type { ConfirmResult } from "../contract/delivery.js";
import type { DeliverRequest } from "../contract/direct.js";
import type { Verifier } from "../create-verifier.js";
import { VerifierError } from "../errors.js";
import { bodyOf, exactBytes, readJson, readUrlEncoded } from "../http/body.js";
import type { HttpBody, HttpHandler, HttpRequest, HttpResponse } from "../http/message.js";
import { notFound } from "../http/not-found.js";
import { requireVerifier } from "../options/fields.js";
import { isSent, json, type Outcome, outerStatusOf, plain } from "./kit/answer.js";
import { type Confirmed, type Hook, type Message, toConfirm, toDeliver } from "./kit/hook.js";
import { textOf } from "./kit/read.js";

/** Bytes of a body: some servers send the whole user. */
const bodyLimit = 64 * 1024;

/** The same warning is logged once in this time. Milliseconds. */
const warnEvery = 60_000;

/** For outcomes of which the verifier says nothing. */
const fallback = "The message could not be sent. Try again later.";

/**
 * Makes the handler of identity servers that ask for their one-time codes to be sent: `app.use(expressHandlers([verifier,
 * hooks(verifier, [supabaseHook({ secrets })])]))` serves `POST /hooks/supabase`, and `/hooks/supabase/confirmed` if
 * the hook reads confirmations. Only the identity servers must reach it. Throws `TypeError` for two hooks of one name, and if
 * a hook needs a spend ceiling that the verifier does not have.
 */
export function hooks(verifier: Pick<Verifier, "deliver" | "confirm" | "deliveryError" | "http">, list: readonly Hook[]): HttpHandler {
  requireVerifier("hooks", verifier);
  const { http } = verifier;
  if (!Array.isArray(list) || list.length === 0)
    throw new TypeError("hooks: the second argument must be a list of hooks: hooks(verifier, [supabaseHook({ … })])");
  const other = list.findIndex((hook) => typeof hook?.authenticate !== "function");
  if (other !== -1) throw new TypeError(`hooks: entry ${other} of the list is not a hook. Pass what supabaseHook({ … }) or another hook function returns`);
  const byName = new Map(list.map((hook) => [hook.settings.name, hook]));
  const twice = list.find((hook) => byName.get(hook.settings.name) !== hook)?.settings.name;
  if (twice !== undefined) throw new TypeError(`hooks: two hooks have the name ${twice}. Give one of them another with its option name`);

  for (const { settings } of list) {
    const problem = settings.customer_uuid === undefined ? verifier.deliveryError?.(settings.conversion) : undefined;
    if (problem !== undefined) throw new TypeError(`hooks: ${settings.name}: ${problem}`);
  }

  const warned = new Map<string, number>();
  /** Logs what an operator should fix. Strangers and outages cause the same line often. */
  const warn = (message: string): void => {
    const now = http.clock.now();
    if (Math.abs(now - (warned.get(message) ?? Number.NEGATIVE_INFINITY)) < warnEvery) return;
    if (warned.size >= 1000) warned.clear();
    warned.set(message, now);
    http.warn(message);
  };

  const match = (path: string) => {
    const [, name = "", part] = /^\/hooks\/([^/]+)(?:\/([^/]+))?\/?$/.exec(path) ?? [];
    const hook = byName.get(name);
    if (hook === undefined) return undefined;
    if (part === undefined) return { hook, template: `/hooks/${name}` };
    if (part === "confirmed" && hook.confirmed !== undefined) return { hook, confirmed: hook.confirmed, template: `/hooks/${name}/confirmed` };
    return hook.secretInPath ? { hook, pathSecret: decoded(part), template: `/hooks/${name}/{secret}` } : undefined;
  };

  const answer = async (asked: HttpRequest): Promise<HttpResponse> => {
    const found = match(asked.path);
    // Do not reveal which hooks there are.
    if (found === undefined) throw notFound(asked, "/hooks", "There is no such hook.", (path) => (/^\/hooks\/[^/]/.test(path) ? "/hooks/{name}" : undefined));
    if (asked.method !== "POST") return plain(405, "This route accepts POST only.", { allow: "POST" });
    const { hook, template } = found;
    const request = readOnce(asked);
    const bytes = async () => exactBytes(await bodyOf(http.clock, request, bodyLimit), bodyLimit, "hooks", "this identity server's requests");
    const body = () => (isForm(request) ? readUrlEncoded(http.clock, request, bodyLimit).then(Object.fromEntries) : readJson(http.clock, request, bodyLimit));
    const { authenticate } = found.confirmed ?? hook;
    const refused = await authenticate({ header: request.header, now: http.clock.now(), bytes, pathSecret: found.pathSecret });
    if (refused !== undefined) {
      warn(`a request to ${template} was rejected: ${refused}`);
      return json(401, { status: "unauthorized", message: "Unauthorized." });
    }
    if (found.confirmed !== undefined) {
      const { status } = await attempt(template, async () => confirm(hook, found.confirmed, await body()));
      return json(outerStatusOf({ status }), { status });
    }
    const read = await attempt(template, async () => readMessage(hook, template, await body()), hook);
    const outcome: Outcome = "status" in read ? read : await attempt(template, () => deliver(hook, read), { isRead: true });
    return hook.write(isSent(outcome) ? outcome : { ...outcome, message: outcome.message ?? fallback });
  };

  const readMessage = (hook: Hook, template: string, body: unknown): Read | Outcome => {
    const message = hook.read(body, http.clock.now());
    if (message.channel === "voice") return { status: "unsupported", message: "Voice calls are not supported. Ask for a text message." };
    const request = toDeliver(message, hook.settings);
    if (request === undefined) throw new VerifierError("bad_request", "it has no phone number, or neither a code nor a text");
    if (hook.settings.ip === "trust" && textOf(message.ip) !== undefined && request.ip === undefined)
      warn(`a request to ${template} has an ip that is not an IPv4 or IPv6 address; it is ignored`);
    return { request, signedIn: message.signedIn };
  };

  const deliver = async (hook: Hook, { request, signedIn }: Read): Promise<Outcome> => {
    const earlier = hook.settings.conversion === "late" && signedIn && toConfirm(signedIn, hook.settings);
    if (earlier) await verifier.confirm(earlier).catch(ignoreUnlessDown);
    return verifier.deliver(request);
  };

  const confirm = async (hook: Hook, confirmed: Confirmed, body: unknown): Promise<{ readonly status: ConfirmResult["status"] | "ignored" }> => {
    const found = confirmed.read(body);
    if (found === "nobody") return { status: "ignored" };
    const request = found && toConfirm(found, hook.settings);
    if (request === undefined) throw new VerifierError("bad_request", "it has no phone number");
    return verifier.confirm(request).catch((error: unknown) => {
      // A user of the server may have any number, and no message was sent to one like this.
      if (error instanceof VerifierError && error.code === "invalid_phone_number") return { status: "ignored" };
      throw error;
    });
  };

  /** Turns the errors of an authentic request into statuses. */
  const attempt = async <T>(template: string, work: () => Promise<T>, { isRead = false, failsOpen = false } = {}): Promise<T | Outcome> => {
    try {
      return await work();
    } catch (error) {
      const { code, message = "" } = error instanceof VerifierError ? error : {};
      const isBodyError = code === "payload_too_large" || code === "request_timeout";
      if (isBodyError && !failsOpen) throw error;
      if (code === "unavailable") return { status: "unavailable" };
      // The customer is an option of the hook.
      if (isBodyError || (code === "bad_request" && !message.startsWith("customer_uuid"))) {
        warn(`a request to ${template} was malformed: ${message}`);
        return { status: "malformed", detail: message, isRead };
      }
      warnOf(error, template);
      return { status: "failed" };
    }
  };

  const warnOf = (error: unknown, template: string): void => {
    const words = error instanceof VerifierError ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error);
    warn(`a request to ${template} failed: ${words}`);
  };

  return {
    root: "/hooks",
    routeOf: (path) => match(path)?.template,
    async handle(request) {
      try {
        return await answer(request);
      } catch (error) {
        if (error instanceof VerifierError && error.status !== 500) return plain(error.status, error.message);
        warnOf(error, match(request.path)?.template ?? "/hooks");
        return plain(500, "Something went wrong on our side.");
      }
    },
    clock: http.clock,
    warn: (message) => http.warn(message),
  };
}

/** What a request to send asks for. */
interface Read extends Pick<Message, "signedIn"> {
  readonly request: DeliverRequest;
}

/** The report of an earlier sign-in must not stop this message. But with the store down, a second attempt takes too long. */
function ignoreUnlessDown(error: unknown): void {
  if (error instanceof VerifierError && error.code === "unavailable") throw error;
}

function isForm(request: HttpRequest): boolean {
  return /^\s*application\/x-www-form-urlencoded/i.test(request.header("content-type") ?? "");
}

/** A request whose body may be read twice: as bytes, for the signature, and as a value. */
function readOnce(request: HttpRequest): HttpRequest {
  let body: Promise<HttpBody> | undefined;
  const { method, path } = request;
  return { method, path, header: (name) => request.header(name), body: (limit) => (body ??= request.body(limit)) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
