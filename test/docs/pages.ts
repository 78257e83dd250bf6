import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Document, readDocuments } from "../../tools/llms/llms.js";
import { root } from "../package/built.js";

/** A block of code on a page. */
export interface Block {
  /** The language after the fence: `ts`, `sh`, … */
  readonly language: string;
  /** Path in the reader's project: the first line, `// app/page.tsx`. */
  readonly name: string | undefined;
  readonly text: string;
  /** The line of the fence, from 1. */
  readonly line: number;
  /** Why it cannot run here: `<!-- not run: … -->` on the line above. */
  readonly notRun: string | undefined;
}

export interface Page extends Document {
  readonly blocks: readonly Block[];
}

/** TypeScript and JavaScript, which a reader runs and which name their file. */
export function isProgram({ language }: Block): boolean {
  return /^(ts|tsx|js|jsx|mjs|cjs)$/.test(language);
}

export function readBlocks(text: string): Block[] {
  return [...text.matchAll(/^```(\w+)[^\n]*\n([\s\S]*?)^```$/gm)].map(({ 1: language = "", 2: code = "", index }) => {
    const before = text.slice(0, index);
    return {
      language,
      name: /^\/\/ (\S+\.\w+)\n/.exec(code)?.[1],
      text: code,
      line: before.split("\n").length,
      notRun: /<!-- not run: (.+) -->\n$/.exec(before)?.[1],
    };
  });
}

/** README.md and all pages of docs/, by path. */
export function readPages(): Page[] {
  const readme = { path: "README.md", text: readFileSync(join(root, "README.md"), "utf8") };
  return [readme, ...readDocuments()].map((document) => ({ ...document, blocks: readBlocks(document.text) }));
}

export function readPage(path: string): Page {
  const page = readPages().find((one) => one.path === path);
  if (!page) throw new Error(`${path} is missing`);
  return page;
}

/** The anchors of a page's headings, as GitHub and VitePress generate them, and its explicit ones: `<a id="…">`. */
export function anchorsOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, "");
  const seen = new Map<string, number>();
  const headings = [...prose.matchAll(/^#{1,6} (.+)$/gm)].map(([, title = ""]) => {
    const slug = title
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .trim()
      .replaceAll(" ", "-");
    const before = seen.get(slug) ?? 0;
    seen.set(slug, before + 1);
    return before === 0 ? slug : `${slug}-${before}`;
  });
  return [...headings, ...[...prose.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, id = ""]) => id)];
}
