/** How long something is kept. Nothing is decided by it: it is housekeeping. */
export interface Life {
  /** The caller's time. Whole milliseconds since the epoch. */
  readonly now: number;
  /** It must be kept until then, and may be forgotten after. A store measures `keepUntil - now` by a clock of its own: callers whose clocks are days apart must not end what the others keep. */
  readonly keepUntil: number;
}

/** Names of windows and sums begin with the UUID of a customer, up to the first `:`; those of one commit all belong to one customer. */
interface Counted extends Life {
  /** Milliseconds since the epoch; what is counted at `since` or before does not count. What is later than `now` does. */
  readonly since: number;
}

/** One member more in a window, which knows its members. All claims on one window have a limit, or none has. */
export interface MemberClaim extends Counted {
  readonly window: string;
  /** What is counted. One that is already there counts once, and moves to `now`, never back in time. */
  readonly member: string;
  /** At most so many members, this one included, may be newer than `since`. 1 to 1,000. The window keeps its newest members, eight more than its largest limit at least. Absent: it is counted and told, never refused, and the window may keep its newest 10,000 only. */
  readonly limit?: number;
  /** Takes the member out again, if it stands there with this very `now`. Always granted. */
  readonly out?: true;
}

/** So much more in a sum, which knows no members. */
export interface SumClaim extends Counted {
  readonly sum: string;
  /** A whole number; 0 is held to the limit as any. Below 0: gives back of what was claimed at this very `now`, over the same length (`now - since`), and is always granted; no part of a sum falls below 0. */
  readonly weight: number;
  /** What the sum since `since` may come to, this weight included. Absent: it is counted and told, never refused. */
  readonly limit?: number;
}

export type Claim = MemberClaim | SumClaim;

/** A sum that one wants to know. */
export interface Ask {
  readonly sum: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/** When something is counted, and how far the clocks of the processes may be off. Milliseconds. */
export interface Moment {
  readonly now: number;
  readonly skew: number;
}

/** Where a count over `length` milliseconds begins: "A limit holds in every window of its length" (docs/contract.md#every-window), also where the clocks of several processes differ; each may be `skew` off, so it reaches back twice that further. */
export function sinceOf({ now, skew }: Moment, length: number): number {
  return now - length - 2 * skew;
}

/** So much more in a sum over `length` milliseconds. */
export function sumClaim(sum: string, weight: number, length: number, moment: Moment, limit?: number): SumClaim {
  const { now } = moment;
  const since = sinceOf(moment, length);
  const keepUntil = now + 2 * (now - since);
  return limit === undefined ? { sum, weight, now, since, keepUntil } : { sum, weight, now, since, keepUntil, limit };
}
