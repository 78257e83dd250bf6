import { randomUUID } from "node:crypto";
import type { VerifierOptions } from "../../src/options/types.js";
import type { Clock } from "../../src/ports/clock.js";
import type { Logger } from "../../src/ports/logger.js";
import type { Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { agendaOn } from "./agenda.js";
import { startAttack, targetsOf } from "./attacker.js";
import { type AttackFigures, type HonestFigures, ledgerOf, type Series } from "./ledger.js";
import { type Conditions, peopleOf } from "./people.js";
import { stream } from "./random.js";
import { requireObject, requireScenario, requireSeed } from "./read-scenario.js";
import { attackHours, type Scenario } from "./scenario.js";
import { deliveryServiceOf, postOf, serviceOf } from "./service.js";
import { startTraffic } from "./traffic.js";
import { worldOf } from "./world.js";

/**
 * What `simulate` accepts: the options of your verifier, all optional.
 *
 * The simulation always replaces `sender`, `clock`, `customers`, `waitUntil` and the callbacks' worker. `countries`:
 * default `"all"`; with a list, honest people come only from these.
 */
export type SimulationOptions = Partial<Omit<VerifierOptions, "store">> & {
  /**
   * A store, which stays open; or a function that makes one on the simulation's clock, which is closed afterwards.
   * Default: a new memory store. Each run has new customers.
   */
  readonly store?: Store | ((clock: Clock) => Store) | undefined;
};

/** A scenario's goal and the result. */
export interface GoalReport {
  readonly what: "honest visits refused" | "messages of the attack" | "faults";
  /** The maximum: a share of the visits, or a number of messages or errors. */
  readonly limit: number;
  readonly value: number;
  readonly reached: boolean;
}

/** The result of a scenario. All figures except `series` are for the hours that are counted. */
export interface SimulationResult {
  /** Name of the scenario. */
  readonly scenario: string;
  readonly seed: number;
  readonly honest: HonestFigures;
  /** Honest visits to the countries that the attack or strain affects, and rejected ones. */
  readonly target: { readonly visits: number; readonly refused: number };
  readonly attack?: AttackFigures;
  /** Seconds from the attack's start until fewer than five of its last hundred tries were sent; absent: never. */
  readonly secondsToHold?: number;
  /**
   * Seconds from the end of the attack or strain, in whole hours, until at most 1 % of the honest visits to the
   * affected countries are rejected; absent: it had no end.
   */
  readonly secondsToRecover?: number;
  /**
   * Errors that the verifier threw or reported to its logger, including each request that failed because of the store.
   * `firstFault` is the first one.
   */
  readonly faults: number;
  readonly firstFault?: string;
  readonly goals: readonly GoalReport[];
  /** Whether all goals were reached. */
  readonly reached: boolean;
  /** Over time, for drawing. */
  readonly series: Series;
}

const hour = 3_600_000;

/** A Monday in spring at eight in the morning, UTC. */
const begin = Date.UTC(2026, 2, 2, 8);

/**
 * Plays a scenario against a verifier with your options, in virtual time: days take seconds. Honest people and
 * attackers are drawn from the seed. The same seed, options and scenario give the same result.
 *
 * Rejects with a `TypeError` that names what cannot be played: a missing, unknown or invalid field of the scenario, or a
 * seed that is no integer.
 *
 * @param run.seed An integer. Default 1.
 * @param run.onProgress Called after every hour of virtual time with the fraction played, from 0 to 1.
 */
export async function simulate(
  options: SimulationOptions,
  scenario: Scenario,
  { seed = 1, onProgress }: { readonly seed?: number; readonly onProgress?: (done: number) => void } = {},
): Promise<SimulationResult> {
  requireObject("the first argument", options);
  requireScenario(scenario);
  requireSeed(seed);
  const world = worldOf(seed);
  const clock = fixedClock(begin);
  const from = begin + scenario.warmUpDays * 24 * hour;
  const end = from + scenario.hours * hour;
  const { strain, attack, deliveries } = scenario;
  const ends = attack !== undefined || (strain !== undefined && "hours" in strain);
  const lasts = attack !== undefined ? attackHours(attack) : strain === undefined ? 0 : "hours" in strain ? strain.hours : scenario.hours;
  const until = from + lasts * hour;

  const unused = world.countries.filter(({ share }) => share === 0);
  const served = world.countries.filter(({ share, code }) => share > 0 && (!Array.isArray(options.countries) || options.countries.includes(code)));
  if (served.length === 0) throw new Error("simulate: none of the countries in options.countries is one that honest people come from.");
  const targets = new Set([
    ...(attack === undefined ? [] : targetsOf(attack.numbers, unused)),
    ...(strain !== undefined && "country" in strain ? [strain.country] : []),
  ]);
  const ledger = ledgerOf(clock.now, { start: begin, from, until, end, targets: targets.size > 0 ? targets : new Set(served.map(({ code }) => code)) });

  let faults = 0;
  let firstFault: string | undefined;
  const fault = (what: unknown) => {
    faults++;
    firstFault ??= String(what);
  };
  const background = new Set<Promise<unknown>>();
  const waitUntil = (work: Promise<unknown>) => {
    const ended = work.catch(fault).finally(() => background.delete(ended));
    background.add(ended);
  };

  const prices = new Map(world.countries.map(({ code, price }) => [code, price]));
  const post = postOf(ledger, (country) => prices.get(country ?? "") ?? 0.1);
  const customers = { honest: randomUUID(), attack: randomUUID() };
  if (attack?.otherCustomer !== true) customers.attack = customers.honest;
  const [{ createVerifier }, store] = await Promise.all([import("../../src/index.js"), storeFor(options.store, clock)]);
  const verifier = createVerifier({
    ...options,
    ...(deliveries?.conversion === "unknown" && { policy: withCeiling(options.policy) }),
    secret: options.secret ?? "a secret of the simulation, long enough to be one",
    countries: options.countries ?? "all",
    logger: loggerOf(options.logger, fault),
    store,
    sender: post.sender,
    clock,
    customers: [...new Set(Object.values(customers))].map((customer_uuid) => ({ customer_uuid, keys: [`pp_simulation-${customer_uuid}`] })),
    callbacks: { ...options.callbacks, worker: false, waitUntil },
  });
  const { agenda, play } = agendaOn(clock);
  const parts = { verifier, post, clock, customers, background, fault };
  const confirms = () => strain?.kind !== "no confirmations" || clock.now() < from || clock.now() >= until;
  const service =
    deliveries === undefined ? serviceOf(parts) : deliveryServiceOf({ ...parts, agenda, deliveries, confirms, random: stream(seed, "deliveries") });
  const conditions: Conditions = {
    conversion: ({ conversion }) => (strain?.kind === "low conversion" && clock.now() >= from ? strain.factor : 1) * conversion,
    arrives: (at) => strain?.kind !== "outage" || at < from || at >= until,
    mobile: (country, random) => {
      if (strain?.kind === "carrier NAT" && strain.country === country.code && (strain.always || clock.now() >= from))
        return country.carrier(random, strain.addresses);
      return random() < 0.5 ? country.carrier(random) : country.line(random);
    },
  };
  const people = peopleOf({ agenda, service, ledger, world, conditions });
  startTraffic({ agenda, people, world, scenario, seed, served, from });
  if (attack !== undefined) startAttack({ agenda, service, ledger, world, conditions, attack, seed, unused, from });

  for (let at = begin + hour; at < end + hour; at += hour) {
    await play(Math.min(at, end));
    onProgress?.(Math.min(1, (at - begin) / (end - begin)));
  }
  if (options.store === undefined || typeof options.store === "function") await verifier.close();

  const { honest, target, attack: attackFigures, series, secondsToHold, secondsToRecover } = ledger.figures();
  const goals = goalsOf(scenario, honest, attackFigures, faults);
  return {
    scenario: scenario.name,
    seed,
    honest,
    target,
    ...(attack !== undefined && { attack: attackFigures, ...(secondsToHold !== undefined && { secondsToHold }) }),
    ...(ends && { secondsToRecover }),
    faults,
    ...(firstFault !== undefined && { firstFault }),
    goals,
    reached: goals.every(({ reached }) => reached),
    series,
  };
}

/**
 * With an unknown conversion, a ceiling is required, and the customer's cap does not grow with verifications. By
 * default both are never reached, so that the figures are those of the rules.
 */
function withCeiling(policy: SimulationOptions["policy"] = {}): SimulationOptions["policy"] {
  return { ...policy, limits: { spend: [{ amount: 1_000_000, per: "day" }], perCustomer: [], ...policy.limits } };
}

async function storeFor(given: SimulationOptions["store"], clock: Clock): Promise<Store> {
  if (typeof given === "function") return given(clock);
  if (given !== undefined) return given;
  const { memoryStore } = await import("../../adapters/store/memory/index.js");
  return memoryStore({ now: clock.now, maxRecords: 2_000_000 });
}

/** Reports errors to `fault`. Everything is also passed to the caller's logger, if there is one. */
function loggerOf(logger: Logger | undefined, fault: (what: unknown) => void): Logger {
  return {
    info: (fields, message) => logger?.info(fields, message),
    warn: (fields, message) => logger?.warn(fields, message),
    error(fields, message) {
      const { err } = fields;
      fault(err === undefined ? message : `${message}: ${String(err)}`);
      logger?.error(fields, message);
    },
  };
}

function goalsOf({ goal = {} }: Scenario, honest: HonestFigures, { out }: AttackFigures, faults: number): GoalReport[] {
  const atMost = (what: GoalReport["what"], limit: number | undefined, value: number) =>
    limit === undefined ? [] : [{ what, limit, value, reached: value <= limit }];
  return [
    ...atMost("honest visits refused", goal.refused, honest.visits === 0 ? 0 : honest.refused / honest.visits),
    ...atMost("messages of the attack", goal.out, out),
    ...atMost("faults", 0, faults),
  ];
}
