import type { SendResult } from "../domain/send.js";

/** The price of a route's messages by country; `default` for countries without their own price. */
export type Prices = Readonly<Record<string, number>>;

/** The price of one message, if known. */
export function priceOf(prices: Prices, country: string | undefined): number | undefined {
  return (country === undefined ? undefined : prices[country]) ?? prices.default;
}

/** Whether every message that a route accepts has a price. `countries`: those of the route; absent: all. */
export function isPriced(prices: Prices, countries: ReadonlySet<string> | undefined): boolean {
  return prices.default !== undefined || (countries !== undefined && [...countries].every((country) => prices[country] !== undefined));
}

/**
 * The highest possible price of a message: on its planned route, or on the most expensive others after failover,
 * `maxRoutes` in all. A route that rejects costs nothing, so only one is paid; with `afterUnknown` each may be.
 * `undefined` if a price is not known.
 */
export function highestPrice(
  planned: number | undefined,
  others: readonly (number | undefined)[],
  maxRoutes: number,
  afterUnknown: boolean,
): number | undefined {
  if (planned === undefined || (maxRoutes > 1 && others.includes(undefined))) return undefined;
  const dearest = (others as readonly number[]).toSorted((a, b) => b - a).slice(0, maxRoutes - 1);
  return afterUnknown ? dearest.reduce((sum, price) => sum + price, planned) : Math.max(planned, ...dearest);
}

/** The price of a message in the end: of each route that sent it, or may have. `undefined` if a price is not known. */
export function paidPrice(tries: readonly { readonly price: number | undefined; readonly outcome: SendResult }[]): number | undefined {
  let sum = 0;
  for (const { price, outcome } of tries) {
    if (outcome === "rejected") continue;
    if (price === undefined) return undefined;
    sum += price;
  }
  return sum;
}
