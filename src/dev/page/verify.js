import { call, e164, session } from "./api.js";
import { hideNotice } from "./phone.js";
import { clock, words } from "./words.js";

const at = (id) => document.getElementById(id);
const countryNames = new Intl.DisplayNames(["en"], { type: "region" });

/** The verification under way; undefined while a number is asked for. */
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
  at("phone_number").addEventListener("input", showCountry);
  for (const chip of document.querySelectorAll("[data-number]")) {
    chip.addEventListener("click", () => {
      at("phone_number").value = chip.dataset.number;
      showCountry();
      at("phone_number").focus();
    });
  }
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

async function create(event) {
  event.preventDefault();
  clearFaults();
  const fields = { phone_number: e164(at("phone_number").value) };
  for (const { name, value } of at("more").querySelectorAll("input, select")) {
    const text = value.trim();
    if (text !== "") fields[name] = name === "is_returning_user" ? text === "true" : text;
  }
  const answer = await busy(at("send"), () => call("POST", "/v1/authentication", fields));
  if (answer === undefined) return;
  const { status, body } = answer;
  if (status !== 200) return showFault(body, "phone_number");
  skew = Date.parse(body.created_at) - Date.now();
  if (body.status === "pending") {
    current = {
      id: body.authentication_uuid,
      expires: Date.parse(body.expires_at),
      next: Math.min(Date.parse(body.created_at) + 1000 * (session.cooldown[0] ?? 0), Date.parse(body.expires_at)),
      remaining: session.cooldown.length,
      wrong: 0,
    };
    at("sent-to").textContent = fields.phone_number;
    at("code").value = "";
    showStep("code");
    at("code").focus();
    awaitOtp();
  }
  showStatus("create", body.status);
}

async function retry() {
  clearFaults();
  const answer = await busy(at("retry"), () => call("POST", "/v1/retry", { authentication_uuid: current.id }));
  if (answer === undefined) return;
  const { status, body } = answer;
  if (status !== 200) return showFault(body, "code");
  skew = Date.parse(body.created_at) - Date.now();
  current.next = Date.parse(body.next_retry_at);
  current.remaining = body.remaining_retry;
  showStatus("retry", body.status);
  if (body.status === "approved") {
    at("code").focus();
    awaitOtp();
  }
}

async function check(event) {
  event?.preventDefault();
  clearFaults();
  hideNotice();
  const answer = await busy(at("check"), () => call("POST", "/v1/check", { authentication_uuid: current.id, check_code: at("code").value }));
  if (answer === undefined) return;
  const { status, body } = answer;
  if (status !== 200) return showFault(body, "code");
  if (body.status === "invalid") current.wrong += 1;
  if (body.status === "valid") {
    current.done = true;
    otp?.abort();
    showStep("done");
  }
  at("code").setAttribute("aria-invalid", String(body.status === "invalid"));
  showStatus("check", body.status, session.checks - current.wrong);
  if (body.status === "invalid") {
    at("code").focus();
    at("code").select();
  }
}

function restart() {
  otp?.abort();
  hideNotice();
  current = undefined;
  clearFaults();
  at("status").hidden = true;
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
  at("code-step").classList.toggle("done", step === "done");
  at("check").textContent = step === "done" ? "Check again" : "Check the code";
  at("restart").textContent = step === "done" ? "Verify another" : "Change";
  const order = ["number", "code", "done"];
  for (const name of order) {
    const item = at(`step-${name}`);
    item.classList.toggle("past", order.indexOf(name) < order.indexOf(step) || step === "done");
    if (name === step) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
  }
  showFacts();
}

/** The figures that count down. */
function showFacts() {
  if (current === undefined) return;
  const now = Date.now() + skew;
  const seconds = (end) => Math.max(0, Math.ceil((end - now) / 1000));
  const life = seconds(current.expires);
  const wait = seconds(current.next);
  const over = life === 0 || current.remaining === 0 || current.done;
  at("lifetime").textContent = current.done ? "used" : life === 0 ? "expired" : clock(life);
  at("cooldown").textContent = over ? "none" : wait === 0 ? "now" : `in ${clock(wait)}`;
  at("remaining").textContent = String(over ? 0 : current.remaining);
  at("wrong").textContent = `${current.wrong} of ${session.checks}`;
  at("lifetime").parentElement.classList.toggle("low", !current.done && life <= 30);
  at("retry").classList.toggle("waiting", over || wait > 0);
}

/** Told anew each time, so that the same status twice is also announced twice. */
function showStatus(operation, status, left) {
  showFacts();
  const [tone, title, sentence] = words[operation][status](left);
  const name = document.createElement("code");
  name.textContent = status;
  const head = document.createElement("p");
  head.className = "status-head";
  const strong = document.createElement("strong");
  strong.textContent = title;
  head.append(strong, " ", name);
  const text = document.createElement("p");
  text.textContent = sentence;
  at("status").className = `status ${tone}`;
  at("status").hidden = false;
  at("status").replaceChildren(head, text);
}

/** A fault is shown at the field it speaks of. */
function showFault({ code, message }, fallback) {
  const named = code.includes("app_realm") ? "app_realm" : code === "bad_request" ? /\w+/.exec(message)?.[0] : code.replace("invalid_", "");
  const id = at(`${named}-error`) === null ? fallback : named;
  at(`${id}-error`).textContent = message;
  at(id).setAttribute("aria-invalid", "true");
  at("status").hidden = true;
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
