const maxBytes = 65_536;

/** Throws when `text` is above 64 KiB as UTF-8. `what` names it in the message. */
export function atMost64KiB(text: string, what: string): void {
  if (text.length * 3 <= maxBytes) return;
  if (text.length > maxBytes || Buffer.byteLength(text) > maxBytes) throw new Error(`memoryStore: ${what} is above 64 KiB.`);
}

/** The same text in one piece of its own. Joined and cut strings keep their parts alive, which costs twice the memory or more. */
export function compact(text: string): string {
  const copy = Buffer.from(text, "latin1").toString("latin1");
  return copy === text ? copy : text;
}

const shards = 256;

/** A map of texts in 256 parts, so that none is ever so large that its growing or shrinking holds the event loop. */
export class TextMap<V> {
  readonly #parts: (Map<string, V> | undefined)[] = new Array<undefined>(shards).fill(undefined);

  get(key: string): V | undefined {
    return this.#parts[partOf(key)]?.get(key);
  }

  set(key: string, value: V): void {
    const part = partOf(key);
    let map = this.#parts[part];
    if (map === undefined) {
      map = new Map();
      this.#parts[part] = map;
    }
    map.set(key, value);
  }

  delete(key: string): void {
    this.#parts[partOf(key)]?.delete(key);
  }
}

/** From the last sixteen characters: keys differ there, and begin alike. */
function partOf(key: string): number {
  let hash = 0;
  for (let i = Math.max(0, key.length - 16); i < key.length; i++) hash = (Math.imul(hash, 31) + key.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 8) ^ (hash >>> 16)) & (shards - 1);
}
