import type { Agenda } from "./agenda.js";
import type { People } from "./people.js";
import { below, lottery, poisson, type Random, stream } from "./random.js";
import type { Scenario } from "./scenario.js";
import type { Country, World } from "./world.js";

const minute = 60_000;
const hour = 60 * minute;

/** Relative number of visits at each hour of the day, local time. */
const dayCurve = [0.35, 0.22, 0.15, 0.12, 0.13, 0.22, 0.5, 0.85, 1.1, 1.25, 1.3, 1.3, 1.3, 1.25, 1.2, 1.2, 1.25, 1.35, 1.5, 1.65, 1.7, 1.5, 1.1, 0.65];
const curveMean = dayCurve.reduce((sum, one) => sum + one, 0) / dayCurve.length;

/** How busy a country is at a time, 1 on average. */
function busyness({ offset }: Country, at: number): number {
  const local = (((at / hour + offset) % 24) + 24) % 24;
  const [before, after] = [Math.floor(local), Math.floor(local + 1) % 24];
  const [one, other] = [dayCurve[before] as number, dayCurve[after] as number];
  return (one + (other - one) * (local - before)) / curveMean;
}

export interface TrafficParts {
  readonly agenda: Agenda;
  readonly people: People;
  readonly world: World;
  readonly scenario: Scenario;
  readonly seed: number;
  /** Countries with visits. */
  readonly served: readonly Country[];
  /** Start of the strain. */
  readonly from: number;
}

/** Starts the visits. Each draws from its own stream, so that changes to one do not affect the others. */
export function startTraffic(parts: TrafficParts): void {
  const { agenda, people, world, scenario, seed, served, from } = parts;
  const { strain, visitsPerDay } = scenario;
  const shares = served.reduce((sum, { share }) => sum + share, 0);
  const perMinute = ({ share }: Country) => (visitsPerDay * share) / shares / 1_440;

  const arrive = (name: string, rateOf: (at: number) => readonly (readonly [Country, number])[], come: People["come"], start = agenda.now()) => {
    const random = stream(seed, `${name} arrivals`);
    let visits = 0;
    const look = () => {
      const at = agenda.now();
      const rates = rateOf(at);
      const draw = lottery(rates);
      const count = poisson(
        random,
        rates.reduce((sum, [, rate]) => sum + rate, 0),
      );
      for (let left = count; left > 0; left--) {
        const country = draw(random);
        const own = stream(seed, `${name} ${visits++}`);
        agenda.in(minute * random(), () => come(country, own));
      }
      agenda.in(minute, look);
    };
    agenda.at(start, look);
  };

  const inClasses = strain?.kind === "classes" ? strain.share : 0;
  const usual = (at: number) => served.map((country) => [country, perMinute(country) * busyness(country, at) * (at >= from ? 1 - inClasses : 1)] as const);
  arrive("people", usual, people.come);

  if (strain?.kind === "rush") {
    const country = world.country(strain.country);
    const span = strain.hours * hour;
    // Rises within five minutes, and falls to zero at the end.
    const height = (at: number) => Math.max(0, Math.min((at - from + minute) / (5 * minute), 1 - (at - from) / span));
    const rush = (at: number) => [[country, (strain.factor - 1) * perMinute(country) * height(at)] as const];
    arrive("rush", rush, (each, random) => people.come(each, random, { fresh: true }), from);
  }

  if (strain?.kind === "launch") {
    const country = world.country(strain.country);
    const launch = (at: number) => [[country, ((strain.share * visitsPerDay) / 1_440) * busyness(country, at)] as const];
    arrive("launch", launch, people.come, from);
  }

  if (inClasses > 0) {
    const size = 30;
    const rates = (at: number) => served.map((country) => [country, (perMinute(country) * busyness(country, at) * inClasses) / size] as const);
    const bring = async (country: Country, random: Random) => {
      const ip = country.office(random);
      for (let pupil = 0; pupil < size; pupil++) {
        const own = stream(below(random, 2 ** 31), pupil);
        agenda.in(10 * minute * random(), () => people.come(country, own, { ip }));
      }
    };
    arrive("classes", rates, bring, from);
  }
}
