import type { Observed } from "./observed.js";

/** Lets a write continue after the response. This process's reads of the record wait for it. A failure is logged. */
export function storeLater({ inBackground, monitor, records }: Observed, id: string, write: Promise<unknown>, fields: object, failure: string): void {
  records.pending(id, write);
  inBackground(write.catch((err: unknown) => monitor.throttledLog.warn({ err, ...fields }, failure)));
}
