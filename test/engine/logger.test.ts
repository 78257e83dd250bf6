import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Logger } from "../../src/index.js";
import { errorCode, numberOf, setUp } from "../support/verifier.js";

/** A logger that fails changes no response, and its lines go to the console. */

const turn = () => new Promise((resolve) => setImmediate(resolve));
const unhandled: unknown[] = [];
const keep = (error: unknown) => void unhandled.push(error);
beforeEach(() => void process.on("unhandledRejection", keep));
afterEach(async () => {
  await turn();
  process.off("unhandledRejection", keep);
  vi.restoreAllMocks();
  expect(unhandled.splice(0)).toEqual([]);
});

const every = (level: Logger["info"]): Logger => ({ info: level, warn: level, error: level });
const loggers: [how: string, logger: Logger][] = [
  [
    "throws",
    every(() => {
      throw new Error("no disk");
    }),
  ],
  ["rejects", every(async () => Promise.reject(new Error("no disk")))],
];

it.each(loggers)("a logger that %s changes no response: a failed rule allows, a failed store is 503, an internal error 500", async (_how, logger) => {
  const toConsole = { warn: vi.spyOn(console, "warn").mockReturnValue(), error: vi.spyOn(console, "error").mockReturnValue() };
  const rule = { name: "mine", judge: () => Promise.reject(new Error("rule down")) };
  const set = setUp({ logger, spamRules: [rule] });
  expect((await set.create()).status).toBe("pending");
  await turn();
  expect(toConsole.error).toHaveBeenCalledTimes(1);
  set.verifier.http.warn("a mounting mistake");
  await turn();
  expect(toConsole.warn).toHaveBeenCalledWith("phoneproof: a mounting mistake", {});
  set.store.commit = () => Promise.reject(new Error("store down"));
  expect(await errorCode(set.create())).toBe("unavailable");
  const header = (name: string) => (name === "x-api-key" ? set.apiKey : undefined);
  const body = () => Promise.reject(new Error("a fault of ours"));
  expect((await set.verifier.http.handle({ method: "POST", path: "/v1/check", header, body })).status).toBe(500);
  await turn();
  expect(toConsole.error).toHaveBeenCalledWith("phoneproof: a request failed unexpectedly", expect.anything());
});

it("a console that throws as well changes no response", async () => {
  const loud = () => {
    throw new Error("no console");
  };
  vi.spyOn(console, "error").mockImplementation(loud);
  const set = setUp({ logger: loggers[0]?.[1] });
  set.store.commit = () => Promise.reject(new Error("store down"));
  expect(await errorCode(set.create())).toBe("unavailable");
});

it("the host's logger is called with itself as `this`", () => {
  const pino = {
    lines: [] as string[],
    info() {},
    error() {},
    warn(this: { lines: string[] }, _fields: object, message: string) {
      this.lines.push(message);
    },
  };
  setUp({ logger: pino }).verifier.http.warn("told");
  expect(pino.lines).toEqual(["told"]);
});

it("an error is logged as text with its causes and without phone numbers, even one that cannot be read", async () => {
  const lines: string[] = [];
  const write = (fields: Record<string, unknown>) => void lines.push(JSON.stringify(fields["err"]));
  const cause = new Error(`no reply of 10.112.134.156:5432 for ${numberOf(1)}`);
  const uuid = "36244704-1234-4704-9827-12303065123a";
  const errors: unknown[] = [new Error("cannot judge 06 12 34 56 78", { cause }), `not ${numberOf(1)} of ${uuid}`, Object.create(null), undefined];
  const spamRules = errors.map((error, index) => ({ name: `rule-${index}`, judge: () => Promise.reject(error) }));
  const set = setUp({ logger: every(write), spamRules });
  expect((await set.create()).status).toBe("pending");
  const [chain, ...others] = lines;
  expect(chain).toMatch(/^"Error: cannot judge …\\n {4}at .*\\ncaused by: Error: no reply of 10\.112\.134\.156:5432 for \+…\\n {4}at /);
  expect(others).toEqual([`"not +… of ${uuid}"`, '"an error that cannot be read"', '"undefined"']);
});
