/** Resolves when `signal` is aborted. */
export function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => (signal.aborted ? resolve(undefined) : signal.addEventListener("abort", () => resolve(undefined), { once: true })));
}
