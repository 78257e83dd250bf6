import { memoryStore } from "../../adapters/store/memory/index.js";
import {
  type AuthenticationResult,
  type CodeMessage,
  type CreateAuthenticationRequest,
  createVerifier,
  type Explanation,
  type PolicyOverride,
  type SendOutcome,
  type Verifier,
  type VerifierEvent,
  type VerifierOptions,
} from "../../src/index.js";
import { type FixedClock, fixedClock } from "../../src/testing/index.js";
import { secret, start } from "../support/verifier.js";

export const minute = 60_000;
export const hour = 60 * minute;

type Fields = Omit<CreateAuthenticationRequest, "phone_number">;

/** A verifier with its defaults, a carrier that takes everything, and a clock that moves only when it is set. */
export interface Site {
  readonly verifier: Verifier;
  readonly clock: FixedClock;
  readonly messages: readonly CodeMessage[];
  readonly alarms: () => readonly (VerifierEvent & { readonly type: "alarm" })[];
  /** What the carrier answers. */
  outcome: SendOutcome["outcome"];
  create(number: string, fields?: Fields, call?: { readonly idempotencyKey?: string }): Promise<AuthenticationResult>;
  /** Enters the right code of an authentication. */
  enter(id: string): Promise<void>;
  /** A create, and the right code. */
  prove(number: string, fields?: Fields): Promise<string>;
  /** The rules that rejected an authentication. */
  rules(id: string): Promise<readonly string[]>;
}

/** @param listen Whether the operator listens to events; `alarms` needs it. */
export function site(options: Partial<VerifierOptions> = {}, listen = true): Site {
  const clock = fixedClock(start);
  const messages: CodeMessage[] = [];
  const events: VerifierEvent[] = [];
  const quiet = () => {};
  const verifier = createVerifier({
    store: memoryStore({ now: () => clock.now() }),
    secret,
    countries: "all",
    clockSkew: 0,
    logger: { info: quiet, warn: quiet, error: quiet },
    callbacks: { worker: false },
    statistics: false,
    ...(listen && { onEvent: (event: VerifierEvent) => void events.push(event) }),
    ...options,
    clock,
    sender: {
      plan: () => ({ route: "only", price: 0.05 }),
      async send(message) {
        messages.push(message);
        return { outcome: self.outcome };
      },
    },
  });
  const self: Site = {
    verifier,
    clock,
    messages,
    outcome: "accepted",
    alarms: () => events.filter((event) => event.type === "alarm"),
    create: (phone_number, fields = {}, call = {}) => verifier.createAuthentication({ phone_number, ...fields }, call),
    async enter(authentication_uuid) {
      const check_code = messages.filter((one) => one.authentication_uuid === authentication_uuid).at(-1)?.code ?? "none";
      const { status } = await verifier.check({ authentication_uuid, check_code });
      if (status !== "valid") throw new Error(`check returned ${status}`);
      await turns();
    },
    async prove(number, fields) {
      const { authentication_uuid, status } = await self.create(number, fields);
      if (status === "pending") await self.enter(authentication_uuid);
      return status;
    },
    async rules(authentication_uuid) {
      await turns();
      const { decisions } = await verifier.explain({ authentication_uuid });
      return decisions.filter(({ mode }) => mode === "enforce").map(({ rule }) => rule);
    },
  };
  return self;
}

/** What goes on in the background goes on. */
export async function turns(count = 2): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((done) => setImmediate(done));
}

/** French mobiles: `range` is one of the hundred ranges of 10,000 of a million. `million`: 0 to 88, not 39. */
export const french = (index: number, range = 0, million = 12): string =>
  `+336${String(million).padStart(2, "0")}${String(range).padStart(2, "0")}${String(index).padStart(4, "0")}`;

/** Uzbek mobiles of ten operators: `range` is one of the thousand ranges of 10,000 of an operator. */
export const uzbek = (index: number, range: number, operator = 0): string =>
  `+998${[90, 91, 93, 94, 95, 97, 98, 99, 88, 33][operator % 10]}${String(range % 1_000).padStart(3, "0")}${String(index % 10_000).padStart(4, "0")}`;

/** Numbers from 0 up to, not including, 1; the same each time. */
export function random(seed = 5): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** No rule but the strange network, in a country that five users prove. */
export const alarmOnly: PolicyOverride["spam"] = {
  range: { mode: "off" },
  address: { mode: "off" },
  crowd: { mode: "off" },
  country: { provenAt: 5 },
};

/** A busy country: ten users verified in the network 203.0, two hours ago. */
export async function busy(options: Partial<VerifierOptions> = {}): Promise<Site & { next(): string }> {
  const one = site({ ...options, policy: { ...options.policy, spam: { ...alarmOnly, ...options.policy?.spam } } });
  let count = 0;
  const next = () => {
    count++;
    return french(count, count % 97, 12 + (count % 20));
  };
  for (let i = 0; i < 10; i++) await one.prove(next(), { ip: `203.0.113.${i}` });
  one.clock.advance(2 * hour);
  return Object.assign(one, { next });
}

/** How many of `count` creates were sent. */
export async function sent(one: Site, count: number, number: (i: number) => string, fields: (i: number) => Fields = () => ({})): Promise<number> {
  let pending = 0;
  for (let i = 0; i < count; i++) if ((await one.create(number(i), fields(i))).status === "pending") pending++;
  return pending;
}

const counts = new WeakMap<Site, number>();

function deliver(one: Site, ip?: string): ReturnType<Verifier["deliver"]> {
  const i = (counts.get(one) ?? 0) + 1;
  counts.set(one, i);
  const phone_number = french((i * 37) % 10_000, (i * 7) % 100, 40 + (i % 45));
  return one.verifier.deliver({ phone_number, code: "482913", ip: ip ?? `60.${i % 30}.${i % 250}.1` });
}

/** Messages to French users, `perDay` of them a day; `share` of them are confirmed, at once or after the last. How many were sent. */
export async function deliveries(one: Site, count: number, perDay: number, ip?: string, share = 0, when: "at once" | "late" = "at once"): Promise<number> {
  const next = random(7);
  const later: string[] = [];
  let out = 0;
  for (let i = 0; i < count; i++) {
    const { status, delivery_uuid } = await deliver(one, ip);
    if (status === "sent") out++;
    if (status === "sent" && delivery_uuid && next() < share) {
      if (when === "late") later.push(delivery_uuid);
      else await one.verifier.confirm({ delivery_uuid });
    }
    one.clock.advance((24 * hour) / perDay);
    if (i % 16 === 0) await turns();
  }
  for (const delivery_uuid of later) await one.verifier.confirm({ delivery_uuid });
  await turns();
  return out;
}

/** The decisions in `explain` for the messages that are blocked of `count` more, three a minute. */
export async function blocked(one: Site, count: number, ip?: string): Promise<Explanation["decisions"]> {
  const decisions: Explanation["decisions"][number][] = [];
  for (let i = 0; i < count; i++) {
    one.clock.advance(minute / 3);
    const { status, delivery_uuid: authentication_uuid } = await deliver(one, ip);
    if (status !== "spam_detected" || !authentication_uuid) continue;
    await turns();
    decisions.push(...(await one.verifier.explain({ authentication_uuid })).decisions);
  }
  return decisions;
}
