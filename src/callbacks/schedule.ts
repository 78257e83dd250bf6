import { getOrPut } from "../core/collections.js";

/** A job, and what it is scheduled by: its customer and its host. */
export interface Job {
  readonly customer: string;
  readonly host: string;
}

/** Limits for running and queued jobs. */
export interface Bounds {
  /** Jobs that run at a time: in total, and per host. */
  readonly total: number;
  readonly perHost: number;
  /** Jobs that may be queued. */
  readonly waiting: number;
}

/**
 * Decides which job runs next. It has no clock and runs nothing itself.
 *
 * "a scheduler that is fair by customer, then by host" (docs/contract.md#leases): customers take turns, then their
 * hosts, and jobs of one customer for one host run in order.
 *
 * A customer may run as many jobs as slots are free, so one alone uses half of them. The last free slot goes to a
 * customer with no running job.
 *
 * A receiver is a customer's host. Receivers "that did not respond to their last callback, or had none yet, share half
 * of the slots" (docs/contract.md#callback-fairness), by the same rule; one of them alone uses half of a host's.
 */
export function createSchedule<J extends Job>({ total, perHost, waiting: room }: Bounds) {
  /** The queues of each customer by host. Customers and hosts are ordered by turn. */
  const lines = new Map<string, Map<string, J[]>>();
  const waiting = counts();
  const running = counts();
  /** Receivers that responded to their last job: the `room` newest. */
  const responding = new Set<string>();
  /** Running jobs of receivers that were not among them at the start. */
  const probing = counts();
  const probes = new Set<J>();

  const lineOf = (customer: string, hosts: ReadonlyMap<string, J[]>): string | undefined => {
    const mayProbe = probing.of(customer) < Math.ceil(total / 2) - probing.all();
    for (const host of hosts.keys()) {
      const left = perHost - running.to(host);
      const receiver = receiverOf({ customer, host });
      if (left > 0 && (responding.has(receiver) || (mayProbe && probing.at(receiver) < left))) return host;
    }
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
    if (!responding.has(receiverOf(job))) {
      probes.add(job);
      probing.add(job, 1);
    }
    return job;
  };

  return {
    /** Queues a job; false if there is no room. One customer may hold half of the places left, and so may one host. */
    add(job: J): boolean {
      const left = room - waiting.all();
      if (waiting.of(job.customer) >= left || waiting.to(job.host) >= left) return false;
      const hosts = getOrPut(lines, job.customer, () => new Map<string, J[]>());
      getOrPut(hosts, job.host, () => []).push(job);
      waiting.add(job, 1);
      return true;
    },
    /** Returns the next job and counts it as running; `undefined` if none may run. */
    next(): J | undefined {
      const free = total - running.all();
      if (free <= 0) return undefined;
      for (const [customer, hosts] of lines) {
        const host = running.of(customer) < free ? lineOf(customer, hosts) : undefined;
        if (host !== undefined) return take(customer, hosts, host);
      }
      return undefined;
    },
    /** Ends a running job. `responded`: whether the receiver did; `undefined` if that is not known. */
    end(job: J, responded?: boolean): void {
      running.add(job, -1);
      if (probes.delete(job)) probing.add(job, -1);
      if (responded === undefined) return;
      const receiver = receiverOf(job);
      responding.delete(receiver);
      if (!responded) return;
      responding.add(receiver);
      if (responding.size > room) responding.delete(responding.keys().next().value as string);
    },
    /** The number of queued jobs. */
    waiting: () => waiting.all(),
  };
}

function receiverOf({ customer, host }: Job): string {
  return `${customer} ${host}`;
}

/** Counts of jobs: in total, by customer, by host and by receiver. */
function counts() {
  let all = 0;
  const customers = new Map<string, number>();
  const hosts = new Map<string, number>();
  const receivers = new Map<string, number>();
  const addTo = (numbers: Map<string, number>, key: string, by: number) => {
    const number = (numbers.get(key) ?? 0) + by;
    if (number === 0) numbers.delete(key);
    else numbers.set(key, number);
  };
  return {
    all: () => all,
    of: (customer: string) => customers.get(customer) ?? 0,
    to: (host: string) => hosts.get(host) ?? 0,
    at: (receiver: string) => receivers.get(receiver) ?? 0,
    add(job: Job, by: number) {
      all += by;
      addTo(customers, job.customer, by);
      addTo(hosts, job.host, by);
      addTo(receivers, receiverOf(job), by);
    },
  };
}
