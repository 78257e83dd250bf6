import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { root } from "../package/built.js";
import { anchorsOf, readPages } from "./pages.js";

const pages = readPages();
const anchors = new Map(pages.map(({ path, text }) => [path, anchorsOf(text)]));

/** The targets of a page's links inside the project: a path and an anchor. */
function linksOf(path: string, text: string): { to: string; path: string; anchor: string }[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");
  return [...prose.matchAll(/\]\(([^)\s]+)\)|(?:href|src)="([^"]+)"/g)]
    .map(([, to, of]) => to ?? of ?? "")
    .filter((to) => !/^[a-z]+:/.test(to))
    .map((to) => {
      const [file = "", anchor = ""] = to.split("#");
      return { to, path: file === "" ? path : posix.join(dirname(path), file), anchor };
    });
}

describe("every link of the documents leads to an existing file and anchor", () => {
  it.each(pages)("$path", ({ path, text }) => {
    const links = linksOf(path, text);
    expect(links.filter((link) => !existsSync(join(root, link.path))).map(({ to }) => to)).toEqual([]);
    expect(links.filter((link) => link.anchor !== "" && !anchors.get(link.path)?.includes(link.anchor)).map(({ to }) => to)).toEqual([]);
  });
});

it("every page and anchor that a message of the library names exists", () => {
  const texts = readFileSync(join(root, "test/package/texts.snap"), "utf8");
  const named = [...texts.matchAll(/(docs\/[\w/-]+\.md)(?:#([\w-]+))?/g)].map(([to, path = "", anchor]) => ({ to, path, anchor }));
  expect(named.length).toBeGreaterThan(1);
  expect(named.filter(({ path, anchor }) => !anchors.has(path) || (anchor !== undefined && !anchors.get(path)?.includes(anchor)))).toEqual([]);
});

describe("no link leads to a file that its reader does not have", () => {
  /** The `files` of package.json, and what npm always packs. */
  const isPacked = (path: string) =>
    /^(README\.md|LICENSE|docs\/.+\.md|docs\/[^/]+\.(png|svg))$/.test(path) || manifest.files.includes(path.split("/")[0] ?? "");
  /** The pages, and the files that the site serves with them. */
  const isInSite = (path: string) => path.startsWith("docs/") || existsSync(join(root, "docs/public", path));
  const outOf = (has: (path: string) => boolean, { path, text }: { path: string; text: string }) =>
    linksOf(path, text)
      .filter((link) => !has(link.path))
      .map(({ to }) => to);

  it.each(pages)("the package: $path", (page) => expect(outOf(isPacked, page)).toEqual([]));

  it.each(pages.filter(({ path }) => path !== "README.md"))("the site: $path", (page) => expect(outOf(isInSite, page)).toEqual([]));
});

describe("README.md", () => {
  const { text } = pages.find(({ path }) => path === "README.md") ?? { text: "" };

  it("begins with its version, license, demo and cost, and has code by line 25", () => {
    const start = text.slice(0, text.indexOf("```ts\n"));
    expect(start.split("\n").length).toBeLessThanOrEqual(25);
    expect(start).toContain(`Version ${manifest.version}, not yet published`);
    for (const words of [`${manifest.license} license`, "docs/demo.png", "docs/compare.md#cost"]) expect(start).toContain(words);
    expect(statSync(join(root, "docs/demo.png")).size).toBeLessThan(100_000);
  });

  it("has at most 150 lines", () => expect(text.split("\n").length).toBeLessThanOrEqual(151));

  it("links to every page outside docs/decisions", () => {
    const named = new Set(linksOf("README.md", text).map(({ path }) => path));
    const left = pages.filter(({ path }) => path !== "README.md" && !named.has(path) && !path.startsWith("docs/decisions/"));
    expect(left.map(({ path }) => path)).toEqual([]);
  });
});
