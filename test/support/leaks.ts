import { inspect } from "node:util";
import type { CodeMessage, Logger, VerifierOptions } from "../../src/index.js";

/** Values of this process that no log may contain: codes that were sent, digits of their numbers, keys and secrets. */
const codes = new Set<string>();
const numbers = new Set<string>();
const keys = new Set<string>();

/** Leaks found so far. */
let leaks: string[] = [];

/** Returns the leaks so far, and clears them. */
export function takeLeaks(): string[] {
  const taken = leaks;
  leaks = [];
  return taken;
}

/** Clears everything that was seen: a secret of one file can be an ordinary word in another. */
export function forgetSecrets(): void {
  for (const seen of [codes, numbers, keys]) seen.clear();
  leaks = [];
}

/**
 * The reason why a text must not be reported, if there is one. Numbers are found in E.164 form and by the digits of
 * recipients; codes of four or five digits are not looked for, as they are too similar to other numbers.
 */
export function leakIn(text: string): string | undefined {
  if (/(?<![\w+])\+[1-9]\d{7,14}(?!\d)/.test(text)) return "a whole number";
  for (const [digits] of text.matchAll(/(?<![\w.:-])\d{6,15}(?![\w*-])/g)) {
    if (codes.has(digits)) return "a code";
    if (numbers.has(digits)) return "a whole number";
  }
  for (const key of keys) if (text.includes(key)) return "a key or a secret";
  return undefined;
}

/** Checks reported values for leaks. */
export function look(...told: readonly unknown[]): void {
  const text = told.map((one) => (typeof one === "string" ? one : inspect(one, { depth: 8, maxStringLength: 10_000 }))).join(" ");
  const leak = leakIn(text);
  if (leak !== undefined) leaks.push(`${leak} was told: ${text.slice(0, 2_000)}`);
}

/** The options with a logger, an event handler and a sender that are checked for leaks. */
export function watched(options: VerifierOptions, byDefault: Logger): VerifierOptions {
  const { logger = byDefault, onEvent, sender, customers, secret } = options;
  for (const one of [secret].flat()) if (typeof one === "string") keys.add(one);
  if (Array.isArray(customers))
    for (const customer of customers) for (const key of customer?.keys ?? []) if (typeof key === "string" && key.length >= 32) keys.add(key);
  const at =
    (level: keyof Logger): Logger["info"] =>
    (fields, message) => {
      look(fields, message);
      // The result of the host's logger is passed on: it may be a promise that rejects.
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
