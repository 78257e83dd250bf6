/** What an operator should look at. Each is told at most once an hour for one customer and subject, by each process that sees it. */
export type Alarm =
  /** More messages of a country are open or refused within the hour than its verifications explain. */
  | { readonly alarm: "country"; readonly country: string }
  /** One range of 10,000 numbers got more messages than a crowd there would ask for. `range`: its beginning, masked. */
  | { readonly alarm: "crowd"; readonly range: string }
  /** A cap of all the customer's sends is used to four fifths. */
  | { readonly alarm: "customer_cap"; readonly rule: string }
  /** A spend ceiling is used to four fifths. */
  | { readonly alarm: "spend"; readonly rule: string }
  /** Wrong codes out of all proportion to right ones. `value`: the odds that some code was guessed today, from 0 to 1. */
  | { readonly alarm: "wrong_codes"; readonly wrong: number; readonly right: number }
  /** A rule in shadow would have refused more than a hundredth of the last hour's messages. `value`: that share. */
  | { readonly alarm: "shadow"; readonly rule: string };

/** Something that happened. Numbers are masked, and nothing here holds a code or a key. */
export type VerifierEvent = Alarm & {
  readonly type: "alarm";
  readonly customer_uuid: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** What was counted, and what it is held against. */
  readonly value: number;
  readonly threshold: number;
};
