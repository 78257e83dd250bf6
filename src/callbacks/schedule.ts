/** What is fair to whom: the customer it is for, and the host it goes to. */
export interface Job {
  readonly customer: string;
  readonly host: string;
}

/** How much may run and wait. */
export interface Bounds {
  /** Jobs that run at a time, and those of them that go to one host. */
  readonly total: number;
  readonly perHost: number;
  /** Jobs that wait. */
  readonly waiting: number;
}

/** Decides what runs next. It knows no time and does nothing itself. */
export interface Schedule<J extends Job> {
  /** Puts a job in line; false when there is no room for it: of the places left, one customer may hold half, and one host. */
  add(job: J): boolean;
  /** The next job that may run, which from now on does; `undefined` while none may. */
  next(): J | undefined;
  /** A job that ran is over. */
  end(job: J): void;
  /** How many wait. */
  waiting(): number;
}

/**
 * "a scheduler that is fair by customer, then by host" (docs/contract.md#leases): customers take turns, the hosts of a customer take turns, and the jobs of a customer for one host go in their order.
 *
 * A customer may run as many jobs as slots are free, so alone it comes to half of them, and the last free slot goes to a customer who has none: whatever others do, there is room for one more.
 */
export function createSchedule<J extends Job>({ total, perHost, waiting: room }: Bounds): Schedule<J> {
  /** The lines of each customer, by host; customers and hosts stand in the order of their turns. */
  const lines = new Map<string, Map<string, J[]>>();
  const waiting = counts();
  const running = counts();

  const lineOf = (hosts: ReadonlyMap<string, J[]>): string | undefined => {
    for (const host of hosts.keys()) if (running.to(host) < perHost) return host;
    return undefined;
  };

  const take = (customer: string, hosts: Map<string, J[]>, host: string): J => {
    const line = hosts.get(host) as J[];
    const job = line.shift() as J;
    hosts.delete(host);
    if (line.length > 0) hosts.set(host, line);
    lines.delete(customer);
    if (hosts.size > 0) lines.set(customer, hosts);
    waiting.add(job, -1);
    running.add(job, 1);
    return job;
  };

  return {
    add(job) {
      const left = room - waiting.all();
      if (waiting.of(job.customer) >= left || waiting.to(job.host) >= left) return false;
      const hosts = lines.get(job.customer) ?? new Map<string, J[]>();
      const line = hosts.get(job.host) ?? [];
      line.push(job);
      hosts.set(job.host, line);
      lines.set(job.customer, hosts);
      waiting.add(job, 1);
      return true;
    },
    next() {
      const free = total - running.all();
      if (free <= 0) return undefined;
      for (const [customer, hosts] of lines) {
        const host = running.of(customer) < free ? lineOf(hosts) : undefined;
        if (host !== undefined) return take(customer, hosts, host);
      }
      return undefined;
    },
    end: (job) => running.add(job, -1),
    waiting: () => waiting.all(),
  };
}

/** Numbers of jobs: in all, of a customer, to a host. */
function counts() {
  let all = 0;
  const customers = new Map<string, number>();
  const hosts = new Map<string, number>();
  const addTo = (numbers: Map<string, number>, key: string, by: number) => {
    const number = (numbers.get(key) ?? 0) + by;
    if (number === 0) numbers.delete(key);
    else numbers.set(key, number);
  };
  return {
    all: () => all,
    of: (customer: string) => customers.get(customer) ?? 0,
    to: (host: string) => hosts.get(host) ?? 0,
    add(job: Job, by: number) {
      all += by;
      addTo(customers, job.customer, by);
      addTo(hosts, job.host, by);
    },
  };
}
