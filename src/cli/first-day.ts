import type { Verifier } from "../create-verifier.js";
import { day } from "../domain/time.js";

/** Printed next to a rejection. */
export interface Hint {
  readonly rule: string;
  readonly message: string;
}

/** Rules that messages of a developer who does not enter the codes fill first. */
const filledByTests: ReadonlySet<string> = new Set(["range 4", "range 5", "range 6", "country", "newCountries", "address"]);

/** As far back as is looked for earlier messages: they prove that the verifier is older than a day. */
const lookBack = 8 * day;

/**
 * The hint for a create that a spam rule has blocked, if the customer sent nothing before the last 24 hours: it is then
 * usually the developer who tests. `now`: milliseconds since the epoch. Never rejects.
 */
export async function firstDayHint(
  { explain, stats }: Pick<Verifier, "explain" | "stats">,
  of: { readonly customer_uuid: string; readonly authentication_uuid: string },
  now = Date.now(),
): Promise<Hint | undefined> {
  try {
    const { decisions } = await explain(of);
    const rule = decisions.find((one) => one.mode === "enforce" && filledByTests.has(one.rule))?.rule;
    if (rule === undefined || !(await isYoung(stats, of.customer_uuid, now))) return undefined;
    return {
      rule,
      message: `the rule ${rule} blocks further messages, as codes that no one enters look like an attack. For tests, put your numbers on lists.safe (they get real messages) or in testNumbers (nothing is sent), or enter the codes. See docs/carriers.md#the-first-afternoon.`,
    };
  } catch {
    return undefined;
  }
}

/** Without statistics, the age of this process is all that is known. */
async function isYoung(stats: Verifier["stats"], customer_uuid: string, now: number): Promise<boolean> {
  try {
    return (await stats({ customer_uuid, from: new Date(now - lookBack), to: new Date(now - day) })).sends === 0;
  } catch {
    return process.uptime() * 1000 < day;
  }
}
