import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll } from "vitest";
import type { Inbox } from "../../adapters/sms/inbox.js";
import type { Verifier } from "../../src/index.js";
import type { FixedClock } from "../../src/testing/fixed-clock.js";
import { root } from "../package/built.js";
import { readPage } from "./pages.js";

/** Replaces the pages' own `./verifier.js` by one that exports its inbox and clock. */
const verifierFor = (page: string) => `
import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { inboxSender } from "phoneproof/senders/inbox";
import { fixedClock } from "phoneproof/testing";
export const clock = fixedClock(Date.now());
export const box = inboxSender();
export const verifier = createVerifier({
  store: memoryStore({ name: "${page}" }),
  sender: box,
  clock,
  secret: "${"Kq7".repeat(14)}",
  countries: ["FR"],
  callbacks: { worker: false }, // nothing looks for due ones while the clock jumps
  testNumbers: [{ number: "+447700900123", code: "424242" }],
});
`;

export interface OpenPage {
  readonly verifier: Verifier;
  readonly box: Inbox;
  readonly clock: FixedClock;
  /** Imports one of the page's programs. */
  load<T>(name: string): Promise<T>;
}

/** Writes the programs of a page of docs/ to the files that they name, with that verifier; removed after the tests. */
export async function openPage(page: string): Promise<OpenPage> {
  const folder = join(root, "node_modules/.cache/phoneproof-page", page);
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // Files left by a run that was stopped or that ran only other tests of the file.
  remove();
  afterAll(remove);
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(root, join(folder, "node_modules/phoneproof"), "dir");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  for (const { name, text } of readPage(`docs/${page}.md`).blocks) if (name?.endsWith(".ts")) writeFileSync(join(folder, name), text);
  writeFileSync(join(folder, "verifier.ts"), verifierFor(page));
  writeFileSync(join(folder, "required.ts"), `export const required = () => "${"Zr4".repeat(14)}";`);
  const load = <T>(name: string) => import(/* @vite-ignore */ pathToFileURL(join(folder, name)).href) as Promise<T>;
  return { ...(await load<Omit<OpenPage, "load">>("verifier.ts")), load };
}
