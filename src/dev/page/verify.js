import { call, e164, session } from "./api.js";
import { hideNotice } from "./phone.js";
import { clock, words } from "./words.js";

const at = (id) => document.getElementById(id);
const countryNames = new Intl.DisplayNames(["en"], { type: "region" });

/** The verification under way; undefined while a number is asked for. `over`: why nothing can become of it any more. `denied`: whether it is told that the next message has to wait. */
let current;
/** Server time minus this browser's, in ms: a phone on the network may be off. */
let skew = 0;
/** Ends the wait for a code from WebOTP. */
let otp;

/** The card that leads through create, retry and check. Answers `fillCode`, for the phone. */
export function startVerification() {
  at("number-form").addEventListener("submit", create);
  at("code-form").addEventListener("submit", check);
  at("retry").addEventListener("click", retry);
  at("restart").addEventListener("click", restart);
  at("again").addEventListener("click", restart);
  at("phone_number").addEventListener("input", showCountry);
  for (const chip of document.querySelectorAll("[data-number]")) chip.addEventListener("click", () => take(chip.dataset.number));
  at("try-spam").addEventListener("click", () => take(session.spam_number));
  at("try-expiry").addEventListener("click", ({ currentTarget }) => {
    currentTarget.setAttribute("aria-pressed", String(currentTarget.getAttribute("aria-pressed") !== "true"));
  });
  setInterval(showFacts, 250);
  return {
    fillCode(code) {
      if (current === undefined) return;
      hideNotice();
      at("code").value = code;
      at("code").focus();
    },
  };
}

/** Puts a number into the field. */
function take(number) {
  at("phone_number").value = number;
  showCountry();
  at("phone_number").focus();
}

async function create(event) {
  event.preventDefault();
  clearFaults();
  const fields = { phone_number: e164(at("phone_number").value) };
  for (const { name, value } of at("more").querySelectorAll("[name]")) {
    const text = value.trim();
    if (text !== "") fields[name] = name === "is_returning_user" ? text === "true" : text;
  }
  if (at("callback").checked) fields.callback_url = session.callback_url;
  const as = at("try-expiry").getAttribute("aria-pressed") === "true" ? session.hasty : session;
  const answer = await busy(at("send"), () => call("POST", "/v1/authentication", fields, as));
  if (answer === undefined) return;
  const { status, body, fact } = answer;
  if (status !== 200) return showFault(body, "phone_number");
  const refused = fact("carrier-refused") === "true";
  skew = Date.parse(body.created_at) - Date.now();
  if (body.status === "pending") {
    current = {
      id: body.authentication_uuid,
      as,
      expires: Date.parse(body.expires_at),
      next: Date.parse(fact("next-retry-at") ?? body.expires_at),
      remaining: Number(fact("remaining-retry")),
      wrong: 0,
    };
    at("sent").textContent = refused ? "Not sent to" : "Sent to";
    at("sent-to").textContent = fact("phone-number");
    at("code").value = "";
    showStep("code");
    at("code").focus();
    if (refused) end("closed");
    else awaitOtp();
  }
  showStatus("create", body.status, { refused });
}

async function retry() {
  clearFaults();
  const answer = await busy(at("retry"), () => call("POST", "/v1/retry", { authentication_uuid: current.id }, current.as));
  if (answer === undefined) return;
  const { status, body } = answer;
  if (status !== 200) return showFault(body, "code");
  skew = Date.parse(body.created_at) - Date.now();
  current.next = Date.parse(body.next_retry_at);
  current.remaining = body.remaining_retry;
  end({ expired_auth: "expired", no_attempt: "closed" }[body.status]);
  showStatus("retry", body.status);
  current.denied = body.status === "denied" && current.next > Date.now() + skew;
  if (body.status === "approved") {
    at("code").focus();
    awaitOtp();
  }
}

async function check(event) {
  event?.preventDefault();
  clearFaults();
  hideNotice();
  const answer = await busy(at("check"), () => call("POST", "/v1/check", { authentication_uuid: current.id, check_code: at("code").value }, current.as));
  if (answer === undefined) return;
  const { status, body } = answer;
  if (status !== 200) return showFault(body, "code");
  if (body.status === "invalid") current.wrong += 1;
  if (body.status === "valid") {
    end("used");
    showStep("done");
  } else if (current.wrong === session.checks) {
    end("closed");
  } else {
    end({ expired_auth: "expired", rate_limited: "closed", without_attempt: "closed" }[body.status]);
  }
  at("code").setAttribute("aria-invalid", String(body.status === "invalid"));
  showStatus("check", body.status, { left: session.checks - current.wrong });
  if (body.status === "invalid") {
    at("code").focus();
    at("code").select();
  }
}

/** Nothing can become of the verification any more, for the reason that stands in the place of its countdown; undefined: it goes on. The first reason stays. */
function end(reason) {
  if (reason === undefined) return;
  otp?.abort();
  current.over ??= reason;
}

function restart() {
  otp?.abort();
  hideNotice();
  current = undefined;
  clearFaults();
  at("status").replaceChildren();
  at("again").hidden = true;
  showStep("number");
  at("phone_number").focus();
  at("phone_number").select();
}

/** On Android, Chrome reads the code from a message whose last line is `@domain #code`. */
async function awaitOtp() {
  otp?.abort();
  if (!("OTPCredential" in window)) return;
  otp = new AbortController();
  try {
    const { code } = await navigator.credentials.get({ otp: { transport: ["sms"] }, signal: otp.signal });
    at("code").value = code;
    await check();
  } catch {
    // Aborted, refused or not there on this device: the person types the code.
  }
}

function showStep(step) {
  at("number-form").hidden = step !== "number";
  at("code-step").hidden = step === "number";
  at("main").classList.toggle("verifying", step !== "number");
  at("check").textContent = step === "done" ? "Check again" : "Check the code";
  const order = ["number", "code", "done"];
  for (const name of order) {
    const item = at(`step-${name}`);
    item.classList.toggle("past", order.indexOf(name) < order.indexOf(step) || step === "done");
    if (name === step) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
  }
  showFacts();
}

/** The figures that count down; once the verification is over they stand still, and the way on is shown. */
function showFacts() {
  if (current === undefined) return;
  const now = Date.now() + skew;
  const seconds = (end) => Math.max(0, Math.ceil((end - now) / 1000));
  const life = seconds(current.expires);
  if (life === 0 && current.over === undefined) {
    end("expired");
    return showStatus("check", "expired_auth");
  }
  const wait = seconds(current.next);
  // What was denied until now is denied no more.
  if (current.denied && wait === 0) {
    current.denied = false;
    at("status").replaceChildren();
  }
  const over = current.over !== undefined;
  const none = over || current.remaining === 0;
  at("lifetime").textContent = current.over ?? clock(life);
  at("cooldown").textContent = none ? "none" : wait === 0 ? "now" : `in ${clock(wait)}`;
  at("remaining").textContent = String(none ? 0 : current.remaining);
  at("wrong").textContent = `${current.wrong} of ${session.checks}`;
  at("lifetime")
    .closest("div")
    .classList.toggle("low", !over && life <= 30);
  at("retry").classList.toggle("waiting", none || wait > 0);
  at("code-step").classList.toggle("over", over);
  at("restart").hidden = over;
  at("again").hidden = !over;
}

/** Told anew each time, so that the same status twice is also announced twice. */
function showStatus(operation, status, details = {}) {
  if (current !== undefined) current.denied = false;
  showFacts();
  const [tone, title, sentence] = words[operation][status](details);
  const name = document.createElement("code");
  name.textContent = status;
  const head = document.createElement("p");
  head.className = "status-head";
  const strong = document.createElement("strong");
  strong.textContent = title;
  head.append(strong, " ", name);
  const text = document.createElement("p");
  text.textContent = sentence;
  const answer = document.createElement("div");
  answer.className = `status ${tone}`;
  answer.append(head, text);
  // The region is there from the beginning, empty: one that appears together with its words is not announced.
  at("status").replaceChildren(answer);
}

/** A fault is shown at the field it speaks of. */
function showFault({ code, message }, fallback) {
  const named = code.includes("app_realm") ? "app_realm" : code === "bad_request" ? /\w+/.exec(message)?.[0] : code.replace("invalid_", "");
  const id = at(`${named}-error`) === null ? fallback : named;
  at(`${id}-error`).textContent = message;
  at(id).setAttribute("aria-invalid", "true");
  at("status").replaceChildren();
  if (at("more").contains(at(id))) at("more").open = true;
  at(id).focus();
}

function clearFaults() {
  for (const fault of document.querySelectorAll(".verify .fault")) fault.textContent = "";
  for (const field of document.querySelectorAll(".verify [aria-invalid]")) field.removeAttribute("aria-invalid");
}

/** What the work answers; undefined, and nothing is done, while an earlier press of the button is still under way. */
async function busy(button, work) {
  if (button.getAttribute("aria-busy") === "true") return undefined;
  button.setAttribute("aria-busy", "true");
  try {
    return await work();
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** Names the country behind the digits typed so far. */
function showCountry() {
  const hint = at("phone_number-hint");
  const digits = /^\+(\d+)/.exec(e164(at("phone_number").value))?.[1] ?? "";
  const calling = [1, 2, 3].map((length) => digits.slice(0, length)).find((code) => session.calling_codes[code]);
  if (calling === undefined) {
    hint.textContent = "Starts with + and the country code.";
    return;
  }
  const [main, ...others] = session.calling_codes[calling];
  const shared = others.length === 0 ? "" : others.length === 1 ? ` or ${countryNames.of(others[0])}` : ` and ${others.length} more countries`;
  hint.textContent = `+${calling} · ${countryNames.of(main)}${shared}`;
}
