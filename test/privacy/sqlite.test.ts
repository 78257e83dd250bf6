import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { dumpOfSqlite } from "../support/dump.js";
import { newFolder } from "../support/sqlite.js";
import { privacyCases } from "./cases.js";

privacyCases("SQLite", async () => {
  const { file, remove } = newFolder();
  const store = sqliteStore({ file });
  return {
    store,
    dump: async () => dumpOfSqlite(file),
    async close() {
      await store.close?.();
      remove();
    },
  };
});
