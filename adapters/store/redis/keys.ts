const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const beginsWithUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;
const nameOfRecord = /^(:[^:]*:|[^:]{22})(:[^:]*:|[^:]{22})$/;

export type Keys = ReturnType<typeof keysUnder>;

/**
 * Names everything the store keeps: `prefix{0}r…` is a record, `prefix{0}w` the wake index of shard 0, `prefix{t}…` a counter, `prefix{}…` a value. Of a customer: `prefix{customer}:…` is a list, `prefix{customer}.…` a window with limits,
 * `prefix{customer}#…#17` part 17 of a sum, `prefix{customer}!…` a ticket. (Sums were `prefix{customer}+…`, and windows with limits stood where lists are.) `prefix` holds no brace, so the first brace of a key opens its hash tag.
 */
export function keysUnder(prefix: string, shards: number) {
  return {
    /** The record, its wake index and its name there; the two keys share a slot. */
    record(customer: string, id: string) {
      // What is no authentication is found however many shards there are.
      const shard = `${prefix}{${shards > 1 && uuid.test(id) ? hash(id) % shards : 0}}`;
      const name = pack(customer) + pack(id);
      return { record: `${shard}r${name}`, wake: `${shard}w`, name };
    },
    /** The wake index of every shard. */
    wakes: Array.from({ length: shards }, (_, shard) => `${prefix}{${shard}}w`),
    /** What a customer's keys begin with, which share a slot. `name`: of one of the customer's windows or sums. */
    customer: (name: string) => `${prefix}{${pack(customerOf(name))}}`,
    /** A counter: all share a slot. */
    counter: (counter: string) => `${prefix}{t}${counter}`,
    /** A value, in a slot of its own: an empty hash tag is none. */
    value: (key: string) => `${prefix}{}${key}`,
  };
}

// What the key of a window with limits, of a list and of a part of a sum, whose number follows, have after what `customer` gives, without a space.
export const windowName = (window: string) => `.${listName(window)}`;
export const partName = (sum: string) => `#${listName(sum)}#`;
export function listName(list: string): string {
  const rest = list.slice(customerOf(list).length);
  return /[ %]/.test(rest) ? rest.replace(/[ %]/g, encodeURIComponent) : rest;
}

/** The customer in the name of a window or sum. */
export function customerOf(name: string): string {
  const colon = name.indexOf(":");
  return colon === -1 ? name : name.slice(0, colon);
}

/** Customer and id from a record's name in the wake index. */
export function parseName(name: string): { readonly customer: string; readonly id: string } {
  const [, customer = "", id = ""] = nameOfRecord.exec(name) ?? [];
  return { customer: unpack(customer), id: unpack(id) };
}

/** A member as it stands in a window, without a space or line break: after a tilde, a UUID that it begins with takes 22 characters. */
export function packMember(member: string): string {
  if (member === "" || /[ \n]/.test(member)) return `~=${member.replace(/[ \n%]/g, encodeURIComponent)}`;
  if (beginsWithUuid.test(member)) return `~${pack(member.slice(0, 36))}${member.slice(36)}`;
  return member.startsWith("~") ? `~${member}` : member;
}

/** The member that `packMember` packed. */
export function parseMember(packed: string): string {
  if (!packed.startsWith("~")) return packed;
  if (packed.startsWith("~=")) return decodeURIComponent(packed.slice(2));
  return packed.startsWith("~~") ? packed.slice(1) : unpack(packed.slice(1, 23)) + packed.slice(23);
}

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

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 0;
}
