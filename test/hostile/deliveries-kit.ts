import { expect } from "vitest";
import type { ConfirmRequest, DeliverRequest, DeliverResult, PolicyOverride, VerifierEvent, VerifierOptions } from "../../src/index.js";
import type { Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore } from "../store/plain-store.js";
import { start } from "../support/verifier.js";
import { type RiggedStore, rigged, type Service, sender, service } from "./kit.js";
import { day, hour, roomy } from "./one-commit-kit.js";

/** One of several processes that deliver, each with its own access to the store. */
export interface Party extends Service {
  readonly store: RiggedStore;
  readonly events: readonly VerifierEvent[];
  deliver(number: string, code: string | undefined, fields?: Partial<DeliverRequest>): Promise<DeliverResult>;
  /** `of`: a number, or the id of a delivery. */
  confirm(of: string | undefined, fields?: Partial<ConfirmRequest>): ReturnType<Service["verifier"]["confirm"]>;
}

type Options = Partial<VerifierOptions> & { readonly customer?: string; readonly price?: number };

export const customer = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";

/** Processes of one customer. `stores`: the shared store, or each one's handle on it; `own`: other options that differ. */
export function parties(count: number, stores: Store | ((i: number) => Store), options: Options = {}, own: (i: number) => Options = () => ({})): Party[] {
  const shared = { clock: fixedClock(start), sender: sender(options.price), customer, conversion: "reported" as const, ...options };
  return Array.from({ length: count }, (_, i) => {
    const store = rigged(typeof stores === "function" ? stores(i) : stores);
    const events: VerifierEvent[] = [];
    const one = service({ onEvent: (event) => void events.push(event), ...shared, ...own(i), store } as Options);
    const customer_uuid = one.customer;
    return {
      ...one,
      store,
      events,
      deliver: (phone_number, code, fields = {}) => one.verifier.deliver({ customer_uuid, phone_number, code, ...fields }),
      confirm: (of = "none", fields = {}) =>
        one.verifier.confirm({ customer_uuid, ...(of.startsWith("+") ? { phone_number: of } : { delivery_uuid: of }), ...fields } as ConfirmRequest),
    };
  });
}

/** Two processes on one plain store, whose contents a test may read. */
export function pair(options: Options = {}, own?: (i: number) => Options): { readonly one: Party; readonly two: Party; readonly plain: PlainStore } {
  const plain = new PlainStore();
  const [one, two] = parties(2, plain, options, own) as [Party, Party];
  return { one, two, plain };
}

/** One of several processes, in turn. */
export const at = <T>(set: readonly T[], i: number): T => set[i % set.length] as T;

export const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

/** Codes that differ. */
export const codeAt = (index: number): string => String(100_000 + index);

/** Caps and a ceiling that no test reaches. */
export const priced = (policy: PolicyOverride = {}): PolicyOverride => ({
  ...roomy,
  ...policy,
  limits: { ...roomy.limits, spend: [{ amount: 1_000_000, per: "day" }], ...policy.limits },
});

/** How many messages can be sent, one after the other. */
export async function room(one: Party, number: (i: number) => string, fields: Partial<DeliverRequest> = {}, most = 300): Promise<number> {
  for (let i = 0; i < most; i++) if ((await one.deliver(number(i), codeAt(i), fields)).status !== "sent") return i;
  return most;
}

/** How each call ended: its status, or the code of its error. */
export async function endings(calls: readonly Promise<{ readonly status: string }>[]): Promise<string[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((one) => (one.status === "fulfilled" ? one.value.status : ((one.reason as { code?: string }).code ?? String(one.reason))));
}

/** Everything that a plain store holds, one text for each record, window, sum and so on. */
export const held = ({ records, windows, sums, values, counters }: PlainStore): string[] =>
  [...records, ...[...windows].map(([name, members]) => [name, ...members]), ...[...sums].map(([name, parts]) => [name, ...parts]), ...values, ...counters].map(
    (one) => JSON.stringify(one),
  );

/** Forms in which a code may be written. */
export function spellingsOfCode(code: string): readonly string[] {
  const bytes = Buffer.from(code);
  const halves = [code.slice(0, 3), code.slice(3)] as const;
  return [code, bytes.toString("hex"), bytes.toString("base64url").slice(0, -1), [...code].reverse().join(""), halves.join("-"), halves.join(" ")];
}

/** Days of messages, each at half past midnight UTC; ends at 13:00 of the day after, when no cell counts them any more. */
export async function days(count: number, { clock }: Party, daily: (day: number) => Promise<unknown>): Promise<void> {
  const first = Math.ceil(clock.now() / day) * day + hour / 2;
  for (let i = 0; i < count; i++) {
    clock.set(first + i * day);
    await daily(i);
    await new Promise((done) => setImmediate(done));
  }
  clock.set(first + count * day + 12.5 * hour);
}

export const alarmsOf = (set: readonly Party[]): string[] => set.flatMap(({ events }) => events.flatMap((one) => (one.type === "alarm" ? [one.alarm] : [])));

/** Fails if `found` has anything that is not in `allowed`. */
export const expectOnly = (found: readonly string[], allowed: readonly string[]): void => expect(found.filter((one) => !allowed.includes(one))).toEqual([]);
