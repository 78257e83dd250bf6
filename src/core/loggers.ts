import { plainLine } from "../domain/message.js";
import type { Logger } from "../ports/logger.js";

/** The default logger. */
export const consoleLogger: Logger = {
  info: () => undefined,
  warn: (fields, message) => console.warn(`phoneproof: ${message}`, fields),
  error: (fields, message) => console.error(`phoneproof: ${message}`, fields),
};

/** What may stand between two digits of a number, also in a URL. A colon comes before a port, a line or a column. */
const between = String.raw`(?:[^\p{L}\p{N}:%]|%[\da-f]{2})`;

/** A pattern of what may be a phone number: `least` digits or more, also with up to three characters between them. */
export const runOfDigits = (least: number): string => String.raw`\d(?:${between}{0,3}\d){${least - 1},}`;

/** A UUID or what may be an IPv4 address, for example of the host's database, both kept; or else a phone number. */
const keptOrNumber = new RegExp(
  String.raw`((?<![\da-f])[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?![\da-f]))|(?<!\d${between}?)(\d{1,3}(?:\.\d{1,3}){3})(?!${between}?\d)|${runOfDigits(7)}`,
  "giu",
);

/** Someone else's text as one plain line, without what may be phone numbers: it often repeats the one it was given. */
export function withoutNumbers(words: string, most = 500): string {
  return plainLine(words.slice(0, most)).replace(
    keptOrNumber,
    (_, uuid?: string, address?: string) => uuid ?? (address?.split(".").every((part) => Number(part) < 256) ? address : "…"),
  );
}

/** For the log: an error with its stack and causes, but without numbers. `causes`: how many are shown. */
export function stackOf(error: unknown, causes = 3): string {
  try {
    const { stack, cause } = (error ?? {}) as Partial<Error>;
    const lines = String(stack ?? error)
      .slice(0, 2_000)
      .split("\n");
    const own = lines.map((line) => withoutNumbers(line, 2_000)).join("\n");
    return cause === undefined || causes === 0 ? own : `${own}\ncaused by: ${stackOf(cause, causes - 1)}`;
  } catch {
    return "an error that cannot be read";
  }
}

/**
 * Never throws (docs/contract.md#listeners): entries that the host's logger fails to log go to the console. `err` is
 * logged as text: a logger that writes JSON would show an Error as `{}`, and any logger the numbers in it.
 */
export function safeLogger(host: Logger): Logger {
  const level =
    (name: keyof Logger): Logger[typeof name] =>
    (given, message) => {
      const fields = "err" in given ? { ...given, err: stackOf(given.err) } : given;
      const write = async () => host[name](fields, message);
      // The console can throw as well, for example in a test runner.
      write()
        .catch(() => consoleLogger[name](fields, message))
        .catch(() => undefined);
    };
  return { info: level("info"), warn: level("warn"), error: level("error") };
}
