import type { StoreInspection } from "../../../src/ports/store.js";
import { collectionNames, type Document, type MongoCollection, type MongoDb, sayHello } from "./driver.js";

/** The index that deletes what has expired, ten minutes late. */
const expiry = { key: { expireAt: 1 }, name: "expireAt", expireAfterSeconds: 600 };
/** The index that `lease` uses: it holds only the records that need work. */
const wake = { key: { wakeAt: 1 }, name: "wakeAt", partialFilterExpression: { wakeAt: { $exists: true } } };
/** The index for windows without limits. */
const listed = { key: { "_id.window": 1, at: -1, "_id.member": 1 }, name: "listed", partialFilterExpression: { at: { $exists: true } } };

export const indexes = { state: [wake, listed, expiry], counters: [expiry], values: [expiry] };

export async function inspect(db: MongoDb, prefix: string, state: MongoCollection, until: number): Promise<StoreInspection> {
  const due = state.aggregate([{ $match: { wakeAt: { $lte: until } } }, { $limit: 10_000 }, { $count: "due" }], {}).toArray() as Promise<{ due: number }[]>;
  const absent = collectionNames.map(async (name) => {
    const isBuilt = await indexesIn(db, prefix + name);
    const others = indexes[name].filter((index) => isBuilt !== undefined && isBuilt.get(index.name) !== true);
    return others.map((index) => `${prefix}${name}.${index.name}${isBuilt?.has(index.name) ? " (still being built)" : ""}`);
  });
  const [{ deployment, time }, [counted], ...lists] = await Promise.all([sayHello(db), due, ...absent]);
  const missing = lists.flat().join(", ");
  const fix = "so expired data, phone numbers included, is never deleted: call await store.ensureIndexes() once";
  return {
    kind: "mongodb",
    due: counted?.due ?? 0,
    ...(time !== undefined && { time }),
    settings: { deployment },
    ...(missing !== "" && { missing: [`the indexes ${missing} are missing, ${fix}`] }),
  };
}

/**
 * The indexes of a collection, and whether each is built; `undefined` if the client may not list them. A missing
 * collection has none.
 */
async function indexesIn(db: MongoDb, collection: string): Promise<ReadonlyMap<unknown, boolean> | undefined> {
  const list = (options: Document) => db.command({ listIndexes: collection, ...options }) as Promise<{ cursor: { firstBatch: readonly Document[] } }>;
  try {
    // The strict API rejects this option.
    const { cursor } = await list({ includeBuildUUIDs: true }).catch(() => list({}));
    return new Map(cursor.firstBatch.map(({ name, spec }) => [name ?? (spec as Document)["name"], name !== undefined]));
  } catch (error) {
    // NamespaceNotFound
    return (error as { code?: unknown }).code === 26 ? new Map() : undefined;
  }
}
