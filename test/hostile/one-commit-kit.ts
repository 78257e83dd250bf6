import type { PolicyOverride } from "../../src/index.js";
import type { Change, CommitResult, Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/index.js";
import { start } from "../support/verifier.js";
import { type Sender, type Service, sender, service } from "./kit.js";

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

type Spam = NonNullable<PolicyOverride["spam"]>;
export type Rule = "range" | "crowd" | "country" | "newCountries" | "address" | "strangeNetwork" | "signals";
const rules: readonly Rule[] = ["range", "crowd", "country", "newCountries", "address", "strangeNetwork", "signals"];

/** These rules enforced, the others off, and no number trusted. */
export const only = (...on: readonly Rule[]): Spam => ({
  ...Object.fromEntries(rules.map((rule) => [rule, { mode: on.includes(rule) ? "enforce" : "off" }])),
  trust: { open: 0 },
});

/** No caps except those that a test sets. */
export const roomy: PolicyOverride = {
  maxGuessOdds: 1,
  limits: { perNumber: [{ limit: 1_000, window: 86_400 }], perDevice: [], numbersPerDevice: [], perIp: [], numbersPerIp: [], perCustomer: [] },
};

/** French mobiles: `range` names one of 100 ranges of 10,000 within a million. */
export const french = (index: number, range = 0, million = 12): string =>
  `+336${String(million).padStart(2, "0")}${String(range).padStart(2, "0")}${String(index).padStart(4, "0")}`;

/** Mobile numbers of 40 countries, valid in their numbering plans; every 10,000 indexes share a range. */
export const abroad: readonly ((index: number) => string)[] = [
  (i) => `+4474001${String(i).padStart(5, "0")}`, // GB
  (i) => `+49151123${String(i).padStart(5, "0")}`, // DE
  (i) => `+3461${String(i).padStart(7, "0")}`, // ES
  (i) => `+39347${String(i).padStart(7, "0")}`, // IT
  (i) => `+3519120${String(i).padStart(5, "0")}`, // PT
  (i) => `+316${String(10_000_000 + i)}`, // NL
  (i) => `+32470${String(i).padStart(6, "0")}`, // BE
  (i) => `+4179${String(i).padStart(7, "0")}`, // CH
  (i) => `+43664${String(i).padStart(7, "0")}`, // AT
  (i) => `+4670${String(1_000_000 + i)}`, // SE
  (i) => `+48501${String(i).padStart(6, "0")}`, // PL
  (i) => `+420601${String(i).padStart(6, "0")}`, // CZ
  (i) => `+36201${String(i).padStart(6, "0")}`, // HU
  (i) => `+40712${String(i).padStart(6, "0")}`, // RO
  (i) => `+3069${String(40_000_000 + i)}`, // GR
  (i) => `+90532${String(i).padStart(7, "0")}`, // TR
  (i) => `+91981${String(i).padStart(7, "0")}`, // IN
  (i) => `+92300${String(1_000_000 + i)}`, // PK
  (i) => `+880171${String(1_000_000 + i)}`, // BD
  (i) => `+62812${String(1_000_000 + i)}`, // ID
  (i) => `+6012${String(2_000_000 + i)}`, // MY
  (i) => `+6681${String(1_000_000 + i)}`, // TH
  (i) => `+8491${String(1_000_000 + i)}`, // VN
  (i) => `+63917${String(1_000_000 + i)}`, // PH
  (i) => `+234803${String(1_000_000 + i)}`, // NG
  (i) => `+254712${String(i).padStart(6, "0")}`, // KE
  (i) => `+20100${String(1_000_000 + i)}`, // EG
  (i) => `+2782${String(1_000_000 + i)}`, // ZA
  (i) => `+212661${String(100_000 + i)}`, // MA
  (i) => `+213550${String(100_000 + i)}`, // DZ
  (i) => `+551191${String(1_000_000 + i)}`, // BR
  (i) => `+57300${String(1_000_000 + i)}`, // CO
  (i) => `+519${String(10_000_000 + i)}`, // PE
  (i) => `+38050${String(1_000_000 + i)}`, // UA
  (i) => `+96650${String(1_000_000 + i)}`, // SA
  (i) => `+97150${String(1_000_000 + i)}`, // AE
  (i) => `+4790${String(100_000 + i)}`, // NO
  (i) => `+614${String(10_000_000 + i)}`, // AU
  (i) => `+8190${String(10_000_000 + i)}`, // JP
  (i) => `+35840${String(1_000_000 + i)}`, // FI
];

/** Services of one customer, which share a store, a clock and a carrier. */
export function fleet(count: number, options: Parameters<typeof service>[0] & { readonly store: Store }): Service[] {
  const shared = { clock: fixedClock(start), sender: sender(options.price), customer: "5f0f1b64-6f2e-4a57-9c3b-0d4d3a1e7c55", ...options };
  return Array.from({ length: count }, () => service(shared));
}

/** Verifies a number: a create, and a check with the right code. */
export async function verify(one: Service, number: string, fields: Record<string, unknown> = {}): Promise<void> {
  const { authentication_uuid: id, status } = await one.create(number, fields);
  if (status !== "pending") throw new Error(`create answered ${status}`);
  const checked = await one.check(id, one.sender.codeOf(id));
  if (checked.status !== "valid") throw new Error(`check answered ${checked.status}`);
  await settled();
}

/** Lets background work continue. */
export async function settled(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((done) => setImmediate(done));
}

/** Creates one after the other; returns their statuses. */
export async function creates(
  one: Service,
  count: number,
  number: (index: number) => string,
  fields: (index: number) => Record<string, unknown> = () => ({}),
): Promise<string[]> {
  const statuses: string[] = [];
  for (let i = 0; i < count; i++) statuses.push((await one.create(number(i), fields(i))).status);
  return statuses;
}

export const pending = (statuses: readonly string[]): number => statuses.filter((status) => status === "pending").length;

/** How many messages were sent to a number. */
export const sentTo = (out: Sender, number: string): number => out.messages.filter(({ to }) => to === number).length;

/** A wrapper of a store: `after` runs once a commit is done, before its caller gets the result. */
export function tapped(store: Store, after: (change: Change, result: CommitResult) => Promise<void> | void): Store {
  return {
    find: (...args) => store.find(...args),
    async commit(change) {
      const result = await store.commit(change);
      await after(change, result);
      return result;
    },
    members: (...args) => store.members(...args),
    tally: (...args) => store.tally(...args),
    lease: (...args) => store.lease(...args),
    get: (...args) => store.get(...args),
    put: (...args) => store.put(...args),
    delete: (...args) => store.delete(...args),
  };
}

/** Each spam rule alone: its seed, numbers that share one of its cells, and the fields of their creates. */
export const seeds: readonly (readonly [string, Rule, number, (i: number) => string, (i: number) => Record<string, unknown>])[] = [
  ["range of 10,000", "range", 5, (i) => french(i), () => ({})],
  ["range of 100,000", "range", 12, (i) => french(i, i % 10), () => ({})],
  ["range of a million", "range", 30, (i) => french(i, i % 100), () => ({})],
  ["crowd", "crowd", 25, (i) => french(i), () => ({})],
  ["country", "country", 30, (i) => french(i % 10_000, i % 100, 60 + (i % 30)), () => ({})],
  ["new countries", "newCountries", 30, (i) => (abroad[i % 40] as (index: number) => string)(Math.floor(i / 40) * 100), () => ({})],
  ["address", "address", 8, (i) => french(i, i % 100), (i) => ({ ip: `2001:db8:1:2::${(i + 1).toString(16)}` })],
];
