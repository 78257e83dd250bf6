import type { CreateAuthenticationRequest } from "../../src/contract/authentication.js";
import type { Verifier } from "../../src/create-verifier.js";
import type { Clock } from "../../src/ports/clock.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import type { Ledger, Party } from "./ledger.js";

/**
 * The result of a request for a message. `nextAt`: the earliest time of the next retry, in milliseconds since the
 * epoch.
 */
export type Answer =
  | { readonly sent: true; readonly id: string; readonly code: string; readonly nextAt?: number }
  /** Rejected by a rule or a cap, or failed with an error. */
  | { readonly sent: false; readonly refusedBy: string }
  /** Not before `nextAt`; absent: never. */
  | { readonly sent: false; readonly refusedBy?: undefined; readonly nextAt?: number };

/** The verifier as people and attackers see it: only its public interface. */
export interface Service {
  create(party: Party, request: Omit<CreateAuthenticationRequest, "customer_uuid">): Promise<Answer>;
  retry(party: Party, id: string): Promise<Answer>;
  /** Returns whether the code was right. */
  check(party: Party, id: string, code: string): Promise<boolean>;
}

/** Accepts every message, and records its price and its code. */
export interface Post {
  readonly sender: SmsSender;
  /** Returns the newest code sent for an authentication, once. */
  take(id: string): string | undefined;
  /** Who the next messages are for. */
  party: Party;
}

/** @param priceOf Price of a message to a country, in US dollars. */
export function postOf(ledger: Ledger, priceOf: (country: string | undefined) => number): Post {
  const codes = new Map<string, string>();
  const post: Post = {
    party: "honest",
    sender: {
      plan: ({ country }) => ({ route: "simulated", price: priceOf(country) }),
      async send({ authentication_uuid, code, country }) {
        codes.set(authentication_uuid, code);
        ledger.sent(post.party, priceOf(country));
        return { outcome: "accepted", route: "simulated" };
      },
    },
    take(id) {
      const code = codes.get(id);
      codes.delete(id);
      return code;
    },
  };
  return post;
}

export interface ServiceParts {
  readonly verifier: Verifier;
  readonly post: Post;
  readonly clock: Clock;
  /** `customer_uuid` of each party. */
  readonly customers: Readonly<Record<Party, string>>;
  /** The verifier's work in the background. */
  readonly background: Set<Promise<unknown>>;
  /** Receives errors that should never occur. */
  readonly fault: (error: unknown) => void;
}

export function serviceOf({ verifier, post, clock, customers, background, fault }: ServiceParts): Service {
  /** The rule that rejected the latest request, as `explain` names it. */
  const ruleOf = async (customer_uuid: string, authentication_uuid: string, since: number): Promise<string> => {
    try {
      const { decisions } = await verifier.explain({ customer_uuid, authentication_uuid });
      return decisions.find(({ mode, at }) => mode === "enforce" && Date.parse(at) >= since)?.rule ?? "no rule";
    } catch {
      return "not kept";
    }
  };

  const codeOf = (error: unknown): string => {
    const { code = "error", status = 500 } = (typeof error === "object" && error !== null ? error : {}) as { code?: string; status?: number };
    // The cause of a 503 is reported to the logger.
    if (status >= 500 && code !== "unavailable") fault(error);
    return code;
  };

  /** Finishes background work before the clock moves, so that runs are reproducible. */
  const settled = async () => {
    await Promise.all(background);
    await new Promise((resolve) => setImmediate(resolve));
  };

  return {
    async create(party, request) {
      const since = clock.now();
      const customer_uuid = customers[party];
      post.party = party;
      try {
        const { authentication_uuid: id, status } = await verifier.createAuthentication({ ...request, customer_uuid });
        if (status === "pending") return { sent: true, id, code: post.take(id) ?? "" };
        return { sent: false, refusedBy: await ruleOf(customer_uuid, id, since) };
      } catch (error) {
        return { sent: false, refusedBy: codeOf(error) };
      }
    },
    async retry(party, authentication_uuid) {
      const since = clock.now();
      const customer_uuid = customers[party];
      post.party = party;
      try {
        const { status, next_retry_at, remaining_retry } = await verifier.retry({ customer_uuid, authentication_uuid });
        const nextAt = remaining_retry > 0 ? Date.parse(next_retry_at) : undefined;
        if (status === "approved")
          return { sent: true, id: authentication_uuid, code: post.take(authentication_uuid) ?? "", ...(nextAt !== undefined && { nextAt }) };
        if (status === "rate_limited") {
          const rule = await ruleOf(customer_uuid, authentication_uuid, since);
          return rule === "no rule" ? { sent: false } : { sent: false, refusedBy: rule };
        }
        return { sent: false, ...(status === "denied" && nextAt !== undefined && { nextAt }) };
      } catch (error) {
        return { sent: false, refusedBy: codeOf(error) };
      }
    },
    async check(party, authentication_uuid, check_code) {
      post.party = party;
      try {
        const { status } = await verifier.check({ customer_uuid: customers[party], authentication_uuid, check_code });
        await settled();
        return status === "valid";
      } catch (error) {
        codeOf(error);
        return false;
      }
    },
  };
}
