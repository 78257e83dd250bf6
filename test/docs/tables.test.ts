import { describe, expect, it } from "vitest";
import { placeholders } from "../../adapters/sms/http-template.js";
import { authenticationStatuses } from "../../src/contract/authentication.js";
import { checkStatuses } from "../../src/contract/check.js";
import { errorCodes } from "../../src/contract/error.js";
import { factHeaders } from "../../src/contract/facts.js";
import { retryStatuses } from "../../src/contract/retry.js";
import { VerifierError, type VerifierErrorCode } from "../../src/errors.js";
import { readOptions } from "../../src/options/options.js";
import { neededOptions } from "../support/options.js";
import { setUp } from "../support/verifier.js";
import { anchorsOf, readPage, readPages } from "./pages.js";

/** `{ a: { b: 1 } }` → `a.b` `1`; lists are leaves, and so is each rule of `policy.spam`. */
function leaves(value: object, path = ""): [name: string, value: unknown][] {
  return Object.entries(value).flatMap(([key, inner]): [string, unknown][] =>
    path !== "policy.spam." && typeof inner === "object" && inner !== null && !Array.isArray(inner) ? leaves(inner, `${path}${key}.`) : [[path + key, inner]],
  );
}

describe("docs/options.md: the table of defaults", () => {
  const table = /<!-- defaults:.*?-->([\s\S]*?)<!-- \/defaults -->/.exec(readPage("docs/options.md").text)?.[1] ?? "";
  const rows = [...table.matchAll(/^\| `([^`]+)` \| `([^`]+)` \|/gm)].map(([, name, value]) => [name, JSON.parse(value as string)]);

  it("lists exactly the defaults of the code", () => {
    const {
      policy,
      message,
      numberRules,
      pollInterval,
      fullNumber,
      deliver,
      callbackConcurrency,
      statisticsKept = 0,
      ...settings
    } = readOptions(neededOptions);
    const {
      sendTimeout,
      storeTimeout,
      lookupTimeout,
      lookupBeforeSend,
      clockSkew,
      docUrl,
      blocked,
      secrets,
      countries,
      lists: { refresh, ...lists },
      ...none
    } = settings;
    const { validation, ambiguousLineType, ...noRules } = numberRules;
    const seconds = Object.entries({
      sendTimeout,
      storeTimeout,
      lookupTimeout,
      clockSkew,
      "lists.refresh": refresh,
      "callbacks.pollInterval": pollInterval,
      "statistics.keep": statisticsKept,
    });
    const defaults = [
      ...leaves({ policy, message, phoneValidation: validation, ambiguousLineType, lookupBeforeSend }),
      ...leaves({ callbacks: { fullNumber, worker: deliver, concurrency: callbackConcurrency } }),
      ...seconds.map(([name, ms]) => [name, ms / 1000] as const),
    ];
    expect(new Map(rows as [string, unknown][])).toEqual(new Map(defaults));
    expect(docUrl).toContain("docs/errors.md");
    // Options that are off or empty by default have no row; every new option needs one.
    const empty = {
      testNumbers: new Map(),
      spamRules: [],
      ownCells: [],
      receiptSources: [],
      allowOrigins: [],
      receiptBase: undefined,
      keepCode: false,
      // These depend on the sender.
      callsFixedLines: undefined,
      channels: ["sms"],
      noCeiling: expect.stringContaining("needs to know what a message costs"),
    };
    expect({ ...none, ...noRules }).toStrictEqual(empty);
    expect(lists).toEqual({});
  });
});

describe("docs/carriers.md: the placeholders of httpSender", () => {
  it.each(Object.keys(placeholders))("has {%s}", (name) => expect(readPage("docs/carriers.md").text).toMatch(new RegExp(`^\\|.*\`\\{${name}\\}\`.*\\|`, "m")));
});

describe("docs/api.md: the calls of a verifier", () => {
  const { text } = readPage("docs/api.md");
  const rows = [...text.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, name = ""]) => name);

  it("has a row for each call, and no other rows", () => {
    const { http, receipts, metricsHandler, verifications, ...calls } = setUp({ customers: "store" }).verifier;
    const plumbing = Object.keys(http);
    const names = [...Object.keys(calls).filter((name) => !plumbing.includes(name)), ...Object.keys(verifications).map((name) => `verifications.${name}`)];
    const facts = Object.keys(factHeaders).filter((name) => name !== "phone_number");
    expect(rows.filter((name) => !facts.includes(name)).sort()).toEqual(names.sort());
    for (const handler of [receipts, metricsHandler]) expect(handler.root).toBeDefined();
  });

  it.each(Object.keys(setUp({ customers: "store" }).verifier.customers.keys))("names customers.keys.%s", (name) => expect(text).toContain(`\`keys.${name}\``));
});

describe("reading and deleting", () => {
  it("never share a snippet", () => {
    const reads = /\.(history|explain|refusals|stats|get|list)\(|phoneproof (why|stats|keys list|customers (get|list))/;
    const deletes = /\.erase\(|\.revoke\(|\.suspend\(|phoneproof (erase|keys revoke|customers suspend)/;
    const both = readPages().flatMap(({ path, blocks }) =>
      blocks.filter(({ text }) => reads.test(text) && deletes.test(text)).map(({ line }) => `${path}:${line}`),
    );
    expect(both).toEqual([]);
  });
});

describe("docs/install.md: the table of statuses", () => {
  it.each([...new Set([...authenticationStatuses, ...retryStatuses, ...checkStatuses])])("has a row for %s", (status) => {
    expect(readPage("docs/install.md").text).toMatch(new RegExp(`^\\|.*\`${status}\`.*\\|`, "m"));
  });
});

describe("docs/errors.md", () => {
  const { text } = readPage("docs/errors.md");
  const codes: readonly VerifierErrorCode[] = [...errorCodes, "invalid_options"];

  it("has an anchor for each code, with its HTTP status, reason and fix, in the order of the table", () => {
    const parts = text.split(/^### /m).slice(1);
    expect(parts.map((part) => part.slice(0, part.indexOf("\n")))).toEqual([...text.matchAll(/^\| \d+ \| \[`(\w+)`\]\(#\1\) \|$/gm)].map(([, code]) => code));
    for (const code of codes) {
      expect(anchorsOf(text)).toContain(code);
      const part = parts.find((one) => one.startsWith(`${code}\n`));
      // The wire defines this code, but the library never returns it.
      const status = code === "negative_balance" ? 400 : new VerifierError(code, "").status;
      expect(part, code).toMatch(new RegExp(`^\\*\\*.+\\*\\* HTTP ${status}\\.\n\nWhy: .+\n\nFix: .+`, "m"));
      expect(text).toContain(`| ${status} | [\`${code}\`](#${code}) |`);
    }
    expect(parts).toHaveLength(codes.length);
  });
});
