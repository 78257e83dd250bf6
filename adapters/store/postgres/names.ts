import { packUuid, unpackUuid } from "../../kit/uuid.js";
/** The key of a record. */
export function recordKey(customer: string, id: string): string {
  return packUuid(customer) + packUuid(id);
}

/** The customer and id in a record's key. */
export function parseKey(key: string): { readonly customer: string; readonly id: string } {
  const [, customer = "", id = ""] = /^(:[^:]*:|[^:]{22})(:[^:]*:|[^:]{22})$/.exec(key) ?? [];
  return { customer: unpackUuid(customer), id: unpackUuid(id) };
}

/** Cache of the last customer and its packed form: most names of a commit or process start with it. */
let last: readonly [customer: string, packed: string] = ["", packUuid("")];

/** The stored name of a window or sum: its kind, then the customer packed into 22 characters. */
function named(kind: string, name: string): string {
  const colon = name.indexOf(":");
  const customer = colon < 0 ? name : name.slice(0, colon);
  if (customer !== last[0]) last = [customer, packUuid(customer)];
  return clean(kind + last[1] + name.slice(customer.length));
}

export const sumName = (sum: string) => named("#", sum);
export const windowName = (window: string) => named(".", window);
export const listName = (window: string) => named("-", window);

/**
 * Each of the last two is escaped by the first, plus its index: PostgreSQL has no NUL, and PGlite loses a byte order
 * mark.
 */
const escaped = ["\ue000", "\0", "\ufeff"] as const;
const [mark] = escaped;

/** Makes a text storable in PostgreSQL. */
export function clean(text: string): string {
  if (!escaped.some((one) => text.includes(one))) return text;
  return escaped.reduce((all, one, place) => all.replaceAll(one, `${mark}${place}`), text);
}

/** Reverses `clean`. */
export function original(text: string): string {
  if (!text.includes(mark)) return text;
  return escaped.reduceRight((all: string, one, place) => all.replaceAll(`${mark}${place}`, one), text);
}

/** Texts as a `text[]` literal, which every client passes on as plain text. */
export function texts(all: readonly string[]): string {
  return `{${all.map((text) => `"${text.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}

/** Numbers as an array literal. */
export function numbers(all: readonly (number | string)[]): string {
  return `{${all.join(",")}}`;
}
