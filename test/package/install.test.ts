import { readFileSync } from "node:fs";
import { join } from "node:path";
import { satisfies } from "semver";
import { expect, test } from "vitest";
import { root } from "./built.js";

/** The part of an entry of package-lock.json that is read here. */
interface Entry {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly optional?: boolean;
  readonly engines?: { readonly node?: string };
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
}

const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as { packages: Readonly<Record<string, Entry>> };

/** The place of a package that is imported in a folder: there, or in the closest folder above. */
function placeOf(name: string, folder: string): string | undefined {
  const place = join(folder, "node_modules", name);
  if (packages[place] !== undefined) return place;
  return folder === "" ? undefined : placeOf(name, folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules") - 1)));
}

/** The packages of the root's `npm ci` on one platform. */
function installed(folder = "", found = new Set<string>()): Set<string> {
  const { dependencies, devDependencies, optionalDependencies } = packages[folder] ?? {};
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...(folder === "" ? devDependencies : {}) })) {
    const place = placeOf(name, folder);
    if (place === undefined || found.has(place)) continue;
    const { os = ["linux"], cpu = ["x64"], libc = ["glibc"] } = packages[place] ?? {};
    if (os.includes("linux") && cpu.includes("x64") && libc.includes("glibc")) installed(place, found.add(place));
  }
  return found;
}

test("npm ci installs fewer than 250 packages for the demo and the unit tests", () => {
  expect(readFileSync(join(root, ".npmrc"), "utf8").split("\n")).toEqual(expect.arrayContaining(["workspaces=false", "legacy-peer-deps=true"]));
  const folders = [...installed()];
  expect(folders).toEqual(expect.arrayContaining(["node_modules/tsup", "node_modules/vitest", "node_modules/zod"]));
  expect(folders.filter((folder) => /\/(next|express|vitepress|knip)$/.test(folder))).toEqual([]);
  expect(folders.length).toBeLessThan(250);
});

/** npm leaves out an optional package that does not support the current Node. */
test("every package supports Node 20.19", () => {
  const others = Object.entries(packages).filter(([, { optional, engines }]) => !optional && !satisfies("20.19.0", engines?.node ?? "*"));
  expect(others).toEqual([]);
});
