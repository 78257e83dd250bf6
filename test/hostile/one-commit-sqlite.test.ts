import { randomUUID } from "node:crypto";
import { afterAll, describe } from "vitest";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { newFolder } from "../support/sqlite.js";
import { start } from "../support/verifier.js";
import { sender, service } from "./kit.js";
import { oneCommitCases } from "./one-commit-stores.js";

describe("on SQLite", () => {
  const folders: ReturnType<typeof newFolder>[] = [];
  afterAll(() => {
    for (const { remove } of folders) remove();
  });

  oneCommitCases(async (count, options) => {
    const shared = { clock: fixedClock(start), sender: sender(options?.price), customer: randomUUID(), storeTimeout: 60, ...options };
    const folder = newFolder();
    folders.push(folder);
    return Array.from({ length: count }, () => service({ ...shared, store: sqliteStore({ file: folder.file, busyTimeout: 30_000 }) }));
  });
});
