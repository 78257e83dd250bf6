import { nextTurn, TimedOut, withTimeout } from "../core/deadline.js";
import { judgeLists, type ListIndex, type ListMatch, type ListQuestion, type ListSubject, readingList } from "../domain/lists.js";
import type { Observed } from "../observability/observed.js";

type Needed = Pick<Observed, "settings" | "clock" | "logger" | "inBackground"> & { readonly monitor: Pick<Observed["monitor"], "throttledLog"> };

/** Returns the loaded list; `undefined` before the first load. */
type Held = () => ListIndex | undefined | Promise<ListIndex | undefined>;

export type Lists = ReturnType<typeof createLists>;

/** The block list and the safe list. */
export function createLists(parts: Needed) {
  const held = (name: "block" | "safe"): Held => {
    const source = parts.settings.lists[name];
    return typeof source === "function" ? askedList(parts, name, source) : () => source;
  };
  const block = held("block");
  const safe = held("safe");
  return {
    /** Checks a subject. Only the first request to a source is awaited, for up to `storeTimeout`. */
    async judge(subject: ListSubject): Promise<ListMatch> {
      const [blocked, passed] = await Promise.all([block(), safe()]);
      return judgeLists(blocked, passed, subject);
    },
  };
}

/**
 * Loads a list when first needed, and refreshes it in the background. If loading fails, the last list stays in use;
 * without one, the list counts as empty. Both are logged once a minute.
 */
function askedList({ settings, clock, logger, inBackground, monitor }: Needed, list: "block" | "safe", source: ListQuestion): Held {
  const { refresh } = settings.lists;
  /** Milliseconds after which a request without a response is abandoned. */
  const patience = Math.max(refresh, settings.storeTimeout);
  let index: ListIndex | undefined;
  let answer: unknown;
  let reported = "";
  let failing = false;
  /** The request in progress. */
  let question: object | undefined;
  let askedAt = 0;
  let first: Promise<ListIndex | undefined> | undefined;

  const fail = (err: unknown) => {
    failing = true;
    monitor.throttledLog.error(
      { err, list },
      index === undefined ? "the list could not be loaded; it counts as empty until it can" : "a list could not be refreshed; the last one stays in use",
    );
  };

  const read = async (one: unknown) => {
    const reading = readingList(one);
    let step = reading.next();
    for (; !step.done; step = reading.next()) await new Promise<void>((resolve) => nextTurn(resolve));
    const entries = step.value.problems.map(({ path, message }) => `${[list, ...path].join(".")} ${message}`);
    if (step.value.index === undefined) throw new TypeError(`the list function returned an invalid list: ${entries.join("; ")}`);
    if (entries.length > 0 && entries.join() !== reported) logger.warn({ list, entries, faulty: step.value.faulty }, "invalid list entries are ignored");
    reported = entries.join();
    return step.value.index;
  };

  const ask = async () => {
    const mine = (question = {});
    try {
      const one = await source();
      const fresh = index !== undefined && one === answer ? index : await read(one);
      if (question !== mine) return;
      index = fresh;
      answer = one;
      if (failing) logger.info({ list }, "a list is available again");
      failing = false;
    } catch (err) {
      if (question === mine) fail(err);
    } finally {
      if (question === mine) question = undefined;
    }
  };

  return () => {
    const now = clock.now();
    // The clock may go back.
    const since = Math.abs(now - askedAt);
    if (first === undefined || since >= (question === undefined ? refresh : patience)) {
      if (question !== undefined) fail(new TimedOut(`no response within ${patience} ms`));
      askedAt = now;
      const asking = ask();
      inBackground(asking);
      first ??= withTimeout(clock, settings.storeTimeout, () => asking)
        .catch(fail)
        .then(() => index);
    }
    return index ?? first;
  };
}
