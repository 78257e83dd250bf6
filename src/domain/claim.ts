/** How long something is kept. Nothing is decided by it: it is housekeeping. */
export interface Expiry {
  /** The caller's time. Whole milliseconds since the epoch. */
  readonly now: number;
  /** It must be kept until then, and may be forgotten after. A store measures `keepUntil - now` by a clock of its own: callers whose clocks are days apart must not end what the others keep. */
  readonly keepUntil: number;
}

/**
 * One member more in a window, which knows its members.
 *
 * Names of windows and sums begin with the UUID of a customer, up to the first `:`; those of one commit all belong to one customer.
 */
export interface MemberClaim extends Expiry {
  readonly window: string;
  /** What is counted. One that is already there counts once, and moves to `now`, never back in time. */
  readonly member: string;
  /** Milliseconds since the epoch; a member of `since` or before does not count. One that is later than `now` does. */
  readonly since: number;
  /**
   * At most so many members, this one included, may be newer than `since`. 1 to 1,000. The window keeps its newest members, eight more than its largest limit at least.
   * Absent: it is counted, never refused, and the window may keep its newest 10,000 only. All claims on one window have a limit, or none has.
   */
  readonly limit?: number;
  /** Takes the member out again, if it stands there with this very `now`. Always granted. */
  readonly out?: true;
}

/** Which parts of a sum count (docs/contract.md#sum-parts). Parts are numbered by time, the newest last. */
export interface SumParts {
  readonly sum: string;
  /** The number of the newest part that counts, `ahead` apart. A whole number of 0 or more. */
  readonly part: number;
  /** How many parts count, `part` and those just before it. 1 to 64, and always the same for one sum. */
  readonly parts: number;
  /** The part after `part` counts too: another process may already be in it. */
  readonly ahead?: true;
}

/** So much more in a sum, which knows no members. It is added to `part`. */
export interface SumClaim extends SumParts, Expiry {
  /** A whole number. Below 0: always granted. The sum, and each of its parts, may fall below 0; all stay below 2^53 either way. */
  readonly weight: number;
  /** What the parts that count may come to, this weight included; a weight of 0 is held to it as any. Absent: it is counted, never refused. */
  readonly limit?: number;
  /**
   * A sum of less counts as so much, before this claim and after it: what is added to `part` is what takes the parts that count from what they hold to `max(floor, max(floor, held) + weight)`.
   */
  readonly floor?: number;
}

export type Claim = MemberClaim | SumClaim;

/** When something is counted, and how far the clocks of the processes may be off. Milliseconds. */
export interface Moment {
  readonly now: number;
  readonly skew: number;
}

/** A span of time over which a sum counts. */
export interface Period {
  /** Milliseconds. */
  readonly length: number;
  /** How many parts are summed, whole. The sum counts what it holds for up to `length / (parts - 1)` longer than `length`. */
  readonly parts: number;
}

/** Where a count over `length` milliseconds begins: "A limit holds in every window of its length" (docs/contract.md#every-window), also where the clocks of several processes differ; each may be `skew` off, so it reaches back twice that further. */
export function sinceOf({ now, skew }: Moment, length: number): number {
  return now - length - 2 * skew;
}

/** How long one part of a sum is, in milliseconds: all but the newest together are as long as the period, and twice the skew more. */
function partLength({ length, parts }: Period, skew: number): number {
  return Math.ceil((length + 2 * skew) / (parts - 1));
}

/** The parts of a sum that count at a moment. */
export function partsAt(sum: string, period: Period, { now, skew }: Moment): SumParts {
  const long = partLength(period, skew);
  const part = Math.floor(now / long);
  const { parts } = period;
  return Math.floor((now + 2 * skew) / long) > part ? { sum, part, parts, ahead: true } : { sum, part, parts };
}

/** So much more in a sum over a period. */
export function sumClaim(
  sum: string,
  weight: number,
  period: Period,
  moment: Moment,
  bounds: { readonly limit?: number | undefined; readonly floor?: number | undefined } = {},
): SumClaim {
  const { now, skew } = moment;
  const { limit, floor } = bounds;
  const { part, parts, ahead } = partsAt(sum, period, moment);
  const keepUntil = partStart(part + parts, period, skew) + 2 * skew;
  // Spread, a claim took 3 µs, and those of a flow 6 % of its CPU over Redis.
  const claim: { -readonly [key in keyof SumClaim]: SumClaim[key] } = { sum, part, parts, weight, now, keepUntil };
  if (ahead) claim.ahead = ahead;
  if (limit !== undefined) claim.limit = limit;
  if (floor !== undefined) claim.floor = floor;
  return claim;
}

/** Takes a weight out of a sum again, where it was added. */
export function givenBack({ limit, floor, weight, ...claim }: SumClaim): SumClaim {
  return { ...claim, weight: -weight };
}

/** When a part of a sum begins, in milliseconds since the epoch: once a claim is refused until part `roomPart`, that is when there is room again. */
export function partStart(part: number, period: Period, skew: number): number {
  return part * partLength(period, skew);
}
