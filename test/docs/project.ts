import { execFile } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { root } from "../package/built.js";
import { isProgram, type Page } from "./pages.js";

/** The page from which others take a `./verifier.js` that they do not show. */
export const sharedPage = "docs/install.md";

const compilerOptions = {
  target: "ES2022",
  module: "ESNext",
  moduleResolution: "Bundler",
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noImplicitReturns: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  skipLibCheck: true,
  types: ["node"],
  lib: ["ES2023", "DOM", "DOM.Iterable"],
  jsx: "react-jsx",
  allowJs: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

/** The folder of a page's files in the project. */
export function folderOf(page: string): string {
  return page.replace(/^docs\//, "").replace(/\.md$/, "");
}

export interface Project {
  /** The path of a block's compiled file. */
  fileOf(page: string, name: string): string;
  /** Type-checks and compiles all pages; returns the compiler's errors. `unchecked`: only compiles. */
  compile(unchecked?: "unchecked"): Promise<string>;
  remove(): void;
}

/**
 * A project in which each page is a folder with its blocks as files, and with those of install.md that it imports but
 * does not show. It finds the build of `phoneproof` as an installed package.
 */
export function layOut(pages: readonly Page[], name: string): Project {
  const folder = join(root, "node_modules/.cache", name);
  const shared = pages.find(({ path }) => path === sharedPage)?.blocks.filter(isProgram) ?? [];
  const imported = (texts: readonly string[]) => shared.filter(({ name }) => texts.some((text) => text.includes(`/${name?.replace(/\.ts$/, "")}`)));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(root, join(folder, "node_modules/phoneproof"), "dir");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...compilerOptions, rootDir: "src", outDir: "out" }, include: ["src"] }));
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "src/styles.d.ts"), 'declare module "*.css";'); // Next.js does this for its apps.
  for (const page of pages) {
    const own = page.blocks.filter(isProgram);
    const taken = imported(own.map(({ text }) => text));
    const files = new Map([...imported(taken.map(({ text }) => text)), ...taken, ...own].map((block) => [block.name, block.text]));
    for (const [file, text] of files) {
      const path = join(folder, "src", folderOf(page.path), file ?? "");
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
  }
  return {
    fileOf: (page, file) => join(folder, "out", folderOf(page), file.replace(/\.(\w?)tsx?$|\.(\w?)jsx$/, ".$1$2js")),
    async compile(unchecked) {
      const args = [join(root, "node_modules/typescript-7/bin/tsc"), "-p", folder, "--noCheck", String(unchecked !== undefined)];
      const tsc = promisify(execFile)(process.execPath, args, { cwd: folder });
      return (await tsc.catch((error: { stdout: string }) => error)).stdout;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
