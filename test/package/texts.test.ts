import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { textsOf } from "./texts.js";

const root = join(import.meta.dirname, "../..");

/** Texts with their own snapshot or test, titles of test cases, and SQL. */
const elsewhere = /\/openapi\.ts$|^clients\/otp-input\/words\.ts|^src\/testing\/(?:store|sender)-contract|^adapters\/store\/postgres\/schema\.ts/;

const files = ["src", "adapters", "clients"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((path) => `${folder}/${path.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts") && !elsewhere.test(path)),
);

/** The sentences of each folder in alphabetical order, so that code can move without a change here. */
function snapshot(): string {
  const rooms = new Map<string, Set<string>>();
  for (const path of files) {
    const room = path.split("/").slice(0, -1).slice(0, 2).join("/");
    rooms.set(room, new Set([...(rooms.get(room) ?? []), ...textsOf(path, readFileSync(join(root, path), "utf8"))]));
  }
  const written = [...rooms].filter(([, texts]) => texts.size > 0).sort(([one], [other]) => (one < other ? -1 : 1));
  return `${written.map(([room, texts]) => [`## ${room}`, ...[...texts].sort()].join("\n")).join("\n\n")}\n`;
}

describe("texts.snap: the texts of the library in errors, logs and on the command line", () => {
  it("contains every sentence of the sources; `npm run texts` updates it", async () => {
    await expect(snapshot()).toMatchFileSnapshot("texts.snap");
  });
});

describe("textsOf", () => {
  it("finds strings and templates, names their placeholders, and omits names, headers and descriptions", () => {
    const source = `
      throw new VerifierError("bad_request", \`\${fault.option} is missing: \${list()}\`);
      logger.warn({ err }, failing ? "the store failed" : "works");
      described(z.string("must be text"), "The caller's identifier.");
      headers.set("content-type", "text/plain; charset=utf-8");
    `;
    expect(textsOf("one.ts", source)).toEqual(["{option} is missing: {…}", "the store failed", "must be text"]);
  });
});
