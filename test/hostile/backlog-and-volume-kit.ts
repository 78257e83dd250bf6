import { setImmediate } from "node:timers/promises";

/** Lets pending work continue until `ready`; fails after two seconds. */
export async function settled(ready: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 2_000;
  while (!(await ready())) {
    if (Date.now() > end) throw new Error("gave up waiting");
    await setImmediate();
  }
}
