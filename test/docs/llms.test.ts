import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defaultDocUrl } from "../../src/options/schema.js";
import { llms, llmsFull } from "../../tools/llms/llms.js";
import { root } from "../package/built.js";
import { environmentFor } from "./environment.js";
import { readBlocks, readPages } from "./pages.js";
import { layOut } from "./project.js";

const text = llms();
const base = defaultDocUrl.replace("docs/errors.md", "");
const pages = readPages().filter(({ path }) => path !== "README.md");

it("llms.txt is generated from the pages; `npm run llms` writes it", async () => {
  await expect(text).toMatchFileSnapshot("../../llms.txt");
});

it("every link of llms.txt is absolute, and leads to an existing file", () => {
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link = ""]) => link);
  expect(links.length).toBeGreaterThan(pages.length);
  expect(links.filter((link) => !link.startsWith(base) || !existsSync(join(root, link.slice(base.length))))).toEqual([]);
});

it("llms-full.txt contains every page, and is in the build", () => {
  const full = llmsFull();
  expect(pages.filter((page) => !full.includes(`<!-- ${base}${page.path} -->\n\n${page.text.trim()}\n`)).map(({ path }) => path)).toEqual([]);
  expect(readFileSync(join(root, "dist/llms-full.txt"), "utf8").split("\n")[0]).toBe(full.split("\n")[0]);
});

describe("the first 40 lines of llms.txt", () => {
  const lines = text.split("\n").slice(0, 40).join("\n");
  const page = { path: "docs/llms.md", text: lines, blocks: readBlocks(lines) };
  const project = layOut([page], "phoneproof-llms");
  let complaints = "";

  beforeAll(async () => {
    complaints = await project.compile();
  });
  afterAll(() => project.remove());

  it("contain everything before the list of documents", () => {
    const [start = ""] = text.split("\n## ");
    expect(start.trim()).toBe(lines.split("\n## ")[0]?.trim());
  });

  it("compile, strictly, against the built package", () => expect(complaints).toBe(""));

  it("run: a code is sent, entered and valid", async () => {
    const child = spawn(process.execPath, [project.fileOf(page.path, "verify.ts"), "+33612345678"], {
      env: { PATH: process.env.PATH, ...environmentFor([lines]) } as unknown as NodeJS.ProcessEnv,
      stdio: ["pipe", "pipe", "inherit"],
    });
    let printed = "";
    child.stdout.on("data", (chunk) => {
      printed += chunk;
      const code = /\b\d{6}\b/.exec(printed)?.[0];
      if (code !== undefined && printed.includes("Code: ")) child.stdin.end(`${code}\n`);
    });
    expect(await once(child, "close")).toEqual([0, null]);
    expect(printed).toMatch(/pending[\s\S]*valid \+33612345678/);
  });

  it("name mounts that the built package exports", async () => {
    const mounts = [...lines.matchAll(/`(\w+)` of `(phoneproof\/\w+)`/g)];
    expect(mounts.length).toBe(5);
    for (const [, name = "", subpath = ""] of mounts) expect(Object.keys(await import(/* @vite-ignore */ subpath)), subpath).toContain(name);
  });
});
