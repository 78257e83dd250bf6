import { session } from "./api.js";
import { copies } from "./copy.js";
import { explained } from "./explain.js";
import { painted, wire } from "./json.js";
import { words } from "./words.js";

const list = document.getElementById("calls");
const older = document.getElementById("older");
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
/** Rows by name. */
const rows = new Map();
/** As many as the demo keeps. */
const most = 100;
/** What the list shows of them until all are asked for: the style sheet hides the others. */
const newest = 8;

/** The list of calls and callbacks. */
export function startHistory(events) {
  older.addEventListener("click", () => {
    list.classList.add("all");
    older.hidden = true;
    list.children[newest].querySelector("summary").focus();
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
    const { at, authentication_uuid, sequence, status, outcome, reason, received } = callback;
    show(`${authentication_uuid}/${sequence}`, {
      title: `Callback ${sequence}`,
      note: `${time.format(at)} · ${outcome === "delivered" ? "posted to callback_url" : `${outcome}: ${reason}`}`,
      outcome: status,
      tone: outcome !== "delivered" || status === "undeliverable" ? "bad" : status === "delivered" ? "good" : "info",
      parts: () => [heading(received ? "What came, with a signature that holds" : "What became of it"), painted("Callback", received ?? callback)],
    });
  });
}

/** A new row at the top; or, for one that is told again, its place. */
function show(name, { title, note, outcome, tone, parts }) {
  const known = rows.get(name);
  const row = known ?? document.createElement("li");
  const fold = document.createElement("details");
  fold.className = "fold call";
  const summary = document.createElement("summary");
  const head = document.createElement("span");
  head.className = "call-head";
  const what = document.createElement("code");
  what.textContent = title;
  const more = document.createElement("span");
  more.className = "call-note";
  more.textContent = note;
  head.append(what, more);
  const chip = document.createElement("code");
  chip.className = `outcome ${tone}`;
  chip.textContent = outcome;
  summary.append(head, chip);
  const body = document.createElement("div");
  body.className = "call-body";
  fold.append(summary, body);
  fold.addEventListener("toggle", () => fold.open && body.childElementCount === 0 && body.append(...parts()));
  fold.open = known?.querySelector("details").open ?? false;
  row.replaceChildren(fold);
  if (known !== undefined) return;
  document.getElementById("no-calls").hidden = true;
  rows.set(name, row);
  list.prepend(row);
  if (rows.size > most) {
    const [oldest, element] = [...rows][0];
    element.remove();
    rows.delete(oldest);
  }
  older.textContent = `Show ${rows.size - newest} older`;
  older.hidden = rows.size <= newest || list.classList.contains("all");
}

/** A path without percent escapes, where it has sound ones. */
function readable(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

const operations = { "/v1/authentication": "create", "/v1/retry": "retry", "/v1/check": "check" };

function toneOf({ path, status, answer }) {
  if (status !== 200) return "bad";
  return words[operations[path]]?.[answer.status]?.(1)[0] ?? "good";
}

function partsOf(call) {
  const curl = document.createElement("code");
  curl.textContent = curlOf(call);
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "link";
  copy.textContent = "Copy";
  copy.setAttribute("aria-label", "Copy the curl");
  copies(copy, curl);
  const box = wire("curl command", curl);
  box.classList.add("wrap");
  return [
    ...(call.explanation === undefined ? [] : [heading("Explained"), explained(call.explanation)]),
    heading("Request"),
    call.sent === undefined ? nothing("It has no body.") : painted("Request body", call.sent),
    heading(`Response ${call.status}`),
    painted("Response body", call.answer),
    heading("The same with curl", copy),
    box,
    ...(call.explanation === undefined ? [] : [whole(call.explanation)]),
  ];
}

function nothing(text) {
  const element = document.createElement("p");
  element.className = "hint";
  element.textContent = text;
  return element;
}

function whole(explanation) {
  const fold = document.createElement("details");
  fold.className = "fold";
  const summary = document.createElement("summary");
  summary.textContent = "The whole explanation, for operators";
  fold.append(summary, painted("Explanation", explanation));
  return fold;
}

function heading(...parts) {
  const element = document.createElement("h3");
  element.append(...parts);
  return element;
}

/** The command that repeats a call, with a key that works. */
function curlOf({ method, path, sent }) {
  const { customer_uuid, api_key } = sent?.customer_uuid === session.hasty.customer_uuid ? session.hasty : session;
  return [
    `curl -sS ${quoted(location.origin + path)}`,
    ...(method === "POST" ? [] : [`-X ${method}`]).filter((part) => part !== "-X GET"),
    `-H ${quoted(`x-api-key: ${api_key}`)}`,
    ...(sent === undefined
      ? [`-H ${quoted(`customer-uuid: ${customer_uuid}`)}`]
      : ["-H 'content-type: application/json'", `-d ${quoted(typeof sent === "string" ? sent : JSON.stringify(sent))}`]),
  ].join(" \\\n  ");
}

/** A word of a POSIX shell that stands for exactly this text. */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
