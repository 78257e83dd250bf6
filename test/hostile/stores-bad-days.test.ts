import { existsSync, readdirSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { readCustomersSettings, runCustomers } from "../../src/cli/customers.js";
import { runOperator } from "../../src/cli/operators/run.js";
import { operatorCommands, readOperatorSettings } from "../../src/cli/operators/settings.js";
import { newFolder, openSqlite } from "../support/sqlite.js";

const env = { PHONEPROOF_SECRET: "J3vRk8mQ2xWt7bYp5nZs9cLd4fGh6aEu" };

function folder() {
  const made = newFolder();
  onTestFinished(made.remove);
  return made;
}

/** What a command printed to standard error, after its exit code. */
async function failure(run: (output: { out(text: string): void; err(text: string): void }) => Promise<number>): Promise<string> {
  const lines: string[] = [];
  const code = await run({ out: (text) => lines.push(`out: ${text}`), err: (text) => lines.push(text) });
  return `${code} ${lines.join("")}`;
}

const operator = (command: (typeof operatorCommands)[number], file: string) => {
  const words = { why: ["+33612345678"], unlock: ["+33612345678"], erase: ["+33612345678", "--yes"], stats: [] }[command];
  return failure((output) => runOperator(readOperatorSettings(command, [...words, "--data", file], env), output));
};

const customers = (words: readonly string[], file: string) =>
  failure((output) => runCustomers(readCustomersSettings("customers", [...words, "--data", file], env), output));

describe("a command that needs stored data", () => {
  it("changes nothing in the SQLite file of another application, and says that it holds no data of phoneproof", async () => {
    const { file, folder: path } = folder();
    const own = openSqlite(file);
    own.exec("CREATE TABLE users (phone TEXT)");
    const state = () => [own.prepare("SELECT name FROM sqlite_schema").all(), journal(), readdirSync(path)];
    const journal = () => (own.prepare("PRAGMA journal_mode").get() as { journal_mode: string }).journal_mode;
    const before = state();
    const said = `1 phoneproof: ${file} holds no data of phoneproof: name the store with PHONEPROOF_STORE`;
    for (const command of operatorCommands) expect(await operator(command, file)).toContain(said);
    expect(await customers(["list"], file)).toContain(said);
    expect(state()).toEqual(before);
    own.close();
  });

  it("creates no file if the path is mistyped; customers create does", async () => {
    const { file } = folder();
    expect(await customers(["list"], file)).toContain(`1 phoneproof: there is no file ${file}`);
    expect(existsSync(file)).toBe(false);
    expect(await customers(["create"], file)).toMatch(/^0 /);
    expect(await customers(["list"], file)).toMatch(/^0 out: customer_uuid/);
  });
});
