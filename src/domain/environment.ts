/** An environment variable that cannot be read, as in Deno without `--allow-env` or where there is no `process`, counts as not set. */
export function readVariable(read: () => string | undefined): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

export function isProduction(): boolean {
  return readVariable(() => globalThis.process?.env.NODE_ENV) === "production";
}
