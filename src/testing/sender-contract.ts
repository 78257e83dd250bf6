import { AssertionError } from "node:assert/strict";
import { randomInt, randomUUID } from "node:crypto";
import type { CodeMessage, SendOutcome, SmsSender } from "../ports/sms-sender.js";
import type { ContractCase } from "./contract-case.js";

/** How a carrier handles every message of one case. */
export type CarrierBehaviour =
  /** Accepts it. */
  | "accepts"
  /** Rejects it: an invalid number, a block, no credit. */
  | "refuses"
  /** Rejects it because there are too many messages at the moment. */
  | "throttles"
  /** Reports a failure, but not whether the message was sent. */
  | "fails"
  /** Responds with something that is not a valid response. */
  | "garbles"
  /** Accepts it and never responds. */
  | "withholds"
  /** Accepts it and closes the connection. */
  | "cuts"
  /** Refuses connections. */
  | "unreachable";

/** A sender, and a carrier whose behaviour the case chooses. */
export interface SenderBench {
  readonly sender: SmsSender;
  /**
   * What has reached the carrier so far, oldest first; numbers as `+` and digits, a text of several parts once.
   * `text`: for a sender of another channel than `sms`, only the code that the carrier shows or says.
   */
  received(): readonly { readonly to: string; readonly text: string }[];
  /** Closes what `open` opened. */
  close?(): Promise<void>;
}

/** What the sender contract tests: creates a new bench for each case. */
export interface SenderSubject {
  open(behaviour: CarrierBehaviour): Promise<SenderBench>;
}

/** The required outcome for each behaviour. */
const due: Readonly<Record<CarrierBehaviour, { readonly outcome: SendOutcome["outcome"]; readonly sentence: string }>> = {
  accepts: { outcome: "accepted", sentence: "a message that the carrier accepts is accepted" },
  refuses: { outcome: "rejected", sentence: "a message that the carrier rejects is rejected" },
  throttles: { outcome: "rejected", sentence: "a message for which the carrier has no capacity is rejected" },
  fails: { outcome: "unknown", sentence: "if the carrier fails without details, the outcome is unknown" },
  garbles: { outcome: "unknown", sentence: "if the response cannot be read, the outcome is unknown" },
  withholds: { outcome: "unknown", sentence: "if no response arrives before the signal, the outcome is unknown, and the sender does not wait" },
  cuts: { outcome: "unknown", sentence: "if the connection is cut before the response, the outcome is unknown" },
  unreachable: { outcome: "rejected", sentence: "if no connection to the carrier can be made, the message was not sent: rejected" },
};

/**
 * Every rule of the `SmsSender` port as a named case.
 *
 * @param options.behaviours What the bench's carrier can do. Default: all.
 * @param options.crowd Concurrent messages in the case that sends many. An integer of 2 or more; default 50.
 * @param options.patience Seconds to wait for what must happen before a case fails. Default: 10.
 */
export function senderContract(
  options: { readonly behaviours?: readonly CarrierBehaviour[]; readonly crowd?: number; readonly patience?: number } = {},
): readonly ContractCase<SenderSubject>[] {
  const behaviours = options.behaviours ?? (Object.keys(due) as CarrierBehaviour[]);
  const unknown = behaviours.find((one) => !Object.hasOwn(due, one));
  if (unknown !== undefined) throw new Error(`senderContract: behaviours has ${String(unknown)}, which is not one of ${Object.keys(due).join(", ")}.`);
  const crowd = options.crowd ?? 50;
  if (!Number.isInteger(crowd) || crowd < 2) throw new Error(`senderContract: crowd must be an integer of 2 or more, got ${String(crowd)}.`);
  const patience = (options.patience ?? 10) * 1000;
  return [...behaviours.map((behaviour) => outcomeCase(behaviour, patience)), ...(behaviours.includes("accepts") ? acceptingCases(crowd, patience) : [])];
}

function outcomeCase(behaviour: CarrierBehaviour, patience: number): ContractCase<SenderSubject> {
  const { outcome: expected, sentence } = due[behaviour];
  return benchCase(`${behaviour}: ${sentence}`, behaviour, async ({ sender, received }) => {
    const message = newMessage();
    const abort = new AbortController();
    const sending = inTime(sender.send(message, { signal: abort.signal, deadline: Date.now() + patience, timeLeft: patience }), patience);
    if (behaviour === "withholds") {
      let hasEnded = false;
      const end = () => {
        hasEnded = true;
      };
      sending.then(end, end);
      await until(() => hasEnded || received().length > 0, patience);
      abort.abort();
    }
    const outcome = await sending;
    ensureOutcome(outcome, message);
    ensure(outcome.outcome === expected, `the outcome: expected ${expected}, got ${JSON.stringify(outcome)}`);
    const times = received().filter(({ to }) => to === message.to).length;
    if (behaviour === "accepts") ensure(times === 1, `an accepted message must reach the carrier exactly once, it did ${times} times`);
    else ensure(times <= 1, `a message must not be handed over again by the sender itself, it was ${times} times`);
  });
}

function acceptingCases(crowd: number, patience: number): readonly ContractCase<SenderSubject>[] {
  const cases: Readonly<Record<string, (bench: SenderBench) => Promise<void>>> = {
    "accepts: text and number arrive unchanged": async ({ sender, received }) => {
      const code = newCode();
      const texts = [
        `${code} is your code\n\n@example.com #${code}`,
        `Ваш код: ${code} – 驗證碼 😀`,
        `100% & more + <b>"${code}"</b> \\ {code} {text} ü€`,
        `<#> ${code}\n\nFA+9qCX9VSu`,
        `${code} is your code. ${"Never tell it to anyone who calls you. ".repeat(5)}`.trim(),
      ];
      for (const text of texts) {
        const message = newMessage({ text, code });
        const due = shownBy(sender, message);
        const outcome = await inTime(send(sender, message), patience);
        ensure(outcome.outcome === "accepted", `the outcome: expected accepted, got ${JSON.stringify(outcome)}`);
        const last = received().at(-1);
        ensure(last?.to === message.to, "the number did not arrive unchanged");
        ensure(last?.text === due, `a text did not arrive unchanged: expected ${JSON.stringify(due)}, got ${JSON.stringify(last?.text)}`);
      }
    },
    "accepts: a message is sent with or without a country, with or without a receipt URL; calls are made to known countries only, and may need receipts":
      async ({ sender }) => {
        const { country: _, ...stateless } = newMessage();
        const { receipt_reference: __, receipt_url: ___, ...unreported } = newMessage();
        const calls = sender.channel === "voice";
        for (const [message, expected] of [
          [stateless, calls ? ["rejected"] : ["accepted"]],
          [unreported, calls ? ["accepted", "rejected"] : ["accepted"]],
        ] as const) {
          const outcome = await inTime(send(sender, message), patience);
          ensureOutcome(outcome, message);
          const isExpected = expected.some((word) => word === outcome.outcome);
          ensure(isExpected, `the outcome: expected ${expected.join(" or ")}, got ${JSON.stringify(outcome)}`);
        }
      },
    [`accepts: of ${crowd} concurrent messages each arrives once, under its own id`]: async ({ sender, received }) => {
      const messages = Array.from({ length: crowd }, (_, i) => newMessage({ to: `+1415555${String(2000 + i)}` }));
      const outcomes = await Promise.all(messages.map((message) => inTime(send(sender, message), patience)));
      for (const outcome of outcomes) ensure(outcome.outcome === "accepted", `an outcome: expected accepted, got ${JSON.stringify(outcome)}`);
      const ids = outcomes.flatMap((outcome) => ("messageId" in outcome ? [outcome.messageId] : []));
      ensure(new Set(ids).size === ids.length, "two messages got the same id");
      for (const message of messages) {
        const arrived = received().filter((other) => other.to === message.to);
        const isOwn = arrived.length === 1 && arrived[0]?.text === shownBy(sender, message);
        ensure(isOwn, `a message must arrive once with its own text, it came ${arrived.length} times`);
      }
    },
    "accepts: a message that times out before it starts has a true outcome: rejected only if it was not handed over, accepted only if it was": async ({
      sender,
      received,
    }) => {
      const late = newMessage({ to: "+14155551999" });
      const outcome = await inTime(sender.send(late, { signal: AbortSignal.abort(), deadline: Date.now() - 1, timeLeft: 0 }), patience);
      ensureOutcome(outcome, late);
      const next = newMessage();
      await inTime(send(sender, next), patience);
      const arrived = received().some(({ to }) => to === late.to);
      ensure(!arrived || outcome.outcome !== "rejected", "a message reported as rejected was handed over");
      ensure(outcome.outcome !== "accepted" || arrived, "a message reported as accepted was not handed over");
    },
    "close: ends the sender without an error, also if called twice": async ({ sender }) => {
      await inTime(send(sender, newMessage()), patience);
      await inTime(Promise.resolve(sender.close?.()), patience);
      await inTime(Promise.resolve(sender.close?.()), patience);
    },
  };
  return Object.entries(cases).map(([name, run]) => benchCase(name, "accepts", run));
}

function benchCase(name: string, behaviour: CarrierBehaviour, run: (bench: SenderBench) => Promise<void>): ContractCase<SenderSubject> {
  return {
    name,
    async run(subject) {
      const bench = await subject.open(behaviour);
      try {
        await run(bench);
      } finally {
        await bench.sender.close?.();
        await bench.close?.();
      }
    },
  };
}

function send(sender: SmsSender, message: CodeMessage): Promise<SendOutcome> {
  return sender.send(message, { signal: new AbortController().signal, deadline: Date.now() + 10_000, timeLeft: 10_000 });
}

/** What the carrier shows or says: senders of other channels than SMS write their own text. */
function shownBy({ channel = "sms" }: SmsSender, { text, code }: CodeMessage): string {
  return channel === "sms" ? text : code;
}

/** A receipt reference has letters, digits, `-` and `_`. */
const reference = `${"a1B2-c3_".repeat(8)}wxyz`;

function newCode(): string {
  return String(randomInt(100_000, 1_000_000));
}

function newMessage(fields: Partial<CodeMessage> = {}): CodeMessage {
  const code = newCode();
  return {
    to: `+1415555${randomInt(3000, 10_000)}`,
    text: `Your code is ${code}.`,
    code,
    authentication_uuid: randomUUID(),
    customer_uuid: randomUUID(),
    attempt: 1,
    idempotency_key: randomUUID(),
    country: "US",
    receipt_reference: reference,
    receipt_url: `https://otp.example/receipts/{provider}?r=${reference}`,
    expires_at: Date.now() + 600_000,
    ...fields,
  };
}

/** Fails unless the outcome has a valid form and its reason contains neither the code nor the number. */
function ensureOutcome(outcome: SendOutcome, message: CodeMessage): void {
  const isOutcome = typeof outcome === "object" && outcome !== null && ["accepted", "rejected", "unknown"].includes(outcome.outcome);
  ensure(isOutcome, `send must return an outcome, it returned ${JSON.stringify(outcome)}`);
  const said = "reason" in outcome ? outcome.reason : undefined;
  ensure(said === undefined || typeof said === "string", "a reason must be a string");
  ensure(!said?.includes(message.code), "a reason contains the code");
  ensure(!said?.includes(message.to.slice(1)), "a reason contains the number");
}

function ensure(holds: boolean, what: string): asserts holds {
  if (!holds) throw new AssertionError({ message: what });
}

/** Fails if the sender rejects its promise or takes far too long. */
async function inTime<T>(work: Promise<T>, patience: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new AssertionError({ message: `no outcome within ${patience / 1000} s` })), patience);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function until(holds: () => boolean, patience: number): Promise<void> {
  const end = Date.now() + patience;
  while (!holds()) {
    ensure(Date.now() < end, "the message did not reach the carrier");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
