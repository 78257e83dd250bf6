/** A value that is there, or comes. Most of what may have to be waited for is there, and each wait costs more than the work it waits for. */
export type Soon<T> = T | Promise<T>;

/** Goes on with a value: at once where it is there. `failed`: what a rejection of the value goes through; what `next` throws does not. */
export function soon<T, R>(value: Soon<T>, next: (value: T) => Soon<R>, failed?: (fault: unknown) => never): Soon<R> {
  return value instanceof Promise ? value.then(next, failed) : next(value);
}

const isPromise = (value: unknown) => value instanceof Promise;

/** Several values, side by side. */
export function allSoon<T extends readonly unknown[]>(values: { readonly [K in keyof T]: Soon<T[K]> }): Soon<T> {
  return values.some(isPromise) ? (Promise.all(values) as unknown as Promise<T>) : (values as unknown as T);
}
