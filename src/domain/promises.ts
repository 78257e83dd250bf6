/** Not by its class: async functions return the engine's own, even if the app replaced the global `Promise`. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** For a promise that nothing waits for: its rejection would end the process. */
export function ignoreRejection(promise: PromiseLike<unknown>): void {
  Promise.resolve(promise).catch(() => undefined);
}

/** The result of the caller's function `name`, which must not be async. Throws for a promise. */
export function synchronous<T>(name: string, result: T): T {
  if (!isPromise(result)) return result;
  ignoreRejection(result);
  throw new TypeError(`${name} returned a promise: it must not be async`);
}
