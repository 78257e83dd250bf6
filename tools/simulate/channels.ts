import { randomUUID } from "node:crypto";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { Channel } from "../../src/contract/channel.js";
import type { CountryCode } from "../../src/domain/countries.js";
import type { PolicyOverride } from "../../src/domain/policy.js";
import { createVerifier } from "../../src/index.js";
import type { CodeMessage, SendOutcome, SmsSender } from "../../src/ports/sms-sender.js";
import { type RouteOptions, router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { type Agenda, agendaOn } from "./agenda.js";
import { around, digits, hex, pick, type Random, stream } from "./random.js";
import { type Country, worldOf } from "./world.js";

/** What is assumed of a country. The prices of its SMS are those of the simulated world. */
export interface ChannelCountry {
  /** ISO 3166-1 alpha-2. */
  readonly code: CountryCode;
  /** The channel that is tried before SMS. */
  readonly first: "whatsapp" | "telegram";
  /** Share of the users who are on it. */
  readonly has: number;
  /** Price of a delivered message there, in US dollars. */
  readonly price: number;
  /** Share of the SMS that never arrive. */
  readonly lost: number;
}

/** Assumptions, not measurements: prices of the order that vendors ask, reach of the order that surveys find. */
export const channelCountries: readonly ChannelCountry[] = [
  { code: "IN", first: "whatsapp", has: 0.9, price: 0.002, lost: 0.05 },
  { code: "BR", first: "whatsapp", has: 0.95, price: 0.007, lost: 0.05 },
  { code: "ID", first: "whatsapp", has: 0.9, price: 0.03, lost: 0.1 },
  { code: "NG", first: "whatsapp", has: 0.8, price: 0.02, lost: 0.12 },
  { code: "UA", first: "telegram", has: 0.8, price: 0.01, lost: 0.06 },
  { code: "UZ", first: "telegram", has: 0.85, price: 0.01, lost: 0.1 },
];

/** Share of messages on WhatsApp and Telegram that are not seen in time: no data, or the user blocked the sender. */
export const silent = 0.06;
/** Of these, the share that arrives minutes later, and is then paid for. */
export const late = 0.5;
/** Price of a call, in US dollars. */
export const callPrice = 0.25;

export interface ChannelSetup {
  /** Whether the channel of the country is tried before SMS. */
  readonly first: boolean;
  /** Whether the router has a fallback, after 20 s and for all reasons. */
  readonly fallback: boolean;
  /** Whether there is a route for calls, and users who get nothing ask for one. */
  readonly calls?: boolean;
  readonly policy?: PolicyOverride | undefined;
  /**
   * Requests of an attacker to numbers that pay them, on the second day. None is on WhatsApp or Telegram. `ranges`: the
   * number of ranges of 10,000 numbers; absent: anywhere in the country. `enters`: the share of the codes that they
   * enter, default 0.
   */
  readonly attack?: { readonly country: string; readonly requests: number; readonly channel?: Channel; readonly ranges?: number; readonly enters?: number };
}

/** The figures of a country or of all. Money in US dollars. */
export interface ChannelFigures {
  users: number;
  verified: number;
  /** Users one of whose requests was rejected by a rule or a cap, or failed. */
  refused: number;
  /** Users who asked for a call, and those who got none. */
  callers: number;
  uncalled: number;
  sms: number;
  /** Messages on WhatsApp or Telegram that a vendor accepted. */
  other: number;
  calls: number;
  cost: number;
  /** Seconds from the first request to the right code, of each verified user. */
  readonly seconds: number[];
}

export interface ChannelResult {
  readonly countries: ReadonlyMap<string, ChannelFigures>;
  readonly all: ChannelFigures;
  readonly attack: ChannelFigures;
  /** Errors that the verifier threw or reported. */
  readonly faults: number;
}

const newFigures = (): ChannelFigures => ({ users: 0, verified: 0, refused: 0, callers: 0, uncalled: 0, sms: 0, other: 0, calls: 0, cost: 0, seconds: [] });

const second = 1_000;
const day = 86_400_000;
const begin = Date.UTC(2026, 2, 2);

/**
 * Plays users of several countries against a verifier whose router has several channels, in virtual time. The same seed
 * gives the same users in every setup.
 *
 * @param users Of each country, over two days.
 */
export async function playChannels(setup: ChannelSetup, { users = 1_000, seed = 1 } = {}): Promise<ChannelResult> {
  const world = worldOf(seed);
  const clock = fixedClock(begin);
  const { agenda, play } = agendaOn(clock);
  const countries = new Map<string, ChannelFigures>(channelCountries.map(({ code }) => [code, newFigures()]));
  const attack = newFigures();
  /** The outcome of a number's first, second and further message by a channel is the same in every setup. */
  const sends = new Map<string, number>();
  const chanceOf = (to: string, channel: Channel) => {
    const name = `${channel} to ${to}`;
    sends.set(name, (sends.get(name) ?? 0) + 1);
    return stream(seed, `${name}, message ${sends.get(name)}`);
  };
  let faults = 0;
  const fault = () => void faults++;
  /** By authentication: what arrives, for the person who waits. */
  const waiting = new Map<string, (code: string) => Promise<void> | void>();
  /** Numbers of the attacker: only on SMS and calls, and they pay the attacker. */
  const owned = new Set<string>();
  const figuresOf = ({ to, country }: CodeMessage) => (owned.has(to) ? attack : (countries.get(country ?? "") as ChannelFigures));
  const arrive = (message: CodeMessage, ms: number) => agenda.in(ms, () => waiting.get(message.authentication_uuid)?.(message.code));
  const receipt = (message: CodeMessage, ms: number, rest: { readonly status: "delivered" | "undeliverable"; readonly unreachable?: true }) =>
    agenda.in(ms, () => verifier.settleReceipts([{ reference: message.receipt_reference as string, ...rest }]));

  const sms = {
    async send(message: CodeMessage): Promise<SendOutcome> {
      const { lost } = assumed(message);
      const chance = chanceOf(message.to, "sms");
      const figures = figuresOf(message);
      figures.sms++;
      figures.cost += world.country(message.country as string).price;
      if (chance() >= lost) arrive(message, around(chance, 6 * second, 0.6));
      return { outcome: "accepted" };
    },
  };
  /** Costs what it delivers, and confirms it. */
  const other = (channel: "whatsapp" | "telegram"): SmsSender => ({
    channel,
    confirms: true,
    receiptProviders: ["simulated"],
    async send(message) {
      const { has, price } = assumed(message);
      const chance = chanceOf(message.to, channel);
      const figures = figuresOf(message);
      const isThere = !owned.has(message.to) && shareOf(message.to, seed) < has;
      // Telegram reports this at once, WhatsApp in a receipt.
      if (!isThere && channel === "telegram") return { outcome: "rejected", reason: "not there", unreachable: true };
      figures.other++;
      if (!isThere) receipt(message, 3 * second, { status: "undeliverable", unreachable: true });
      else {
        const isSilent = chance() < silent;
        const ms = isSilent ? around(chance, 120 * second, 0.5) : around(chance, 4 * second, 0.5);
        // Telegram does not deliver a message that another has replaced.
        const isReplaced = channel === "telegram" && message.replaced_at !== undefined && clock.now() + ms > message.replaced_at;
        if (!isReplaced && !(isSilent && chance() >= late)) {
          figures.cost += price;
          arrive(message, ms);
          receipt(message, ms, { status: "delivered" });
        }
      }
      return { outcome: "accepted" };
    },
  });
  const voice: SmsSender = {
    channel: "voice",
    async send(message) {
      const figures = figuresOf(message);
      figures.calls++;
      figures.cost += callPrice;
      arrive(message, around(chanceOf(message.to, "voice"), 20 * second, 0.4));
      return { outcome: "accepted" };
    },
  };
  const served = (channel: string) => channelCountries.filter(({ first }) => first === channel).map(({ code }) => code);
  const routes: RouteOptions[] = [
    ...(setup.first ? (["whatsapp", "telegram"] as const).map((name) => ({ name, sender: other(name), countries: served(name), priority: 0 })) : []),
    { name: "sms", sender: sms, priority: 1 },
    ...(setup.calls === true ? [{ name: "call", sender: voice, priority: 2 }] : []),
  ];
  const store = memoryStore({ now: clock.now, maxRecords: 2_000_000 });
  const customer_uuid = randomUUID();
  const verifier = createVerifier({
    store,
    sender: router({ routes, store, clock, ...(setup.fallback && { fallback: { after: 20, worker: "elsewhere" as const } }) }),
    secret: "a secret of the simulation, long enough to be one",
    countries: channelCountries.map(({ code }) => code),
    customers: [{ customer_uuid, keys: [`pp_simulation-${customer_uuid}`] }],
    clock,
    logger: { info() {}, warn() {}, error: fault },
    receipts: { baseUrl: "https://simulated.example", sources: [{ provider: "simulated", read: async () => ({ receipts: [] }) }] },
    callbacks: { worker: false },
    ...(setup.policy !== undefined && { policy: setup.policy }),
  });

  const failed = () => {
    fault();
    return { authentication_uuid: "", status: "failed" };
  };

  /** One user, who waits, asks again once or twice, and leaves. */
  const visit = (country: Country, random: Random) => {
    const figures = countries.get(country.code) as ChannelFigures;
    const since = clock.now();
    let codes = 0;
    let isOver = false;
    let wasRefused = false;
    const refuse = () => {
      if (!wasRefused) figures.refused++;
      wasRefused = true;
    };
    const type = (id: string, code: string) => {
      codes++;
      agenda.in(around(random, 9 * second, 0.4), async () => {
        if (isOver) return;
        const { status } = await verifier.check({ customer_uuid, authentication_uuid: id, check_code: code });
        if (status !== "valid") return;
        isOver = true;
        figures.verified++;
        figures.seconds.push((clock.now() - since) / second);
      });
    };
    const patience = () => around(random, 45 * second, 0.4);
    const again = async (id: string, tries: number): Promise<void> => {
      if (isOver || codes > 0) return;
      // Four in ten leave instead.
      isOver = tries === 2 || random() < 0.4;
      if (!isOver) await ask(id, tries, setup.calls === true && tries === 1 ? "voice" : undefined);
    };
    const ask = async (id: string, tries: number, channel: "voice" | undefined): Promise<void> => {
      if (isOver || codes > 0) return;
      const { status, next_retry_at } = await verifier.retry({ customer_uuid, authentication_uuid: id, channel });
      if (status === "denied") return agenda.at(Date.parse(next_retry_at), () => ask(id, tries, channel));
      if (channel === "voice") figures.callers++;
      if (status !== "approved") refuse();
      if (status !== "approved" && channel === "voice") figures.uncalled++;
      agenda.in(patience(), () => again(id, tries + 1));
    };
    return async () => {
      figures.users++;
      const phone_number = country.subscriber(random);
      const request = { customer_uuid, phone_number, ip: country.line(random), device_id: hex(random, 16), device_type: "ANDROID" as const };
      const { authentication_uuid: id, status } = await verifier.createAuthentication(request).catch(failed);
      if (status !== "pending") return refuse();
      waiting.set(id, (code) => type(id, code));
      agenda.in(patience(), () => again(id, 0));
    };
  };
  for (const { code } of channelCountries) {
    const random = stream(seed, `users ${code}`);
    for (let at = 0; at < users; at++) {
      const own = stream(seed, `user ${code} ${at}`);
      agenda.at(begin + random() * 2 * day, () => visit(world.country(code), own)());
    }
  }
  if (setup.attack !== undefined) {
    const { country: code, requests, channel, ranges = 0, enters = 0 } = setup.attack;
    const country = world.country(code);
    const random = stream(seed, "attack");
    const held = Array.from({ length: ranges }, () => country.number(random).slice(0, -4));
    for (let at = 0; at < requests; at++) {
      const phone_number = ranges === 0 ? country.number(random) : pick(random, held) + digits(random, 4);
      agenda.at(begin + day + random() * (day / 2), async () => {
        owned.add(phone_number);
        attack.users++;
        const request = { customer_uuid, phone_number, ip: country.line(random), device_id: hex(random, 16), device_type: "ANDROID" as const, channel };
        const { authentication_uuid, status } = await verifier.createAuthentication(request).catch(failed);
        if (status !== "pending") attack.refused++;
        else if (random() < enters)
          waiting.set(authentication_uuid, async (check_code) => {
            const answer = await verifier.check({ customer_uuid, authentication_uuid, check_code });
            if (answer.status === "valid") attack.verified++;
          });
      });
    }
  }
  if (setup.fallback) every(agenda, 5 * second, begin + 2 * day, () => verifier.flush());

  await play(begin + 2 * day + 3_600_000);
  await verifier.close();
  return { countries, all: summed([...countries.values()]), attack, faults };
}

const assumptions = new Map<string, ChannelCountry>(channelCountries.map((row) => [row.code, row]));
const assumed = ({ country }: CodeMessage) => assumptions.get(country ?? "") as ChannelCountry;

/** A number from 0 to 1 that is the same for a phone number in every setup. */
const shareOf = (number: string, seed: number) => stream(seed, `on the channel ${number}`)();

function every(agenda: Agenda, ms: number, until: number, run: () => Promise<unknown>): void {
  const next = async () => {
    await run();
    if (agenda.now() < until + 600_000) agenda.in(ms, next);
  };
  agenda.in(ms, next);
}

function summed(all: readonly ChannelFigures[]): ChannelFigures {
  const sum = newFigures();
  for (const { seconds, ...numbers } of all) {
    sum.seconds.push(...seconds);
    for (const [name, value] of Object.entries(numbers)) sum[name as keyof typeof numbers] += value;
  }
  return sum;
}
