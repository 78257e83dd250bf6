"use client";

import { useActionState } from "react";
import { sendCode } from "./actions";

export function NumberForm({ problem }: { problem: string }) {
  const [state, send, sending] = useActionState(sendCode, { problem });
  return (
    <form action={send}>
      <label htmlFor="country">Country</label>
      <select id="country" name="country" autoComplete="country" defaultValue={state.country ?? "FR"} key={state.country}>
        <option value="FR">France +33</option>
        <option value="GB">United Kingdom +44</option>
        <option value="US">United States +1</option>
      </select>
      <label htmlFor="phone">Mobile number</label>
      <input id="phone" name="phone" type="tel" autoComplete="tel" required defaultValue={state.phone} aria-describedby="problem" />
      <p id="problem" className="problem" role="alert">
        {state.problem}
      </p>
      <button type="submit" disabled={sending}>
        Send me a code
      </button>
    </form>
  );
}
