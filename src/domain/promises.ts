/** Not by its class: async functions return the engine's own, even if the app replaced the global `Promise`. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/**
 * The result of a function of the caller's that must not be async. Throws for a promise, whose rejection would otherwise
 * end the process.
 */
export function synchronous<T>(result: T): T {
  if (!isPromise(result)) return result;
  Promise.resolve(result).catch(() => undefined);
  throw new TypeError("the function returned a promise: it must not be async");
}
