/** A process that commits until it is killed, and sends the id of each acknowledged record. Argument: the file. */
import { randomUUID } from "node:crypto";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";

const store = sqliteStore({ file: process.argv[2] ?? "" });
const customer = randomUUID();

async function write(): Promise<void> {
  for (;;) {
    const now = Date.now();
    const [id, keepUntil] = [randomUUID(), now + 3_600_000];
    const claims = [
      { window: `${customer}:w`, member: id, now, since: now, keepUntil },
      { sum: `${customer}:s`, part: 1, parts: 1, weight: 7, now, keepUntil },
    ];
    const { done } = await store.commit({ claims, record: { customer, id, tokens: [id], data: "x".repeat(500), now, keepUntil } });
    if (done) process.send?.(id);
  }
}

await Promise.all(Array.from({ length: 8 }, write));
