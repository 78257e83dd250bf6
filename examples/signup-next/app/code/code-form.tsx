"use client";

import type { OtpInputAttributes, OtpInputElement } from "phoneproof/otp-input";
import { type DetailedHTMLProps, useActionState, useEffect, useRef } from "react";
import type { Answer } from "../../lib/session";
import { answerCode } from "../actions";
import "phoneproof/otp-input";

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "otp-input": DetailedHTMLProps<HTMLAttributes<OtpInputElement>, OtpInputElement> & OtpInputAttributes;
    }
  }
}

/** `<otp-input>` says in words what the status means, counts the tries, and counts down to the next message; after the second one it offers a call. */
export function CodeForm({ answer }: { answer: Answer }) {
  const [state, act, busy] = useActionState(answerCode, answer);
  const field = useRef<OtpInputElement>(null);
  const resend = useRef<HTMLFormElement>(null);
  const call = useRef<HTMLFormElement>(null);

  useEffect(() => {
    if (field.current === null) return;
    field.current.answer = state;
    field.current.focus();
  }, [state]);

  // React does not attach events of custom elements to what a server has rendered.
  useEffect(() => {
    const ended = new AbortController();
    field.current?.addEventListener("otp-complete", () => field.current?.form?.requestSubmit(), ended);
    field.current?.addEventListener("otp-resend", ({ detail }) => (detail.channel === "voice" ? call : resend).current?.requestSubmit(), ended);
    return () => ended.abort();
  }, []);

  return (
    <>
      {state.carrier_refused && (
        <p className="problem" role="alert">
          The network did not take the new message. An earlier code is still good.
        </p>
      )}
      <form action={act}>
        <otp-input ref={field} name="code" label="Code" required call-after={2}>
          <noscript>
            <label htmlFor="code">Code</label>
            <input id="code" name="code" inputMode="numeric" autoComplete="one-time-code" required />
          </noscript>
        </otp-input>
        <button type="submit" disabled={busy}>
          Continue
        </button>
      </form>
      <form action={act} ref={resend} id="resend">
        <input type="hidden" name="resend" value="message" />
        <noscript>
          <button type="submit">Send a new code</button>
        </noscript>
      </form>
      <form action={act} ref={call} id="call">
        <input type="hidden" name="resend" value="voice" />
        {state.remaining_retry < 4 && (
          <noscript>
            <button type="submit">Call me instead</button>
          </noscript>
        )}
      </form>
    </>
  );
}
