import { inspect } from "node:util";
import type { CodeMessage, Logger, VerifierOptions } from "../../src/index.js";

/** What no log may hold, as far as this process has seen it: codes that were sent, digits of numbers they went to, keys and secrets. */
const codes = new Set<string>();
const numbers = new Set<string>();
const keys = new Set<string>();

/** What was told that must not be. */
let leaks: string[] = [];

/** The leaks so far, which are then forgotten. */
export function takeLeaks(): string[] {
  const taken = leaks;
  leaks = [];
  return taken;
}

/** Forgets what was seen: one file's secret is another's plain word. */
export function forgetSecrets(): void {
  for (const seen of [codes, numbers, keys]) seen.clear();
  leaks = [];
}

/** Why a text must not be told; `undefined`: it may be. A number is one of E.164 form, or the digits of one that was sent to; codes of four or five digits are too much like other numbers to be looked for. */
export function leakIn(text: string): string | undefined {
  if (/(?<![\w+])\+[1-9]\d{7,14}(?!\d)/.test(text)) return "a whole number";
  for (const [digits] of text.matchAll(/(?<![\w.:-])\d{6,15}(?![\w-])/g)) {
    if (codes.has(digits)) return "a code";
    if (numbers.has(digits)) return "a whole number";
  }
  for (const key of keys) if (text.includes(key)) return "a key or a secret";
  return undefined;
}

/** Looks at what is told, whoever listens. */
export function look(...told: readonly unknown[]): void {
  const text = told.map((one) => (typeof one === "string" ? one : inspect(one, { depth: 8, maxStringLength: 10_000 }))).join(" ");
  const leak = leakIn(text);
  if (leak !== undefined) leaks.push(`${leak} was told: ${text.slice(0, 2_000)}`);
}

/** The options with a logger, a listener of events and a sender that are looked at. */
export function watched(options: VerifierOptions, byDefault: Logger): VerifierOptions {
  const { logger = byDefault, onEvent, sender, customers, secret } = options;
  for (const one of [secret].flat()) if (typeof one === "string") keys.add(one);
  if (Array.isArray(customers))
    for (const customer of customers) for (const key of customer?.keys ?? []) if (typeof key === "string" && key.length >= 32) keys.add(key);
  const at =
    (level: keyof Logger): Logger["info"] =>
    (fields, message) => {
      look(fields, message);
      // What the host's logger answers is part of it: one that rejects, for instance.
      return logger[level](fields, message);
    };
  const noting = (message: CodeMessage) => {
    if (message.code.length >= 6) codes.add(message.code);
    numbers.add(message.to.slice(1));
  };
  return {
    ...options,
    ...(typeof logger?.info === "function" && { logger: { info: at("info"), warn: at("warn"), error: at("error") } }),
    ...(typeof onEvent === "function" && {
      onEvent: (event) => {
        look(event);
        return onEvent(event);
      },
    }),
    ...(typeof sender?.send === "function" && {
      sender: new Proxy(sender, {
        get(target, name) {
          const own: unknown = Reflect.get(target, name, target);
          if (typeof own !== "function") return own;
          return (...args: unknown[]) => {
            if (name === "send") noting(args[0] as CodeMessage);
            return own.apply(target, args);
          };
        },
      }),
    }),
  };
}
