const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A UUID in lower case as 22 characters; any other text escaped between colons. */
function pack(text: string): string {
  return uuid.test(text) ? Buffer.from(text.replaceAll("-", ""), "hex").toString("base64url") : `:${encodeURIComponent(text)}:`;
}

function unpack(packed: string): string {
  if (packed.startsWith(":")) return decodeURIComponent(packed.slice(1, -1));
  return Buffer.from(packed, "base64url")
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The key of a record. */
export function recordKey(customer: string, id: string): string {
  return pack(customer) + pack(id);
}

/** Customer and id of a record's key. */
export function parseKey(key: string): { readonly customer: string; readonly id: string } {
  const [, customer = "", id = ""] = /^(:[^:]*:|[^:]{22})(:[^:]*:|[^:]{22})$/.exec(key) ?? [];
  return { customer: unpack(customer), id: unpack(id) };
}

/** The last customer, and the same packed: most names of a commit, or of a process, begin with it. */
let last: readonly [customer: string, packed: string] = ["", pack("")];

/** The name of a window or sum as it is stored: after its kind, the customer that it begins with takes 22 characters. */
function named(kind: string, name: string): string {
  const colon = name.indexOf(":");
  const customer = colon < 0 ? name : name.slice(0, colon);
  if (customer !== last[0]) last = [customer, pack(customer)];
  return clean(kind + last[1] + name.slice(customer.length));
}

export const sumName = (sum: string) => named("#", sum);
export const windowName = (window: string) => named(".", window);
export const listName = (window: string) => named("-", window);

/** What is escaped by the first of these and its place among them: PostgreSQL knows no NUL, and PGlite loses a byte order mark. */
const escaped = ["\ue000", "\0", "\ufeff"] as const;
const [mark] = escaped;

/** A text as PostgreSQL keeps it. */
export function clean(text: string): string {
  if (!escaped.some((one) => text.includes(one))) return text;
  return escaped.reduce((all, one, place) => all.replaceAll(one, `${mark}${place}`), text);
}

/** What `clean` has made of a text. */
export function original(text: string): string {
  if (!text.includes(mark)) return text;
  return escaped.reduceRight((all: string, one, place) => all.replaceAll(`${mark}${place}`, one), text);
}

/** Texts as a literal of `text[]`: as plain text it is the same to every client. */
export function texts(all: readonly string[]): string {
  return `{${all.map((text) => `"${text.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}

/** Numbers as a literal of an array. */
export function numbers(all: readonly (number | string)[]): string {
  return `{${all.join(",")}}`;
}
