import { fetchHandler } from "../../adapters/http/fetch.js";
import type { CodeMessage, Logger, ReceiptSource, SendOutcome, SmsSender } from "../../src/index.js";
import { type RouteOptions, type RouterOptions, router } from "../../src/routing/router.js";
import { createTestVerifier, fixedClock, type TestVerifierOptions } from "../../src/testing/index.js";

type Line = { readonly message: string; readonly fields: Readonly<Record<string, unknown>> };
type Answer = (message: CodeMessage) => SendOutcome | Promise<SendOutcome>;

/** A message, and the route that got it. */
interface Handed {
  readonly route: string;
  readonly id: string;
  readonly message: CodeMessage;
}

/** The receipts of a carrier that signs them, as far as the verifier can tell. */
export const signed = (provider: string): ReceiptSource => ({
  provider,
  read: async ({ body }) => ({ receipts: [JSON.parse(new TextDecoder().decode(body))] }),
});

/** A number for each index. */
export const french = (index: number): string => `+3361${String(2_000_000 + index).padStart(7, "0")}`;
export const spanish = (index: number): string => `+34612${String(100_000 + index)}`;

/** Random numbers, the same in each run. */
export function draws(): () => number {
  let state = 7;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** A verifier with a router, whose carriers do what `answers` says. Without one, a carrier accepts. */
export function company(
  routes: readonly (Omit<RouteOptions, "sender"> & { answer?: Answer; sender?: Partial<SmsSender> })[],
  options: Partial<RouterOptions> = {},
  more: TestVerifierOptions = {},
) {
  const clock = fixedClock(Date.UTC(2026, 0, 1));
  const handed: Handed[] = [];
  const lines: Line[] = [];
  const note = (fields: Record<string, unknown>, message: string) => void lines.push({ fields, message });
  const logger: Logger = { info: note, warn: note, error: note };
  const made = routes.map(({ answer, sender, ...route }) => ({
    ...route,
    sender: {
      takesReceipts: true,
      ...sender,
      async send(message: CodeMessage): Promise<SendOutcome> {
        const id = `${route.name}-${handed.length}`;
        handed.push({ route: route.name, id, message });
        return (await answer?.(message)) ?? { outcome: "accepted", messageId: id, idSpace: route.name };
      },
    },
  }));
  const sender = router({ routes: made, clock, logger, ...options });
  const test = createTestVerifier({ clock, logger, sender, limits: false, callbacks: { worker: true }, ...more });
  const { verifier } = test;
  return {
    ...test,
    sender,
    handed,
    lines,
    /** The routes that got a message, in order. */
    routes: () => handed.map(({ route }) => route),
    /** The lines about breakers: `opened FR`. */
    breakers: () =>
      lines.flatMap(
        ({ message, fields }) =>
          /the breaker of a route (opened|closed)/
            .exec(message)
            ?.slice(1)
            .map((what) => `${what} ${fields.country}`) ?? [],
      ),
    create: (phone_number = french(0)) => verifier.createAuthentication({ phone_number }),
    /** What a carrier posts about a message, to the route for receipts. */
    post: async (provider: string, message: CodeMessage | undefined, status: "delivered" | "undeliverable") => {
      const body = JSON.stringify({ reference: message?.receipt_reference, status });
      return fetchHandler(verifier.receipts)(new Request(`https://api.example/receipts/${provider}`, { method: "POST", body }));
    },
    /** A receipt for the newest message. */
    async receipt(status: "delivered" | "undeliverable") {
      const newest = handed.at(-1);
      if (!newest) throw new Error("no message was handed over");
      await verifier.settleReceipts([{ messageId: newest.id, idSpace: newest.route, status }]);
    },
  };
}
