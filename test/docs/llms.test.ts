import { expect, it } from "vitest";
import { readPages } from "./pages.js";

const pages = readPages().filter(({ path }) => path !== "README.md");
const index = pages.find(({ path }) => path === "docs/index.md")?.text ?? "";

const plain = (text: string) => text.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("**", "");

/** The first sentences of a page, up to 200 characters of them. */
function lead(text: string): string {
  const [, first = ""] = /^# .+\n+(?![#|`<])((?:.+\n)+)/.exec(text) ?? [];
  const sentences = plain(first.trim().replaceAll("\n", " ")).split(/(?<=[.?!]) (?=[A-Z])/);
  return sentences.filter((one, at) => /[.?!]$/.test(one) && sentences.slice(0, at + 1).join(" ").length <= 200).join(" ") || (sentences[0] ?? "");
}

/** As index.md names the pages, then the others. */
function inOrder(): typeof pages {
  const named = [...index.matchAll(/\]\(([^)#]+\.md)/g)].map(([, path]) => `docs/${path}`);
  const place = (path: string) => (path === "docs/index.md" ? -1 : named.includes(path) ? named.lastIndexOf(path) : named.length);
  return [...pages].sort((a, b) => place(a.path) - place(b.path) || a.path.replace("index.md", "").localeCompare(b.path.replace("index.md", "")));
}

/** The map of the documents for programs that read, after llmstxt.org. */
function llms(): string {
  const rows = inOrder().map(({ path, text }) => {
    const title = /^# (.+)$/m.exec(text)?.[1] ?? path;
    const about = lead(text);
    return `- [${plain(title)}](${path})${about === "" ? "" : `: ${about}`}`;
  });
  const [, summary = ""] = /^# .+\n+((?:.+\n)+)/.exec(index) ?? [];
  return `# phoneproof\n\n> ${plain(summary.trim())}\n\n## Documents\n\n${rows.join("\n")}\n\n## The wire\n\n- [openapi.json](openapi.json): the four routes and the webhook, as an OpenAPI 3.1 document\n`;
}

it("llms.txt is what the pages say; `npm run llms` writes it anew", async () => {
  await expect(llms()).toMatchFileSnapshot("../../llms.txt");
});
