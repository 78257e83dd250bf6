import type { LookupAddress } from "node:dns";
import { getOrPut } from "../core/collections.js";
import { deliveryTimeout } from "../domain/delivery.js";

/** Overrides for tests. */
export interface NamesOptions {
  /** Addresses of name servers. Default: the system's. */
  readonly servers?: readonly string[];
  /** Timeout of a lookup in milliseconds. Default 5,000. */
  readonly timeout?: number;
  /** Concurrent lookups per customer; further ones wait. Default 8. */
  readonly perCustomer?: number;
  /** How long a failed lookup is cached, in milliseconds. Default 5,000. */
  readonly remembered?: number;
}

/** Looks up a name for a customer. Rejects if it has no address. */
export type Resolve = (hostname: string, customer: string) => Promise<readonly LookupAddress[]>;

/** Failed names cached. */
const mostFailed = 1_000;

/**
 * Looks up names chosen by others. A separate resolver is used because each system lookup can block one of the
 * process's few threads for minutes. Without one, the system's resolver looks up one name at a time.
 */
export function nameResolver({ servers, timeout = 5_000, perCustomer = 8, remembered = 5_000 }: NamesOptions = {}): Resolve {
  const underWay = new Map<string, Promise<readonly LookupAddress[]>>();
  const failed = new Map<string, { readonly error: Error; readonly until: number }>();
  const turns = takeTurns(perCustomer);
  const systemTurns = takeTurns(1);

  const lookUp = async (hostname: string): Promise<readonly LookupAddress[]> => {
    const { promises } = await import("node:dns");
    if (typeof promises.Resolver !== "function") return systemTurns("", () => promises.lookup(hostname, { all: true }));
    const resolver = new promises.Resolver({ timeout, tries: 1 });
    if (servers !== undefined) resolver.setServers(servers);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`the name ${hostname} was not resolved within ${timeout} ms`)), timeout);
    });
    const [four, six] = await Promise.allSettled([Promise.race([resolver.resolve4(hostname), late]), Promise.race([resolver.resolve6(hostname), late])]);
    clearTimeout(timer);
    resolver.cancel();
    // Both families are asked; one may fail or time out.
    if (four.status === "rejected" && six.status === "rejected") throw four.reason;
    return [...found(four, 4), ...found(six, 6)];
  };

  const remember = (hostname: string, error: Error): never => {
    if (failed.size >= mostFailed) failed.clear();
    failed.set(hostname, { error, until: Date.now() + remembered });
    throw error;
  };

  return (hostname, customer) => {
    // Not shared between customers, so that no customer waits for another's lookups.
    const key = `${customer} ${hostname}`;
    return getOrPut(underWay, key, () => {
      const asked = Date.now();
      return turns(customer, async () => {
        if (Date.now() - asked > deliveryTimeout) throw new Error(`DNS lookup of ${hostname} skipped: too many lookups in progress for this customer`);
        const known = failed.get(hostname);
        if (known !== undefined && known.until > Date.now()) throw known.error;
        return lookUp(hostname).catch((error: Error) => remember(hostname, error));
      }).finally(() => underWay.delete(key));
    });
  };
}

function found(answer: PromiseSettledResult<string[]>, family: number): LookupAddress[] {
  return answer.status === "fulfilled" ? answer.value.map((address) => ({ address, family })) : [];
}

/** Runs up to `most` jobs per key at a time, in order. */
function takeTurns(most: number): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const lines = new Map<string, { running: number; readonly waiting: (() => void)[] }>();
  return async (key, work) => {
    const line = getOrPut(lines, key, () => ({ running: 0, waiting: [] }));
    if (line.running >= most) await new Promise<void>((turn) => line.waiting.push(turn));
    else line.running++;
    try {
      return await work();
    } finally {
      const next = line.waiting.shift();
      // The slot passes directly to the next job.
      if (next !== undefined) next();
      else if (--line.running === 0) lines.delete(key);
    }
  };
}
