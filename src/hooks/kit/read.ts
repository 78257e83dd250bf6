import { createHash } from "node:crypto";
import { day } from "../../domain/time.js";

/** The value at a path of own keys and indexes; undefined if the path ends early. */
export function pick(value: unknown, ...path: readonly (string | number)[]): unknown {
  let here = value;
  for (const step of path) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, step)) return undefined;
    here = (here as Record<string | number, unknown>)[step];
  }
  return here;
}

/** The first of these fields that has a value. */
export function anyOf(body: unknown, ...names: readonly string[]): unknown {
  return names.map((name) => textOf(pick(body, name))).find((value) => value !== undefined);
}

/** A text or a number as text; undefined for everything else, and for an empty text. */
export function textOf(value: unknown): string | undefined {
  const text = typeof value === "number" ? String(value) : value;
  return typeof text === "string" && text !== "" ? text : undefined;
}

/** A number as identity servers store it: spaces, hyphens, dots and parentheses are removed, a missing `+` is added. */
export function toNumber(value: unknown): string | undefined {
  const digits = textOf(value)?.replace(/[\s().-]/g, "");
  return digits === undefined || digits === "" ? undefined : digits.replace(/^\+?/, "+");
}

/** An IP address as servers pass it: spaces, brackets, a port and a zone are removed. */
export function toAddress(value: unknown): string | undefined {
  return textOf(value)
    ?.trim()
    .replace(/^\[([^\]%]+).*|^([\d.]+):\d+$|%.*/, "$1$2");
}

/**
 * For servers that pass a text only: its code is its one run of 4 to 10 digits. With two or none, there is only the
 * text. If there is nothing but the code, there is no text.
 */
export function codeInText(text: string | undefined): { readonly code?: string; readonly text?: string } {
  const [code, second] = text?.match(/(?<!\d)\d{4,10}(?!\d)/g) ?? [];
  if (text === undefined) return {};
  if (code === undefined || second !== undefined) return { text };
  return code === text.trim() ? { code } : { code, text };
}

/** A key for what is a repeat if all of these are the same: 43 characters, from which no one can read the code. */
export function repeatKey(...parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}

/** Milliseconds since the epoch of an ISO 8601 timestamp. */
export function timeOf(value: unknown): number | undefined {
  const at = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isFinite(at) ? at : undefined;
}

/** Whether a timestamp is of an earlier day (UTC) than `now`, in milliseconds since the epoch. */
export function isBeforeToday(value: unknown, now: number): boolean {
  const at = timeOf(value);
  return at !== undefined && at < now - (now % day);
}
