/** A separate process on an SQLite file: a service, another application, or both. It runs its parent's commands. */
import { createRequire } from "node:module";
import { type SqliteStoreOptions, sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { Store } from "../../src/ports/store.js";
import { storeContract } from "../../src/testing/store-contract.js";
import { ending, type Service, sender, service, wide } from "./kit.js";

export interface Setup {
  readonly file: string;
  /** The library of the handle, whose constructor gets `open`. Absent: the store opens the file itself. */
  readonly library?: string;
  readonly open?: Readonly<Record<string, unknown>>;
  readonly options?: Omit<SqliteStoreOptions, "file" | "database">;
  readonly customer: string;
  /** The customer's cap. Default: none. */
  readonly cap?: number;
  /** How far the clock of the process is ahead of the true time, in milliseconds. */
  readonly ahead?: number;
  readonly storeTimeout?: number;
  /** The user that the process switches to before it opens the file. */
  readonly user?: number;
}

interface Handle {
  exec(sql: string): unknown;
  prepare(sql: string): { all(): unknown[] };
  close(): void;
}
type Library = new (file: string, options?: object) => Handle;

const require = createRequire(import.meta.url);

/** Opens a file as the library's documentation does. */
function open(name: string, file: string, options?: object): Handle {
  const module = (name === "better-sqlite3" ? require(process.env["BETTER_SQLITE3"] ?? name) : require(name)) as Library & Record<string, Library>;
  const Database = module["DatabaseSync"] ?? module["Database"] ?? module;
  return options === undefined ? new Database(file) : new Database(file, options);
}

function made(setup: Setup) {
  const { file, library, options = {}, cap } = setup;
  let handle: Handle | undefined;
  let store: Store | undefined;
  let one: Service | undefined;
  const carrier = sender();
  carrier.answer = async ({ authentication_uuid: sent, to }) => {
    process.send?.({ sent, to });
    return { outcome: "accepted" };
  };
  const own = process.versions["bun"] ? "bun:sqlite" : process.versions.node.startsWith("20.") ? "libsql" : "node:sqlite";
  const raw = () => (handle ??= open(library ?? own, file, setup.open));
  const stored = () => (store ??= sqliteStore(library === undefined ? { ...options, file } : { ...options, database: raw() as never }));
  const serving = () =>
    (one ??= service({
      store: stored(),
      customer: setup.customer,
      clock: undefined as never,
      sender: carrier,
      storeTimeout: setup.storeTimeout ?? 60,
      policy: { limits: { ...wide, ...(cap !== undefined && { perCustomer: [{ limit: cap, window: 3_600 }] }) } },
    }));
  return {
    exec: async (sql: string) => void raw().exec(sql),
    all: async (sql: string) => raw().prepare(sql).all(),
    /** All at once. Returns how each ended. */
    create: (numbers: readonly (string | number)[], keys = false) =>
      Promise.all(numbers.map((number) => ending(serving().create(number, {}, keys ? { idempotencyKey: `key-${number}` } : {})))),
    /** One create, its id and code. */
    async begin(number: string | number) {
      const { authentication_uuid: id } = await serving().create(number);
      return { id, code: carrier.codeOf(id) };
    },
    check: (id: string, codes: readonly string[]) => Promise.all(codes.map((code) => ending(serving().check(id, code)))),
    sent: async () => carrier.messages.map(({ to, code, authentication_uuid: id }) => ({ to, code, id })),
    log: async () => serving().log.map(({ message, fields }) => `${message} ${String(fields["err"] ?? "")}`),
    /** Creates endlessly, `width` in parallel, and reports each acknowledged create. */
    async flood(first: number, width: number) {
      let next = first;
      const work = async () => {
        for (;;) {
          const { authentication_uuid: id, status } = await serving().create(next++);
          process.send?.({ acknowledged: id, code: carrier.codeOf(id), status });
        }
      };
      for (let n = 0; n < width; n++) void work();
    },
    /** Stores values that expire after `keep` milliseconds by the clock of this process. */
    async put(count: number, keep: number) {
      const [now, start] = [Date.now(), Math.random()];
      for (let at = 0; at < count; at += 10_000)
        await Promise.all(
          Array.from({ length: Math.min(10_000, count - at) }, (_, n) =>
            stored().put(`${setup.customer}:${start}:${at + n}`, "v", { now, keepUntil: now + keep }),
          ),
        );
    },
    /** Runs the cases of the store contract that match `like`; returns the names and messages of those that fail. */
    async contract(like: string, racers: number) {
      const failed: string[] = [];
      const cases = storeContract({ racers }).filter(({ name }) => new RegExp(like).test(name));
      for (const { name, run } of cases) await run({ store: stored() }).catch((error: Error) => failed.push(`${name}: ${error.message}`));
      return { failed, cases: cases.length };
    },
    async wake() {
      await stored().get("awake");
    },
    /** Runs `rounds` rounds of a worker, 5 s apart by the clock of the process. */
    async work(rounds: number) {
      for (let round = 0; round < rounds; round++) {
        ahead += 5_000;
        await serving().verifier.flush();
      }
    },
    close: async () => store?.close?.(),
    closeTwice: async () => void (await Promise.all([store?.close?.(), store?.close?.()])),
    /** Closes the verifier and then the store, as a program does when it stops, and no longer listens to its parent. */
    async end() {
      await serving().verifier.close();
      await store?.close?.();
      setImmediate(() => {
        process.removeAllListeners("disconnect");
        process.disconnect?.();
      });
    },
  };
}

export type Commands = ReturnType<typeof made>;
export type Call = { readonly call: number; readonly name: keyof Commands; readonly args: readonly unknown[] };
export type Reply = { readonly call: number; readonly value?: unknown; readonly error?: string };

/** How far the clock of the whole process is ahead, in milliseconds. */
let ahead = 0;

function serve(setup: Setup): void {
  const { user } = setup;
  const { now } = Date;
  ahead = setup.ahead ?? 0;
  Date.now = () => now() + ahead;
  if (user !== undefined) process.setuid?.(user);
  const commands = made(setup);
  process.on("message", async ({ call, name, args }: Call) => {
    const work = commands[name] as (...args: readonly unknown[]) => Promise<unknown>;
    const reply: Reply = await work(...args).then(
      (value) => ({ call, value }),
      (error) => ({ call, error: String(error) }),
    );
    process.send?.(reply);
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.("ready");
}

if (process.argv[2]?.startsWith("{")) serve(JSON.parse(process.argv[2]) as Setup);
