/** Most changes in one statement, and how many milliseconds the next statement waits for one that takes long. */
const [mostTogether, longest] = [64, 100];

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
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
  const queues = new Map<string, Waiting<Item, Result>[]>();

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

  async function drain(key: string, queue: Waiting<Item, Result>[]): Promise<void> {
    while (queue.length > 0) await atMost(longest, run(key, queue.splice(0, mostTogether)));
    queues.delete(key);
  }

  return (key, item) =>
    new Promise((resolve, reject) => {
      const queue = queues.get(key);
      if (queue !== undefined) return void queue.push({ item, resolve, reject });
      const started = [{ item, resolve, reject }];
      queues.set(key, started);
      void drain(key, started);
    });
}

async function atMost(milliseconds: number, work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await Promise.race([work, new Promise<void>((resolve) => (timer = setTimeout(resolve, milliseconds)))]);
  clearTimeout(timer);
}
