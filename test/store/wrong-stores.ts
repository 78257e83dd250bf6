import type { Change, Claim, CommitResult, RecordWrite, Store, StoredRecord, SumClaim, SumParts } from "../../src/ports/store.js";
import { PlainStore, roundTrip, TwoStepStore } from "./plain-store.js";

/** What a client makes of a reply that it parses as JSON. */
function decoded(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? text : (value as string);
  } catch {
    return text;
  }
}

const isSum = (claim: Claim) => "sum" in claim;
const nameOf = (claim: Claim) => ("sum" in claim ? claim.sum : claim.window);

function unlimited(claim: Claim): Claim {
  const { limit: _, ...rest } = claim;
  return rest;
}

/** One mistake, and the sentence of the contract that must detect it. Others may too. */
export interface WrongStore {
  readonly mistake: string;
  readonly foundBy: string;
  make(): { readonly store: Store; readonly peer?: Store };
}

/** A correct store with some methods replaced by `changes`; `right` has the original methods on the same data. */
function wrong<T extends PlainStore = PlainStore>(
  mistake: string,
  foundBy: string,
  changes: (store: T, right: T) => Partial<T>,
  Right: new () => T = PlainStore as unknown as new () => T,
): WrongStore {
  return {
    mistake,
    foundBy,
    make() {
      const store = new Right();
      const right = new Proxy(store, {
        get(_, name) {
          const own = Reflect.get(Right.prototype, name);
          return typeof own === "function" ? own.bind(store) : Reflect.get(store, name);
        },
      });
      return { store: Object.assign(store, changes(store, right)) };
    },
  };
}

/** A store that alters each change before it commits it. */
function wrongChange(mistake: string, foundBy: string, changed: (change: Change, store: PlainStore) => Change): WrongStore {
  return wrong(mistake, foundBy, (store, right) => ({ commit: async (change) => right.commit(changed(change, store)) }));
}

/** A store that alters each claim. */
function wrongClaim(mistake: string, foundBy: string, changed: (claim: Claim) => Claim): WrongStore {
  return wrongChange(mistake, foundBy, (change) => ({ ...change, claims: (change.claims ?? []).map(changed) }));
}

/** A store that writes something other than the record it is given. */
function wrongRecord(mistake: string, foundBy: string, changed: (record: RecordWrite, current: StoredRecord | undefined) => RecordWrite): WrongStore {
  return wrong(mistake, foundBy, (store, right) => ({
    write(record) {
      right.write(changed(record, store.records.get(store.key(record))));
    },
  }));
}

/** A store that confuses names of windows, or of sums. */
function wrongName(kind: "window" | "sum", mistake: string, foundBy: string, cut: (name: string) => string): WrongStore {
  return wrong(`${mistake} of the name of a ${kind}`, foundBy, (_, right) => ({
    window: (name) => right.window(kind === "window" ? cut(name) : name),
    sum: (name) => right.sum(kind === "sum" ? cut(name) : name),
    take: (claim) => right.take(!(kind in claim) ? claim : "sum" in claim ? { ...claim, sum: cut(claim.sum) } : { ...claim, window: cut(claim.window) }),
  }));
}

const named = "sum: keeps names apart whatever they look like, also from the numbers of parts, and customers too";

const sumLimits = "sum: each claim's own limit applies, lowered or raised since the last, and without one it is counted, never rejected";
const windowNames = "window: keeps members, names and customers apart whatever they look like";

const wrongRecords: readonly WrongStore[] = [
  wrong("finds anything for an unknown id", "find: returns undefined for a record that was never written", (store, right) => ({
    find: async (customer, id) => (await right.find(customer, id)) ?? store.read([...store.records.values()].find((record) => record.customer === customer)),
  })),
  wrongRecord(
    "keeps its ends in whole seconds",
    "commit: a create (expected null, or omitted) writes the record, and find returns exactly what is stored of it",
    (record) => ({ ...record, keepUntil: Math.floor(record.keepUntil / 1000) * 1000 }),
  ),
  wrong(
    "hands out the wake time with the record",
    "commit: a create (expected null, or omitted) writes the record, and find returns exactly what is stored of it",
    () => ({ read: (current) => structuredClone(current) }),
  ),
  {
    mistake: "reads from a copy that knows nothing of the other handle",
    foundBy: "commit: a create (expected null, or omitted) writes the record, and find returns exactly what is stored of it",
    make() {
      const store = new PlainStore();
      const peer = new PlainStore();
      peer.commit = (change) => store.commit(change);
      return { store, peer };
    },
  },
  wrong("lets a create replace what is there", "commit: a create of an existing record is rejected with that record and changes nothing", (_, right) => ({
    isExpected: (current, expected) => expected === null || right.isExpected(current, expected),
  })),
  wrong("brings nothing back with a refusal", "commit: a create of an existing record is rejected with that record and changes nothing", (_, right) => ({
    answer(change) {
      const answer = right.answer(change);
      return answer && !answer.done ? { done: false } : answer;
    },
  })),
  wrongRecord("keeps the end that the record was created with", "commit: a write that expects the newest token replaces every field", (record, current) => ({
    ...record,
    keepUntil: current?.keepUntil ?? record.keepUntil,
  })),
  wrong("lets the last write win", "commit: a write that expects any other token is rejected with the current record and changes nothing", () => ({
    isExpected: () => true,
  })),
  wrong(
    "compares tokens without regard to case",
    "commit: a write that expects any other token is rejected with the current record and changes nothing",
    () => ({ isExpected: (current, expected) => current?.tokens[0]?.toLowerCase() === expected?.toLowerCase() }),
  ),
  wrong(
    "accepts any of the last tokens as the newest",
    "commit: a write that expects any other token is rejected with the current record and changes nothing",
    () => ({ isExpected: (current, expected) => (expected === null ? current === undefined : current?.tokens.includes(expected) === true) }),
  ),
  wrong(
    "compares tokens as a loosely typed language does",
    "commit: a write that expects any other token is rejected with the current record and changes nothing",
    () => ({
      isExpected(current, expected) {
        const token = current?.tokens[0] ?? null;
        return token === expected || (token !== null && expected !== null && Number(token) === Number(expected));
      },
    }),
  ),
  wrong(
    "takes a write over a missing record for a create",
    "commit: a write that expects a missing record is rejected without a record and writes nothing",
    (_, right) => ({ isExpected: (current, expected) => current === undefined || right.isExpected(current, expected) }),
  ),
  wrong("keeps no customers apart", "commit: the same id under two customers is two records", () => ({ key: ({ id }) => id })),
  wrong("keeps and hands out the caller's objects", "commit: changing a passed or returned object does not change what is stored", (_, right) => ({
    read(current) {
      const copy = right.read(current);
      return copy && { ...copy, tokens: current?.tokens as string[] };
    },
  })),
  wrong("reads data as JSON", "commit: returns data byte for byte, whatever it looks like", (_, right) => ({
    async find(customer, id) {
      const record = await right.find(customer, id);
      return record && { ...record, data: decoded(record.data) };
    },
    async get(key) {
      const value = await right.get(key);
      return value === undefined ? undefined : decoded(value);
    },
  })),
  wrong("refuses 64 KiB", "commit: stores 64 KiB of data", () => ({
    check(text) {
      if (Buffer.byteLength(JSON.stringify(text)) > 65_536) throw new Error("too large");
    },
  })),
  wrong("keeps anything, however large", "commit: rejects a megabyte of data, and writes and counts nothing", () => ({ check: () => {} })),
  wrong("counts, and then complains of a record that is too large", "commit: rejects a megabyte of data, and writes and counts nothing", (store, right) => ({
    async commit(change) {
      if ((change.record?.data.length ?? 0) > 65_536) store.apply({ claims: change.claims ?? [] });
      return right.commit(change);
    },
  })),
  wrong(
    "does not write what has ended already",
    "commit: a record whose keepUntil has passed exists completely or not at all, never in an earlier version",
    (_, right) => ({
      write(record) {
        if (record.keepUntil >= Date.now()) right.write(record);
      },
    }),
  ),
];

const later = "commit: a repeated write is done after up to fifteen later writes, rejected after the next, and writes nothing";
const twin = "commit: only its newest token identifies a write: the same write under another token is rejected with the stored record";

const wrongReplays: readonly WrongStore[] = [
  wrong("does not know a repeated write", "commit: a create sent twice is done both times but written once", () => ({ landed: () => false })),
  wrong("knows only the newest token", later, () => ({
    landed: (current, token) => current.tokens[0] === token,
  })),
  wrong("writes a repeated write again", later, (store, right) => ({
    answer(change) {
      const answer = right.answer(change);
      if (answer?.done && change.record) store.write(change.record);
      return answer;
    },
  })),
  wrong("knows every token it has ever seen", later, (_, right) => {
    const seen = new Set<string>();
    return {
      landed: (current, token) => seen.has(token) || right.landed(current, token),
      write(record) {
        right.write(record);
        seen.add(record.tokens[0] as string);
      },
    };
  }),
  wrong("takes a write of the same data for a repeat", twin, (store, right) => ({
    async commit(change) {
      const current = change.record && store.records.get(store.key(change.record));
      return current?.data === change.record?.data && current ? { done: true, counts: [], asked: [] } : right.commit(change);
    },
  })),
  wrong("knows a write by any token it carries", twin, (store, right) => ({
    answer(change) {
      const current = change.record && store.records.get(store.key(change.record));
      const known = change.record?.tokens.some((token) => current?.tokens.includes(token));
      return current && known && !store.isExpected(current, change.expected ?? null) ? { done: true, counts: [], asked: [] } : right.answer(change);
    },
  })),
  wrong("remembers the token of a write that it refused", "commit: a rejected write is rejected again when it is repeated", (_, right) => {
    const seen = new Set<string>();
    return {
      answer(change) {
        const token = change.record?.tokens[0];
        if (token !== undefined && seen.has(token)) return { done: true, counts: [], asked: [] };
        if (token !== undefined) seen.add(token);
        return right.answer(change);
      },
    };
  }),
  wrong(
    "counts the weights of a repeated write again",
    "commit: claims repeated with a record that was written count nothing, whatever came after it, and return the current counts",
    (store, right) => ({
      answer(change) {
        if (right.answer(change)?.done) for (const claim of change.claims ?? []) if ("sum" in claim) store.weigh(claim);
        return right.answer(change);
      },
    }),
  ),
  wrong(
    "returns to a repeat the counts with its own claims once more",
    "commit: claims repeated with a record that was written count nothing, whatever came after it, and return the current counts",
    (store, right) => ({
      answer(change) {
        const answer = right.answer(change);
        const { claims = [] } = change;
        return answer?.done ? { ...answer, counts: claims.map((claim) => store.held(claim) + ("sum" in claim ? claim.weight : 0)) } : answer;
      },
    }),
  ),
  wrong(
    "moves a member back when an early write is sent again",
    "commit: a late repeat of a write, done or rejected, moves no member back in time",
    (store, right) => ({
      answer(change) {
        const answer = right.answer(change);
        for (const claim of answer ? (change.claims ?? []) : [])
          if ("window" in claim && store.window(claim.window).has(claim.member)) store.window(claim.window).set(claim.member, claim.now);
        return answer;
      },
    }),
  ),
  wrong("refuses a repeat for which there is no more room", "commit: a repeat without room left is done and counts nothing", (store, right) => ({
    answer: (change) => (right.answer(change)?.done && store.refusal(change.claims ?? [])) || right.answer(change),
  })),
  wrong("gives back again when a write is sent again", "commit: takes out and gives back once with a record, however often it is sent", (store, right) => ({
    answer(change) {
      const answer = right.answer(change);
      if (answer?.done) for (const claim of change.claims ?? []) if ("sum" in claim && claim.weight < 0) store.weigh(claim);
      return answer;
    },
  })),
];

const wrongWindows: readonly WrongStore[] = [
  wrongClaim("grants one member too many", "window: grants exactly `limit` members, one after another, each with the count that includes it", (claim) =>
    isSum(claim) || claim.limit === undefined ? claim : { ...claim, limit: claim.limit + 1 },
  ),
  wrong(
    "returns the count from before the claim",
    "window: grants exactly `limit` members, one after another, each with the count that includes it",
    (store, right) => ({
      apply(change) {
        const counts = (change.claims ?? []).map((claim) => store.others(claim));
        return { ...right.apply(change), counts } as CommitResult;
      },
    }),
  ),
  wrongClaim("grants one member too few when there are many", "window: a limit of 1,000 is exact", (claim) =>
    !isSum(claim) && (claim.limit ?? 0) > 500 ? { ...claim, limit: 999 } : claim,
  ),
  wrong("keeps one member less than the limit needs", "window: members leave one by one as the window moves on", (store, right) => ({
    take(claim) {
      right.take(claim);
      if ("sum" in claim || claim.limit === undefined) return;
      const newestFirst = [...store.window(claim.window)].sort(([, a], [, b]) => b - a);
      store.windows.set(claim.window, new Map(newestFirst.slice(0, Math.max(1, claim.limit - 1))));
    },
  })),
  wrong("grants a member that is there, however old", "window: an existing member of a full window is granted", (store, right) => ({
    isFull: (claim) => !("window" in claim && store.window(claim.window).has(claim.member)) && right.isFull(claim),
  })),
  wrong("counts a repeated member each time", "window: an existing member moves to `now`, never back in time", (store, right) => ({
    take(claim) {
      const again = "window" in claim && !claim.out && store.window(claim.window).has(claim.member);
      right.take(again ? { ...claim, member: `${claim.member} ${store.window(claim.window).size}` } : claim);
    },
  })),
  wrong("leaves a repeated member where it is", "window: an existing member moves to `now`, never back in time", (store, right) => ({
    take(claim) {
      if ("sum" in claim || claim.out || !store.window(claim.window).has(claim.member)) right.take(claim);
    },
  })),
  wrong("moves a member back in time", "window: an existing member moves to `now`, never back in time", (store, right) => ({
    enter(claim, token) {
      right.enter(claim, token);
      store.window(claim.window).set(claim.member, claim.now);
    },
  })),
  wrong("refuses a member that is already in the full window", "window: an existing member of a full window is granted", (store, right) => ({
    others: (claim) => ("sum" in claim ? right.others(claim) : right.others({ ...claim, member: "" })),
    held: (claim) => store.others(claim),
  })),
  wrong("counts members at `since`", "window: members at `since` or before do not count", () => ({ isNewer: (at, since) => at >= since })),
  wrong("does not count members ahead of the caller's clock", "window: members ahead of the caller's clock count", () => ({
    isNewer: (at, since, now) => at > since && at <= now,
  })),
  wrong("empties a window as a whole when its length has passed", "window: members leave one by one as the window moves on", (store, right) => {
    const started = new Map<string, number>();
    return {
      isFull(claim) {
        if ("sum" in claim) return right.isFull(claim);
        const name = claim.window;
        const start = started.get(name);
        if (start === undefined || start <= claim.since) {
          store.windows.delete(name);
          started.set(name, claim.now);
        }
        return right.isFull(claim);
      },
    };
  }),
  wrongChange(
    "holds the first claim on a window only",
    "window: two claims over two lengths each get their own count, and the member is added once",
    (change) => ({
      ...change,
      claims: (change.claims ?? []).map((claim, i, all) => (all.findIndex((other) => nameOf(other) === nameOf(claim)) === i ? claim : unlimited(claim))),
    }),
  ),
  wrongChange(
    "holds the last claim on a window only",
    "window: two claims over two lengths each get their own count, and the member is added once",
    (change) => ({
      ...change,
      claims: (change.claims ?? []).map((claim, i, all) => (all.findLastIndex((other) => nameOf(other) === nameOf(claim)) === i ? claim : unlimited(claim))),
    }),
  ),
  ...[
    ["window", "window: each claim's own limit applies, lowered or raised since the last"],
    ["sum", sumLimits],
  ].map(([kind, foundBy]) =>
    wrong(`holds the limit that a ${kind} was created with`, foundBy as string, (_, right) => {
      const limits = new Map<string, number | undefined>();
      return {
        isFull(claim) {
          if (isSum(claim) !== (kind === "sum") || claim.limit === undefined) return right.isFull(claim);
          const limit = limits.get(nameOf(claim)) ?? claim.limit;
          limits.set(nameOf(claim), limit);
          return right.isFull({ ...claim, limit });
        },
      };
    }),
  ),
  wrongClaim("trims members", windowNames, (claim) => ("window" in claim ? { ...claim, member: claim.member.trim() } : claim)),
  wrongName("window", "knows two parts only", windowNames, (name) => name.split(":").slice(0, 2).join(":")),
  wrongName("window", "leaves the customer out", windowNames, (name) => name.slice(name.indexOf(":"))),
  wrongClaim("takes no limit for one of 1,000", "window: a claim without a limit is counted, never rejected", (claim) =>
    "window" in claim && claim.limit === undefined ? { ...claim, limit: 1_000 } : claim,
  ),
  wrong("keeps the newest 1,000 of a list", "window: a claim without a limit is counted, never rejected", (store, right) => ({
    take(claim) {
      right.take(claim);
      const members = [...store.window(nameOf(claim))];
      if (members.length > 1_000) store.windows.set(nameOf(claim), new Map(members.slice(-1_000)));
    },
  })),
  wrong("gives the members as they came first", "members: returns the newest first, at most `limit`, each once, and none of a missing window", (store) => ({
    members: async (window, limit) => [...store.window(window).keys()].reverse().slice(0, limit),
  })),
  wrong("gives all members, whatever the limit", "members: returns the newest first, at most `limit`, each once, and none of a missing window", (_, right) => ({
    members: async (window) => right.members(window, 10_000),
  })),
  wrong("takes a member out wherever it stands", "out: removes a member only if its time is exactly `now`; the count is what is left", (store, right) => ({
    take(claim) {
      if ("window" in claim && claim.out) store.leave(claim);
      else right.take(claim);
    },
  })),
  wrong("takes nothing out", "out: removes a member only if its time is exactly `now`; the count is what is left", () => ({
    leave: () => {},
  })),
  wrong("refuses to take out of a full window", "out: is granted in a window at or over its limit, and makes room for exactly one", (store, right) => ({
    isFull: (claim) => ("window" in claim && claim.out ? claim.limit !== undefined && store.others(claim) >= claim.limit : right.isFull(claim)),
  })),
];

const forgetfulWindows: readonly WrongStore[] = [
  wrong("keeps of a window what its limit counts, no more", "window: keeps the newest members, eight more than its largest limit", (store, right) => ({
    apply(change) {
      const result = right.apply(change);
      for (const claim of change.claims ?? []) {
        if ("sum" in claim || claim.limit === undefined) continue;
        const limits = (change.claims ?? []).map((other) => ("window" in other && other.window === claim.window ? (other.limit ?? 0) : 0));
        const newestFirst = [...store.window(claim.window)].sort(([, a], [, b]) => b - a);
        store.windows.set(claim.window, new Map(newestFirst.slice(0, Math.max(...limits))));
      }
      return result;
    },
  })),
];

const byParts = "sum: counts `part` and the parts just before it, `parts` in all, each with what was added to it";

const wrongSums: readonly WrongStore[] = [
  wrong("refuses what would fill a sum", "sum: grants exactly what the limit allows, one after another, each with the total that includes it", (_, right) => ({
    isFull: (claim) => right.isFull("sum" in claim && claim.limit !== undefined && claim.weight > 0 ? { ...claim, limit: claim.limit - 1 } : claim),
  })),
  wrong(
    "refuses only when a sum is full before the claim",
    "sum: grants exactly what the limit allows, one after another, each with the total that includes it",
    (_, right) => ({ isFull: (claim) => right.isFull("sum" in claim && claim.weight > 0 ? { ...claim, weight: 1 } : claim) }),
  ),
  wrong("counts one part too few", byParts, (_, right) => ({ counts: (at, parts) => right.counts(at, { ...parts, parts: parts.parts - 1 }) })),
  wrong("counts one part too many", byParts, (_, right) => ({ counts: (at, parts) => right.counts(at, { ...parts, parts: parts.parts + 1 }) })),
  wrong("counts all that is in a sum", byParts, () => ({ counts: () => true })),
  wrong("adds to the newest part there is", byParts, (store, right) => ({
    add: (parts, by) => right.add({ ...parts, part: Math.max(parts.part, ...store.sum(parts.sum).keys()) }, by),
  })),
  wrong("cuts the numbers of parts to 32 bits", byParts, (_, right) => ({
    add: (parts, by) => right.add({ ...parts, part: parts.part | 0 }, by),
  })),
  wrong("lets parts go once a later one has come", byParts, (store, right) => ({
    add(parts, by) {
      right.add(parts, by);
      for (const at of store.sum(parts.sum).keys()) if (at <= parts.part - parts.parts) store.sum(parts.sum).delete(at);
    },
  })),
  ...(
    [
      ["never looks at the part ahead", ({ ahead: _, ...parts }: SumParts) => parts],
      ["always looks at the part ahead", (parts: SumParts) => ({ ...parts, ahead: true as const })],
    ] as const
  ).map(([mistake, changed]) =>
    wrong(mistake, "sum: the part after `part` counts only if the claim or the ask looks ahead", (_, right) => ({
      counts: (at, parts) => right.counts(at, changed(parts)),
    })),
  ),
  wrong("takes a part for past by the caller's clock", "sum: a part's number decides what counts, never a time", (store, right) => {
    const times = new Map<string, number>();
    return {
      weigh(claim) {
        times.set(`${claim.sum} ${claim.part}`, claim.now);
        right.weigh(claim);
      },
      others: (claim) =>
        "sum" in claim
          ? [...store.sum(claim.sum)].reduce(
              (all, [at, by]) => ((times.get(`${claim.sum} ${at}`) ?? 0) > claim.now - 3_600_000 && store.counts(at, claim) ? all + by : all),
              0,
            )
          : right.others(claim),
      held: (claim) => ("sum" in claim ? store.others(claim) : right.held(claim)),
    };
  }),
  wrong("takes the part from the caller's clock", "sum: a part's number decides what counts, never a time", (_, right) => ({
    add: (parts, by) =>
      right.add({ ...parts, part: "now" in parts ? parts.part - Math.round((Date.now() - (parts.now as number)) / 86_400_000) : parts.part }, by),
  })),
  wrongClaim("takes no limit for none at all", sumLimits, (claim) => (isSum(claim) && claim.limit === undefined ? { ...claim, limit: 0 } : claim)),
  wrong("grants whatever adds nothing to a sum", "sum: a weight of 0 is subject to the limit and adds nothing", (_, right) => ({
    isFull: (claim) => !("sum" in claim && claim.weight === 0) && right.isFull(claim),
  })),
  wrongClaim("gives nothing back", "sum: a weight below 0 is granted whatever the limit, and what it gives back is available again, to the unit", (claim) =>
    "sum" in claim && claim.weight < 0 ? { ...claim, weight: 0, limit: Number.POSITIVE_INFINITY } : claim,
  ),
  wrong(
    "refuses to give back to a sum that is over its limit",
    "sum: a weight below 0 is granted whatever the limit, and what it gives back is available again, to the unit",
    (store, right) => ({ isFull: (claim) => right.isFull(claim) || ("sum" in claim && claim.limit !== undefined && store.raised(claim) > claim.limit) }),
  ),
  wrong("lets no part of a sum fall below 0", "sum: may fall below 0, and so may each of its parts", (store, right) => ({
    add: (parts, by) => right.add(parts, Math.max(by, -(store.sum(parts.sum).get(parts.part) ?? 0))),
  })),
  wrong("lets no sum fall below 0, but its parts", "sum: may fall below 0, and so may each of its parts", (_, right) => ({
    total: (parts) => Math.max(0, right.total(parts)),
  })),
  ...(
    [
      ["knows no floor", ({ floor: _, ...claim }: SumClaim) => claim],
      [
        "holds a floor only where a weight gives back",
        ({ floor, ...claim }: SumClaim) => (floor === undefined || claim.weight > 0 ? claim : { ...claim, floor }),
      ],
      ["holds a floor only where a weight adds", ({ floor, ...claim }: SumClaim) => (floor === undefined || claim.weight <= 0 ? claim : { ...claim, floor })],
    ] as const
  ).map(([mistake, changed]) =>
    wrong(mistake, "sum: a total below `floor` counts as `floor`, before a claim and after it", (_, right) => ({
      raised: (claim) => right.raised(changed(claim)),
    })),
  ),
  wrong("holds a part to the floor, not the sum", "sum: a total below `floor` counts as `floor`, before a claim and after it", (store) => ({
    weigh(claim) {
      const part = store.sum(claim.sum).get(claim.part) ?? 0;
      const floor = claim.floor ?? Number.NEGATIVE_INFINITY;
      store.add(claim, Math.max(floor, Math.max(floor, part) + claim.weight) - part);
    },
  })),
  wrong("returns to a refused claim the floor for what is held", "sum: a total below `floor` counts as `floor`, before a claim and after it", (_, right) => ({
    others: (claim) => Math.max("sum" in claim ? (claim.floor ?? Number.NEGATIVE_INFINITY) : 0, right.others(claim)),
  })),
  wrong("rounds sums at fourteen digits", "sum: numbers up to 2^53, positive or negative, are exact", (_, right) => ({
    total: (parts) => Number(right.total(parts).toPrecision(14)),
  })),
  wrongName("sum", "knows two parts only", named, (name) => name.split(":").slice(0, 2).join(":")),
  wrongName("sum", "leaves the customer out", named, (name) => name.slice(name.indexOf(":"))),
  wrong("writes the number of a part straight after the name of its sum", named, (store) => {
    const cells = new Map<string, number>();
    const cell = ({ sum, part }: SumParts, back: number) => `${sum}${part - back}`;
    return {
      add: (parts, by) => void cells.set(cell(parts, 0), (cells.get(cell(parts, 0)) ?? 0) + by),
      total: (parts) => Array.from({ length: parts.parts }, (_, back) => cells.get(cell(parts, back)) ?? 0).reduce((all, one) => all + one, 0),
      sum: () => store.sums.get("") ?? new Map(),
    };
  }),
  ...[1, -1].map((by) =>
    wrong(
      `returns the room of a sum ${by} part off`,
      "sum: if a rejection reports the part from which there is room, a claim is granted from exactly that part on",
      (_, right) => ({
        roomPart(claim) {
          const room = right.roomPart(claim);
          return room === undefined ? undefined : room + by;
        },
      }),
    ),
  ),
  wrong(
    "returns room in a sum where there is never any",
    "sum: if a rejection reports the part from which there is room, a claim is granted from exactly that part on",
    (_, right) => ({ roomPart: (claim) => right.roomPart(claim) ?? claim.part + claim.parts }),
  ),
  wrong(
    "returns the last part with room in a sum that falls and rises",
    "sum: if a rejection reports the part from which there is room, a claim is granted from exactly that part on",
    (store) => ({
      roomPart(claim) {
        const later = Array.from({ length: claim.parts }, (_, i) => claim.part + 1 + i);
        const full = later.findLastIndex((part) => store.isFull({ ...claim, part }));
        return later[full + 1];
      },
    }),
  ),
  wrong(
    "leaves absent sums out of what is asked",
    "asks: returns the totals of sums, in order, 0 for missing ones; asking charges nothing",
    (store, right) => ({
      apply: (change) => right.apply({ ...change, asks: (change.asks ?? []).filter(({ sum }) => store.sums.has(sum)) }),
    }),
  ),
  wrong("asks before it claims", "asks: includes the claims just granted, also those that give back, with or without a record", (store, right) => ({
    apply(change) {
      const asked = (change.asks ?? []).map((ask) => store.total(ask));
      return { ...right.apply(change), asked } as CommitResult;
    },
  })),
];

const revoked =
  "revoke: removes the members and subtracts the weights of a commit that was done, from the parts they were added to, once, whatever is repeated";
const stays = "revoke: keeps a member that existed before, or that another commit has claimed since, at its current time";
const notLanded = "revoke: does not take back a commit that was not done, which must not be done later either";

const wrongRevocations: readonly WrongStore[] = [
  wrong("takes nothing back", revoked, () => ({ takeBack: () => {} })),
  ...(["sum", "window"] as const).map((kind) =>
    wrong(`takes no ${kind} back`, revoked, (_, right) => ({
      takeBack: (claims, token) =>
        right.takeBack(
          claims.filter((claim) => !(kind in claim)),
          token,
        ),
    })),
  ),
  wrong("subtracts from the newest part", revoked, (store, right) => ({
    takeBack(claims, token) {
      const newest = (sum: string) => Math.max(...store.sum(sum).keys());
      right.takeBack(
        claims.map((claim) => ("sum" in claim ? { ...claim, part: newest(claim.sum) } : claim)),
        token,
      );
    },
  })),
  wrong("subtracts again when it is sent again", revoked, (store, right) => ({
    answer(change) {
      const answer = right.answer(change);
      if (answer?.done && change.revoke) store.takeBack(change.revoke.claims, change.revoke.token);
      return answer;
    },
  })),
  wrong(
    "takes back what landed with the write just before only",
    "revoke: takes back a commit that is followed by other writes, with whatever else the change does",
    (store, right) => ({
      apply({ revoke, ...change }) {
        const newest = change.record && store.records.get(store.key(change.record))?.tokens[0];
        return right.apply({ ...change, ...(revoke && revoke.token === newest && { revoke }) });
      },
    }),
  ),
  wrong("takes back instead of claiming", "revoke: takes back a commit that is followed by other writes, with whatever else the change does", (_, right) => ({
    apply: (change) => right.apply(change.revoke ? { ...change, claims: [] } : change),
  })),
  wrong("takes back whether it landed or not", notLanded, (store, right) => ({
    apply({ revoke, ...change }) {
      if (revoke) store.takeBack(revoke.claims, revoke.token);
      return right.apply(change);
    },
  })),
  wrong("writes nothing where nothing is to be taken back, so that a late commit lands", notLanded, (store, right) => ({
    apply({ record, ...change }) {
      const landed = record && change.revoke && store.records.get(store.key(record))?.tokens.includes(change.revoke.token);
      return right.apply(record && (landed || !change.revoke) ? { ...change, record } : change);
    },
  })),
  wrong(
    "claims in a first step although the claims are revoked, and then does not undo them",
    notLanded,
    (store, right) => ({
      make(claims, token) {
        if (token === undefined || store.tickets.get(token) !== "revoked") return right.make(claims, token);
        for (const claim of claims) if (store.adds(claim)) store.take(claim, token);
        return undefined;
      },
    }),
    TwoStepStore,
  ),
  wrong("forgets the token of what it has revoked", revoked, (store, right) => {
    const gone = new Set<string>();
    return {
      takeBack(claims, token) {
        gone.add(token);
        right.takeBack(claims, token);
      },
      landed: (current, token) => !gone.has(token) && right.landed(current, token),
      isExpected: (current, expected) =>
        right.isExpected(current, expected) || (current !== undefined && expected === null && gone.has(current.tokens.at(-1) ?? "")),
      read: (current) => right.read(current && store.records.get(store.key(current))),
    };
  }),
  wrong(
    "takes back, then looks whether the change is refused",
    "revoke: a rejected change takes nothing back, and the revoked commit can still be done",
    (store, right) => ({
      async commit(change) {
        const current = change.record && store.records.get(store.key(change.record));
        const landed = current && change.revoke && store.landed(current, change.revoke.token) && !store.landed(current, change.record?.tokens[0] as string);
        const result = await right.commit(change);
        if (landed && !result.done && change.revoke) store.takeBack(change.revoke.claims, change.revoke.token);
        return result;
      },
    }),
  ),
  wrong(
    "remembers what it was to revoke also where the change is refused",
    "revoke: a rejected change takes nothing back, and the revoked commit can still be done",
    (store, right) => ({
      unmake(claims, token) {
        right.unmake(claims, token);
        store.tickets.set(token, "revoked");
      },
      async commit(change) {
        if (change.revoke && !store.tickets.has(change.revoke.token)) store.tickets.set(change.revoke.token, "revoked");
        return right.commit(change);
      },
    }),
    TwoStepStore,
  ),
  wrong("takes out a member that had been there before", stays, (store, right) => ({
    enter(claim, token) {
      right.enter(claim, token);
      store.adders.set(store.place(claim), token);
    },
  })),
  wrong("moves a member back to where it had been before", stays, (store, right) => {
    const before = new Map<string, number | undefined>();
    return {
      enter(claim, token) {
        if (token !== undefined) before.set(`${token} ${store.place(claim)}`, store.window(claim.window).get(claim.member));
        right.enter(claim, token);
      },
      takeBack(claims, token) {
        right.takeBack(claims, token);
        for (const claim of claims) {
          const at = "window" in claim ? before.get(`${token} ${store.place(claim)}`) : undefined;
          if ("window" in claim && at !== undefined) store.window(claim.window).set(claim.member, at);
        }
      },
    };
  }),
  wrong("takes out a member that stands where the commit put it, whichever claim it was since", stays, (store) => ({
    enter(claim, token) {
      const members = store.window(claim.window);
      if (!members.has(claim.member)) store.adders.set(store.place(claim), token);
      store.windows.set(claim.window, members.set(claim.member, Math.max(claim.now, members.get(claim.member) ?? 0)));
    },
  })),
  wrong(
    "takes a member that was taken out for one that had been there",
    "revoke: removes a member that had been taken out before the commit added it",
    (store, right) => {
      const known = new Set<string>();
      return {
        enter(claim, token) {
          right.enter(claim, token);
          if (known.has(store.place(claim)) && store.adders.get(store.place(claim)) !== undefined) store.adders.set(store.place(claim), undefined);
        },
        leave(claim) {
          known.add(store.place(claim));
          right.leave(claim);
        },
      };
    },
  ),
  wrong(
    "subtracts what a sum was raised by, from below its floor",
    "revoke: what was taken back is available again, to the unit, and a sum's weight is subtracted whatever its floor",
    (store, right) => {
      const raised = new Map<Claim["now"], number>();
      return {
        weigh(claim) {
          raised.set(claim.weight, store.raised(claim) - store.total(claim));
          right.weigh(claim);
        },
        takeBack: (claims, token) =>
          right.takeBack(
            claims.map((claim) => ("sum" in claim ? { ...claim, weight: raised.get(claim.weight) ?? 0 } : claim)),
            token,
          ),
      };
    },
  ),
  wrong(
    "looks whether a commit has landed, and revokes it a round trip later",
    "revoke: of 50 racing commits and their revocations, nothing is left, whichever comes first",
    (store, right) => ({
      async commit({ revoke, ...change }) {
        const current = change.record && store.records.get(store.key(change.record));
        const landed = revoke && current && store.landed(current, revoke.token) && !store.landed(current, change.record?.tokens[0] as string);
        if (revoke) await roundTrip();
        const result = await right.commit(change);
        if (revoke && landed && result.done) store.takeBack(revoke.claims, revoke.token);
        return result;
      },
    }),
  ),
];

const nothingMoves = "commit: a rejected change neither moves, takes out nor gives back";

const wrongTogether: readonly WrongStore[] = [
  wrong("refuses when nothing is to be done", "commit: an empty change is done", (_, right) => ({
    commit: async (change) => (change.record || change.claims?.length || change.asks?.length ? right.commit(change) : { done: false }),
  })),
  wrong("takes the first claim only", "commit: every claim on a window or sum is counted, and the record is written", (_, right) => ({
    apply: (change) => right.apply({ ...change, claims: (change.claims ?? []).slice(0, 1) }),
  })),
  wrong("forgets the record where there are claims", "commit: every claim on a window or sum is counted, and the record is written", (_, right) => ({
    apply: ({ record, ...change }) => right.apply(change.claims?.length || !record ? change : { ...change, record }),
  })),
  wrong("names the last refused claim", "commit: names the first rejected claim, in order, and the count without it", (store) => ({
    refusal(claims) {
      const refusedBy = claims.findLastIndex((claim) => store.isFull(claim));
      return refusedBy < 0 ? undefined : { done: false, refusedBy, count: store.others(claims[refusedBy] as Claim) };
    },
  })),
  wrong("looks at the windows first, then at the sums", "commit: names the first rejected claim, in order, and the count without it", (store) => ({
    refusal(claims) {
      const first = [...claims.filter((claim) => !isSum(claim)), ...claims.filter(isSum)].find((claim) => store.isFull(claim));
      return first && { done: false, refusedBy: claims.indexOf(first), count: store.others(first) };
    },
  })),
  wrong("returns the refused claim's limit, not what is held", "commit: names the first rejected claim, in order, and the count without it", (_, right) => ({
    refusal(claims) {
      const refusal = right.refusal(claims);
      const limit = refusal && !refusal.done && refusal.refusedBy !== undefined ? claims[refusal.refusedBy]?.limit : undefined;
      return limit === undefined ? refusal : ({ ...refusal, count: limit } as CommitResult);
    },
  })),
  ...[
    ["claims before the refused one", "commit: a rejected claim charges nothing, neither before nor after it"],
    ["windows before it has looked at the sums", "commit: a rejected claim charges nothing, neither before nor after it"],
  ].map(([which, foundBy]) =>
    wrong(`charges ${which}`, foundBy as string, (store, right) => ({
      refusal(claims) {
        const refusal = right.refusal(claims);
        if (!refusal || refusal.done || refusal.refusedBy === undefined) return refusal;
        const isSumFull = isSum(claims[refusal.refusedBy] as Claim);
        const before = claims.slice(0, refusal.refusedBy);
        for (const claim of which?.startsWith("windows") ? before.filter((claim) => isSumFull && !isSum(claim)) : before) store.take(claim);
        return refusal;
      },
    })),
  ),
  wrong("claims one by one, and undoes by taking the member away", nothingMoves, (store, right) => ({
    refusal(claims) {
      const refusal = right.refusal(claims);
      if (refusal && !refusal.done) for (const claim of claims.slice(0, refusal.refusedBy)) if ("window" in claim) store.leave(claim);
      return refusal;
    },
  })),
  ...[1, -1].map((by) =>
    wrong(
      `returns the room of a window ${by} ms off`,
      "window: if a rejection reports since when there is room, a claim is granted from exactly that time on",
      (_, right) => ({
        roomSince(claim) {
          const room = right.roomSince(claim);
          return room === undefined ? room : room + by;
        },
      }),
    ),
  ),
  wrong("takes out and gives back before it looks at the rest", nothingMoves, (store, right) => ({
    refusal(claims) {
      const refusal = right.refusal(claims);
      if (refusal) for (const claim of claims) if ("sum" in claim ? claim.weight < 0 : claim.out) store.take(claim);
      return refusal;
    },
  })),
  wrong("writes the record although a claim was refused", "commit: a rejected claim leaves the record unchanged", (store, right) => ({
    async commit(change) {
      const result = await right.commit(change);
      if (!result.done && result.refusedBy !== undefined && change.record) store.write(change.record);
      return result;
    },
  })),
  wrong("forgets the claims when the record is refused", "commit: a rejected record counts nothing", (store, right) => ({
    answer(change) {
      const answer = right.answer(change);
      if (answer && !answer.done) for (const claim of change.claims ?? []) store.take(claim);
      return answer;
    },
  })),
  wrong(
    "claims first, and leaves the sums when both the record and a claim are refused",
    "commit: if both a claim and the record are rejected, one of them is reported, and nothing changes",
    (store, right) => ({
      answer(change) {
        const answer = right.answer(change);
        const refusal = store.refusal(change.claims ?? []);
        if (answer && !answer.done && refusal) for (const claim of change.claims ?? []) if ("sum" in claim) store.take(claim);
        return answer ?? refusal;
      },
    }),
  ),
  wrong("takes nothing out with a record", "commit: claims, takes out and gives back in the same step as the record", (store, right) => ({
    apply(change) {
      const result = right.apply({ ...change, claims: (change.claims ?? []).filter((claim) => !(change.record && "window" in claim && claim.out)) });
      return result.done ? { ...result, counts: (change.claims ?? []).map((claim) => store.held(claim)) } : result;
    },
  })),
];

const wrongLeases: readonly WrongStore[] = [
  wrong("wakes a millisecond late", "lease: returns exactly the records whose wakeAt is `until` or earlier, complete", (_, right) => ({
    due: (until, limit) => right.due(until - 1, limit),
  })),
  wrong("hands out without leasing", "lease: does not return a leased record again before `leaseUntil`, and does then", (store) => ({
    lease: async (until, limit) => store.due(until, limit).map((record) => store.read(record) as StoredRecord),
  })),
  wrong("takes what it leases out for good", "lease: does not return a leased record again before `leaseUntil`, and does then", (_, right) => ({
    lease: async (until, limit) => right.lease(until, limit, Number.POSITIVE_INFINITY),
  })),
  wrong("hands out what is due as it was written, not the earliest first", "lease: returns the earliest first", (store) => ({
    due: (until, limit) => [...store.records.values()].filter(({ wakeAt }) => wakeAt !== undefined && wakeAt <= until).slice(0, limit),
  })),
  wrong("takes any that are due, and sorts them", "lease: returns at most `limit`, and leaves the others for the next call", (_, right) => ({
    due: (until, limit) =>
      right
        .due(until, 10_000)
        .reverse()
        .slice(0, limit)
        .sort((a, b) => (a.wakeAt as number) - (b.wakeAt as number)),
  })),
  wrong("leases all that is due, and hands out as many as asked", "lease: returns at most `limit`, and leaves the others for the next call", (_, right) => ({
    lease: async (until, limit, leaseUntil) => (await right.lease(until, 10_000, leaseUntil)).slice(0, limit),
  })),
  wrong("hands out one record of each id", "lease: returns records of all customers", (_, right) => ({
    lease: async (until, limit, leaseUntil) => [...new Map((await right.lease(until, limit, leaseUntil)).map((record) => [record.id, record])).values()],
  })),
  wrong(
    "writes a token of its own with a lease",
    "lease: does not change tokens, data and end, so a caller that read the record before can write it",
    (store, right) => ({
      async lease(until, limit, leaseUntil) {
        const leased = await right.lease(until, limit, leaseUntil);
        for (const record of leased) store.write({ ...record, tokens: ["leased", ...record.tokens], now: until, wakeAt: leaseUntil });
        return leased;
      },
    }),
  ),
  wrongRecord(
    "keeps the first wake time of a record",
    "lease: a write sets the record's wakeAt, leased or not, and a write without wakeAt removes it",
    (record, current) => ((current as { wakeAt?: number } | undefined)?.wakeAt === undefined ? record : { ...record, wakeAt: "unchanged" }),
  ),
  wrongRecord(
    'takes "unchanged" for none',
    'lease: a write whose wakeAt is "unchanged" leaves it as it is, leased or not, set or not',
    ({ wakeAt, ...record }) => (wakeAt === undefined || wakeAt === "unchanged" ? record : { ...record, wakeAt }),
  ),
  wrong("writes the wake time before it compares", "lease: a write that is rejected or repeated does not change when the record wakes", (store, right) => ({
    answer(change) {
      const answer = right.answer(change);
      const current = change.record && store.records.get(store.key(change.record));
      if (answer && current && change.record?.wakeAt !== "unchanged") store.records.set(store.key(current), { ...current, wakeAt: change.record?.wakeAt });
      return answer;
    },
  })),
  wrong("looks what is due, and leases it a round trip later", "lease: each record goes to one of 20 racing workers", (store) => ({
    async lease(until, limit, leaseUntil) {
      const due = store.due(until, limit);
      await roundTrip();
      for (const record of due) {
        const current = store.records.get(store.key(record));
        if (current) store.records.set(store.key(record), { ...current, wakeAt: leaseUntil });
      }
      return due.map((record) => store.read(record) as StoredRecord);
    },
  })),
  wrong(
    "leases by writing back the record that it read a round trip ago",
    "lease: a write that races with a lease leaves the record as written",
    (store, right) => ({
      async lease(until, limit, leaseUntil) {
        const leased = await right.lease(until, limit, leaseUntil);
        await roundTrip();
        for (const record of leased) store.write({ ...record, now: until, wakeAt: leaseUntil });
        return leased;
      },
    }),
  ),
];

const wrongTallies: readonly WrongStore[] = [
  wrong("reads counters before it adds", "tally: adds, then reads, in order; 0 for a counter that nothing was added to", (_, right) => ({
    async tally(adds, reads) {
      const [read] = await Promise.all([right.tally([], reads), right.tally(adds, [])]);
      return read;
    },
  })),
  wrong("adds once to each counter that is named twice", "tally: adds, then reads, in order; 0 for a counter that nothing was added to", (_, right) => ({
    tally: async (adds, reads) => right.tally([...new Map(adds.map((add) => [add.counter, add])).values()], reads),
  })),
  wrong("rounds counters at fourteen digits", "tally: numbers below 0 and up to 9e15 are exact", (_, right) => ({
    tally: async (adds, reads) => (await right.tally(adds, reads)).map((count) => Number(count.toPrecision(14))),
  })),
  wrong("trims the names of counters", "tally: keeps counters apart whatever their names look like", (_, right) => ({
    tally: async (adds, reads) =>
      right.tally(
        adds.map((add) => ({ ...add, counter: add.counter.trim() })),
        reads.map((counter) => counter.trim()),
      ),
  })),
  wrong("adds to 128 counters at once, no more", "tally: adds to and reads hundreds of counters in one call", (_, right) => ({
    tally: async (adds, reads) => right.tally(adds.slice(0, 128), reads),
  })),
  wrong("reads counters, and writes them a round trip later", "tally: loses none of several concurrent adds", (store, right) => ({
    async tally(adds, reads) {
      for (const { counter, by } of adds) {
        const count = (store.counters.get(counter) ?? 0) + by;
        await roundTrip();
        store.counters.set(counter, count);
      }
      return right.tally([], reads);
    },
  })),
];

const replaced = "put: the value exists until its end, and a later put replaces it; undefined if there was none";

const wrongValues: readonly WrongStore[] = [
  wrong("answers null for an unknown key", replaced, (_, right) => ({
    get: async (key) => (await right.get(key)) ?? (null as unknown as undefined),
  })),
  wrong("keeps the first value of a key", replaced, (store, right) => ({
    async put(key, value, expiry) {
      if (!store.values.has(key)) await right.put(key, value, expiry);
    },
  })),
  wrong(
    "keeps an old value when the new one has ended",
    "put: a value whose end has passed may be gone, and the value that it replaced is gone",
    (_, right) => ({
      async put(key, value, expiry) {
        if (expiry.keepUntil > expiry.now) await right.put(key, value, expiry);
      },
    }),
  ),
  wrong("takes an empty value for none", "put: returns values byte for byte, whatever they look like", (store) => ({
    get: async (key) => store.values.get(key) || undefined,
  })),
  wrong("lowers and trims keys", "put: keeps keys apart whatever they look like", (_, right) => ({
    get: async (key) => right.get(key.trim().toLowerCase()),
    put: async (key, value, expiry) => right.put(key.trim().toLowerCase(), value, expiry),
  })),
  wrong("writes what is too large, then complains", "put: stores 64 KiB; rejects a megabyte and leaves the value unchanged", (store, right) => ({
    async put(key, value, expiry) {
      store.values.set(key, value);
      await right.put(key, value, expiry);
    },
  })),
  wrong("keeps counters among the values", "put: values, windows, sums, counters and records with the same name are independent", (store) => ({
    async tally(adds, reads) {
      for (const { counter, by } of adds) store.values.set(counter, String(Number(store.values.get(counter) ?? 0) + by));
      return reads.map((counter) => Number(store.values.get(counter) ?? 0));
    },
  })),
];

const letGo = "delete: removes the parts of a sum that count, and the next one, but no part of another sum";

const allOfIt = "delete: removes records, windows, lists, sums and values completely, and leaves others alone, whatever name they share";

const wrongForgets: readonly WrongStore[] = [
  ...(["records", "windows", "sums", "values"] as const).map((kind) =>
    wrong(`lets go of no ${kind}`, allOfIt, (_, right) => ({
      delete: async ({ [kind]: _kept, ...rest }) => right.delete(rest),
    })),
  ),
  wrong("lets go of all that the customer has", allOfIt, (store, right) => ({
    async delete(what) {
      await right.delete(what);
      for (const { customer } of what.records ?? []) for (const key of store.records.keys()) if (key.startsWith(customer)) store.records.delete(key);
    },
  })),
  wrong("lets go of the window with the name of a sum", allOfIt, (_, right) => ({
    delete: async (what) => right.delete({ ...what, windows: [...(what.windows ?? []), ...(what.sums ?? []).map(({ sum }) => sum)] }),
  })),
  wrong(
    "complains of what is not there",
    "delete: ignores what does not exist, does nothing the second time, and everything can be created again",
    (store, right) => ({
      async delete(what) {
        if (what.values?.some((key) => !store.values.has(key))) throw new Error("not found");
        await right.delete(what);
      },
    }),
  ),
  wrong(
    "takes a write over a record that was deleted for a create",
    "delete: a write that expects a deleted record is rejected and does not restore it",
    (store, right) => {
      const gone = new Set<string>();
      return {
        async delete(what) {
          for (const record of what.records ?? []) gone.add(store.key(record));
          await right.delete(what);
        },
        isExpected: (current, expected) => right.isExpected(current, expected) || (current === undefined && gone.size > 0),
      };
    },
  ),
  wrong(
    "keeps the wake time of what it lets go of",
    "delete: a deleted record is not leased, and does not wake when another takes its place",
    (store, right) => {
      const woken = new Map<string, number | undefined>();
      return {
        async delete(what) {
          for (const record of what.records ?? []) woken.set(store.key(record), store.records.get(store.key(record))?.wakeAt);
          await right.delete(what);
        },
        write(record) {
          const wakeAt = record.wakeAt ?? woken.get(store.key(record));
          right.write(wakeAt === undefined ? record : { ...record, wakeAt });
        },
      };
    },
  ),
  wrong("leaves the next part of a sum", letGo, (store) => ({
    async delete({ sums = [] }) {
      for (const parts of sums) for (const at of store.sum(parts.sum).keys()) if (store.counts(at, parts)) store.sum(parts.sum).delete(at);
    },
  })),
  wrong("lets go of the newest part of a sum only", letGo, (_, right) => ({
    delete: async ({ sums = [], ...what }) => right.delete({ ...what, sums: sums.map((parts) => ({ ...parts, parts: 1 })) }),
  })),
  wrong("lets go of a hundred at once, no more", "delete: removes thousands in one call", (_, right) => ({
    delete: async (what) => right.delete({ ...what, windows: what.windows?.slice(0, 100) ?? [] }),
  })),
];

const wrongLives: readonly WrongStore[] = [
  wrong(
    "forgets by its own clock what callers' clocks keep",
    "expiry: data from a caller whose clock is years behind or ahead is kept for its full life",
    (store, right) => ({
      write(record) {
        right.write(record);
        if (record.now < Date.now() - 3_600_000) store.records.delete(store.key(record));
      },
    }),
  ),
  wrong("purges a window by the caller's clock", "expiry: a caller whose clock is two days ahead ends nothing that others keep", (store, right) => ({
    take(claim) {
      right.take(claim);
      if ("window" in claim) for (const [member, at] of store.window(claim.window)) if (at <= claim.since) store.leave({ ...claim, member });
    },
  })),
  wrong(
    "purges the parts before those that a caller counts",
    "expiry: a caller whose clock is two days ahead ends nothing that others keep",
    (store, right) => ({
      weigh(claim) {
        right.weigh(claim);
        for (const at of store.sum(claim.sum).keys()) if (at <= claim.part - claim.parts) store.sum(claim.sum).delete(at);
      },
    }),
  ),
  wrong("purges records by the caller's clock", "expiry: a caller whose clock is two days ahead ends nothing that others keep", (store, right) => ({
    write(record) {
      for (const [key, { keepUntil }] of store.records) if (keepUntil <= record.now) store.records.delete(key);
      right.write(record);
    },
  })),
  wrong(
    "lets the last claim's end hold for the whole window",
    "expiry: an earlier end never shortens the life of a window, a sum or a counter",
    (store, right) => ({
      take(claim) {
        right.take(claim);
        if (claim.keepUntil <= claim.now) store.windows.delete(nameOf(claim));
      },
    }),
  ),
  wrong(
    "lets the last add's end hold for the whole counter",
    "expiry: an earlier end never shortens the life of a window, a sum or a counter",
    (store, right) => ({
      async tally(adds, reads) {
        const counts = await right.tally(adds, reads);
        for (const { counter, keepUntil, now } of adds) if (keepUntil <= now) store.counters.delete(counter);
        return counts;
      },
    }),
  ),
];

/** Decides first, and applies the change a round trip later if `lags` returns true. */
function lagging(lags: (change: Change) => boolean) {
  return (store: PlainStore): Partial<PlainStore> => ({
    async commit(change) {
      if (change.record) store.check(change.record.data);
      const result = store.answer(change) ?? store.refusal(change.claims ?? []);
      if (lags(change)) await roundTrip();
      return result ?? store.apply(change);
    },
  });
}

const oneIsDone = "commit: of 50 racing writes exactly one is done, for a create and for the next write, and the others get its record";
const bothOrders = "commit: of 50 racers for a window and a sum in both orders, never more than the limits are granted, and rejected ones are charged nothing";
const sumRace = "sum: of 50 racers, never more than the limit is granted, even if some give back, and the total equals what was granted";

const wrongRacers: readonly WrongStore[] = [
  wrong(
    "creates by a look, then a write",
    oneIsDone,
    lagging(({ record, expected = null }) => record !== undefined && expected === null),
  ),
  wrong(
    "reads, then writes after a round trip",
    oneIsDone,
    lagging(({ record, expected = null }) => record !== undefined && expected !== null),
  ),
  wrong(
    "claims in a step of its own, and undoes nothing when the race for the record is lost",
    "commit: of 50 racing creates with different claims, exactly the claims of the one that is done are counted",
    () => ({ unmake: () => {} }),
    TwoStepStore,
  ),
  wrong(
    "undoes a lost race by the member's name, also where the winner claimed the same",
    "commit: of 50 racing writes that claim one member, one is done, and the member stays counted",
    (store, right) => ({
      unmake(claims, token) {
        right.unmake(claims, token);
        for (const claim of claims) if ("window" in claim) store.leave(claim);
      },
    }),
    TwoStepStore,
  ),
  wrong(
    "takes a repeat for a lost race, and undoes what it claimed",
    "commit: one write sent 50 times at once is done each time, but written and counted once",
    (store, right) => ({
      answer(change) {
        const answer = right.answer(change);
        if (answer?.done) store.unmake(change.claims ?? [], change.record?.tokens[0] as string);
        return answer;
      },
    }),
    TwoStepStore,
  ),
  wrong(
    "gives back again what is sent again while the first is on its way",
    "commit: one write sent 50 times at once is done each time, but written and counted once",
    (store, right) => ({
      complete(change, token) {
        if (token !== undefined && store.records.get(store.key(change.record as RecordWrite))?.tokens[0] === token) store.completed.delete(token);
        right.complete(change, token);
      },
    }),
    TwoStepStore,
  ),
  wrong(
    "claims again what is sent again",
    "commit: one write sent 50 times at once is done each time, but written and counted once",
    (store, right) => ({
      make(claims, token) {
        if (token !== undefined) store.tickets.delete(token);
        return right.make(claims, token);
      },
    }),
    TwoStepStore,
  ),
  wrong(
    "refuses a write that is sent many times at once",
    "commit: one write sent 50 times at once is done each time, but written and counted once",
    (store, right) => {
      const busy = new Set<string>();
      return {
        async commit(change) {
          const key = change.record && store.key(change.record);
          if (key === undefined) return right.commit(change);
          if (busy.has(key)) return { done: false };
          busy.add(key);
          await roundTrip();
          busy.delete(key);
          return right.commit(change);
        },
      };
    },
  ),
  wrong("overwrites when an answer comes too late", "commit: no update is lost among callers that retry until their write is done", (store, right) => ({
    async commit(change) {
      const expected = change.record && store.isExpected(store.records.get(store.key(change.record)), change.expected ?? null);
      await roundTrip();
      return expected ? (store.refusal(change.claims ?? []) ?? store.apply(change)) : right.commit(change);
    },
  })),
  wrong(
    "compares the count, then adds after a round trip",
    "window: of 50 racers, never more than `limit` are granted, and exactly `limit` one after another",
    lagging(({ claims = [], record }) => !record && claims.length === 1 && !claims.some(isSum)),
  ),
  wrong("locks windows and sums one by one, so that callers in two orders block each other", bothOrders, (store, right) => ({
    async commit(change) {
      if (change.record || (change.claims?.length ?? 0) < 2) return right.commit(change);
      for (const [i, claim] of (change.claims ?? []).entries()) {
        if (store.isFull(claim)) return { done: false, refusedBy: i, count: store.others(claim) };
        store.take(claim);
        await roundTrip();
      }
      return right.commit(change);
    },
  })),
  wrong("counts members that race as many", "window: one member claimed by 50 racers is granted to each and counted once", (store, right) => ({
    async commit(change) {
      const known = (change.claims ?? []).map((claim) => "window" in claim && store.window(claim.window).has(claim.member));
      await roundTrip();
      const full = (change.claims ?? []).findIndex((claim, i) => !known[i] && "window" in claim && store.isFull({ ...claim, member: "" }));
      return full < 0 ? right.commit(change) : { done: false, refusedBy: full, count: store.others(change.claims?.[full] as Claim) };
    },
  })),
  wrong(
    "compares the count, then adds and writes after a round trip",
    "window: of 50 racers with different records, never more than `limit` are done, and rejected ones leave no record",
    lagging(({ claims = [], record }) => record !== undefined && claims.length > 1),
  ),
  wrong(
    "writes the record before the claims, and leaves it where they are refused",
    "window: of 50 racers with different records, never more than `limit` are done, and rejected ones leave no record",
    (store) => ({
      async commit(change) {
        const answer = store.answer(change);
        if (!answer && change.record) store.write(change.record);
        return answer ?? store.refusal(change.claims ?? []) ?? store.apply(change);
      },
    }),
  ),
  wrong(
    "compares a sum, then adds after a round trip",
    sumRace,
    lagging(({ claims = [], record }) => record !== undefined && claims.length === 1 && claims.some(isSum)),
  ),
  wrong("compares a sum where it is added to, and gives back after a round trip", sumRace, (store, right) => ({
    async commit(change) {
      const [claim] = change.claims ?? [];
      if (!claim || !("sum" in claim) || claim.limit === undefined || claim.weight >= 0) return right.commit(change);
      const parts = new Map(store.sum(claim.sum));
      await roundTrip();
      store.sums.set(claim.sum, parts);
      return right.commit(change);
    },
  })),
  wrong(
    "compares a window and a sum, then adds after a round trip",
    bothOrders,
    lagging(({ claims = [], record }) => !record && claims.length > 1),
  ),
  wrong(
    "returns to racers what was there before the race",
    "commit: 50 racers that claim without a limit and ask each get a count that includes themselves and all before them",
    (store, right) => ({
      async commit(change) {
        const before = (change.claims ?? []).map((claim) => store.held(claim));
        await roundTrip();
        const result = await right.commit(change);
        const counts = (change.claims ?? []).map((claim, i) => ("sum" in claim ? (before[i] as number) + claim.weight : store.held(claim)));
        return result.done && change.asks?.length === 1 ? { ...result, counts } : result;
      },
    }),
  ),
  wrong("appends a value piece by piece", "put: of 50 racing puts, one value stays, complete", (store) => ({
    async put(key, value) {
      store.check(value);
      store.values.set(key, value.slice(0, 20));
      await roundTrip();
      store.values.set(key, store.values.get(key) + value.slice(20));
    },
  })),
];

export const wrongStores: readonly WrongStore[] = [
  wrongRecords,
  wrongReplays,
  wrongWindows,
  forgetfulWindows,
  wrongSums,
  wrongTogether,
  wrongRevocations,
  wrongLeases,
  wrongTallies,
  wrongValues,
  wrongForgets,
  wrongLives,
  wrongRacers,
].flat();
