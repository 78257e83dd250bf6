const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const beginsWithUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;
const nameOfRecord = /^(:[^:]*:|[^:]{22})(:[^:]*:|[^:]{22})$/;

/** Names everything the store keeps. `prefix` holds no brace, so the first brace of a key opens its hash tag. */
export interface Keys {
  /** The record, its wake index and its name there; the two keys share a slot. */
  record(customer: string, id: string): { readonly record: string; readonly wake: string; readonly name: string };
  /** The wake index of every shard. */
  readonly wakes: readonly string[];
  /** A window or a sum: all of a customer share a slot. */
  window(window: string): string;
  sum(sum: string): string;
  /** What tells that a call has been made, beside the sums of the customer that `sum` names. */
  ticket(sum: string, call: string): string;
  /** A counter: all share a slot. */
  counter(counter: string): string;
  /** A value, in a slot of its own: an empty hash tag is none. */
  value(key: string): string;
}

/** `prefix{0}r…` is a record, `prefix{0}w` the wake index of shard 0, `prefix{customer}:…` a window, `prefix{customer}+…` a sum, `prefix{customer}!…` a ticket, `prefix{t}…` a counter, `prefix{}…` a value. */
export function keysUnder(prefix: string, shards: number): Keys {
  /** The customer's tag in front of `rest`, by default of what follows the customer in `name`. */
  function tagged(name: string, mark: string, rest?: string): string {
    const colon = name.indexOf(":");
    const end = colon === -1 ? name.length : colon;
    return `${prefix}{${pack(name.slice(0, end))}}${mark}${rest ?? name.slice(end)}`;
  }
  return {
    record(customer, id) {
      // What is no authentication is found however many shards there are.
      const shard = `${prefix}{${shards > 1 && uuid.test(id) ? hash(id) % shards : 0}}`;
      const name = pack(customer) + pack(id);
      return { record: `${shard}r${name}`, wake: `${shard}w`, name };
    },
    wakes: Array.from({ length: shards }, (_, shard) => `${prefix}{${shard}}w`),
    window: (window) => tagged(window, ""),
    sum: (sum) => tagged(sum, "+"),
    ticket: (sum, call) => tagged(sum, "!", call),
    counter: (counter) => `${prefix}{t}${counter}`,
    value: (key) => `${prefix}{}${key}`,
  };
}

/** Customer and id from a record's name in the wake index. */
export function parseName(name: string): { readonly customer: string; readonly id: string } {
  const [, customer = "", id = ""] = nameOfRecord.exec(name) ?? [];
  return { customer: unpack(customer), id: unpack(id) };
}

/** A member as it stands in a window, without a space: after a tilde, a UUID that it begins with takes 22 characters. */
export function packMember(member: string): string {
  // Several limits on one window follow one another, with one member.
  if (member !== newestMember.text) newestMember = { text: member, packed: packMemberAnew(member) };
  return newestMember.packed;
}

let newestMember = { text: "-", packed: "-" };

function packMemberAnew(member: string): string {
  if (member === "" || member.includes(" ")) return `~=${member.replace(/[ %]/g, encodeURIComponent)}`;
  if (beginsWithUuid.test(member)) return `~${pack(member.slice(0, 36))}${member.slice(36)}`;
  return member.startsWith("~") ? `~${member}` : member;
}

/** The member that `packMember` packed. */
export function parseMember(packed: string): string {
  if (!packed.startsWith("~")) return packed;
  if (packed.startsWith("~=")) return decodeURIComponent(packed.slice(2));
  return packed.startsWith("~~") ? packed.slice(1) : unpack(packed.slice(1, 23)) + packed.slice(23);
}

/** The two that were packed last: the keys and members of one call name one customer and one authentication over and over. */
let newest = { text: "", packed: "::" };
let other = newest;

/** A UUID in lower case as 22 characters; any other text escaped between colons. */
function pack(text: string): string {
  if (text === newest.text) return newest.packed;
  const older = newest;
  newest = text === other.text ? other : { text, packed: packAnew(text) };
  other = older;
  return newest.packed;
}

function packAnew(text: string): string {
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
