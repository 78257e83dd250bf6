import type { Scenario, ScenarioName } from "../scenario.js";

/** The scenarios of `--quick`. Their goals are met by the default policy. */
export const quickIds: readonly ScenarioName[] = [
  "peace500",
  "launch",
  "schools",
  "range",
  "ranges",
  "burst",
  "typed60",
  "fortyCountries",
  "rangesBusy",
  "worldProxies",
  "hostileTenant",
  "bombing",
  "lateUnused",
  "unknownUnused",
];

/**
 * A scenario in its quick form: up to two days of warm-up, half a day that is counted, a twelfth of the attack. Few
 * visits are counted, so the share that may be rejected has a margin for chance; the messages of an attack have none.
 * An unknown conversion needs all days of its past, so it has fewer visits instead.
 */
export function quickForm(scenario: Scenario): Scenario {
  const { attack, goal, deliveries } = scenario;
  const needsPast = deliveries?.conversion === "unknown";
  const warmUpDays = needsPast ? scenario.warmUpDays : Math.min(scenario.warmUpDays, 2);
  const visitsPerDay = needsPast ? Math.min(scenario.visitsPerDay, 500) : scenario.visitsPerDay;
  const hours = Math.min(scenario.hours, 12);
  return {
    ...scenario,
    warmUpDays,
    visitsPerDay,
    hours,
    ...(attack !== undefined && { attack: { ...attack, messages: attack.messages / 12 } }),
    ...(goal?.refused !== undefined && { goal: { ...goal, refused: withMargin(goal.refused, (visitsPerDay * hours) / 24) } }),
  };
}

/** The share of so many visits that 99 of 100 runs do not exceed, if `share` is the share in the long run. */
function withMargin(share: number, visits: number): number {
  const mean = share * visits;
  return (mean + 2.33 * Math.sqrt(mean) + 1) / visits;
}
