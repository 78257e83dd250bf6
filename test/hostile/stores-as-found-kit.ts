import { createServer, type Socket } from "node:net";
import { BSON } from "mongodb";

type Reply = Readonly<Record<string, unknown>>;
type Command = Readonly<Record<string, unknown>>;

/** What every reply to `hello` holds. */
const limits = { ok: 1, maxBsonObjectSize: 16_777_216, maxMessageSizeBytes: 48_000_000, maxWriteBatchSize: 100_000, minWireVersion: 0, maxWireVersion: 25 };

/** Replies to `hello`, as mongod makes them. */
export const hellos = {
  primary: { setName: "rs0", hosts: ["127.0.0.1:1"], isWritablePrimary: true, ismaster: true, secondary: false },
  secondary: { setName: "rs0", hosts: ["127.0.0.1:1", "127.0.0.1:2"], primary: "127.0.0.1:1", isWritablePrimary: false, ismaster: false, secondary: true },
  /** Started with `--replSet`, without `rs.initiate()`. */
  notInitiated: {
    isreplicaset: true,
    isWritablePrimary: false,
    ismaster: false,
    secondary: false,
    info: "Does not have a valid replica set config",
  },
} satisfies Record<string, Reply>;

/** Replies to writes, as mongod and Atlas make them. */
export const rejections = {
  notPrimary: { ok: 0, code: 10_107, codeName: "NotWritablePrimary", errmsg: "not primary" },
  notInitiated: { ok: 0, code: 94, codeName: "NotYetInitialized", errmsg: "no replset config has been received" },
  unauthorized: { ok: 0, code: 13, codeName: "Unauthorized", errmsg: "not authorized on app to execute command" },
  /** The storage of a free or flex cluster is used up: https://www.mongodb.com/docs/atlas/reference/faq/storage/ */
  overQuota: { ok: 0, code: 8_000, codeName: "AtlasError", errmsg: "you are over your space quota, using 513 MB of 512 MB" },
} satisfies Record<string, Reply>;

/** A server that speaks MongoDB's protocol: it holds no documents, has all indexes, and rejects every write. */
export async function mongoThatRejects(hello: Reply, rejection: Reply): Promise<{ readonly port: number; close(): void }> {
  const index = (name: string, key: Reply, more: Reply = {}) => ({ v: 2, name, key, ...more });
  const listed = (collection: string) => [
    index("_id_", { _id: 1 }),
    index("expireAt", { expireAt: 1 }, { expireAfterSeconds: 600 }),
    ...(collection.endsWith("state")
      ? [
          index("wakeAt", { wakeAt: 1 }, { partialFilterExpression: { wakeAt: { $exists: true } } }),
          index("listed", { "_id.window": 1, at: -1, "_id.member": 1 }, { partialFilterExpression: { at: { $exists: true } } }),
        ]
      : []),
  ];
  const cursor = (firstBatch: readonly unknown[]) => ({ ok: 1, cursor: { id: BSON.Long.ZERO, ns: "app.phoneproof_state", firstBatch } });
  return speaking((command) => {
    if ("hello" in command || "ismaster" in command || "isMaster" in command) return { ...limits, localTime: new Date(), ...hello };
    if ("endSessions" in command || "ping" in command) return { ok: 1 };
    if (!("secondary" in hello && (hello["secondary"] || hello["isWritablePrimary"]))) return rejection;
    if ("find" in command || "aggregate" in command) return cursor([]);
    if ("listIndexes" in command) return cursor(listed(String(command["listIndexes"])));
    return rejection;
  });
}

const [headerSize, opMessage] = [16, 2_013];

async function speaking(answer: (command: Command) => Reply): Promise<{ readonly port: number; close(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    let rest = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= headerSize && rest.length >= rest.readInt32LE(0)) {
        const message = rest.subarray(0, rest.readInt32LE(0));
        rest = rest.subarray(message.length);
        socket.write(replyTo(message, answer));
      }
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as { port: number }).port,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** The first message of a connection is an OP_QUERY, answered by an OP_REPLY; all others are OP_MSG. */
function replyTo(message: Buffer, answer: (command: Command) => Reply): Buffer {
  const isMessage = message.readInt32LE(12) === opMessage;
  const start = isMessage ? headerSize + 5 : message.indexOf(0, headerSize + 4) + 9;
  const body = BSON.serialize(answer(BSON.deserialize(message.subarray(start, start + message.readInt32LE(start)))));
  const before = Buffer.alloc(headerSize + (isMessage ? 5 : 20));
  before.writeInt32LE(before.length + body.length, 0);
  before.writeInt32LE(message.readInt32LE(4), 8);
  before.writeInt32LE(isMessage ? opMessage : 1, 12);
  if (!isMessage) before.writeInt32LE(1, headerSize + 16);
  return Buffer.concat([before, body]);
}
