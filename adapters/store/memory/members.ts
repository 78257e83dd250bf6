/** At most this many members are kept as a list, which is smaller; more as a map, which is faster. */
const listed = 16;

/** Members that came to a window one after another, with their times in ascending order. */
class Segment {
  /** In the order of `#times`, or with their times. */
  #names: string[] | Map<string, number>;
  #times: number[];

  constructor(name: string, at: number) {
    this.#names = [name];
    this.#times = [at];
  }

  get size(): number {
    return this.#times.length;
  }

  get newest(): number {
    return this.#times[this.#times.length - 1] as number;
  }

  get oldest(): number {
    return this.#times[0] as number;
  }

  timeOf(name: string): number | undefined {
    if (this.#names instanceof Map) return this.#names.get(name);
    const place = this.#names.indexOf(name);
    return place < 0 ? undefined : this.#times[place];
  }

  /** How many are newer than `since`. */
  newer(since: number): number {
    return this.#times.length - upTo(this.#times, since);
  }

  add(name: string, at: number): void {
    const place = upTo(this.#times, at);
    if (this.#names instanceof Map) {
      this.#times.splice(place, 0, at);
      this.#names.set(name, at);
      return;
    }
    this.#times = this.#times.toSpliced(place, 0, at);
    this.#names = this.#names.toSpliced(place, 0, name);
    if (this.#names.length > listed) this.#names = new Map(this.#names.map((each, i) => [each, this.#times[i] as number]));
  }

  remove(name: string, at: number): void {
    if (this.#names instanceof Map) {
      this.#times.splice(upTo(this.#times, at) - 1, 1);
      this.#names.delete(name);
      return;
    }
    const place = this.#names.indexOf(name);
    this.#times = this.#times.toSpliced(place, 1);
    this.#names = this.#names.toSpliced(place, 1);
  }

  /** Drops those before `time` where that is cheap: from a list. */
  dropBefore(time: number): void {
    if (this.#names instanceof Map) return;
    const gone = this.#times.findIndex((at) => at >= time);
    if (gone <= 0) return;
    this.#times = this.#times.slice(gone);
    this.#names = this.#names.slice(gone);
  }
}

/** How many of the ascending `times` are `time` or before. */
function upTo(times: readonly number[], time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The members of one window. One member, which is what most windows hold, costs nothing but itself. Many are kept in segments of about an eighth of the whole, which are dropped whole
 * when all in them are past, so that nothing here ever costs more than a search in a few maps.
 */
export class Members {
  #name: string | undefined;
  #at: number;
  #segments: Segment[] | undefined = undefined;
  size = 1;

  constructor(name: string, at: number) {
    this.#name = name;
    this.#at = at;
  }

  /** The time of a member, or `undefined`. */
  timeOf(name: string): number | undefined {
    if (this.#segments === undefined) return this.#name === name ? this.#at : undefined;
    for (let i = this.#segments.length - 1; i >= 0; i--) {
      const at = (this.#segments[i] as Segment).timeOf(name);
      if (at !== undefined) return at;
    }
    return undefined;
  }

  /** How many are newer than `since`. */
  newer(since: number): number {
    if (this.#segments === undefined) return this.#at > since ? 1 : 0;
    let sum = 0;
    for (const segment of this.#segments) {
      if (segment.oldest > since) sum += segment.size;
      else if (segment.newest > since) sum += segment.newer(since);
    }
    return sum;
  }

  /** Adds the member, or moves it to `at`. Those before `forgetBefore` may go. */
  set(name: string, at: number, forgetBefore: number): void {
    if (this.#segments === undefined) {
      if (this.#name === name || this.#at < forgetBefore) {
        this.#name = name;
        this.#at = at;
        return;
      }
      this.#segments = [new Segment(this.#name as string, this.#at)];
      this.#name = undefined;
    }
    this.#remove(name, this.#segments);
    this.#forget(forgetBefore, this.#segments);
    const last = this.#segments[this.#segments.length - 1];
    if (last === undefined || last.size >= Math.min(16_384, Math.max(128, this.size / 8))) this.#segments.push(new Segment(name, at));
    else last.add(name, at);
    this.size++;
  }

  #remove(name: string, segments: Segment[]): void {
    for (let i = segments.length - 1; i >= 0; i--) {
      const segment = segments[i] as Segment;
      const at = segment.timeOf(name);
      if (at === undefined) continue;
      segment.remove(name, at);
      if (segment.size === 0) segments.splice(i, 1);
      this.size--;
      return;
    }
  }

  /** Drops from the first segment what is past, and the whole segment where all of it is. */
  #forget(before: number, segments: Segment[]): void {
    for (let first = segments[0]; first !== undefined; first = segments[0]) {
      const { size } = first;
      if (first.newest >= before) {
        first.dropBefore(before);
        this.size -= size - first.size;
        return;
      }
      segments.shift();
      this.size -= size;
    }
  }
}
