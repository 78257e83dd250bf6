/** An external error code as a short word; undefined for a sentence or a possible phone number. */
export function errorToken(value: unknown): string | undefined {
  const text = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  return typeof text === "string" && /^[\w.:-]{1,128}$/.test(text) && !/\d{7}/.test(text) ? text : undefined;
}

export function withCode(reason: string, code: string | undefined): string {
  return code === undefined ? reason : `${reason}, code ${code}`;
}

/** A short description of what a function in the options threw. */
export function failureOf(error: unknown): string {
  const { name, message } = (typeof error === "object" && error !== null ? error : {}) as { name?: unknown; message?: unknown };
  const words = [name, message].filter((part) => typeof part === "string" && part !== "" && part !== "Error").join(": ");
  return words === "" ? "without a reason" : words.slice(0, 200);
}
