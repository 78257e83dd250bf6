import { consoleSender } from "../../../adapters/sms/console.js";
import type { Hint } from "../first-day.js";
import type { ShownCallback } from "./callbacks.js";
import type { Call } from "./calls.js";

/** The demo's output in the terminal. */
export type Terminal = ReturnType<typeof wordsTerminal>;

/** For people: messages in boxes, calls and callbacks on one line each. */
export function wordsTerminal(out: (text: string) => void) {
  const line = (...parts: readonly string[]) => out(`${new Date().toTimeString().slice(0, 8)}  ${parts.join("  ").replace(/\p{C}/gu, "?")}\n`);
  return {
    /** Shows each message; a sender. */
    sms: consoleSender({ write: out }),
    call: ({ method, path, status, answer, took }: Call) => line(`${method} ${path}`, `${status} ${outcomeOf(answer)}`.trim(), `${took} ms`),
    hint: ({ message }: Hint) => out(`Hint: ${message}\n`),
    callback: ({ sequence, status, outcome, reason }: ShownCallback) =>
      line(`callback ${sequence}: ${status}`, outcome, ...(reason === undefined ? [] : [reason])),
  };
}

/** For programs: one JSON object per line, with `type` `sms`, `call` or `callback`. */
export function jsonTerminal(out: (text: string) => void): Terminal {
  const line = (fields: object) => out(`${JSON.stringify(fields)}\n`);
  return {
    sms: {
      async send({ to, text, code, authentication_uuid }) {
        line({ type: "sms", to, text, code, authentication_uuid });
        return { outcome: "accepted" };
      },
    },
    call: ({ method, path, status, answer, took }) => line({ type: "call", method, path, http: status, ...answer, took }),
    hint: (hint) => line({ type: "hint", ...hint }),
    callback: ({ authentication_uuid, sequence, status, outcome, reason }) =>
      line({ type: "callback", authentication_uuid, sequence, status, outcome, reason }),
  };
}

/** The response in one word: its status or error code. */
function outcomeOf({ status, code }: Call["answer"]): string {
  return String(status ?? code ?? "");
}
