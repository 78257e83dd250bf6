import type { CreateAuthenticationRequest } from "../../src/contract/authentication.js";
import type { Verifier } from "../../src/create-verifier.js";
import type { Clock } from "../../src/ports/clock.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import type { Agenda } from "./agenda.js";
import type { Ledger, Party } from "./ledger.js";
import { digits, type Random } from "./random.js";
import type { Deliveries } from "./scenario.js";

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

/** What both services do alike. */
function toolsOf({ verifier, clock, background, fault }: ServiceParts) {
  const codeOf = (error: unknown): string => {
    const { code = "error", status = 500 } = (typeof error === "object" && error !== null ? error : {}) as { code?: string; status?: number };
    // The cause of a 503 is reported to the logger.
    if (status >= 500 && code !== "unavailable") fault(error);
    return code;
  };
  return {
    codeOf,
    /** Sends, and finds the rule that rejected the request, as `explain` names it. */
    async ask(customer_uuid: string, send: (ruleOf: (authentication_uuid: string) => Promise<string>) => Promise<Answer>): Promise<Answer> {
      const since = clock.now();
      const ruleOf = async (authentication_uuid: string): Promise<string> => {
        try {
          const { decisions } = await verifier.explain({ customer_uuid, authentication_uuid });
          return decisions.find(({ mode, at }) => mode === "enforce" && Date.parse(at) >= since)?.rule ?? "no rule";
        } catch {
          return "not kept";
        }
      };
      try {
        return await send(ruleOf);
      } catch (error) {
        return { sent: false, refusedBy: codeOf(error) };
      }
    },
    /** Finishes background work before the clock moves, so that runs are reproducible. */
    async settled(): Promise<void> {
      await Promise.all(background);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

/** Authentications: create, retry and check. */
export function serviceOf(parts: ServiceParts): Service {
  const { verifier, post, customers } = parts;
  const { ask, codeOf, settled } = toolsOf(parts);
  return {
    create(party, request) {
      const customer_uuid = customers[party];
      post.party = party;
      return ask(customer_uuid, async (ruleOf) => {
        const { authentication_uuid: id, status } = await verifier.createAuthentication({ ...request, customer_uuid });
        if (status === "pending") return { sent: true, id, code: post.take(id) ?? "" };
        return { sent: false, refusedBy: await ruleOf(id) };
      });
    },
    retry(party, authentication_uuid) {
      const customer_uuid = customers[party];
      post.party = party;
      return ask(customer_uuid, async (ruleOf) => {
        const { status, next_retry_at, remaining_retry } = await verifier.retry({ customer_uuid, authentication_uuid });
        const nextAt = remaining_retry > 0 ? Date.parse(next_retry_at) : undefined;
        if (status === "approved")
          return { sent: true, id: authentication_uuid, code: post.take(authentication_uuid) ?? "", ...(nextAt !== undefined && { nextAt }) };
        if (status === "rate_limited") {
          const rule = await ruleOf(authentication_uuid);
          return rule === "no rule" ? { sent: false } : { sent: false, refusedBy: rule };
        }
        return { sent: false, ...(status === "denied" && nextAt !== undefined && { nextAt }) };
      });
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

export interface DeliveryParts extends ServiceParts {
  readonly agenda: Agenda;
  readonly deliveries: Deliveries;
  /** Whether confirmations arrive now. */
  readonly confirms: () => boolean;
  readonly random: Random;
}

const hour = 3_600_000;

/** Another server's codes: it sends them by `deliver`, checks them itself, and calls `confirm`. */
export function deliveryServiceOf(parts: DeliveryParts): Service {
  const { verifier, post, clock, customers, agenda, deliveries, confirms, random } = parts;
  const { conversion, vouches = true } = deliveries;
  const { ask, codeOf, settled } = toolsOf(parts);
  type Request = Parameters<Service["create"]>[1];
  /** The sign-ins that wait for a code, by their own ids. */
  const open = new Map<string, { readonly request: Request; code: string }>();
  let ids = 0;

  const deliver = (party: Party, id: string, request: Request): Promise<Answer> => {
    const customer_uuid = customers[party];
    const { phone_number, ip, device_id, device_type, is_returning_user = false } = request;
    const code = digits(random, 6);
    post.party = party;
    return ask(customer_uuid, async (ruleOf) => {
      const known = vouches && party === "honest" && is_returning_user;
      const {
        status,
        reason,
        delivery_uuid = "",
      } = await verifier.deliver({ customer_uuid, phone_number, ip, device_id, device_type, known, conversion, code });
      if (status === "sent") {
        post.take(delivery_uuid);
        open.set(id, { request, code });
        return { sent: true, id, code };
      }
      const isRejected = status === "rate_limited" || status === "spam_detected";
      return { sent: false, refusedBy: isRejected ? await ruleOf(delivery_uuid) : (reason ?? status) };
    });
  };

  const confirm = async (party: Party, phone_number: string, at: number): Promise<void> => {
    try {
      await verifier.confirm({ customer_uuid: customers[party], phone_number, at });
      await settled();
    } catch (error) {
      codeOf(error);
    }
  };

  return {
    create: (party, request) => deliver(party, String(ids++), request),
    retry(party, id) {
      const { request } = open.get(id) as { readonly request: Request };
      return deliver(party, id, request);
    },
    async check(party, id, code) {
      const sent = open.get(id);
      if (sent?.code !== code) return false;
      open.delete(id);
      const at = clock.now();
      const { phone_number } = sent.request;
      await settled();
      if (!confirms()) return true;
      if (conversion === "reported") await confirm(party, phone_number, at);
      if (conversion === "late") agenda.in(hour * (1 + 19 * random()), () => confirm(party, phone_number, at));
      return true;
    },
  };
}
