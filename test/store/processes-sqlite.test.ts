import { afterAll, describe } from "vitest";
import { newFolder } from "../support/sqlite.js";
import { processCases } from "./processes-cases.js";

describe("several processes on an SQLite file", () => {
  const { file, remove } = newFolder();
  afterAll(remove);

  processCases(new URL("../support/sqlite-process.ts", import.meta.url), async () => file, 2, 60);
});
