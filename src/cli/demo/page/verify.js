import { call, e164, session } from "./api.js";
import { at, make } from "./json.js";
import { hideNotice } from "./phone.js";
import { clock, countryName, wordsFor } from "./words.js";

/**
 * The verification in progress; undefined while a number is asked for. `over`: why it cannot succeed any more.
 * `denied`: whether the page shows that the next message has to wait.
 */
let current;
/** Server time minus this browser's, in ms: the clock of a phone on the network may be wrong. */
let skew = 0;
/** Ends the wait for a code from WebOTP. */
let otp;

/** What an app can send about the device: the values to choose from, or the placeholder of a text. */
const deviceFields = {
  device_type: ["WEB", "ANDROID", "IOS"],
  app_realm: "11 characters",
  device_id: "",
  ip: "192.0.2.7",
  device_model: "",
  os_version: "",
  app_version: "",
  is_returning_user: ["true", "false"],
};

/** The card that leads through create, retry and check. Returns the function that fills in a code. */
export function startVerification() {
  at("device-fields").append(...Object.entries(deviceFields).map(deviceField));
  at("number-form").addEventListener("submit", create);
  at("code-form").addEventListener("submit", check);
  at("retry").addEventListener("click", retry);
  at("restart").addEventListener("click", restart);
  at("again").addEventListener("click", restart);
  at("phone_number").addEventListener("input", showCountry);
  for (const button of document.querySelectorAll(".samples button")) button.addEventListener("click", take);
  showCountry();
  setInterval(showFacts, 250);
  return (code) => {
    if (current === undefined) return;
    hideNotice();
    at("code").value = code;
    at("code").focus();
  };
}

function deviceField([name, form]) {
  const field = Array.isArray(form)
    ? make("select", { id: name, name }, make("option", { value: "" }, "not sent"), ...form.map((value) => make("option", {}, value)))
    : make("input", { id: name, name, autocomplete: "off", spellcheck: false, placeholder: form });
  field.setAttribute("aria-describedby", `${name}-error`);
  return make("div", {}, make("label", { htmlFor: name }, make("code", {}, name)), field, make("p", { className: "error", id: `${name}-error` }));
}

/** Fills in the number of a button. The button for short-lived codes can be pressed again to turn it off. */
function take({ currentTarget: button }) {
  at("try-expiry").ariaPressed = String(button.ariaPressed === "false");
  at("phone_number").value = button.dataset.number ?? session.spam_number;
  at("phone_number").focus();
  showCountry();
}

async function create(event) {
  event.preventDefault();
  const fields = { phone_number: e164(at("phone_number").value) };
  for (const { name, value } of at("more").querySelectorAll("[name]")) {
    const text = value.trim();
    if (text !== "") fields[name] = name === "is_returning_user" ? text === "true" : text;
  }
  if (at("callback").checked) fields.callback_url = session.callback_url;
  const as = at("try-expiry").ariaPressed === "true" ? session.hasty : session;
  const response = await send("send", "authentication", fields, as, "phone_number");
  if (response === undefined) return;
  const { body, fact } = response;
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
  const response = await send("retry", "retry", { authentication_uuid: current.id }, current.as, "code");
  if (response === undefined) return;
  const { body } = response;
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
  hideNotice();
  const response = await send("check", "check", { authentication_uuid: current.id, check_code: at("code").value }, current.as, "code");
  if (response === undefined) return;
  const { status } = response.body;
  if (status === "invalid") current.wrong += 1;
  end({ valid: "used", expired_auth: "expired", rate_limited: "closed", without_attempt: "closed" }[status]);
  if (current.wrong === session.checks) end("closed");
  if (status === "valid") showStep("done");
  at("code").ariaInvalid = String(status === "invalid");
  showStatus("check", status, { left: session.checks - current.wrong });
  if (status === "invalid") {
    at("code").focus();
    at("code").select();
  }
}

/**
 * A call made with a button. Returns its response, or undefined if it failed (the error is shown) or if the button's
 * previous call is still running.
 */
async function send(button, path, fields, as, field) {
  if (at(button).ariaBusy === "true") return undefined;
  clearErrors();
  at(button).ariaBusy = "true";
  const response = await call("POST", `/v1/${path}`, fields, as);
  at(button).ariaBusy = null;
  if (response.status === 200) return response;
  showError(response.body, field);
  return undefined;
}

/**
 * Ends the verification for the reason shown in place of its countdown; undefined: it goes on. The first reason is
 * kept.
 */
function end(reason) {
  if (reason === undefined) return;
  otp?.abort();
  current.over ??= reason;
}

function restart() {
  otp?.abort();
  hideNotice();
  current = undefined;
  clearErrors();
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
    // Aborted, denied or not available on this device: the user enters the code.
  }
}

function showStep(step) {
  at("number-form").hidden = step !== "number";
  at("code-step").hidden = step === "number";
  at("check").textContent = step === "done" ? "Check again" : "Check code";
  for (const name of ["number", "code", "done"]) at(`step-${name}`).ariaCurrent = name === step ? "step" : null;
  showFacts();
}

/** The figures that count down. When the verification is over they stop, and the button for a new one is shown. */
function showFacts() {
  if (current === undefined) return;
  const now = Date.now() + skew;
  const seconds = (until) => Math.max(0, Math.ceil((until - now) / 1000));
  const life = seconds(current.expires);
  if (life === 0 && current.over === undefined) {
    end("expired");
    return showStatus("check", "expired_auth");
  }
  const wait = seconds(current.next);
  // The message that was denied can be sent now.
  if (current.denied && wait === 0) {
    current.denied = false;
    at("status").replaceChildren();
  }
  const over = current.over !== undefined;
  const none = over || current.remaining === 0;
  at("lifetime").textContent = current.over ?? clock(life);
  at("lifetime").classList.toggle("bad", !over && life <= 30);
  at("cooldown").textContent = none ? "none" : wait === 0 ? "now" : `in ${clock(wait)}`;
  at("remaining").textContent = String(none ? 0 : current.remaining);
  at("wrong").textContent = `${current.wrong} of ${session.checks}`;
  at("retry").classList.toggle("waiting", none || wait > 0);
  at("check").classList.toggle("primary", !over);
  at("restart").hidden = over;
  at("again").hidden = !over;
}

/** Rebuilt each time, so that the same status twice is also announced twice. */
function showStatus(operation, status, details) {
  if (current !== undefined) current.denied = false;
  showFacts();
  const [tone, title, sentence] = wordsFor(operation, status, details);
  const head = make("p", { className: "row" }, make("strong", {}, title), make("code", {}, status));
  // The region exists from the start, empty: one that appears together with its text is not announced.
  at("status").replaceChildren(make("div", { className: `badge ${tone}` }, head, make("p", {}, sentence)));
}

/** Shows an error at the field that it is about, in the service's words. */
function showError({ code, message }, fallback) {
  const named = code.includes("app_realm") ? "app_realm" : code === "bad_request" ? /\w+/.exec(message)?.[0] : code.replace("invalid_", "");
  const id = at(`${named}-error`) === null ? fallback : named;
  at(`${id}-error`).textContent = message;
  at(id).ariaInvalid = "true";
  at("status").replaceChildren();
  if (at("more").contains(at(id))) at("more").open = true;
  at(id).focus();
}

function clearErrors() {
  for (const error of at("verify").querySelectorAll("p.error")) error.textContent = "";
  for (const field of at("verify").querySelectorAll("[aria-invalid]")) field.ariaInvalid = null;
}

/** Names the country of the digits entered so far, or shows that there is none. */
function showCountry() {
  const typed = e164(at("phone_number").value);
  const digits = /^\+(\d+)/.exec(typed)?.[1] ?? "";
  const calling = [1, 2, 3].map((length) => digits.slice(0, length)).find((code) => session.calling_codes[code]);
  const [main, ...others] = session.calling_codes[calling] ?? [];
  const shared = others.length === 0 ? "" : others.length === 1 ? ` or ${countryName(others[0])}` : ` and ${others.length} more countries`;
  const missing = /^\d/.test(typed)
    ? "The country code is missing, and the same digits exist in several countries. In France, 06\u00a012\u00a034\u00a056\u00a078 is +33\u00a06\u00a012\u00a034\u00a056\u00a078."
    : "Start with + and the country code.";
  at("phone_number-hint").textContent = main === undefined ? missing : `+${calling} · ${countryName(main)}${shared}`;
}
