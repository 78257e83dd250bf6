import type { Store } from "../../../src/ports/store.js";
import { parseEach } from "../../kit/store.js";
import type { Ask } from "./commit.js";
import { type Keys, parseName, parseRecord } from "./keys.js";
import leaseScript from "./lease.lua";

/**
 * How long to wait for the other shards once one has responded: so many times so many milliseconds. A process that
 * stands still counts as one time only, so that it reads what has arrived before it goes on without it.
 */
const times = 10;
const patience = 25;

/**
 * Runs one script for a single shard. With several, all are first asked when their records are due, and then those with
 * the earliest lease them: so only returned records are leased.
 * A shard that does not respond holds up no other; what it leases later becomes due again when the lease ends.
 */
export function leaseFrom(ask: Ask, { wakes }: Keys): Store["lease"] {
  /** For each record: when it was due and, if leased, its name and its packed text. */
  async function due(wake: string, until: number, limit: number, leaseUntil: number | ""): Promise<[string, string, string][]> {
    const reply = await ask(leaseScript, [wake], [String(until), String(limit), String(leaseUntil)]);
    return reply === "-" ? [] : JSON.parse(reply.slice(1));
  }

  return async (until, limit, leaseUntil) => {
    if (limit < 1) return [];
    let shares = new Map(wakes.map((wake) => [wake, limit]));
    const errors: unknown[] = [];
    if (wakes.length > 1) {
      const asked = wakes.map(async (wake) => (await due(wake, until, limit, "")).map(([at]) => ({ wake, at: Number(at) })));
      const seen = await answersOf(asked, errors);
      shares = new Map();
      for (const { wake } of seen.sort((a, b) => a.at - b.at).slice(0, limit)) shares.set(wake, (shares.get(wake) ?? 0) + 1);
    }
    const leases = Array.from(shares, ([wake, share]) => due(wake, until, share, leaseUntil));
    const leased = (await answersOf(leases, errors)).sort(([a], [b]) => Number(a) - Number(b));
    return parseEach(leased, ([, name, text]) => parseRecord(parseName(name), text), errors);
  };
}

/** The results that arrive within that time after the first; the errors of the others go to `errors`. */
async function answersOf<T>(asked: readonly Promise<readonly T[]>[], errors: unknown[]): Promise<T[]> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = Promise.any(asked).then(async () => {
    for (let left = times; left > 0; left--) await new Promise<void>((resolve) => (timer = setTimeout(resolve, patience)));
    throw new Error("redisStore: a shard does not respond");
  });
  late.catch(() => undefined);
  const settled = await Promise.allSettled(asked.map((one) => Promise.race([one, late])));
  clearTimeout(timer);
  for (const result of settled) if (result.status === "rejected") errors.push(result.reason);
  return settled.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
}
