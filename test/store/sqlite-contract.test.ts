import { afterAll, beforeAll, describe, it } from "vitest";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { Store } from "../../src/ports/store.js";
import { storeContract } from "../../src/testing/store-contract.js";
import { libraries, newFolder, type OpenSqlite, type OwnHandle } from "../support/sqlite.js";
import { ofClient } from "./of-client.js";

describe.each(Object.keys(libraries))("the store contract on SQLite, two handles of %s on one file", (name) => {
  const { file, remove } = newFolder();
  const handles: OwnHandle[] = [];
  let store: Store;
  let peer: Store;

  beforeAll(() => {
    const open = libraries[name] as OpenSqlite;
    handles.push(open(file), open(file));
    [store, peer] = handles.map((database) => sqliteStore({ database })) as [Store, Store];
  });

  afterAll(() => {
    for (const handle of handles) handle.close();
    remove();
  });

  for (const { name, run } of storeContract({ racers: 200 })) it(name, () => run({ store, peer }));
});

describe("the store contract on SQLite, a file that the store opens", () => {
  const { file, remove } = newFolder();
  const [store, peer] = [sqliteStore({ file }), sqliteStore({ file })];

  afterAll(async () => {
    await Promise.all([store, peer].map((one) => one.close?.()));
    remove();
  });

  for (const { name, run } of ofClient) it(name, () => run({ store, peer }));
});
