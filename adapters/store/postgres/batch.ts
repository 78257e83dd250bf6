/** Most changes in one statement. */
const mostTogether = 64;

/** How many milliseconds the next statement of a key waits for one that takes long. */
const longest = 100;

/** Most statements of a key at once: a customer whose rows are locked must not take all connections of a pool. */
const mostAtOnce = 2;

/** Milliseconds after which a statement counts as lost, and another may start in its place. */
const lostAfter = 5_000;

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** The items of a key that wait, and how many of its statements are on their way. */
interface Line<Item, Result> {
  readonly waiting: Waiting<Item, Result>[];
  sent: number;
  isDraining: boolean;
}

/**
 * Runs `send` for items. Items of one key that come while a statement of that key is on its way go together in the
 * next: they would wait for each other in the database, and a disk sync each costs more than all else. If the server
 * rolls a statement back because of one item, each is sent by itself.
 */
export function batched<Item, Result>(
  send: (key: string, items: readonly Item[]) => Promise<readonly Result[]>,
  isOfOneItem: (error: unknown) => boolean,
): (key: string, item: Item) => Promise<Result> {
  const lines = new Map<string, Line<Item, Result>>();

  async function run(key: string, batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await send(
        key,
        batch.map(({ item }) => item),
      );
      for (const [at, { resolve }] of batch.entries()) resolve(results[at] as Result);
    } catch (error) {
      if (batch.length > 1 && isOfOneItem(error)) for (const one of batch) await run(key, [one]);
      else for (const { reject } of batch) reject(error);
    }
  }

  async function drain(key: string, line: Line<Item, Result>): Promise<void> {
    if (line.isDraining) return;
    line.isDraining = true;
    while (line.waiting.length > 0 && line.sent < mostAtOnce) {
      const work = run(key, line.waiting.splice(0, mostTogether));
      line.sent++;
      void atMost(lostAfter, work).then(() => {
        line.sent--;
        void drain(key, line);
      });
      await atMost(longest, work);
    }
    line.isDraining = false;
    if (line.sent === 0 && line.waiting.length === 0) lines.delete(key);
  }

  return (key, item) =>
    new Promise((resolve, reject) => {
      const line = lines.get(key) ?? { waiting: [], sent: 0, isDraining: false };
      lines.set(key, line);
      line.waiting.push({ item, resolve, reject });
      void drain(key, line);
    });
}

async function atMost(milliseconds: number, work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await Promise.race([work, new Promise<void>((resolve) => (timer = setTimeout(resolve, milliseconds)))]);
  clearTimeout(timer);
}
