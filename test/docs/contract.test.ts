import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../package/built.js";

const page = "docs/contract.md";
const text = readFileSync(join(root, page), "utf8");

/** The rules by their anchors: the line or table cell that the anchor begins, and what is indented under it. */
const rules = new Map([...text.matchAll(/<a id="([\w-]+)"><\/a>((?:[^\n]|\n(?= +\||\n +\|))*)/g)].map(([, id = "", words = ""]) => [id, words]));
const sections = [...text.matchAll(/^#{2,3} (.+)$/gm)].map(([, title = ""]) => title.toLowerCase().replaceAll(" ", "-"));

/** Rules that no single place implements, or that state what the library does not do. */
const prose = new Set(["no-quota", "growth", "no-sleeps"]);

const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], { cwd: root, encoding: "utf8" }).split("\0");
const files = listed
  .filter((path) => /\.(ts|tsx|js|mjs|cjs|lua|md|yml|pl)$/.test(path))
  .flatMap((path) => {
    try {
      return [{ path, text: readFileSync(join(root, path), "utf8") }];
    } catch {
      return []; // deleted, but not yet committed
    }
  });
const code = files.filter(({ path }) => /^(src|adapters|test|bench|examples)\//.test(path) && path !== "test/docs/contract.test.ts");

/** Comments as running text: without their stars and line breaks. */
const flat = (source: string) => source.replace(/\n\s*(?:\*|\/\/) ?/g, " ");
const places = code.flatMap((file) => [...flat(file.text).matchAll(/docs\/contract\.md#([\w-]+)/g)].map(([, anchor = ""]) => ({ path: file.path, anchor })));

describe("docs/contract.md: rules and the places that name them", () => {
  it("has a unique anchor for each rule", () => {
    const anchors = [...text.matchAll(/<a id="([^"]+)"/g)].map(([, id]) => id as string);
    expect(anchors.length).toBeGreaterThan(100);
    expect(anchors.filter((id, index) => anchors.indexOf(id) !== index || !/^[a-z][a-z0-9-]*$/.test(id))).toEqual([]);
    expect(anchors.filter((id) => sections.includes(id))).toEqual([]);
    expect(text.match(/^- (?!<a id=)/gm)).toBeNull();
  });

  it("each anchor that code or a test names exists", () => {
    expect(places.filter(({ anchor }) => !rules.has(anchor) && !sections.includes(anchor))).toEqual([]);
  });

  it("each anchor that a page links to exists", () => {
    const links = files.flatMap(({ path, text: source }) =>
      [...source.matchAll(/\((?:[\w./-]*\/)?contract\.md#([\w-]+)\)/g)].map(([, anchor = ""]) => ({ path, anchor })),
    );
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter(({ anchor }) => !rules.has(anchor) && !sections.includes(anchor))).toEqual([]);
  });

  it("each rule is named by a docstring or a test's title, except prose", () => {
    const named = new Set(places.map(({ anchor }) => anchor));
    expect([...rules.keys()].filter((id) => !named.has(id) && !prose.has(id))).toEqual([]);
    expect([...prose].filter((id) => named.has(id) || !rules.has(id))).toEqual([]);
  });

  it("quotations of a rule are its exact words, with … for omissions", () => {
    const quotes = code.flatMap((file) =>
      [...flat(file.text).matchAll(/"([^"\n]+)" \(docs\/contract\.md#([\w-]+)\)/g)].map(([, quote = "", anchor = ""]) => ({ path: file.path, quote, anchor })),
    );
    const plain = (words: string) => words.replace(/\*\*/g, "").replace(/\s+/g, " ");
    const isQuote = ({ quote, anchor }: (typeof quotes)[number]) => {
      let rest = plain(rules.get(anchor) ?? "");
      return quote.split("…").every((part) => {
        const words = plain(part).trim();
        const at = rest.indexOf(words);
        rest = rest.slice(at + words.length);
        return at !== -1;
      });
    };
    expect(quotes.length).toBeGreaterThan(50);
    expect(quotes.filter((quote) => !isQuote(quote))).toEqual([]);
  });

  it("no file names a page that is not in the project", () => {
    const absent = /(?<![\w/-])(?:spec|architecture|carriers|threats|practice|contract)\.md\b|\bwire rules? \d/;
    const lines = files
      .filter(({ path }) => path !== "test/docs/contract.test.ts" && !path.startsWith("docs/") && path !== "README.md")
      .flatMap(({ path, text: source }) => source.split("\n").map((line, index) => ({ at: `${path}:${index + 1}`, line })));
    expect(lines.filter(({ line }) => absent.test(line))).toEqual([]);
  });

  it("no test title starts with the number of a finding", () => {
    const titles = code.flatMap(({ path, text: source }) =>
      [...source.matchAll(/\b(?:describe|it|test)(?:\.\w+)*\([^\n]*?["'`]([A-Z]\d{1,2}:? [^\n]*)/g)].map(([, title]) => `${path}: ${title}`),
    );
    expect(titles).toEqual([]);
  });
});
