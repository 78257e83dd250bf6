import { randomUUID } from "node:crypto";

/** What the page shows about a pending code. */
export interface Answer {
  readonly status: string;
  readonly remaining_checks: number;
  readonly remaining_retry: number;
  readonly next_retry_at?: string;
  readonly carrier_refused?: true;
}

const escaped = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

const page = (title: string, body: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/style.css">
<main>
<h1>${title}</h1>
${body}
</main>`;

const countries = { FR: "France +33", GB: "United Kingdom +44", US: "United States +1" };

/** A random key of each form that is shown: a double click is one request, sent twice. */
const key = () => `<input type="hidden" name="key" value="${randomUUID()}">`;

/** `problem`: why the form is shown again. `waiting`: a code was requested before. */
export function numberPage({ problem = "", phone = "", country = "FR", waiting = false }): string {
  const options = Object.entries(countries).map(([code, name]) => `<option value="${code}"${code === country ? " selected" : ""}>${name}</option>`);
  return page(
    "Create your account",
    `<p>We send a code to your phone, to see that the number is yours.</p>
<form method="post" action="/sign-up">
${key()}
<label for="country">Country</label>
<select id="country" name="country" autocomplete="country">${options.join("")}</select>
<label for="phone">Mobile number</label>
<input id="phone" name="phone" type="tel" autocomplete="tel" required value="${escaped(phone)}" aria-describedby="problem">
<p id="problem" class="problem" role="alert">${problem}</p>
<button>Send me a code</button>
</form>
${waiting ? '<p><a href="/code">I have a code</a></p>' : ""}`,
  );
}

/**
 * The code form. `<otp-input>` explains the status, counts the tries, and counts down to the next message; after the second one it offers a call.
 */
export function codePage({ phone_number, answer }: { readonly phone_number: string; readonly answer: Answer }): string {
  const { status, remaining_checks, remaining_retry, next_retry_at } = answer; // not the id, which results contain too
  const told = { status, remaining_checks, remaining_retry, next_retry_at, created_at: new Date().toISOString() }; // our clock: the page's may be off
  return page(
    "Type the code",
    `<p>It was sent to <strong>${escaped(phone_number)}</strong>. <a href="/">Change</a></p>
${answer.carrier_refused ? '<p class="problem" role="alert">The network did not take the new message. An earlier code is still good.</p>' : ""}
<form method="post" action="/code">
${key()}
<otp-input name="code" label="Code" required call-after="2" data-answer="${escaped(JSON.stringify(told))}">
<noscript><label for="code">Code</label> <input id="code" name="code" inputmode="numeric" autocomplete="one-time-code" required></noscript>
</otp-input>
<button>Continue</button>
</form>
<form method="post" action="/resend" id="resend"><noscript><button>Send a new code</button></noscript></form>
<form method="post" action="/call" id="call">${remaining_retry < 4 ? "<noscript><button>Call me instead</button></noscript>" : ""}</form>
<script type="module">
import "/phoneproof/otp-input.js";
const field = document.querySelector("otp-input");
field.answer = JSON.parse(field.dataset.answer);
field.addEventListener("otp-complete", () => field.form.requestSubmit());
field.addEventListener("otp-resend", ({ detail }) => document.querySelector(detail.channel === "voice" ? "#call" : "#resend").requestSubmit());
field.focus();
</script>`,
  );
}

export function welcomePage(phone_number: string): string {
  return page(
    "Welcome",
    `<p>You are signed in as <strong>${escaped(phone_number)}</strong>.</p>
<form method="post" action="/sign-out"><button>Sign out</button></form>`,
  );
}

export function problemPage(problem: string): string {
  return page("That did not work", `<p class="problem" role="alert">${problem}</p><p><a href="/">Back to the form</a></p>`);
}
