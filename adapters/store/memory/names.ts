import { joined } from "./pack.js";

/** So many customers are numbered; a number is kept for good. */
const mostNumbered = 0x1_0000;

/** What the keys of customers begin with. A UUID in each would take more memory than what stands under it, so customers are numbered as they come. */
export class Names {
  readonly #prefixes = new Map<string, string>();
  readonly #customers: string[] = [];
  /** The customer that was asked for last: nearly always the next one, too. */
  #customer: string | undefined;
  /** What the keys of that one begin with. */
  #prefix = "";

  prefixOf(customer: string): string {
    if (customer !== this.#customer) {
      this.#prefix = this.#prefixes.get(customer) ?? this.#newPrefix(customer);
      this.#customer = customer;
    }
    return this.#prefix;
  }

  /** The key of a name that begins with its customer, up to the first colon. */
  keyOf(name: string): string {
    const end = Math.max(0, name.indexOf(":"));
    const last = this.#customer;
    const prefix = last?.length === end && name.startsWith(last) ? this.#prefix : this.prefixOf(name.slice(0, end));
    return joined(prefix, name.slice(end));
  }

  /** The customer whose prefix a key begins with, and the rest of the key. */
  split(key: string): readonly [customer: string, rest: string] {
    if (key.charCodeAt(0) === 0) return [this.#customers[(key.charCodeAt(1) << 8) | key.charCodeAt(2)] as string, key.slice(3)];
    const end = key.indexOf("\n");
    return [key.slice(1, end), key.slice(end + 1)];
  }

  #newPrefix(customer: string): string {
    const number = this.#customers.length;
    if (number === mostNumbered) return `\u0001${customer}\n`;
    const prefix = String.fromCharCode(0, number >> 8, number & 255);
    this.#customers.push(customer);
    this.#prefixes.set(customer, prefix);
    return prefix;
  }
}
