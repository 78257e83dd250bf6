import { mongoStore } from "../../adapters/store/mongo/index.js";
import { drivers, dropDatabase, mongoServer, newDatabase } from "../support/mongo.js";
import { setUp } from "../support/verifier.js";

const server = await mongoServer("MongoDB in production");

/** Whether a server runs: without one, the tests are skipped. */
export const hasServer = server !== undefined;

export const stopServer = async (): Promise<void> => server?.stop();

export interface Service extends ReturnType<typeof setUp> {
  /** The commands on the records and counters that this process has sent, oldest first. */
  readonly commands: string[];
}

/** Processes of one service: each has its own client, and all have the database, the clock and the customer in common. */
export async function database(options: Parameters<typeof setUp>[0] = {}) {
  const url = server?.url as string;
  const name = newDatabase();
  const closing: (() => Promise<void>)[] = [];
  const first = await drivers["mongodb 7"](url, name);
  await mongoStore({ db: first.db }).ensureIndexes();

  return {
    async process(): Promise<Service> {
      const own = await drivers["mongodb 7"](url, name, { monitorCommands: true });
      const commands: string[] = [];
      own.client.on("commandStarted", ({ commandName }) => {
        if (["find", "update", "delete", "aggregate", "findAndModify", "bulkWrite"].includes(commandName)) commands.push(commandName);
      });
      const service = setUp({ ...options, store: mongoStore({ db: own.db }) });
      closing.push(async () => {
        await service.verifier.close();
        await own.close();
      });
      return { ...service, commands };
    },
    /** How much longer MongoDB keeps what it holds, in milliseconds, by the server's clock. */
    async ends(): Promise<{ readonly name: string; readonly in: number }[]> {
      const documents = await first.client.db(name).collection("phoneproof_state").find().toArray();
      return documents.map((one) => ({ name: JSON.stringify(one._id), in: one["expireAt"].getTime() - Date.now() }));
    },
    /** What MongoDB's own monitor does: deletes what ended more than ten minutes before a time that is `ahead` of now. */
    async deleteEnded(ahead: number): Promise<void> {
      const until = new Date(Date.now() + ahead - 600_000);
      await first.client
        .db(name)
        .collection("phoneproof_state")
        .deleteMany({ expireAt: { $lte: until } });
    },
    async close(): Promise<void> {
      for (const close of closing) await close();
      await first.close();
      await dropDatabase(url, name);
    },
  };
}
