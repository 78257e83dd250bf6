import type { StoreInspection } from "../../../src/ports/store.js";
import { collectionNames, type Document, type MongoCollection, type MongoDb, sayHello, toPrimary } from "./driver.js";

/** The index that deletes what has expired, ten minutes late. */
const expiry = { key: { expireAt: 1 }, name: "expireAt", expireAfterSeconds: 600 };
/** The index that `lease` uses: it holds only the records that need work. */
const wake = { key: { wakeAt: 1 }, name: "wakeAt", partialFilterExpression: { wakeAt: { $exists: true } } };
/** The index for windows without limits. */
const listed = { key: { "_id.window": 1, at: -1, "_id.member": 1 }, name: "listed", partialFilterExpression: { at: { $exists: true } } };

const indexes = { state: [wake, listed, expiry], counters: [expiry], values: [expiry] };

export async function inspect(db: MongoDb, prefix: string, state: MongoCollection, until: number): Promise<StoreInspection> {
  const due = state.aggregate([{ $match: { wakeAt: { $lte: until } } }, { $limit: 10_000 }, { $count: "due" }], {}).toArray() as Promise<{ due: number }[]>;
  const plans = collectionNames.map((name) => planIndexes(db, prefix, name));
  const [{ deployment, isSecondary, time }, [counted], ...planned] = await Promise.all([sayHello(db), due, ...plans]);
  const absent = planned.flatMap((plan) => plan.absent).join(", ");
  const fix = "so expired data, phone numbers included, is never deleted: call await store.ensureIndexes() once";
  const secondary = `the server is a secondary, which cannot be written: ${toPrimary}`;
  const missing = [
    ...(isSecondary ? [secondary] : []),
    ...(absent === "" ? [] : [`the indexes ${absent} are missing, ${fix}`]),
    ...planned.flatMap((plan) => plan.inTheWay),
  ];
  const more = { ...(time !== undefined && { time }), ...(missing.length > 0 && { missing }) };
  return { kind: "mongodb", due: counted?.due ?? 0, settings: { deployment }, ...more };
}

/**
 * What a collection needs. `wanted`: the indexes that can be made; existing ones among them stay. `absent`: the names
 * of those that are not there or being built. `inTheWay`: existing indexes with other options, each with its fix.
 */
export async function planIndexes(db: MongoDb, prefix: string, name: (typeof collectionNames)[number]) {
  const collection = prefix + name;
  const found = await indexesIn(db, collection);
  const plan = { wanted: [] as Document[], absent: [] as string[], inTheWay: [] as string[] };
  for (const index of indexes[name]) {
    const same = found?.find((one) => one["name"] === index.name) ?? found?.find((one) => keyOf(one) === keyOf(index));
    if (same !== undefined && (same["name"] !== index.name || optionsOf(same) !== optionsOf(index))) {
      const drop = `db.getCollection("${collection}").dropIndex("${same["name"]}")`;
      const what = `the index ${same["name"]} of ${collection} has another name or other options than ${index.name} needs`;
      plan.inTheWay.push(`${what}: drop it with ${drop}, then call await store.ensureIndexes()`);
      continue;
    }
    plan.wanted.push(index);
    if (found !== undefined && !same?.["isBuilt"]) plan.absent.push(`${collection}.${index.name}${same === undefined ? "" : " (still being built)"}`);
  }
  return plan;
}

// Clients have options that return whole numbers as BigInt or as objects.
const keyOf = ({ key, partialFilterExpression }: Document) =>
  JSON.stringify([key, partialFilterExpression], (_, one) => (typeof one === "bigint" ? Number(one) : one));

const optionsOf = ({ expireAfterSeconds, collation, unique, sparse, ...index }: Document) =>
  [keyOf(index), expireAfterSeconds, JSON.stringify(collation), unique || undefined, sparse || undefined].join();

/** The indexes of a collection; `undefined` if the client may not list them. A missing collection has none. */
async function indexesIn(db: MongoDb, collection: string): Promise<readonly Document[] | undefined> {
  const list = (options: Document) => db.command({ listIndexes: collection, ...options }) as Promise<{ cursor: { firstBatch: readonly Document[] } }>;
  try {
    const { cursor } = await list({ includeBuildUUIDs: true }).catch((error) => {
      // The strict API rejects this option.
      if (isOfServer(error)) return list({});
      throw error;
    });
    return cursor.firstBatch.map(({ spec, ...index }) => ({ ...index, ...(spec as Document | undefined), isBuilt: spec === undefined }));
  } catch (error) {
    // NamespaceNotFound; compatible servers have other codes for it.
    if (!isOfServer(error)) throw error;
    return error.code === 26 || /does not (currently )?exist/.test(error.message) ? [] : undefined;
  }
}

/** Whether the server responded with this error; otherwise it did not respond. */
function isOfServer(error: unknown): error is Error & { readonly code: number } {
  return typeof (error as { code?: unknown }).code === "number";
}
