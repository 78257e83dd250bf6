import type { Agenda } from "./agenda.js";
import type { Ledger } from "./ledger.js";
import { type Conditions, guid } from "./people.js";
import { below, digits, hex, pick, type Random, stream } from "./random.js";
import { type Attack, type AttackNumbers, burst } from "./scenario.js";
import type { Service } from "./service.js";
import { type Country, numberOf, type World } from "./world.js";

interface Target {
  readonly country: Country;
  readonly number: string;
}

export interface AttackParts {
  readonly agenda: Agenda;
  readonly service: Service;
  readonly ledger: Ledger;
  readonly world: World;
  readonly conditions: Conditions;
  readonly attack: Attack;
  readonly seed: number;
  /** Countries without honest visits. */
  readonly unused: readonly Country[];
  /** Start of the attack. */
  readonly from: number;
}

const second = 1_000;

/** When an attacker first tries a retry after a create, which does not reveal the cool-down. */
const firstCoolDown = 30 * second;

/** Countries that an attack targets. */
export function targetsOf(numbers: AttackNumbers, unused: readonly Country[]): readonly string[] {
  return numbers.kind === "countries" ? unused.slice(0, numbers.countries).map(({ code }) => code) : [numbers.country];
}

/** Starts the attack. */
export function startAttack({ agenda, service, ledger, world, conditions, attack, seed, unused, from }: AttackParts): void {
  const { messages, perHour, typed = 0, retries = 0, claimsReturning = false } = attack;
  const random = stream(seed, "attack");
  const targets = targetsFrom(attack.numbers, world, unused, random);
  /** Authentications that can be retried, in the order of their times. */
  const due: { readonly id: string; readonly left: number; readonly at: number }[] = [];
  let left = messages;

  const addressFor = (country: Country): string => {
    const { from: place } = attack;
    if (typeof place === "object") return conditions.mobile(world.country(place.mobile), random);
    if (place === "hosting") return world.hosting(random);
    return (place === "country" ? country : pick(random, world.countries)).line(random);
  };

  const sent = (id: string, code: string, retriesLeft: number, nextAt = agenda.now() + firstCoolDown) => {
    if (random() < typed) {
      agenda.in(10 * second + 50 * second * random(), async () => {
        if (await service.check("attack", id, code)) ledger.typed();
      });
    } else if (retriesLeft > 0) due.push({ id, left: retriesLeft, at: nextAt });
  };

  const create = async () => {
    const { country, number } = targets();
    ledger.tried();
    const answer = await service.create("attack", {
      phone_number: number,
      ip: addressFor(country),
      ...(random() < 0.5 ? { device_type: "ANDROID", device_id: hex(random, 16) } : { device_type: "IOS", device_id: guid(random) }),
      ...(claimsReturning && { is_returning_user: true }),
    });
    if (answer.sent) sent(answer.id, answer.code, retries);
    else if (answer.refusedBy !== undefined) ledger.refused(answer.refusedBy);
  };

  const retry = async ({ id, left: retriesLeft }: (typeof due)[number]) => {
    ledger.tried();
    const answer = await service.retry("attack", id);
    if (answer.sent) sent(id, answer.code, retriesLeft - 1, answer.nextAt);
    else if (answer.refusedBy !== undefined) ledger.refused(answer.refusedBy);
    else {
      ledger.refused("not yet");
      if (answer.nextAt !== undefined) due.push({ id, left: retriesLeft, at: answer.nextAt });
    }
  };

  const tryOnce = () => {
    left--;
    const ready = due.findIndex(({ at }) => at <= agenda.now());
    return ready < 0 ? create() : retry(due.splice(ready, 1)[0] as (typeof due)[number]);
  };

  const wave = async (): Promise<void> => {
    if (perHour === "burst") await Promise.all(Array.from({ length: Math.min(left, burst) }, tryOnce));
    else await tryOnce();
    if (left > 0) agenda.in(perHour === "burst" ? second : ((3_600 * second) / perHour) * (0.5 + random()), wave);
  };
  agenda.at(from, wave);
}

function targetsFrom(numbers: AttackNumbers, world: World, unused: readonly Country[], random: Random): () => Target {
  if (numbers.kind === "countries") {
    const { countries, stay } = numbers;
    const those = unused.slice(0, countries);
    let tried = 0;
    return () => {
      const country = stay === undefined ? pick(random, those) : (those[Math.floor(tried++ / stay) % those.length] as Country);
      return { country, number: country.number(random) };
    };
  }
  const country = world.country(numbers.country);
  const [operator = []] = country.operators;
  const block = () => pick(random, operator);
  switch (numbers.kind) {
    case "sequence": {
      const { prefix, digits: length } = block();
      let next = below(random, 10 ** length);
      return () => ({ country, number: prefix + String(next++ % 10 ** length).padStart(length, "0") });
    }
    case "ranges": {
      const ranges = Array.from({ length: numbers.ranges }, () => {
        const { prefix, digits: length } = block();
        return { prefix: prefix + digits(random, length - 4), digits: 4 };
      });
      return () => ({ country, number: numberOf(pick(random, ranges), random) });
    }
    case "operator":
      return () => ({ country, number: numberOf(block(), random) });
    case "country":
      return () => ({ country, number: country.number(random) });
    case "one": {
      const number = country.number(random);
      return () => ({ country, number });
    }
  }
}
