import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { type SqliteStoreOptions, sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { Store } from "../../src/ports/store.js";
import { bundle } from "../store/processes.js";
import { newFolder, type OwnHandle, openSqlite } from "../support/sqlite.js";
import { type Service, service, wide } from "./kit.js";
import type { Call, Commands, Reply, Setup } from "./sqlite-process.js";

/** "Every request ends within its one deadline" of 2 s; the rest is slack for a slow test machine. */
export const deadline = 12_000;

/** A folder that is removed with the test, and a file in it that does not exist yet. */
export function place(): { readonly folder: string; readonly file: string } {
  const { folder, file, remove } = newFolder();
  onTestFinished(remove);
  return { folder, file };
}

/** A handle of the library that the store opens files with; it is closed with the test. */
export function handle(file: string): OwnHandle {
  const opened = openSqlite(file);
  onTestFinished(() => {
    try {
      opened.close();
    } catch {
      // The test has closed it.
    }
  });
  return opened;
}

/** A store that is closed with the test. */
export function opened(options: SqliteStoreOptions): Store {
  const store = sqliteStore(options);
  onTestFinished(async () => store.close?.().catch(() => {}));
  return store;
}

/** A service in real time, whose only limits are those of a number and the customer's cap, if given. */
export function serving(store: Store, { cap, ...options }: Parameters<typeof service>[0] & { readonly cap?: number } = {}): Service {
  const limits = { ...wide, ...(cap !== undefined && { perCustomer: [{ limit: cap, window: 3_600 }] }) };
  return service({ store, clock: undefined as never, policy: { limits }, ...options });
}

export interface Child {
  readonly process: ChildProcess;
  /** What the process reported on its own. */
  readonly told: Record<string, string>[];
  call<Name extends keyof Commands>(name: Name, ...args: Parameters<Commands[Name]>): Promise<Awaited<ReturnType<Commands[Name]>>>;
  kill(): Promise<void>;
}

/** Starts processes of sqlite-process.ts: call it once, in a `describe` or at the top level. */
export function processes(): (setup: Omit<Setup, "customer"> & { readonly customer?: string }, program?: string) => Promise<Child> {
  let bundled: Awaited<ReturnType<typeof bundle>>;
  beforeAll(async () => {
    bundled = await bundle(new URL("sqlite-process.ts", import.meta.url));
  });
  afterAll(() => rmSync(bundled.outDir, { recursive: true }));
  return async (setup, execPath = process.execPath) => {
    const args = JSON.stringify({ customer: randomUUID(), ...setup });
    const child = fork(bundled.script, [args], { execPath, execArgv: [], serialization: "json" });
    const gone = once(child, "exit");
    const kill = async () => {
      child.kill("SIGKILL");
      await gone;
    };
    onTestFinished(kill);
    const waiting = new Map<number, (reply: Reply) => void>();
    const told: Record<string, string>[] = [];
    let calls = 0;
    await Promise.race([once(child, "message"), gone.then(() => Promise.reject(new Error("a process ended before it was ready")))]);
    child.on("message", (message: Reply | Record<string, string>) => {
      if ("call" in message) waiting.get((message as Reply).call)?.(message as Reply);
      else told.push(message);
    });
    const call = (name: Call["name"], ...args: readonly unknown[]) =>
      new Promise((resolve, reject) => {
        const number = calls++;
        waiting.set(number, ({ value, error }) => (error === undefined ? resolve(value) : reject(new Error(error))));
        child.send({ call: number, name, args } satisfies Call);
        void gone.then(() => reject(new Error("the process is gone")));
      });
    return { process: child, told, call: call as Child["call"], kill };
  };
}

/** Whether the file, its log or its journal holds these bytes. */
export function holds(file: string, text: string): boolean {
  return ["", "-wal", "-journal"].some((end) => existsSync(file + end) && readFileSync(file + end).includes(text));
}

export const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
