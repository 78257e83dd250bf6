import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished } from "vitest";
import { nodeHandler } from "../../adapters/http/node.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { hooks } from "../../src/hooks/index.js";
import { createVerifier, type Verifier, type VerifierEvent, type VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { type FixedClock, fixedClock } from "../../src/testing/fixed-clock.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { type Answer, type Call, send } from "../http/client.js";
import { type Inbox, inbox, type LogLine, logger, secret, start } from "../support/verifier.js";
import { losingProxy } from "../wires/listen.js";
import { type Ask, type Line, type Speaker, speak } from "./identity-servers.js";
import { numberAt, type RiggedStore, rigged } from "./kit.js";

export type Hooks = Parameters<typeof hooks>[1];

export interface Served {
  readonly port: number;
  readonly url: string;
  readonly verifier: Verifier;
  readonly clock: FixedClock;
  readonly box: Inbox;
  readonly store: RiggedStore;
  readonly log: readonly LogLine[];
  readonly events: readonly VerifierEvent[];
  /** Every response, in order. */
  readonly answers: Answer[];
  /** Strings that no log line, event, response or metric may contain. */
  readonly hidden: Set<string>;
  /** A message with its own number and its own code. */
  ask(more?: Partial<Ask>): Ask;
  /** From now on, no send completes before the test ends. */
  hangCarrier(): void;
  send(call: Call): Promise<Answer>;
  line(to?: { readonly url: string }): Line;
  told(speaker: Speaker, ask?: Ask, line?: Line): ReturnType<typeof speak>;
  /** The newest delivery of a number, as `history` returns it. */
  newest(number: string, customer_uuid?: string): Promise<Record<string, unknown> | undefined>;
}

let asked = 0;
const open = new Set<Served>();

/** A real verifier with a price, a spend ceiling and hooks, on a real server; closed when the test ends. */
export async function serve(list: Hooks | Speaker, options: Partial<VerifierOptions> = {}): Promise<Served> {
  const clock = fixedClock(start);
  const box = inbox();
  const log = logger();
  const events: VerifierEvent[] = [];
  const store = rigged(options.store ?? memoryStore({ name: randomUUID() }));
  const { policy, ...rest } = options;
  const verifier = createVerifier({
    sender: router({ routes: [{ name: "main", sender: box, price: 0.01 }] }),
    secret,
    countries: ["FR", "GB", "US"],
    clockSkew: 0,
    logger: log,
    callbacks: { worker: false },
    conversion: "reported",
    onEvent: (event) => void events.push(event),
    ...rest,
    store,
    policy: {
      maxGuessOdds: 1,
      ...policy,
      limits: { perNumber: [{ limit: 100, window: 86_400 }], spend: [{ amount: 1_000_000, per: "day" }], ...policy?.limits },
      spam: { ...noSpamRules, ...policy?.spam },
    },
    clock,
  });
  const handler = hooks(verifier, "hook" in list ? [list.hook()] : list);
  const server = createServer(nodeHandler(handler));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const answers: Answer[] = [];
  const hidden = new Set<string>("hook" in list ? list.secrets : []);
  const held: (() => void)[] = [];
  const sent = async (to: number, call: Call) => {
    const answer = await send(to, call);
    answers.push(answer);
    return answer;
  };
  const served: Served = {
    port,
    url: `http://127.0.0.1:${port}`,
    verifier,
    clock,
    box,
    store,
    log: log.lines,
    events,
    answers,
    hidden,
    ask(more = {}) {
      asked++;
      const one = { to: numberAt(asked), code: String(100_003 + ((asked * 7_919) % 890_000)), ...more };
      hidden.add(one.code);
      // The mask of an invalid, short number shows all of it.
      if (one.to.length > 9) hidden.add(one.to).add(one.to.slice(1)).add(one.to.slice(3));
      return one;
    },
    hangCarrier() {
      box.answer = () => new Promise((resolve) => held.push(() => resolve({ outcome: "accepted" })));
    },
    send: (call) => sent(port, call),
    line: (to = { url: `http://127.0.0.1:${port}` }) => ({
      send: (call) => sent(Number(new URL(to.url).port), call).catch(() => undefined),
      pause: (ms) => clock.advance(ms),
      now: () => clock.now(),
    }),
    told: (speaker, ask = served.ask(), line = served.line()) => speak(speaker, line, ask),
    async newest(phone_number, customer_uuid) {
      const history = await verifier.history({ phone_number, ...(customer_uuid !== undefined && { customer_uuid }) });
      return history[0] as unknown as Record<string, unknown> | undefined;
    },
  };
  open.add(served);
  onTestFinished(async () => {
    open.delete(served);
    store.fate = () => "done";
    await store.release();
    for (const go of held) go();
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
    await verifier.close();
  });
  return served;
}

/** After each test: no log line, event, response or metric contains a code, a whole number or a secret. */
export function expectNothingLeaks(): void {
  for (const { verifier, log, events, answers, hidden } of open) {
    const places = {
      log: log.map((line) =>
        JSON.stringify(line, (_key, value) => (value instanceof Error ? { ...value, message: value.message, stack: value.stack } : value)),
      ),
      events: events.map((event) => JSON.stringify(event)),
      answers: answers.map(({ headers, text }) => JSON.stringify(headers) + text),
      metrics: [verifier.metrics()],
    };
    for (const [place, texts] of Object.entries(places))
      for (const one of texts)
        for (const word of hidden)
          expect(one.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "").includes(word), `${place} hold ${JSON.stringify(word)}: ${one}`).toBe(false);
  }
}

/** Waits for a response while up to `limit` milliseconds pass on the clock; after that, for up to three real seconds. */
export async function answerWithin<T>(served: Served, limit: number, call: Promise<T>): Promise<T> {
  let done = false;
  const end = () => {
    done = true;
  };
  call.then(end, end);
  for (let passed = 0; passed < limit; passed += 100) {
    for (let turn = 0; turn < 40 && !done; turn++) await new Promise((resolve) => setImmediate(resolve));
    if (done) return call;
    served.clock.advance(100);
  }
  const late = new Promise<never>((_resolve, reject) => setTimeout(() => reject(new Error(`no answer after ${limit} ms of the clock`)), 3_000).unref());
  return Promise.race([call, late]);
}

export const landline = "+33140205050";
export const foreign = "+4915123456789";
export { losingProxy };
