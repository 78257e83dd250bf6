import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authenticationStatuses } from "../../src/contract/authentication.js";
import { checkStatuses } from "../../src/contract/check.js";
import { callerFaultCodes, transportFaultCodes } from "../../src/contract/fault.js";
import { retryStatuses } from "../../src/contract/retry.js";
import { VerifierError } from "../../src/errors.js";
import { readOptions } from "../../src/options.js";
import { neededOptions } from "../support/options.js";
import { root } from "./built.js";

const readme = readFileSync(join(root, "README.md"), "utf8");

/** `{ a: { b: 1 } }` → `a.b` `1`; lists are leaves, and so is each rule of `policy.spam`. */
function leaves(value: object, path = ""): [name: string, value: unknown][] {
  return Object.entries(value).flatMap(([key, inner]): [string, unknown][] =>
    path !== "policy.spam." && typeof inner === "object" && inner !== null && !Array.isArray(inner) ? leaves(inner, `${path}${key}.`) : [[path + key, inner]],
  );
}

describe("README.md: the table of defaults", () => {
  const table = /<!-- defaults:.*?-->([\s\S]*?)<!-- \/defaults -->/.exec(readme)?.[1] ?? "";
  const rows = [...table.matchAll(/^\| `([^`]+)` \| `([^`]+)` \|/gm)].map(([, name, value]) => [name, JSON.parse(value as string)]);

  it("holds every default of the code, and no other", () => {
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
    expect(docUrl).toContain("#errors");
    // What is off or empty by default has no row, and whatever is new has one.
    const empty = {
      testNumbers: new Map(),
      spamRules: [],
      ipInfo: undefined,
      onEvent: undefined,
      challenge: undefined,
      receiptSources: [],
      allowOrigins: [],
      pepper: undefined,
      receiptBase: undefined,
      waitUntil: undefined,
    };
    expect({ ...none, ...noRules }).toStrictEqual(empty);
    expect(lists).toEqual({});
  });
});

describe("README.md: the tables of statuses and errors", () => {
  const errors = /## Errors([\s\S]*?)\n## /.exec(readme)?.[1] ?? "";

  it("every status has its row", () => {
    for (const status of [...authenticationStatuses, ...retryStatuses, ...checkStatuses]) expect(readme).toMatch(new RegExp(`^\\|.*\`${status}\`.*\\|`, "m"));
  });

  it("every fault code stands beside its HTTP status", () => {
    // Kept for clients of the wire format: this library never answers it.
    for (const code of [...callerFaultCodes, ...transportFaultCodes].filter((one) => one !== "negative_balance")) {
      expect(errors).toMatch(new RegExp(`^\\| ${new VerifierError(code, "").status} \\|.*\`${code}\``, "m"));
    }
  });
});

describe("README.md: what a client of Ding v1 can keep", () => {
  const section = /## From Prelude Verify v1 or Ding([\s\S]*?)\n## /.exec(readme)?.[1] ?? "";

  it("clients that take a server URL, and those that hard-code it", () => {
    const rows = new Map([...section.matchAll(/^\| (`.*) \| (.*) \|$/gm)].map(([, client, url]) => [client as string, url as string]));
    const kept = [...rows].filter(([, url]) => /server_?url/i.test(url)).map(([client]) => client.match(/ding-\w+/)?.[0]);
    expect(kept).toEqual(["typescript", "python", "golang", "java", "php", "ruby", "csharp"].map((language) => `ding-${language}`));
    for (const client of ["ding-node", "ding-go", "firebase-integration-go"])
      expect([...rows].find(([clients]) => clients.includes(`\`${client}\``))?.[1], client).toContain("hard-coded");
  });

  it("a receiver cannot be kept, and the first page says so", () => {
    expect(section).toContain("A receiver written for v1's webhooks is not served as it is");
    expect(readme.slice(0, readme.indexOf("\n## "))).toMatch(/keep your client \(\[[^\]]+\]\(#from-prelude-verify-v1-or-ding\); a webhook receiver cannot\)/);
  });
});

describe("README.md: the snippets", () => {
  const folder = join(root, "node_modules/.cache/phoneproof-readme");
  const snippets = [...readme.matchAll(/```ts\n\/\/ (\S+)\n([\s\S]*?)```/g)].map(([, name, text]) => ({ name: name as string, text: text as string }));

  beforeAll(() => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    for (const { name, text } of snippets) writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, "my-store.ts"), 'export { memoryStore as myStore } from "phoneproof/memory";\n');
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          target: "ES2022",
          module: "NodeNext",
          moduleResolution: "NodeNext",
          strict: true,
          noEmit: true,
          skipLibCheck: true,
          types: ["node"],
          lib: ["ES2023"],
        },
        include: ["*.ts"],
      }),
    );
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    mkdirSync(join(folder, "node_modules"), { recursive: true });
    symlinkSync(root, join(folder, "node_modules/phoneproof"), "dir");
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("each names its file", () => {
    expect(snippets.length).toBe(readme.match(/```ts\n/g)?.length);
    expect(snippets.length).toBeGreaterThan(5);
  });

  it("all compile, strictly, against the built package", async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", folder], { cwd: root }).catch(
      (error: { stdout: string }) => error,
    );
    expect(stdout).toBe("");
  });

  it("the direct calls run", async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [join(root, "node_modules/tsx/dist/cli.mjs"), join(folder, "direct.ts")], {
      cwd: folder,
      timeout: 30_000,
      env: { ...process.env, PHONEPROOF_SECRET: randomBytes(32).toString("base64"), PHONEPROOF_API_KEY: randomBytes(32).toString("base64") },
    });
    expect(stdout).toContain("SMS to +33612345678");
    expect(stdout).toMatch(/^pending$/m);
  });

  it.each([undefined, ""])("H5: the receiver does not start where WEBHOOK_SECRET is %j", async (WEBHOOK_SECRET) => {
    const started = promisify(execFile)(process.execPath, [join(root, "node_modules/tsx/dist/cli.mjs"), join(folder, "receiver.ts")], {
      cwd: folder,
      timeout: 30_000,
      env: { ...process.env, WEBHOOK_SECRET },
    });
    await expect(started).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("set WEBHOOK_SECRET to what verifier.webhookSecrets") });
  });
});
