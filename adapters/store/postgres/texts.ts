/**
 * Each of the last two is escaped by the first, plus its index: PostgreSQL has no NUL, and PGlite loses a byte order
 * mark.
 */
const escaped = ["\ue000", "\0", "\ufeff"] as const;
const [mark] = escaped;

/** Makes a text storable in PostgreSQL. */
export function clean(text: string): string {
  return escaped.reduce((all, one, place) => all.replaceAll(one, `${mark}${place}`), text);
}

/** Reverses `clean`. */
export function original(text: string): string {
  return escaped.reduceRight((all: string, one, place) => all.replaceAll(`${mark}${place}`, one), text);
}
