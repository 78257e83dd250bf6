import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");

export interface Document {
  /** Path from the project's folder: `docs/stores.md`. */
  readonly path: string;
  readonly text: string;
}

/** All pages of docs/, by path. */
export function readDocuments(): Document[] {
  const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".md") && !path.startsWith("."));
  return docs.sort().map((path) => ({ path: `docs/${path}`, text: read(`docs/${path}`) }));
}

/** The URL of this version's files once it is published, on which `doc_url` is based, too. */
function base(): string {
  const { name, version } = JSON.parse(read("package.json")) as { name: string; version: string };
  return `https://unpkg.com/${name}@${version}/`;
}

const plain = (text: string) => text.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("**", "");

/** The first sentences of a page, up to 200 characters of them. */
function lead(text: string): string {
  const [, first = ""] = /^# .+\n+(?![#|`<])((?:.+\n)+)/.exec(text) ?? [];
  const sentences = plain(first.trim().replaceAll("\n", " ")).split(/(?<=[.?!]) (?=[A-Z])/);
  return sentences.filter((one, at) => /[.?!]$/.test(one) && sentences.slice(0, at + 1).join(" ").length <= 200).join(" ") || (sentences[0] ?? "");
}

/** The pages in the order of index.md, then the others. */
function inOrder(documents: readonly Document[]): Document[] {
  const index = documents.find(({ path }) => path === "docs/index.md")?.text ?? "";
  const named = [...index.matchAll(/\]\(([^)#]+\.md)/g)].map(([, path]) => `docs/${path}`);
  const place = (path: string) => (path === "docs/index.md" ? -1 : named.includes(path) ? named.lastIndexOf(path) : named.length);
  return [...documents].sort((a, b) => place(a.path) - place(b.path) || a.path.replace("index.md", "").localeCompare(b.path.replace("index.md", "")));
}

/** A working integration and a list of the documents, for AI tools: see llmstxt.org. */
export function llms(): string {
  const documents = inOrder(readDocuments());
  const rows = documents.map(({ path, text }) => {
    const title = /^# (.+)$/m.exec(text)?.[1] ?? path;
    const about = lead(text);
    return `- [${plain(title)}](${base()}${path})${about === "" ? "" : `: ${about}`}`;
  });
  const [, summary = ""] = /^# .+\n+((?:.+\n)+)/.exec(documents[0]?.text ?? "") ?? [];
  return `# phoneproof

> ${plain(summary.trim())}

${read("tools/llms/start.md").trim()}

## Documents

Until the package is published, these files are in the repository and in the packed package, under the same paths.

${rows.join("\n")}
- [All of these pages in one file](${base()}dist/llms-full.txt)

## HTTP

- [openapi.json](${base()}openapi.json): the four routes and the webhook, as an OpenAPI 3.1 document
`;
}

/** All pages in one file, each below its URL. */
export function llmsFull(): string {
  return inOrder(readDocuments())
    .map(({ path, text }) => `<!-- ${base()}${path} -->\n\n${text.trim()}\n`)
    .join("\n");
}
