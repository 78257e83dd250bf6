import type { StoreInspection } from "../../../src/ports/store.js";
import type { MongoCollection, MongoDb } from "./driver.js";

/** How many records that are due are counted. */
const mostCounted = 10_000;

/** The names of the collections, without their prefix. */
const names = ["authentications", "windows", "lists", "counters", "values"];

/** What the server and the collections tell. */
export async function inspect(
  db: MongoDb,
  prefix: string,
  authentications: MongoCollection,
  indexesOf: (collection: string) => readonly { readonly name: string }[],
  until: number,
): Promise<StoreInspection> {
  const due = authentications.aggregate([{ $match: { wakeAt: { $lte: until } } }, { $limit: mostCounted }, { $count: "due" }], {}).toArray();
  const [hello, [counted], absent] = await Promise.all([
    db.command({ hello: 1 }) as Promise<{ localTime?: unknown; setName?: unknown; msg?: unknown }>,
    due as Promise<{ due: number }[]>,
    Promise.all(
      names.map(async (name) => {
        const there = await indexNames(db, prefix + name);
        return indexesOf(name).flatMap((index) => (there?.includes(index.name) === false ? [`${prefix}${name}.${index.name}`] : []));
      }),
    ),
  ]);
  const missing = absent.flat();
  return {
    kind: "mongodb",
    due: counted?.due ?? 0,
    ...(hello.localTime instanceof Date && { time: hello.localTime.getTime() }),
    settings: { deployment: hello.msg === "isdbgrid" ? "sharded" : typeof hello.setName === "string" ? "replica set" : "standalone" },
    ...(missing.length > 0 && {
      missing: [
        `the indexes ${missing.join(", ")} are missing, so that nothing that has ended is cleared away, numbers included: call await store.ensureIndexes() once`,
      ],
    }),
  };
}

/** Those that are there; `undefined` where the client is not allowed to ask. A collection that is not there has none. */
async function indexNames(db: MongoDb, collection: string): Promise<readonly string[] | undefined> {
  try {
    const { cursor } = (await db.command({ listIndexes: collection })) as { cursor: { firstBatch: readonly { name: string }[] } };
    return cursor.firstBatch.map(({ name }) => name);
  } catch (error) {
    const { code } = error as { code?: unknown };
    // NamespaceNotFound
    return code === 26 ? [] : undefined;
  }
}
