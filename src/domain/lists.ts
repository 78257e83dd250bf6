import ipaddr from "ipaddr.js";
import { printableForm } from "../contract/authentication.js";
import { addressKey } from "./ip.js";
import { maskNumber } from "./phone-number.js";

/** Numbers, addresses and devices that are blocked, or safe. */
export interface List {
  /** In canonical E.164 form, or prefixes of it that end in `*`. */
  readonly numbers?: readonly string[] | undefined;
  /** IPv4 and IPv6, for example `203.0.113.0/24`; an address alone stands for itself. */
  readonly cidrs?: readonly string[] | undefined;
  /** Values of `device_id`, to the letter. */
  readonly devices?: readonly string[] | undefined;
}

/** A list, or whoever knows it at the moment: asked when it is first needed, then beside requests. */
export type ListSource = List | ListQuestion;

/** Answers the list as it is now. While it answers the very same object nothing is read anew. */
export type ListQuestion = () => List | Promise<List>;

/** Who is looked for in a list. */
export interface ListSubject {
  /** Canonical E.164 form. */
  readonly number: string;
  readonly ip?: string | undefined;
  readonly deviceId?: string | undefined;
}

/** The entry that a subject falls under. */
export interface Listed {
  readonly kind: "number" | "address" | "device";
  /** As it stands in the list, but never a whole phone number. */
  readonly entry: string;
}

/** What the lists say of a subject. */
export interface ListWord {
  readonly block?: Listed;
  /** "safe beats rules, never caps"; never beside `block`. */
  readonly safe: boolean;
}

/** A list that has been read: a question costs a look-up for each length of prefix that stands in it, however many entries there are. */
export interface ListIndex {
  find(subject: ListSubject): Listed | undefined;
}

/** What is wrong with an entry, as a path into the list and the mend. The entry itself may be a number that somebody has, and is not repeated. */
export interface ListFault {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export interface ReadList {
  /** Of all entries that are sound; absent: this is no list at all. */
  readonly index?: ListIndex;
  /** The first ten. */
  readonly faults: readonly ListFault[];
  /** How many there are. */
  readonly faulty: number;
}

/** "Block and safe lists: numbers, prefixes, CIDRs, devices" (issue 10): whoever is on both is blocked. */
export function judgeLists(block: ListIndex | undefined, safe: ListIndex | undefined, subject: ListSubject): ListWord {
  const blocked = block?.find(subject);
  return blocked === undefined ? { safe: safe?.find(subject) !== undefined } : { block: blocked, safe: false };
}

/** Reads a list, once. */
export function readList(list: unknown): ReadList {
  const faults: ListFault[] = [];
  let faulty = 0;
  const fault = (path: ListFault["path"], message: string) => {
    faulty += 1;
    if (faults.length < 10) faults.push({ path, message });
  };
  // What is itself a row of things, or a promise of them, has none of the keys below, and would pass for an empty list.
  if (typeof list !== "object" || list === null || Symbol.iterator in list || "then" in list) {
    fault([], "must be { numbers?, cidrs?, devices? }, or a function that answers it");
    return { faults, faulty };
  }
  const numbers = numberEntries();
  const addresses = addressEntries();
  const devices = new Set<string>();
  const parts: Readonly<Record<string, { readonly mend: string; add(entry: string): boolean }>> = {
    numbers: { mend: "must be in E.164 form, or a prefix that ends in *", add: numbers.add },
    cidrs: { mend: "must be an address or a CIDR, for example 203.0.113.0/24 or 2001:db8::/32", add: addresses.add },
    devices: { mend: "must be 1 to 128 printable characters", add: (entry) => printableForm.test(entry) && devices.add(entry) !== undefined },
  };
  let sound = true;
  for (const [key, entries] of Object.entries(list) as [string, unknown][]) {
    const part = Object.hasOwn(parts, key) ? parts[key] : undefined;
    if (part === undefined) fault([key], "is no part of a list: numbers, cidrs and devices are");
    else if (Array.isArray(entries)) {
      for (const [at, entry] of entries.entries()) if (typeof entry !== "string" || !part.add(entry)) fault([key, at], part.mend);
    } else if (entries !== undefined) {
      fault([key], "must be a list of strings");
      sound = false;
    }
  }
  if (!sound) return { faults, faulty };
  const index: ListIndex = {
    find({ number, ip, deviceId }) {
      const blocked = numbers.find(number);
      if (blocked !== undefined) return { kind: "number", entry: blocked };
      const address = ip === undefined ? undefined : addresses.find(ip);
      if (address !== undefined) return { kind: "address", entry: address };
      return deviceId !== undefined && devices.has(deviceId) ? { kind: "device", entry: deviceId } : undefined;
    },
  };
  return { index, faults, faulty };
}

/** Entries of one kind; `find` answers the one that fits, as it may be shown. */
interface Entries {
  /** False: it is none. */
  add(entry: string): boolean;
  find(text: string): string | undefined;
}

function numberEntries(): Entries {
  const whole = new Set<string>();
  const prefixes = prefixEntries();
  return {
    add(entry) {
      if (!/^\+[1-9](\d{1,14}|\d{0,14}\*)$/.test(entry)) return false;
      if (entry.endsWith("*")) prefixes.add(entry.slice(0, -1), entry);
      else whole.add(entry);
      return true;
    },
    find(number) {
      if (whole.has(number)) return maskNumber(number);
      const prefix = prefixes.find(number);
      return prefix !== undefined && prefix.length > number.length - 4 ? `${maskNumber(prefix.slice(0, -1))}*` : prefix;
    },
  };
}

/** IPv4 and IPv6 apart: `::/0` is all of IPv6 and nothing of IPv4. An IPv6 address that stands for an IPv4 one is looked for as both. */
function addressEntries(): Entries {
  const entries = { ipv4: prefixEntries(), ipv6: prefixEntries() };
  let any = false;
  return {
    add(entry) {
      const [, text = "", digits] = /^([\d.:a-f]+)(?:\/(0|[1-9]\d{0,2}))?$/i.exec(entry) ?? [];
      // `10/8` and `010.0.0.0/8` are read otherwise elsewhere.
      if (text.includes(":") ? !ipaddr.IPv6.isValid(text) : !ipaddr.IPv4.isValidFourPartDecimal(text)) return false;
      const address = ipaddr.parse(text);
      const bits = bitsOf(address);
      const length = digits === undefined ? bits.length : Number(digits);
      if (length > bits.length) return false;
      const prefix = bits.slice(0, length);
      const mapped = prefix.startsWith(mappedPrefix) && address.kind() === "ipv6";
      entries[mapped ? "ipv4" : address.kind()].add(mapped ? prefix.slice(mappedPrefix.length) : prefix, entry);
      return (any = true);
    },
    find(ip) {
      if (!any) return undefined;
      const address = ipaddr.process(ip);
      if (address.kind() === "ipv4") return entries.ipv4.find(bitsOf(address));
      const key = addressKey(ip);
      return entries.ipv6.find(bitsOf(address)) ?? (key.includes(":") ? undefined : entries.ipv4.find(bitsOf(ipaddr.parse(key))));
    },
  };
}

/** Prefixes by their length, so that a text is looked up once for each length that occurs. */
function prefixEntries() {
  const byLength = new Map<number, Map<string, string>>();
  return {
    add(prefix: string, entry: string): void {
      const same = byLength.get(prefix.length);
      if (same === undefined) byLength.set(prefix.length, new Map([[prefix, entry]]));
      else same.set(prefix, entry);
    },
    find(text: string): string | undefined {
      for (const [length, prefixes] of byLength) {
        const entry = prefixes.get(text.slice(0, length));
        if (entry !== undefined) return entry;
      }
      return undefined;
    },
  };
}

/** Each byte as its eight bits. */
const octets = Array.from({ length: 256 }, (_, byte) => byte.toString(2).padStart(8, "0"));

function bitsOf(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  let bits = "";
  for (const byte of address.toByteArray()) bits += octets[byte];
  return bits;
}

/** `::ffff:0:0/96`: IPv4 in the clothes of IPv6 (RFC 4291, section 2.5.5.2). */
const mappedPrefix = `${"0".repeat(80)}${"1".repeat(16)}`;
