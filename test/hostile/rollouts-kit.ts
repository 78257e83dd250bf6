import { memoryStore } from "../../adapters/store/memory/index.js";
import {
  type CallbackRequest,
  type CallbackResponse,
  type CodeMessage,
  createVerifier,
  type ReceiptSource,
  type SendOutcome,
  type SmsSender,
  type Store,
  type Verifier,
  type VerifierEvent,
  type VerifierOptions,
} from "../../src/index.js";
import { type FixedClock, fixedClock } from "../../src/testing/index.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { type LogLine, logger, start } from "../support/verifier.js";

export { day, far, hour, minute } from "./operator-kit.js";

export const second = 1000;

/** Secrets in a known alphabetical order: `a` before `b` before `c`. */
export const secretOf = (letter: string): string => `${letter}T7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6${letter}Wq3Zr`;
export const [a, b, c] = [secretOf("a"), secretOf("b"), secretOf("c")] as const;
export const pepper = "pepper-Xq4Rv9Lw2ZbN8cJfH5sYdG3pAeU6";

/** One deployment: a store, a clock, a carrier and a receiver that all its processes share. */
export interface Site {
  readonly store: Store;
  readonly clock: FixedClock;
  readonly messages: CodeMessage[];
  readonly posts: (CallbackRequest & { readonly data: Record<string, unknown> })[];
  answer: (message: CodeMessage) => SendOutcome | Promise<SendOutcome>;
  receive: (request: CallbackRequest) => CallbackResponse | Promise<CallbackResponse>;
  /** Starts a process with these options on top of those of the site. */
  run(options?: Partial<VerifierOptions>): Process;
}

export interface Process {
  readonly verifier: Verifier;
  readonly log: readonly LogLine[];
  readonly events: VerifierEvent[];
  create(number: string, fields?: Record<string, unknown>, idempotencyKey?: string): Promise<string>;
  /** The id of a create that must be `pending`. */
  begin(number: string, fields?: Record<string, unknown>, idempotencyKey?: string): Promise<string>;
  retry(id: string, fields?: Record<string, unknown>): Promise<string>;
  check(id: string, code: string, idempotencyKey?: string): Promise<string>;
  /** The carrier's receipt of a message; returns the HTTP status. */
  receipt(message: CodeMessage | undefined, status: string, provider?: string): Promise<number>;
}

/** A carrier's receipts, authenticated by their reference alone unless `vouched`. */
export const source = (provider = "mine", vouched = false): ReceiptSource => ({
  provider,
  read: async ({ body }) => ({ receipts: [JSON.parse(Buffer.from(body).toString())], vouched }),
});

export const codeOf = ({ messages }: Pick<Site, "messages">, id: string, attempt?: number): string =>
  messages.findLast((one) => one.authentication_uuid === id && (attempt ?? one.attempt) === one.attempt)?.code ?? "none";

/** A code of the same length that is not `code`. */
export const wrongFor = (code: string): string => (code[0] === "0" ? "1" : "0") + code.slice(1);

export const outcome = (call: Promise<{ readonly status?: string } | undefined>): Promise<string> =>
  call.then(
    (result) => result?.status ?? "done",
    (error: { code?: string }) => error.code ?? String(error),
  );

export function site(shared: Partial<VerifierOptions> = {}): Site {
  const clock = (shared.clock as FixedClock | undefined) ?? fixedClock(start);
  const store = shared.store ?? memoryStore({ now: () => clock.now() });
  const messages: CodeMessage[] = [];
  const posts: Site["posts"] = [];
  const sender: SmsSender = {
    receiptProviders: ["mine"],
    async send(message) {
      messages.push(message);
      return self.answer(message);
    },
  };
  const self: Site = {
    store,
    clock,
    messages,
    posts,
    answer: () => ({ outcome: "accepted" }),
    receive: () => ({ status: 204 }),
    run(options = {}) {
      const log = logger();
      const events: VerifierEvent[] = [];
      const verifier = createVerifier({
        sender,
        secret: a,
        countries: "all",
        logger: log,
        statistics: false,
        clockSkew: 0,
        onEvent: (event) => void events.push(event),
        ...shared,
        ...options,
        store,
        clock: options.clock ?? clock,
        policy: {
          spam: noSpamRules,
          ...shared.policy,
          ...options.policy,
          limits: { perDevice: [], numbersPerDevice: [], perCustomer: [], ...shared.policy?.limits, ...options.policy?.limits },
        },
        callbacks: {
          worker: false,
          sender: {
            async post(request) {
              posts.push({ ...request, data: (JSON.parse(request.body) as { data: Record<string, unknown> }).data });
              return self.receive(request);
            },
          },
          ...shared.callbacks,
          ...options.callbacks,
        },
      });
      const begin = async (phone_number: string, fields = {}, idempotencyKey?: string) => {
        const made = await verifier.createAuthentication({ phone_number, ...fields }, idempotencyKey === undefined ? {} : { idempotencyKey });
        if (made.status !== "pending") throw new Error(`not pending: ${made.status}`);
        return made.authentication_uuid;
      };
      return {
        verifier,
        log: log.lines,
        events,
        begin,
        create: (phone_number, fields = {}, idempotencyKey) =>
          outcome(verifier.createAuthentication({ phone_number, ...fields }, idempotencyKey === undefined ? {} : { idempotencyKey })),
        retry: (authentication_uuid, fields = {}) => outcome(verifier.retry({ authentication_uuid, ...fields })),
        check: (authentication_uuid, check_code, idempotencyKey) =>
          outcome(verifier.check({ authentication_uuid, check_code }, idempotencyKey === undefined ? {} : { idempotencyKey })),
        async receipt(message, status, provider = "mine") {
          const { pathname, search } = new URL((message?.receipt_url ?? "https://otp.example/receipts/none").replace("{provider}", provider));
          const answer = await verifier.receipts.handle({
            method: "POST",
            path: pathname,
            query: search,
            header: () => undefined,
            body: async () => ({ kind: "bytes", bytes: new TextEncoder().encode(JSON.stringify({ status, reference: message?.receipt_reference })) }),
          });
          return answer.status;
        },
      };
    },
  };
  return self;
}

/** The statuses of `count` calls, one after the other. */
export async function each(count: number, call: (index: number) => Promise<string>): Promise<string[]> {
  const all: string[] = [];
  for (let index = 0; index < count; index++) all.push(await call(index));
  return all;
}
