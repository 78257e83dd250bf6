import { session } from "./api.js";
import { copies } from "./copy.js";
import { explained } from "./explain.js";
import { at, box, button, jsonBox, make } from "./json.js";
import { wordsFor } from "./words.js";

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
/** Maximum number of rows; the demo keeps as many. */
const most = 100;
/** The style sheet hides older ones until all are shown. */
const newest = 8;

/** The list of calls and callbacks. */
export function startHistory(events) {
  at("older").addEventListener("click", () => {
    at("calls").classList.add("all");
    at("older").hidden = true;
    at("calls").children[newest].querySelector("summary").focus();
  });
  events.addEventListener("call", ({ data }) => {
    const call = JSON.parse(data);
    const by = call.by === "page" ? "" : " · from outside this page";
    show(call.id, {
      title: `${call.method} ${readable(call.path)}`,
      note: `${time.format(call.at)} · ${call.took} ms${by}`,
      outcome: call.answer.status ?? call.answer.code ?? String(call.status),
      tone: toneOf(call),
      parts: () => partsOf(call),
    });
  });
  events.addEventListener("callback", ({ data }) => {
    const callback = JSON.parse(data);
    const { authentication_uuid, sequence, status, outcome, reason, received } = callback;
    show(`${authentication_uuid}/${sequence}`, {
      title: `Callback ${sequence}`,
      note: `${time.format(callback.at)} · ${outcome === "delivered" ? "posted to callback_url" : `${outcome}: ${reason}`}`,
      outcome: status,
      tone: outcome !== "delivered" || status === "undeliverable" ? "bad" : status === "delivered" ? "good" : "",
      parts: () => [make("h3", {}, received ? "Received, signature valid" : "Outcome"), jsonBox("Callback", received ?? callback)],
    });
  });
}

/** Adds a row at the top, or updates the row of this name. */
function show(name, { title, note, outcome, tone, parts }) {
  const known = at(name);
  const head = make(
    "span",
    { className: "row" },
    make("code", {}, title),
    make("code", { className: `badge ${tone}` }, outcome),
    make("span", { className: "quiet" }, note),
  );
  const body = make("div", { className: "stack" });
  const fold = make("details", {}, make("summary", {}, head), body);
  fold.addEventListener("toggle", () => fold.open && body.childElementCount === 0 && body.append(...parts()));
  fold.open = known?.firstChild.open ?? false;
  if (known !== null) return known.replaceChildren(fold);
  const list = at("calls");
  list.prepend(make("li", { id: name }, fold));
  list.children[most]?.remove();
  at("no-calls").hidden = true;
  at("older").textContent = `Show ${list.children.length - newest} older`;
  at("older").hidden = list.children.length <= newest || list.classList.contains("all");
}

/** A path without percent escapes, if they are valid. */
function readable(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

const operations = { "/v1/authentication": "create", "/v1/retry": "retry", "/v1/check": "check" };

function toneOf({ path, status, answer }) {
  return status === 200 ? (wordsFor(operations[path], answer.status, { left: 1 })?.[0] ?? "good") : "bad";
}

function partsOf(call) {
  const { status, sent, answer, explanation } = call;
  const curl = box("curl command", curlOf(call));
  const copy = button("Copy");
  copy.ariaLabel = "Copy the curl command";
  copies(copy, curl);
  return [
    ...(explanation === undefined ? [] : [make("h3", {}, "Explanation"), explained(explanation)]),
    make("h3", {}, "Request"),
    sent === undefined ? make("p", { className: "quiet" }, "No body.") : jsonBox("Request body", sent),
    make("h3", {}, `Response ${status}`),
    jsonBox("Response body", answer),
    make("h3", { className: "row" }, "As a curl command", copy),
    curl,
    ...(explanation === undefined ? [] : [make("details", {}, make("summary", {}, "Full explanation, for operators"), jsonBox("Explanation", explanation))]),
  ];
}

/** The command that repeats a call, with a valid key. */
function curlOf({ method, path, sent }) {
  const { customer_uuid, api_key } = sent?.customer_uuid === session.hasty.customer_uuid ? session.hasty : session;
  return [
    `curl -sS ${quoted(location.origin + path)}`,
    ...(method === "POST" || method === "GET" ? [] : [`-X ${method}`]),
    `-H ${quoted(`x-api-key: ${api_key}`)}`,
    ...(sent === undefined
      ? [`-H ${quoted(`customer-uuid: ${customer_uuid}`)}`]
      : ["-H 'content-type: application/json'", `-d ${quoted(typeof sent === "string" ? sent : JSON.stringify(sent))}`]),
  ].join(" \\\n  ");
}

/** Quotes a text for a POSIX shell. */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
