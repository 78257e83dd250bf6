import { existsSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../package/built.js";
import { anchorsOf, readPages } from "./pages.js";

const pages = readPages();
const anchors = new Map(pages.map(({ path, text }) => [path, anchorsOf(text)]));

/** Where a page's links lead inside the project: a path and an anchor. */
function linksOf(path: string, text: string): { to: string; path: string; anchor: string }[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, to = ""]) => to)
    .filter((to) => !/^[a-z]+:/.test(to))
    .map((to) => {
      const [file = "", anchor = ""] = to.split("#");
      return { to, path: file === "" ? path : posix.join(dirname(path), file), anchor };
    });
}

describe("every link of the documents leads somewhere", () => {
  it.each(pages)("$path", ({ path, text }) => {
    const links = linksOf(path, text);
    expect(links.filter((link) => !existsSync(join(root, link.path))).map(({ to }) => to)).toEqual([]);
    expect(links.filter((link) => link.anchor !== "" && !anchors.get(link.path)?.includes(link.anchor)).map(({ to }) => to)).toEqual([]);
  });
});

describe("README.md", () => {
  const { text } = pages.find(({ path }) => path === "README.md") ?? { text: "" };

  it("is a front page: at most 150 lines", () => expect(text.split("\n").length).toBeLessThanOrEqual(151));

  it("leads to every page, by itself or by its folder's first", () => {
    const named = new Set(linksOf("README.md", text).map(({ path }) => path));
    const left = pages.filter(({ path }) => path !== "README.md" && !named.has(path) && !path.startsWith("docs/decisions/"));
    expect(left.map(({ path }) => path)).toEqual([]);
  });
});
