import { createInterface } from "node:readline/promises";
import { day } from "../../domain/time.js";
import type { Stats } from "../../observability/statistics.js";
import type { DevOutput } from "../start.js";
import { defaultDays, noSecret, notANumber, type OperatorSettings } from "./settings.js";
import { type Opened, openVerifier } from "./verifier.js";
import { countOf, dateOf, reportOf, textOf, whatToCheck } from "./why.js";

interface Asked extends Opened {
  readonly settings: OperatorSettings;
}

/** What a command did: data for `--json`, and text for people. `done`: whether it did what it was asked for. */
interface Done {
  readonly data: object;
  readonly text: string;
  readonly done: boolean;
}

const commands: Readonly<Record<OperatorSettings["command"], (asked: Asked) => Promise<Done>>> = { why, unlock, erase, stats };

/**
 * Runs a command for operators, and closes what it opened.
 *
 * @returns The exit code: 0; 1 if it failed, or did not do what it was asked for; 2 for an error in the command line:
 * a number that no numbering plan has, or a missing customer or secret.
 * Clients that a module opened are still open.
 */
export async function runOperator(settings: OperatorSettings, { out, err }: DevOutput): Promise<number> {
  const warn = (line: string) => err(`phoneproof: ${line}\n`);
  let opened: Opened | undefined;
  try {
    opened = await openVerifier(settings, warn);
    const { data, text, done } = await commands[settings.command]({ settings, ...opened });
    out(settings.json ? `${JSON.stringify(data)}\n` : text);
    return done ? 0 : 1;
  } catch (error) {
    const message = messageOf(error);
    warn(message);
    return [notANumber, noCustomer, noSecret].includes(message) ? 2 : 1;
  } finally {
    await opened?.close();
  }
}

const noCustomer = "this verifier has customers: name one with --customer UUID";

/** Replaces the words of a call by those of the command line. */
function messageOf(error: unknown): string {
  const { message } = error as Error;
  if (message.startsWith("customer_uuid is required")) return noCustomer;
  if ((error as { readonly code?: string }).code === "invalid_phone_number") return notANumber;
  return message
    .replace(/^phoneproof: /, "")
    .replace(/^customer_uuid /, "--customer ")
    .replace(tooManyDays, "--days may be at most $1");
}

/** How an error of `stats` begins that names the most days. */
const tooManyDays = /^from and to may be at most (\d+) days apart/;

async function why({ settings: { number }, verifier, customer }: Asked): Promise<Done> {
  const of = { ...customer, phone_number: number };
  const [history, refusals] = await Promise.all([verifier.history(of), verifier.refusals(of)]);
  const report = reportOf(number, history, refusals, Date.now());
  return { data: report, text: textOf(report), done: true };
}

async function unlock({ settings: { number }, verifier, customer }: Asked): Promise<Done> {
  const of = { ...customer, phone_number: number };
  const [{ length }, refusals] = await Promise.all([verifier.history({ ...of, limit: 1 }), verifier.refusals(of)]);
  const data = await verifier.unlock(of);
  const next = dateOf(data.next_unlock_at);
  const text = data.unlocked
    ? `The limits of ${number} are lifted: the user can ask for a code again. They can be lifted again from ${next} on.\n`
    : `The limits of ${number} were lifted less than a day ago. They can be lifted again from ${next} on.\n`;
  const hint = length + refusals.length === 0 ? `Nothing is stored about it. ${whatToCheck}\n` : "";
  return { data: { phone_number: number, ...data }, text: text + hint, done: data.unlocked };
}

async function erase({ settings: { number, yes }, verifier, customer }: Asked): Promise<Done> {
  const of = { ...customer, phone_number: number };
  if (!yes) {
    const { length } = await verifier.history({ ...of, limit: 1_000 });
    const question =
      length === 0
        ? `No authentication of ${number} is stored. Erase what remains of its history and trust?`
        : `Erase ${number}: ${countOf(length, "authentication")} will be deleted, with the number's history and trust.`;
    const answer = await askPerson(`${question} This cannot be undone. Type yes to continue: `);
    if (answer === undefined) throw new Error("nothing was erased: there is no terminal to ask. Add --yes to erase without a question");
    if (answer.trim().toLowerCase() !== "yes") return { data: { phone_number: number, erased: 0, declined: true }, text: "Nothing was erased.\n", done: false };
  }
  const data = await verifier.erase(of);
  const text = `${countOf(data.erased, "authentication")} of ${number} erased. What its limits have counted is kept under keyed hashes until ${dateOf(data.counts_until)}.\n`;
  const hint = data.erased === 0 ? `None was found. ${whatToCheck}\n` : "";
  return { data: { phone_number: number, ...data }, text: text + hint, done: true };
}

/** Asks a person on standard error, and returns the next line of standard input; `undefined` if it ends without one. */
async function askPerson(question: string): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const ended = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
  }
}

async function stats({ settings: { days }, verifier, customer }: Asked): Promise<Done> {
  const to = new Date();
  const ofLast = (count: number) => verifier.stats({ ...customer, from: new Date(to.getTime() - count * day), to });
  const data = await ofLast(days ?? defaultDays).catch((error: Error) => {
    const most = tooManyDays.exec(error.message)?.[1];
    if (days !== undefined || most === undefined) throw error;
    return ofLast(Number(most));
  });
  return { data, text: statsText(data), done: true };
}

function statsText({ from, to, sends, verified, refused, cost, messages, refusals }: Stats): string {
  const share = (part: number, whole: number) => (whole === 0 ? "" : ` (${Math.round((100 * part) / whole)} %)`);
  const sentRows = messages.map(({ country = "-", route = "-", sends, verified }) => ({ labels: [country, route], values: [sends, verified] }));
  const blockedRows = refusals.map(({ country = "-", rule, refused }) => ({ labels: [country, rule], values: [refused] }));
  const lines = [
    `${dateOf(from)} to ${dateOf(to)}`,
    `${countOf(sends, "message")} sent, ${verified} verified${share(verified, sends)}, ${refused} blocked, cost ${cost}`,
    ...tableOf(["country", "route", "sent", "verified"], sentRows),
    ...tableOf(["country", "rule", "blocked"], blockedRows),
  ];
  return `${lines.join("\n")}\n`;
}

interface Row {
  readonly labels: readonly string[];
  readonly values: readonly number[];
}

/** The sums of the rows that have the same labels, the largest first; no lines without rows. */
function tableOf(head: readonly string[], rows: readonly Row[]): string[] {
  const sums = new Map<string, Row>();
  for (const { labels, values } of rows) {
    const before = sums.get(labels.join("\t"))?.values;
    sums.set(labels.join("\t"), { labels, values: values.map((value, at) => value + (before?.[at] ?? 0)) });
  }
  if (sums.size === 0) return [];
  const sorted = [...sums.values()].sort(({ values: [a = 0] }, { values: [b = 0] }) => b - a);
  const all = [head, ...sorted.map(({ labels, values }) => [...labels, ...values.map(String)])];
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  return ["", ...all.map((row) => row.map((cell, at) => (at < 2 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join("  "))];
}
