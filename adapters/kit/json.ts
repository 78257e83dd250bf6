/**
 * Parses JSON, which a byte order mark may precede; returns undefined if the text is invalid. Integers that a number
 * cannot hold exactly, such as ids of 64 bits, are returned as text.
 */
export function parseJson(text: string): unknown {
  try {
    const json = text.replace(/^\uFEFF/, "");
    const value: unknown = JSON.parse(json);
    // Valid by now, so that the expression finds the end of each string at once.
    return /\d{16}/.test(json) ? JSON.parse(json.replace(stringOrNumber, exact)) : value;
  } catch {
    return undefined;
  }
}

const stringOrNumber = /"(?:[^"\\]+|\\.)*"|-?\d[\d.eE+-]*/g;

function exact(token: string): string {
  return /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token;
}

/** The value at a path of own keys and indexes; undefined if the path ends early. */
export function pick(value: unknown, ...path: readonly (string | number)[]): unknown {
  let here = value;
  for (const step of path) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, step)) return undefined;
    here = (here as Record<string | number, unknown>)[step];
  }
  return here;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
