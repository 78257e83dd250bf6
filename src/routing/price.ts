/** What a route's messages cost, by country; `default` where a country has no price of its own. */
export type Prices = Readonly<Record<string, number>>;

/** The price of one message, if it is known. */
export function priceOf(prices: Prices, country: string | undefined): number | undefined {
  return (country === undefined ? undefined : prices[country]) ?? prices.default;
}

/** Whether every message that a route may take has a price. `countries`: those it is for; absent: all. */
export function isPriced(prices: Prices, countries: ReadonlySet<string> | undefined): boolean {
  return prices.default !== undefined || (countries !== undefined && [...countries].every((country) => prices[country] !== undefined));
}

/**
 * What a message may cost at most: on the route planned for it, or on the dearest others that a failover may lead to, `maxRoutes` in all. A route that surely did not send costs nothing, so one of them is paid; with `afterUnknown` each of them may be.
 * `undefined` where one of the prices is not known.
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

/** What a message did cost: each route that took it, or may have. `undefined` where one of the prices is not known. */
export function paidPrice(tries: readonly { readonly price: number | undefined; readonly outcome: "accepted" | "rejected" | "unknown" }[]): number | undefined {
  let sum = 0;
  for (const { price, outcome } of tries) {
    if (outcome === "rejected") continue;
    if (price === undefined) return undefined;
    sum += price;
  }
  return sum;
}
