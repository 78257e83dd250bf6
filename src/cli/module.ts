import { statSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { Verifier } from "../create-verifier.js";
import type { Hook } from "../hooks/index.js";
import type { Store } from "../ports/store.js";
import type { Place } from "./settings.js";
import { type Opening, openPlace } from "./store.js";

/** The export of a module that leaves its store to the command: `({ store }) => createVerifier({ store, … })`. */
type Build = (parts: { readonly store: Store }) => unknown;

/** `waits`: also goes on waiting for a promise of the module. */
export interface Loading extends Opening {
  /** After how many milliseconds a promise that has not settled is reported. Default: 10,000. */
  readonly patience?: number;
}

/** Milliseconds in which a client that the module opened may connect. */
const connectTimeout = 3_000;

/**
 * The verifier that the module exports as `verifier` or by default, directly or as a promise. An exported function is
 * called with the store that `place` names. `warn` gets a line if there is no file, and while a promise does not settle.
 * A command that does not wait for its store gives the module's client time to connect: it may reject commands until
 * then.
 *
 * @param needs What must be there besides `flush` and `close`: the verifier may be of another version of this package.
 * @throws Error that names the fix.
 */
export async function verifierOf(
  module: string,
  place: Place,
  warn: (line: string) => void,
  needs: readonly (keyof Verifier)[] = [],
  loading: Loading = {},
): Promise<Verifier> {
  const path = resolve(module);
  const exported = await exportsOf(path, warn, loading);
  // A CommonJS module's exports are the default export and may contain a `default` of their own.
  const inner = exported["default"] as Record<string, unknown> | null | undefined;
  const promised = [exported["verifier"], inner, inner?.["verifier"], inner?.["default"]];
  const candidates = await settled(Promise.all(promised), `the promise that ${path} exports`, warn, loading).catch((error: unknown) => {
    if (error instanceof NeverSettled) throw error;
    throw new Error(`the promise that ${path} exports was rejected; correct the error there: ${wordsOf(error)}`);
  });
  const found = candidates.find(isVerifier);
  if (found !== undefined && isOption(place))
    throw new Error(
      `${"driver" in place ? "--store" : "--data"} has no effect: the verifier of ${path} has its own store. To use this one, export ({ store }) => createVerifier({ store, … })`,
    );
  const build = candidates.find((one): one is Build => typeof one === "function");
  const verifier = found ?? (build && (await built(build, place, warn, loading, path)));
  if (!isVerifier(verifier))
    throw new Error(`${path} exports no verifier: add \`export const verifier = createVerifier({ … })\` to it, or export it by default`);
  if (needs.some((name) => verifier[name] === undefined))
    throw new Error("the verifier is of a version of phoneproof that this command cannot use: install the same version in both places");
  if (!loading.waits) await connected(verifier);
  return verifier;
}

/**
 * Waits until the store responds, up to `connectTimeout`. What keeps it from responding is for the command to report.
 * The pause comes first: the verifier logs that its store fails.
 */
async function connected({ ping }: Partial<Verifier>): Promise<void> {
  const until = performance.now() + connectTimeout;
  do await sleep(100);
  while ((await ping?.({ brief: true }))?.ok === false && performance.now() < until);
}

/** The hooks that the module exports as `hooks`, for `hooks(verifier, list)`. Throws an `Error` that names the fix. */
export async function hooksOf(module: string, warn: (line: string) => void): Promise<readonly Hook[]> {
  const path = resolve(module);
  const exported = await exportsOf(path, warn, { waits: true });
  const list: unknown = exported["hooks"] ?? (exported["default"] as Record<string, unknown> | null | undefined)?.["hooks"] ?? [];
  if (Array.isArray(list)) return list as readonly Hook[];
  throw new Error(`${path} exports hooks that are not a list: export const hooks = [supabaseHook({ … })]`);
}

async function exportsOf(path: string, warn: (line: string) => void, loading: Loading): Promise<Record<string, unknown>> {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) throw new Error(`there is no file ${path}: name the module that exports your verifier`);
  try {
    return (await settled(import(pathToFileURL(path).href), `a promise that ${path} awaits`, warn, loading)) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof NeverSettled) throw error;
    if ((error as NodeJS.ErrnoException | undefined)?.code === "ERR_UNKNOWN_FILE_EXTENSION")
      throw new Error(`Node cannot import ${path} as it is: build it first and name the JavaScript file`);
    throw new Error(`importing ${path} failed; correct the error there: ${wordsOf(error)}`);
  }
}

/** Whether the command line names a place. Environment variables may be for other commands. */
function isOption(place: Place): boolean {
  return place.by === undefined && ("driver" in place || place.isAsked);
}

async function built(build: Build, place: Place, warn: (line: string) => void, loading: Loading, path: string): Promise<unknown> {
  const { store } = await openPlace(place, warn, loading);
  try {
    // The verifier closes the store.
    return await settled(Promise.resolve(build({ store })), `the promise of ${path}'s function`, warn, loading);
  } catch (error) {
    if (error instanceof NeverSettled) throw error;
    throw new Error(`the function that ${path} exports failed; correct the error there: ${wordsOf(error)}`);
  }
}

class NeverSettled extends Error {}

/**
 * The result of the promise. Throws if nothing left in the process can settle it: Node would exit without a message.
 * After `patience` a command that `waits` writes a line, and another throws. `whose`: the promise's name for both.
 */
async function settled<T>(promise: Promise<T>, whose: string, warn: (line: string) => void, { waits, patience = 10_000 }: Loading): Promise<T> {
  let idle = () => {};
  let late: NodeJS.Timeout | undefined;
  const never = new Promise<never>((_, reject) => {
    idle = () => reject(new NeverSettled(`${whose} never settles: nothing is left that could settle it; correct the error there`));
    process.once("beforeExit", idle);
    const slow = `${whose} has not settled for ${patience / 1000} s`;
    const giveUp = () => reject(new NeverSettled(`${slow}: it probably waits for its store or another server; start that server, or correct its address`));
    late = setTimeout(() => (waits ? warn(`${slow}; still waiting for it`) : giveUp()), patience).unref();
  });
  return Promise.race([promise, never]).finally(() => {
    clearTimeout(late);
    process.off("beforeExit", idle);
  });
}

/** The stack of an error. Of a syntax error, Node's and V8's words quote the source or JSON, which may hold a secret. */
function wordsOf(error: unknown): string {
  const { name, message = "", stack = String(error) } = (error ?? {}) as Partial<Error>;
  if (name !== "SyntaxError") return stack;
  const lines = stack.split("\n");
  const frames = lines.slice(lines.findLastIndex((line) => line.startsWith(name))).filter((line) => /^ +at /.test(line));
  const [place] = /^(?!SyntaxError).*:\d+$/.exec(lines[0] ?? "") ?? [];
  const [words] = /^The requested module '[^']*' does not provide an export named '[^']*'$/.exec(message) ?? [];
  const what = words ?? "its message is left out, since it may quote a secret; run the file with node to see it";
  return [`${name}: ${what}`, ...(place === undefined ? [] : [`    in ${place}`]), ...frames].join("\n");
}

function isVerifier(value: unknown): value is Verifier {
  const { flush, close } = (value ?? {}) as Record<string, unknown>;
  return typeof flush === "function" && typeof close === "function";
}
