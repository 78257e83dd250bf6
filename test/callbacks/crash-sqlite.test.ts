import { afterAll, describe } from "vitest";
import { newFolder } from "../support/sqlite.js";
import { crashCases } from "./crash-cases.js";

describe("killed processes on an SQLite file", () => {
  const folders: ReturnType<typeof newFolder>[] = [];

  crashCases("SQLite", 200, 10, new URL("crash-sqlite-process.ts", import.meta.url), async () => {
    const folder = newFolder();
    folders.push(folder);
    return folder.file;
  });

  afterAll(() => {
    for (const { remove } of folders) remove();
  });
});
