import { isProduction } from "../../src/domain/environment.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { onlyOptions } from "../kit/option-error.js";
import { speechFor, spokenCode } from "./kit/spoken.js";

/** Columns of text inside the box. */
const columns = 56;

/**
 * A sender for development that prints each message, including the code, to the terminal. Every message is `accepted`.
 *
 * It is not available when `NODE_ENV` is `production`, because anyone who can read the log could use the codes.
 *
 * @param options.channel `"voice"` prints what a call would say, as a sender of calls: "call me instead" can then be tried
 *   without a carrier. Default: SMS.
 * @param options.write Receives the printed text with its line breaks. Default: standard output.
 * @param options.allowInProduction `true` prints codes in production too. Default: `false`.
 * @throws Error if `NODE_ENV` is `production` and `allowInProduction` is not `true`; TypeError for an unknown option or
 *   another channel.
 */
export function consoleSender(
  options: { readonly channel?: "voice"; readonly write?: (text: string) => void; readonly allowInProduction?: boolean } = {},
): SmsSender {
  onlyOptions("consoleSender", options, { channel: true, write: true, allowInProduction: true });
  const { channel } = options;
  if (channel !== undefined && channel !== "voice") throw new TypeError('consoleSender: option channel must be "voice". Leave it out for SMS.');
  if (isProduction() && options.allowInProduction !== true) {
    throw new Error(
      "consoleSender prints codes where anyone who reads the log can use them, and NODE_ENV is production: pass the sender of a carrier, or { allowInProduction: true } if that is what you want.",
    );
  }
  const write = options.write ?? ((text: string) => void process.stdout.write(text));
  return {
    ...(channel !== undefined && { channel }),
    sendsNothing: ["consoleSender prints the codes and sends nothing"],
    verify: async () => [],
    async send(message) {
      const text = channel === undefined ? message.text : spokenCode(speechFor(message), message.code);
      write(box(`${channel === undefined ? "SMS" : "Call"} to ${message.to}`, text));
      return { outcome: "accepted" };
    },
  };
}

/** Frames the text with a title. Control characters become `?`, so that no text can control the terminal. */
function box(title: string, text: string): string {
  const lines = text.split("\n").flatMap((line) => wrap(line.replace(/\p{C}/gu, "?")));
  const width = Math.max(title.length + 1, ...lines.map((line) => line.length));
  return [`┌ ${title} ${"─".repeat(width - title.length)}┐`, ...lines.map((line) => `│ ${line.padEnd(width)} │`), `└${"─".repeat(width + 2)}┘`, ""].join("\n");
}

/** Breaks a line into pieces of up to `columns` characters, at spaces if possible. */
function wrap(line: string): string[] {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > columns) {
    const space = rest.lastIndexOf(" ", columns);
    const end = space > 0 ? space : columns;
    lines.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...lines, rest];
}
