import { httpSender } from "../../../adapters/sms/http.js";
import { type CarrierScript, json } from "./server.js";

/**
 * A typical local aggregator: everything in the query, a text as response, errors with status 200. Modelled on Kannel's
 * sendsms (kannel.org/download/kannel-userguide, "Using the HTTP interface to send SMS messages").
 */
export const kannelCarrier: CarrierScript = {
  name: "http, as Kannel's sendsms",
  take({ method, url }, index) {
    const query = url.searchParams;
    if (method !== "GET" || url.pathname !== "/cgi-bin/sendsms") return { reply: { status: 404, body: "Unknown request", contentType: "text/plain" } };
    if (query.get("username") !== "tester" || query.get("password") !== "p&ss")
      return { reply: { status: 403, body: "Authorization failed for sendsms", contentType: "text/plain" } };
    const text = query.get("text");
    if (!text || !/^\+\d+$/.test(query.get("to") ?? "")) return { reply: { status: 400, body: "Missing receiver and/or text", contentType: "text/plain" } };
    return {
      message: { to: query.get("to") ?? "", text, from: query.get("from") ?? undefined, receiptUrl: query.get("dlr-url") ?? undefined },
      reply: { status: 202, body: `0: Accepted for delivery [id ${index}]`, contentType: "text/plain" },
    };
  },
  refusal: { status: 200, body: "5: Rejected +14155552671", contentType: "text/plain" },
  throttled: { status: 429, body: "slow down", contentType: "text/plain" },
  failure: { status: 503, body: "Temporal failure, try again later.", contentType: "text/plain" },
  sender: (baseUrl) =>
    httpSender({
      url: `${baseUrl}/cgi-bin/sendsms?username=tester&password=p%26ss&charset=utf-8&coding=2&to={to}&from={from}&text={text}&dlr-mask=31&dlr-url={receipt_url}`,
      from: { US: "ACME US", default: "ACME" },
      accepted: /^(0: Accepted|3: Queued) /,
      rejected: /^5: /,
      messageId: /\[id (\w+)\]/,
    }),
};

/** Another one: JSON in requests and responses, a key in a header, errors in the response body. */
export const jsonCarrier: CarrierScript = {
  name: "http, JSON",
  take({ method, headers, body }, index) {
    if (method !== "POST" || headers["x-key"] !== "k1" || headers["content-type"] !== "application/json") return { reply: json(401, { ok: false }) };
    const asked = JSON.parse(body) as { sms: { dest: string; body: string; ref: string; flash: boolean }[] };
    const [sms] = asked.sms;
    if (sms === undefined || sms.flash !== false) return { reply: json(400, { ok: false }) };
    return { message: { to: `+${sms.dest}`, text: sms.body, reference: sms.ref }, reply: json(200, { results: [{ state: "queued", id: 1000 + index }] }) };
  },
  refusal: json(200, { results: [{ state: "refused", error: "E17" }] }),
  throttled: json(429, {}),
  failure: json(200, { results: [{ state: "error" }] }),
  sender: (baseUrl) =>
    httpSender({
      url: `${baseUrl}/send`,
      headers: { "X-Key": "k1" },
      json: { sms: [{ dest: "{to_digits}", body: "{text}", ref: "{reference}", flash: false }] },
      accepted: { path: "results.0.state", values: ["queued", "sent"] },
      rejected: { path: "results.0.state", values: ["refused"] },
      messageId: "results.0.id",
      errorCode: "results.0.error",
    }),
};
