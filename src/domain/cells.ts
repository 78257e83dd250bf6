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

/** Reads what came back for a question. */
export type Read<T> = (answer: Answer) => T;

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

/** Gathers what one attempt claims and asks of the cells of a customer. Each sum is to be named once. */
export interface Questions {
  readonly claims: readonly SumClaim[];
  readonly asks: readonly Ask[];
  /** Counts a message in the cell, and asks for what was counted and verified over `length`. `closed`: the question for what was verified, where it is asked already. */
  count(cell: string, length: number, closed?: Read<VerifiedCount>): Read<CellCount>;
  /** Asks how many were verified in the cell over `length`, and how many messages those had. */
  verified(cell: string, length: number): Read<VerifiedCount>;
  /** Asks for a plain sum. */
  plain(sum: string, length: number): Read<number>;
}

export function askCells(customer: string, moment: Moment): Questions {
  const claims: SumClaim[] = [];
  const asks: Ask[] = [];
  const ask = (sum: string, length: number) => asks.push({ sum, since: sinceOf(moment, length) }) - 1;
  const verified = (cell: string, length: number): Read<VerifiedCount> => {
    const at = ask(nameOf(customer, "v", cell, length), length);
    return ({ asked }) => {
      const packed = asked[at] ?? 0;
      return { verified: Math.floor(packed / verification), messages: packed % verification };
    };
  };
  return {
    claims,
    asks,
    verified,
    count(cell, length, closed = verified(cell, length)) {
      const at = claims.push(messageClaim(customer, cell, 1, length, moment)) - 1;
      return (answer) => {
        const sent = (answer.counts[at] ?? 1) - 1;
        const { verified: times, messages } = closed(answer);
        return { sent, open: Math.max(0, sent - messages), verified: times };
      };
    },
    plain(sum, length) {
      const at = ask(`${customer}:${sum}`, length);
      return ({ asked }) => asked[at] ?? 0;
    },
  };
}

/** What a verification claims: it credits the cells that its `messages` had filled, over each of the lengths that are asked for. */
export function creditCells(
  customer: string,
  cells: readonly { readonly cell: string; readonly length: number }[],
  messages: number,
  moment: Moment,
): SumClaim[] {
  return cells.map(({ cell, length }) => sumClaim(nameOf(customer, "v", cell, length), verification + messages, length, moment));
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
