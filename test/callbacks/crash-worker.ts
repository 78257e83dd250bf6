import { createVerifier } from "../../src/create-verifier.js";
import type { Clock } from "../../src/ports/clock.js";
import type { Store } from "../../src/ports/store.js";
import { unlimited } from "./unlimited.js";

/** A process's settings, passed as its first argument. */
export interface WorkerSetup {
  readonly url: string;
  readonly customer: string;
  /** Origins of the receivers. */
  readonly origins: readonly string[];
  /** Whether it delivers on its own, as verifiers do, or only when flushed. */
  readonly worker: boolean;
}

/** What the parent orders a process to do. */
export type Order =
  | { readonly do: "create"; readonly number: string; readonly callbackUrl: string }
  /** Puts the clock ahead of the true time, in milliseconds. */
  | { readonly do: "advance"; readonly offset: number }
  /** Closes the verifier, which waits for the deliveries under way; from now on it delivers only when told to flush. */
  | { readonly do: "rest" }
  | { readonly do: "flush" }
  /** Looks whether any record still waits for work, now or later. The one it finds is due from then on. */
  | { readonly do: "look" };

/** A process's response to an order. */
export interface Answer {
  /** For create: the authentication, and its status or the error. */
  readonly id?: string;
  readonly status?: string;
  /** For flush: events delivered during it. */
  readonly delivered?: number;
  /** For look: whether a record still waits. */
  readonly waiting?: boolean;
  /** Everything logged as an error so far. */
  readonly errors: readonly string[];
}

/** Orders and responses as they are sent, numbered so that several can be in progress. */
export type Numbered<T> = T & { readonly turn: number };

/** What a process reports between responses: the authentication whose message the carrier has received. */
export interface HandedOver {
  readonly handedOver: string;
}

/**
 * A process of the service: opens its store and carries out its parent's orders, until the parent disconnects or kills
 * it.
 */
export async function serveOrders(open: (url: string) => Promise<Store>): Promise<void> {
  const { url, customer, origins, worker } = JSON.parse(process.argv[2] ?? "") as WorkerSetup;
  const store = await open(url);
  const errors: string[] = [];
  let offset = 0;
  const clock: Clock = {
    now: () => Date.now() + offset,
    after(ms, run) {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  };
  const start = (delivers: boolean) =>
    createVerifier({
      store,
      clock,
      // The carrier takes a moment, so that a kill can fall between receiving the message and its outcome.
      sender: {
        async send({ authentication_uuid }) {
          process.send?.({ handedOver: authentication_uuid } satisfies HandedOver);
          await new Promise((done) => setTimeout(done, Math.random() * 10));
          return { outcome: "accepted" };
        },
      },
      secret: "s".repeat(40),
      countries: "all",
      customers: [{ customer_uuid: customer, keys: ["k".repeat(40)] }],
      policy: unlimited,
      storeTimeout: 10,
      callbacks: { allowOrigins: origins, worker: delivers, pollInterval: 0.5 },
      logger: { info() {}, warn() {}, error: (fields, message) => void errors.push(`${message}: ${String(fields["err"] ?? fields["reason"])}`) },
    });
  let verifier = start(worker);

  const carryOut = async (order: Order): Promise<Omit<Answer, "errors">> => {
    switch (order.do) {
      case "create": {
        const { authentication_uuid: id, status } = await verifier.createAuthentication({
          customer_uuid: customer,
          phone_number: order.number,
          callback_url: order.callbackUrl,
        });
        return { id, status };
      }
      case "advance":
        offset = order.offset;
        return {};
      case "rest":
        await verifier.close();
        verifier = start(false);
        return {};
      case "flush":
        return { delivered: (await verifier.flush()).delivered };
      case "look":
        return { waiting: (await store.lease(Number.MAX_SAFE_INTEGER, 1, clock.now())).length > 0 };
    }
  };

  process.on("message", async (order: Numbered<Order>) => {
    const answer = await carryOut(order).catch((error) => ({ status: String(error) }));
    process.send?.({ ...answer, errors, turn: order.turn } satisfies Numbered<Answer>);
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.("ready");
}
