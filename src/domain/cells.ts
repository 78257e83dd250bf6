import { type Ask, type Moment, type SumClaim, sinceOf, sumClaim } from "./claim.js";
import { day, hour } from "./time.js";

/** What is known of a cell over some length: a range, a country, an address … */
export interface CellCount {
  /** Messages of authentications that are not verified, without the one that is asked about. "*Open* is sent and not verified, retries included" (docs/contract.md#open). */
  readonly open: number;
  /** Messages, without the one that is asked about. */
  readonly sent: number;
  /** Authentications verified. */
  readonly verified: number;
}

/** A verification is one sum's weight of so much, and its messages beside it: one question tells both. */
const verification = 1e8;

/** What the store answered to the questions' claims and asks, in their order. */
export interface Answer {
  readonly counts: readonly number[];
  readonly asked: readonly number[];
}

/** What is known of the verifications in a cell over some length. */
export interface VerifiedCount {
  readonly verified: number;
  /** Messages that those had. */
  readonly messages: number;
}

/** The places in an answer where a cell's counts come back. */
export interface CountPlaces {
  readonly sent: number;
  /** Of what was verified. */
  readonly closed: number;
}

/** Gathers what one attempt claims and asks of the cells of a customer, and tells where the answers come back. Each sum is to be named once. */
export class Questions {
  readonly claims: SumClaim[] = [];
  readonly asks: Ask[] = [];

  constructor(
    readonly customer: string,
    readonly moment: Moment,
  ) {}

  /** Counts a message in the cell, and asks for what was counted and verified over `length`. `closed`: where what was verified comes back, if it is asked already. */
  count(cell: string, length: number, closed = this.verified(cell, length)): CountPlaces {
    return { sent: this.claims.push(messageClaim(this.customer, cell, 1, length, this.moment)) - 1, closed };
  }

  /** Asks how many were verified in the cell over `length`, and how many messages those had. */
  verified(cell: string, length: number): number {
    return this.#ask(nameOf(this.customer, "v", cell, length), length);
  }

  /** Asks for a plain sum. */
  plain(sum: string, length: number): number {
    return this.#ask(`${this.customer}:${sum}`, length);
  }

  #ask(sum: string, length: number): number {
    return this.asks.push({ sum, since: sinceOf(this.moment, length) }) - 1;
  }
}

export function countAt(answer: Answer, { sent, closed }: CountPlaces): CellCount {
  const before = (answer.counts[sent] ?? 1) - 1;
  const { verified, messages } = verifiedAt(answer, closed);
  return { sent: before, open: Math.max(0, before - messages), verified };
}

export function verifiedAt({ asked }: Answer, place: number): VerifiedCount {
  const packed = asked[place] ?? 0;
  return { verified: Math.floor(packed / verification), messages: packed % verification };
}

export function plainAt({ asked }: Answer, place: number): number {
  return asked[place] ?? 0;
}

/** What a verification claims: it credits a cell that its `messages` had filled, over a length that is asked for. */
export function creditClaim(customer: string, cell: string, length: number, messages: number, moment: Moment): SumClaim {
  return sumClaim(nameOf(customer, "v", cell, length), verification + messages, length, moment);
}

/** Messages in a cell. */
export function messageClaim(customer: string, cell: string, weight: number, length: number, moment: Moment): SumClaim {
  return sumClaim(nameOf(customer, "o", cell, length), weight, length, moment);
}

/** One more in a plain sum. */
export function plainClaim(customer: string, sum: string, length: number, moment: Moment): SumClaim {
  return sumClaim(`${customer}:${sum}`, 1, length, moment);
}

/** `o` for what was sent, `v` for what was verified; a cell counted over several lengths is as many sums. */
function nameOf(customer: string, what: "o" | "v", cell: string, length: number): string {
  const kind = length === day ? `${what}:` : `${what}${length / hour}:`;
  return `${customer}:${kind}${cell}`;
}
