import type { Change, Claim, CommitResult, RecordWrite, Store, StoredRecord } from "../../src/ports/store.js";
import { BoundedStore, PlainStore, roundTrip, TwoStepStore } from "./plain-store.js";

/** What a client makes of a reply that it takes for JSON. */
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

/** One mistake, and the sentence of the contract that must find it. More may. */
export interface WrongStore {
  readonly mistake: string;
  readonly foundBy: string;
  make(): { readonly store: Store; readonly peer?: Store };
}

/** A right store of which `changes` replaces something; `right` is the same store as it was, with what it keeps. */
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

/** A store that does something else with each change before it commits it. */
function wrongChange(mistake: string, foundBy: string, changed: (change: Change, store: PlainStore) => Change): WrongStore {
  return wrong(mistake, foundBy, (store, right) => ({ commit: async (change) => right.commit(changed(change, store)) }));
}

/** A store that does something else with each claim. */
function wrongClaim(mistake: string, foundBy: string, changed: (claim: Claim) => Claim): WrongStore {
  return wrongChange(mistake, foundBy, (change) => ({ ...change, claims: (change.claims ?? []).map(changed) }));
}

/** A store that writes something else than the record it is given. */
function wrongRecord(mistake: string, foundBy: string, changed: (record: RecordWrite, current: StoredRecord | undefined) => RecordWrite): WrongStore {
  return wrong(mistake, foundBy, (store, right) => ({
    write(record) {
      right.write(changed(record, store.records.get(store.key(record))));
    },
  }));
}

/** A store that takes another name for that of a window, or of a sum. */
function wrongName(kind: "window" | "sum", mistake: string, foundBy: string, cut: (name: string) => string): WrongStore {
  return wrong(`${mistake} of the name of a ${kind}`, foundBy, (_, right) => ({
    window: (name) => right.window(kind === "window" ? cut(name) : name),
    sum: (name) => right.sum(kind === "sum" ? cut(name) : name),
    take: (claim) => right.take(!(kind in claim) ? claim : "sum" in claim ? { ...claim, sum: cut(claim.sum) } : { ...claim, window: cut(claim.window) }),
  }));
}

const wrongRecords: readonly WrongStore[] = [
  wrong("finds anything for an unknown id", "find: a record that was never written is undefined", (store, right) => ({
    find: async (customer, id) => (await right.find(customer, id)) ?? store.read([...store.records.values()].find((record) => record.customer === customer)),
  })),
  wrongRecord(
    "keeps its ends in whole seconds",
    "commit: a create (expected null, or left out) writes the record, and find returns what is kept of it exactly",
    (record) => ({ ...record, keepUntil: Math.floor(record.keepUntil / 1000) * 1000 }),
  ),
  wrong(
    "hands out the wake time with the record",
    "commit: a create (expected null, or left out) writes the record, and find returns what is kept of it exactly",
    () => ({ read: (current) => structuredClone(current) }),
  ),
  {
    mistake: "reads from a copy that knows nothing of the other handle",
    foundBy: "commit: a create (expected null, or left out) writes the record, and find returns what is kept of it exactly",
    make() {
      const store = new PlainStore();
      const peer = new PlainStore();
      peer.commit = (change) => store.commit(change);
      return { store, peer };
    },
  },
  wrong("lets a create replace what is there", "commit: a create refused by a record that is there brings it back and changes nothing", (_, right) => ({
    isExpected: (current, expected) => expected === null || right.isExpected(current, expected),
  })),
  wrong("brings nothing back with a refusal", "commit: a create refused by a record that is there brings it back and changes nothing", (_, right) => ({
    answer(change) {
      const answer = right.answer(change);
      return answer && !answer.done ? { done: false } : answer;
    },
  })),
  wrongRecord("keeps the end that the record was created with", "commit: a write from the newest token replaces every field", (record, current) => ({
    ...record,
    keepUntil: current?.keepUntil ?? record.keepUntil,
  })),
  wrong("lets the last write win", "commit: a write from any token but the newest is refused, brings the current record back and changes nothing", () => ({
    isExpected: () => true,
  })),
  wrong(
    "compares tokens without regard to case",
    "commit: a write from any token but the newest is refused, brings the current record back and changes nothing",
    () => ({ isExpected: (current, expected) => current?.tokens[0]?.toLowerCase() === expected?.toLowerCase() }),
  ),
  wrong(
    "accepts any of the last tokens as the newest",
    "commit: a write from any token but the newest is refused, brings the current record back and changes nothing",
    () => ({ isExpected: (current, expected) => (expected === null ? current === undefined : current?.tokens.includes(expected) === true) }),
  ),
  wrong("compares tokens as a loosely typed language does", "commit: tokens that look like one number are different tokens", () => ({
    isExpected(current, expected) {
      const token = current?.tokens[0] ?? null;
      return token === expected || (token !== null && expected !== null && Number(token) === Number(expected));
    },
  })),
  wrong(
    "takes a write over a missing record for a create",
    "commit: a write over a record that is not there is refused, brings nothing back and writes nothing",
    (_, right) => ({ isExpected: (current, expected) => current === undefined || right.isExpected(current, expected) }),
  ),
  wrong("keeps no customers apart", "commit: the same id under two customers is two records", () => ({ key: ({ id }) => id })),
  wrong("keeps and hands out the caller's objects", "commit: what is stored is not touched by changing what was passed in or handed out", (_, right) => ({
    read(current) {
      const copy = right.read(current);
      return copy && { ...copy, tokens: current?.tokens as string[] };
    },
  })),
  wrong("reads data as JSON", "commit: data comes back byte for byte, whatever it looks like", (_, right) => ({
    async find(customer, id) {
      const record = await right.find(customer, id);
      return record && { ...record, data: decoded(record.data) };
    },
    async get(key) {
      const value = await right.get(key);
      return value === undefined ? undefined : decoded(value);
    },
  })),
  wrong("refuses 64 KiB", "commit: 64 KiB of data are kept", () => ({
    check(text) {
      if (Buffer.byteLength(JSON.stringify(text)) > 65_536) throw new Error("too large");
    },
  })),
  wrong("keeps anything, however large", "commit: a megabyte of data is rejected, and nothing is written or counted", () => ({ check: () => {} })),
  wrong(
    "counts, and then complains of a record that is too large",
    "commit: a megabyte of data is rejected, and nothing is written or counted",
    (store, right) => ({
      async commit(change) {
        if ((change.record?.data.length ?? 0) > 65_536) store.apply({ claims: change.claims ?? [] });
        return right.commit(change);
      },
    }),
  ),
  wrong(
    "does not write what has ended already",
    "commit: a record whose keepUntil has passed is there whole or not at all, never as it was before",
    (_, right) => ({
      write(record) {
        if (record.keepUntil >= Date.now()) right.write(record);
      },
    }),
  ),
];

const wrongReplays: readonly WrongStore[] = [
  wrong("does not know a repeated write", "commit: a create sent twice is done both times and written once", () => ({ landed: () => false })),
  wrong(
    "knows a later write that was sent twice by its token only if it was a create",
    "commit: a later write sent twice is done both times and written once",
    () => ({ landed: (current, token) => current.tokens.length === 1 && current.tokens[0] === token }),
  ),
  wrong("knows only the newest token", "commit: a write sent again after up to fifteen later writes is done, and nothing is written", () => ({
    landed: (current, token) => current.tokens[0] === token,
  })),
  wrong("writes a repeated write again", "commit: a write sent again after up to fifteen later writes is done, and nothing is written", (store, right) => ({
    answer(change) {
      const answer = right.answer(change);
      if (answer?.done && change.record) store.write(change.record);
      return answer;
    },
  })),
  wrong("knows every token it has ever seen", "commit: a write whose token has left the list is refused like any other", (_, right) => {
    const seen = new Set<string>();
    return {
      landed: (current, token) => seen.has(token) || right.landed(current, token),
      write(record) {
        right.write(record);
        seen.add(record.tokens[0] as string);
      },
    };
  }),
  wrong("takes a write of the same data for a repeat", "commit: a twin with a token of its own is refused and gets what is stored", (store, right) => ({
    async commit(change) {
      const current = change.record && store.records.get(store.key(change.record));
      return current?.data === change.record?.data && current ? { done: true, counts: [], asked: [] } : right.commit(change);
    },
  })),
  wrong("knows a write by any token it carries", "commit: a write is known by its newest token alone, not by the older ones it carries", (store, right) => ({
    answer(change) {
      const current = change.record && store.records.get(store.key(change.record));
      const known = change.record?.tokens.some((token) => current?.tokens.includes(token));
      return current && known && !store.isExpected(current, change.expected ?? null) ? { done: true, counts: [], asked: [] } : right.answer(change);
    },
  })),
  wrong(
    "remembers the token of a write that it refused",
    "commit: a write that was refused has not landed, and is refused when it is sent again",
    (_, right) => {
      const seen = new Set<string>();
      return {
        answer(change) {
          const token = change.record?.tokens[0];
          if (token !== undefined && seen.has(token)) return { done: true, counts: [], asked: [] };
          if (token !== undefined) seen.add(token);
          return right.answer(change);
        },
      };
    },
  ),
  wrong(
    "counts the weights of a repeated write again",
    "commit: claims sent again with a record that landed count nothing again, whatever came after it, and tell the counts as they now are",
    (store, right) => ({
      answer(change) {
        if (right.answer(change)?.done) for (const claim of change.claims ?? []) if ("sum" in claim) store.weigh(claim);
        return right.answer(change);
      },
    }),
  ),
  wrong(
    "tells a repeat the counts with its own claims once more",
    "commit: claims sent again with a record that landed count nothing again, whatever came after it, and tell the counts as they now are",
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
    "commit: a write that landed, or is refused, and is sent again late moves no member back",
    (store, right) => ({
      answer(change) {
        const answer = right.answer(change);
        if (answer) for (const claim of change.claims ?? []) if ("window" in claim && store.window(claim.window).has(claim.member)) store.take(claim);
        return answer;
      },
    }),
  ),
  wrong(
    "leaves the weights of a repeat when it refuses it",
    "commit: sent again when there is no more room, it counts nothing, whether it is told done or refused",
    (store, right) => ({
      answer(change) {
        const refusal = store.refusal(change.claims ?? []);
        if (right.answer(change)?.done && refusal) for (const claim of change.claims ?? []) store.take(claim);
        return refusal ?? right.answer(change);
      },
    }),
  ),
  wrong(
    "gives back again when a write is sent again",
    "commit: what is taken out and given back with a record goes once, however often it is sent",
    (store, right) => ({
      answer(change) {
        const answer = right.answer(change);
        if (answer?.done) for (const claim of change.claims ?? []) if ("sum" in claim && claim.weight < 0) store.weigh(claim);
        return answer;
      },
    }),
  ),
];

const wrongWindows: readonly WrongStore[] = [
  wrongClaim("grants one member too many", "window: one after another exactly `limit` members are granted, each told how many there are with it", (claim) =>
    isSum(claim) || claim.limit === undefined ? claim : { ...claim, limit: claim.limit + 1 },
  ),
  wrong(
    "tells the count from before the claim",
    "window: one after another exactly `limit` members are granted, each told how many there are with it",
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
  wrong("keeps one member less than the limit needs", "window: members stay exact while a window is filled over and over", (store, right) => ({
    take(claim) {
      right.take(claim);
      if ("sum" in claim || claim.limit === undefined) return;
      const newestFirst = [...store.window(claim.window)].sort(([, a], [, b]) => b - a);
      store.windows.set(claim.window, new Map(newestFirst.slice(0, Math.max(1, claim.limit - 1))));
    },
  })),
  wrong("grants a member that is there, however old", "window: a member that left long ago has to fit in again", (store, right) => ({
    isFull: (claim) => !("window" in claim && store.window(claim.window).has(claim.member)) && right.isFull(claim),
  })),
  wrong("counts a repeated member each time", "window: a member that is already there is counted once", (store, right) => ({
    take(claim) {
      const again = "window" in claim && !claim.out && store.window(claim.window).has(claim.member);
      right.take(again ? { ...claim, member: `${claim.member} ${store.window(claim.window).size}` } : claim);
    },
  })),
  wrong("leaves a repeated member where it is", "window: a member that is already there moves to `now`", (store, right) => ({
    take(claim) {
      if ("sum" in claim || claim.out || !store.window(claim.window).has(claim.member)) right.take(claim);
    },
  })),
  wrong("refuses a member that is already in the full window", "window: a member that is already in a full window is granted", (store, right) => ({
    others: (claim) => ("sum" in claim ? right.others(claim) : right.others({ ...claim, member: "" })),
    held: (claim) => store.others(claim),
  })),
  wrong("counts members at `since`", "window: members at `since` or before do not count", () => ({ isNewer: (at, since) => at >= since })),
  wrong("does not count members ahead of the caller's clock", "window: members ahead of the caller's clock count", () => ({
    isNewer: (at, since, now) => at > since && at <= now,
  })),
  wrong("empties a window as a whole when its length has passed", "window: room comes back one by one as the window moves on", (store, right) => {
    const started = new Map<string, number>();
    return {
      isFull(claim) {
        const name = nameOf(claim);
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
    "window: two claims hold it over two lengths, each told its own count, and the member is added once",
    (change) => ({
      ...change,
      claims: (change.claims ?? []).map((claim, i, all) => (all.findIndex((other) => nameOf(other) === nameOf(claim)) === i ? claim : unlimited(claim))),
    }),
  ),
  wrongChange(
    "holds the last claim on a window only",
    "window: two claims hold it over two lengths, each told its own count, and the member is added once",
    (change) => ({
      ...change,
      claims: (change.claims ?? []).map((claim, i, all) => (all.findLastIndex((other) => nameOf(other) === nameOf(claim)) === i ? claim : unlimited(claim))),
    }),
  ),
  ...[
    ["window", "window: each claim's own limit holds, lowered or raised since the last"],
    ["sum", "sum: each claim's own limit holds, lowered or raised since the last"],
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
  wrongClaim("trims members", "window: members are told apart whatever they look like", (claim) =>
    "window" in claim ? { ...claim, member: claim.member.trim() } : claim,
  ),
  wrongName("window", "knows two parts only", "window: names are told apart whatever they look like", (name) => name.split(":").slice(0, 2).join(":")),
  wrongName("window", "leaves the customer out", "window: those of different customers do not touch", (name) => name.slice(name.indexOf(":"))),
  wrongClaim("takes no limit for one of 1,000", "window: without a limit it is counted and told, never refused", (claim) =>
    "window" in claim && claim.limit === undefined ? { ...claim, limit: 1_000 } : claim,
  ),
  wrong("keeps the newest 1,000 of a list", "window: without a limit it is counted and told, never refused", (store, right) => ({
    take(claim) {
      right.take(claim);
      const members = [...store.window(nameOf(claim))];
      if (members.length > 1_000) store.windows.set(nameOf(claim), new Map(members.slice(-1_000)));
    },
  })),
  wrong("gives the members as they came first", "members: the newest come first, at most `limit`, each once, and none of an absent window", (store) => ({
    members: async (window, limit) => [...store.window(window).keys()].reverse().slice(0, limit),
  })),
  wrong("gives all members, whatever the limit", "members: the newest come first, at most `limit`, each once, and none of an absent window", (_, right) => ({
    members: async (window) => right.members(window, 10_000),
  })),
  wrong(
    "takes a member out wherever it stands",
    "out: takes a member out that stands at this very `now`, and only then; what is told is what is left",
    (store, right) => ({
      take(claim) {
        if ("window" in claim && claim.out) store.leave(claim);
        else right.take(claim);
      },
    }),
  ),
  wrong("takes nothing out", "out: takes a member out that stands at this very `now`, and only then; what is told is what is left", () => ({
    leave: () => {},
  })),
  wrong(
    "refuses to take out of a full window",
    "out: is granted in a window that is full or over its limit, and makes room for exactly one",
    (store, right) => ({
      isFull: (claim) => ("window" in claim && claim.out ? claim.limit !== undefined && store.others(claim) >= claim.limit : right.isFull(claim)),
    }),
  ),
];

const forgetfulWindows: readonly WrongStore[] = [
  wrong("keeps of a window what its limit counts, no more", "window: it keeps eight members more than its largest limit, the newest", (store, right) => ({
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

const wrongSums: readonly WrongStore[] = [
  wrong("refuses what would fill a sum", "sum: one after another exactly what the limit allows is granted, each told the total with it", (_, right) => ({
    isFull: (claim) => right.isFull("sum" in claim && claim.limit !== undefined && claim.weight > 0 ? { ...claim, limit: claim.limit - 1 } : claim),
  })),
  wrong(
    "refuses only when a sum is full before the claim",
    "sum: one after another exactly what the limit allows is granted, each told the total with it",
    (_, right) => ({ isFull: (claim) => right.isFull("sum" in claim && claim.weight > 0 ? { ...claim, weight: 1 } : claim) }),
  ),
  wrong(
    "names the parts of a sum by their beginning, and so counts them a twelfth too short",
    "sum: it holds what is newer than `since`, and at most a twelfth of its length longer",
    (_, right) => ({
      weigh(claim) {
        right.weigh({ ...claim, now: claim.now - (claim.now - claim.since) / 12, since: claim.since - (claim.now - claim.since) / 12 });
      },
    }),
    BoundedStore,
  ),
  wrong(
    "keeps a sum in two parts, and so counts it half its length too long",
    "sum: it holds what is newer than `since`, and at most a twelfth of its length longer",
    (_, right) => ({
      weigh(claim) {
        const half = (claim.now - claim.since) / 2;
        right.weigh({ ...claim, now: (Math.floor(claim.now / half) + 1) * half });
      },
    }),
  ),
  wrong(
    "keeps ten parts of a sum, not twelve and the one that is open",
    "sum: as time goes by it is never less than what is newer than `since`, nor more than what was so a twelfth of its length before",
    (store, right) => ({
      weigh(claim) {
        right.weigh(claim);
        store.sums.set(claim.sum, new Map([...store.sum(claim.sum)].slice(0, 10)));
      },
    }),
    BoundedStore,
  ),
  wrong("does not count in a sum what is ahead of the caller's clock", "sum: what is ahead of the caller's clock counts", (store, right) => ({
    others(claim) {
      if (!("sum" in claim)) return right.others(claim);
      return [...store.sum(claim.sum)].reduce((total, [at, weight]) => (at > claim.since && at <= claim.now ? total + weight : total), 0);
    },
  })),
  wrongClaim("takes no limit for none at all", "sum: without a limit it is counted and told, never refused", (claim) =>
    isSum(claim) && claim.limit === undefined ? { ...claim, limit: 0 } : claim,
  ),
  wrong("grants whatever adds nothing to a sum", "sum: a weight of 0 is held to the limit, and adds nothing", (_, right) => ({
    isFull: (claim) => !("sum" in claim && claim.weight === 0) && right.isFull(claim),
  })),
  wrongClaim("gives nothing back", "sum: what is given back is free again, to the unit", (claim) =>
    "sum" in claim && claim.weight < 0 ? { ...claim, weight: 0, limit: Number.POSITIVE_INFINITY } : claim,
  ),
  wrong("refuses to give back to a sum that is over its limit", "sum: giving back is granted whatever the limit", (store, right) => ({
    isFull: (claim) => right.isFull(claim) || ("sum" in claim && claim.limit !== undefined && store.total(claim) + claim.weight > claim.limit),
  })),
  wrong("lets a sum fall below 0", "sum: no part of it falls below 0, and giving back touches no other part", (store) => ({
    weigh({ sum, now, weight }) {
      store.sums.set(sum, store.sum(sum).set(now, (store.sum(sum).get(now) ?? 0) + weight));
    },
  })),
  wrong(
    "gives back from the newest part, wherever it was claimed",
    "sum: no part of it falls below 0, and giving back touches no other part",
    (store, right) => ({
      weigh(claim) {
        right.weigh(claim.weight < 0 ? { ...claim, now: Math.max(claim.now, ...store.sum(claim.sum).keys()) } : claim);
      },
    }),
  ),
  wrong("rounds sums at fourteen digits", "sum: totals up to 9e15 are exact", (_, right) => ({
    total: (ask) => Number(right.total(ask).toPrecision(14)),
  })),
  wrongName("sum", "knows two parts only", "sum: names are told apart whatever they look like", (name) => name.split(":").slice(0, 2).join(":")),
  wrongName("sum", "leaves the customer out", "sum: those of different customers do not touch", (name) => name.slice(name.indexOf(":"))),
  wrong("leaves absent sums out of what is asked", "asks: what sums hold, in the order asked, absent ones as 0; asking charges nothing", (store, right) => ({
    apply: (change) => right.apply({ ...change, asks: (change.asks ?? []).filter(({ sum }) => store.sums.has(sum)) }),
  })),
  wrong("asks before it claims", "asks: the claims just granted are included, and what was just given back is not", (store, right) => ({
    apply(change) {
      const asked = (change.asks ?? []).map((ask) => store.total(ask));
      return { ...right.apply(change), asked } as CommitResult;
    },
  })),
];

const wrongTogether: readonly WrongStore[] = [
  wrong("refuses when nothing is to be done", "commit: of nothing is done", (_, right) => ({
    commit: async (change) => (change.record || change.claims?.length || change.asks?.length ? right.commit(change) : { done: false }),
  })),
  wrong("takes the first claim only", "commit: every window and every sum takes its claim, and the record is written", (_, right) => ({
    apply: (change) => right.apply({ ...change, claims: (change.claims ?? []).slice(0, 1) }),
  })),
  wrong("forgets the record where there are claims", "commit: every window and every sum takes its claim, and the record is written", (_, right) => ({
    apply: ({ record, ...change }) => right.apply(change.claims?.length || !record ? change : { ...change, record }),
  })),
  wrong("names the last refused claim", "commit: the first claim that is refused is named, in the order given, and what is held without it", (store) => ({
    refusal(claims) {
      const refusedBy = claims.findLastIndex((claim) => store.isFull(claim));
      return refusedBy < 0 ? undefined : { done: false, refusedBy, count: store.others(claims[refusedBy] as Claim) };
    },
  })),
  wrong(
    "looks at the windows first, then at the sums",
    "commit: the first claim that is refused is named, in the order given, and what is held without it",
    (store) => ({
      refusal(claims) {
        const first = [...claims.filter((claim) => !isSum(claim)), ...claims.filter(isSum)].find((claim) => store.isFull(claim));
        return first && { done: false, refusedBy: claims.indexOf(first), count: store.others(first) };
      },
    }),
  ),
  wrong(
    "tells the refused claim's limit, not what is held",
    "commit: the first claim that is refused is named, in the order given, and what is held without it",
    (_, right) => ({
      refusal(claims) {
        const refusal = right.refusal(claims);
        const limit = refusal && !refusal.done && refusal.refusedBy !== undefined ? claims[refusal.refusedBy]?.limit : undefined;
        return limit === undefined ? refusal : ({ ...refusal, count: limit } as CommitResult);
      },
    }),
  ),
  ...[
    ["claims before the refused one", "commit: a refused claim charges nothing, neither before nor after it"],
    ["windows before it has looked at the sums", "commit: a sum that refuses charges nothing either"],
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
  wrong(
    "claims one by one, and undoes by taking the member away",
    "commit: a refusal neither moves nor removes a member that is already in another window of the claims",
    (store, right) => ({
      refusal(claims) {
        const refusal = right.refusal(claims);
        if (refusal && !refusal.done) for (const claim of claims.slice(0, refusal.refusedBy)) if ("window" in claim) store.leave(claim);
        return refusal;
      },
    }),
  ),
  ...(
    [
      ["a millisecond late", 1],
      ["a millisecond early", -1],
    ] as const
  ).flatMap(([when, by]) =>
    ["window", "sum"].map((kind) =>
      wrong(
        `tells the room of a ${kind} ${when}`,
        `${kind}: where a refusal tells since when there would be room, a claim is granted from just then on`,
        (_, right) => ({
          roomSince(claim) {
            const told = right.roomSince(claim);
            return told === undefined || !(kind in claim) ? told : told + by;
          },
        }),
      ),
    ),
  ),
  wrong("takes out and gives back before it looks at the rest", "commit: a refusal neither takes out nor gives back", (store, right) => ({
    refusal(claims) {
      const refusal = right.refusal(claims);
      if (refusal) for (const claim of claims) if ("sum" in claim ? claim.weight < 0 : claim.out) store.take(claim);
      return refusal;
    },
  })),
  wrong("writes the record although a claim was refused", "commit: a refused claim leaves the record as it was", (store, right) => ({
    async commit(change) {
      const result = await right.commit(change);
      if (!result.done && result.refusedBy !== undefined && change.record) store.write(change.record);
      return result;
    },
  })),
  wrong("forgets the claims when the record is refused", "commit: a refused record counts nothing", (store, right) => ({
    answer(change) {
      const answer = right.answer(change);
      if (answer && !answer.done) for (const claim of change.claims ?? []) store.take(claim);
      return answer;
    },
  })),
  wrong(
    "claims first, and leaves the sums when both the record and a claim are refused",
    "commit: where both a claim and the record are refused, one of them is told, and nothing changes",
    (store, right) => ({
      answer(change) {
        const answer = right.answer(change);
        const refusal = store.refusal(change.claims ?? []);
        if (answer && !answer.done && refusal) for (const claim of change.claims ?? []) if ("sum" in claim) store.take(claim);
        return answer ?? refusal;
      },
    }),
  ),
  wrong("takes nothing out beside a record", "commit: with a record it claims, takes out and gives back in the same step", (store, right) => ({
    apply(change) {
      const result = right.apply({ ...change, claims: (change.claims ?? []).filter((claim) => !(change.record && "window" in claim && claim.out)) });
      return result.done ? { ...result, counts: (change.claims ?? []).map((claim) => store.held(claim)) } : result;
    },
  })),
];

const wrongLeases: readonly WrongStore[] = [
  wrong("wakes a millisecond late", "lease: hands out the records whose wakeAt is `until` or earlier, whole, and no others", (_, right) => ({
    due: (until, limit) => right.due(until - 1, limit),
  })),
  wrong("hands out without leasing", "lease: what was handed out is not handed out again before `leaseUntil`, and is then", (store) => ({
    lease: async (until, limit) => store.due(until, limit).map((record) => store.read(record) as StoredRecord),
  })),
  wrong("takes what it leases out for good", "lease: what was handed out is not handed out again before `leaseUntil`, and is then", (_, right) => ({
    lease: async (until, limit) => right.lease(until, limit, Number.POSITIVE_INFINITY),
  })),
  wrong("hands out what is due as it was written, not the earliest first", "lease: the earliest come first", (store) => ({
    due: (until, limit) => [...store.records.values()].filter(({ wakeAt }) => wakeAt !== undefined && wakeAt <= until).slice(0, limit),
  })),
  wrong("takes any that are due, and sorts them", "lease: at most `limit`, and the others stay for the next", (_, right) => ({
    due: (until, limit) =>
      right
        .due(until, 10_000)
        .reverse()
        .slice(0, limit)
        .sort((a, b) => (a.wakeAt as number) - (b.wakeAt as number)),
  })),
  wrong("leases all that is due, and hands out as many as asked", "lease: at most `limit`, and the others stay for the next", (_, right) => ({
    lease: async (until, limit, leaseUntil) => (await right.lease(until, 10_000, leaseUntil)).slice(0, limit),
  })),
  wrong("hands out one record of each id", "lease: records of all customers are handed out", (_, right) => ({
    lease: async (until, limit, leaseUntil) => [...new Map((await right.lease(until, limit, leaseUntil)).map((record) => [record.id, record])).values()],
  })),
  wrong(
    "writes a token of its own with a lease",
    "lease: tokens, data and end stay as they are, so whoever has read the record can write it",
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
    "lease: a write moves the record to its wakeAt, leased or not, and one without wakeAt takes it out",
    (record, current) => ((current as { wakeAt?: number } | undefined)?.wakeAt === undefined ? record : { ...record, wakeAt: "unchanged" }),
  ),
  wrongRecord(
    'takes "unchanged" for none',
    'lease: a write whose wakeAt is "unchanged" leaves it as it is, leased or not, set or not',
    ({ wakeAt, ...record }) => (wakeAt === undefined || wakeAt === "unchanged" ? record : { ...record, wakeAt }),
  ),
  wrong("writes the wake time before it compares", "lease: a write that was refused, or sent again, changes nothing", (store, right) => ({
    answer(change) {
      const answer = right.answer(change);
      const current = change.record && store.records.get(store.key(change.record));
      if (answer && current && change.record?.wakeAt !== "unchanged") store.records.set(store.key(current), { ...current, wakeAt: change.record?.wakeAt });
      return answer;
    },
  })),
  wrong("looks what is due, and leases it a round trip later", "lease: of 20 racing workers one gets each record", (store) => ({
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
    "lease: a write and a lease that race leave the record as it was written",
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
  wrong("reads counters before it adds", "tally: adds, then reads, in the order asked; what none was added to is 0", (_, right) => ({
    async tally(adds, reads) {
      const [read] = await Promise.all([right.tally([], reads), right.tally(adds, [])]);
      return read;
    },
  })),
  wrong("adds once to each counter that is named twice", "tally: adds, then reads, in the order asked; what none was added to is 0", (_, right) => ({
    tally: async (adds, reads) => right.tally([...new Map(adds.map((add) => [add.counter, add])).values()], reads),
  })),
  wrong("rounds counters at fourteen digits", "tally: numbers below 0 and up to 9e15 are exact", (_, right) => ({
    tally: async (adds, reads) => (await right.tally(adds, reads)).map((count) => Number(count.toPrecision(14))),
  })),
  wrong("trims the names of counters", "tally: counters are told apart whatever their names look like", (_, right) => ({
    tally: async (adds, reads) =>
      right.tally(
        adds.map((add) => ({ ...add, counter: add.counter.trim() })),
        reads.map((counter) => counter.trim()),
      ),
  })),
  wrong("adds to 128 counters at once, no more", "tally: hundreds of counters are added to and read in one call", (_, right) => ({
    tally: async (adds, reads) => right.tally(adds.slice(0, 128), reads),
  })),
  wrong("reads counters, and writes them a round trip later", "tally: of adds side by side none is lost", (store, right) => ({
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

const wrongValues: readonly WrongStore[] = [
  wrong("answers null for an unknown key", "get: a key that was never put is undefined", (_, right) => ({
    get: async (key) => (await right.get(key)) ?? (null as unknown as undefined),
  })),
  wrong("keeps the first value of a key", "put: the value is there until its end, and a later put replaces it", (store, right) => ({
    async put(key, value, life) {
      if (!store.values.has(key)) await right.put(key, value, life);
    },
  })),
  wrong("keeps an old value when the new one has ended", "put: a value whose end has passed may be gone, and what it replaced is", (_, right) => ({
    async put(key, value, life) {
      if (life.keepUntil > life.now) await right.put(key, value, life);
    },
  })),
  wrong("takes an empty value for none", "put: values come back byte for byte, whatever they look like", (store) => ({
    get: async (key) => store.values.get(key) || undefined,
  })),
  wrong("lowers and trims keys", "put: keys are told apart whatever they look like", (_, right) => ({
    get: async (key) => right.get(key.trim().toLowerCase()),
    put: async (key, value, life) => right.put(key.trim().toLowerCase(), value, life),
  })),
  wrong("writes what is too large, then complains", "put: 64 KiB are kept, a megabyte is rejected and leaves the value as it was", (store, right) => ({
    async put(key, value, life) {
      store.values.set(key, value);
      await right.put(key, value, life);
    },
  })),
  wrong("keeps counters among the values", "put: values, windows, sums, counters and records of one name do not touch", (store) => ({
    async tally(adds, reads) {
      for (const { counter, by } of adds) store.values.set(counter, String(Number(store.values.get(counter) ?? 0) + by));
      return reads.map((counter) => Number(store.values.get(counter) ?? 0));
    },
  })),
];

const wrongForgets: readonly WrongStore[] = [
  ...(["records", "windows", "sums", "values"] as const).map((kind) =>
    wrong(`lets go of no ${kind}`, "forget: of records, windows, lists, sums and values nothing is left, and of others all", (_, right) => ({
      forget: async ({ [kind]: _kept, ...rest }) => right.forget(rest),
    })),
  ),
  wrong("lets go of all that the customer has", "forget: of records, windows, lists, sums and values nothing is left, and of others all", (store, right) => ({
    async forget(what) {
      await right.forget(what);
      for (const { customer } of what.records ?? []) for (const key of store.records.keys()) if (key.startsWith(customer)) store.records.delete(key);
    },
  })),
  wrong(
    "lets go of the window with the name of a sum",
    "forget: the same id under another customer stays, and so does a sum with the name of a window, and a window with that of a sum",
    (_, right) => ({ forget: async (what) => right.forget({ ...what, windows: [...(what.windows ?? []), ...(what.sums ?? [])] }) }),
  ),
  wrong(
    "complains of what is not there",
    "forget: what is not there is passed over, a second call does nothing, and all of it can be made anew",
    (store, right) => ({
      async forget(what) {
        if (what.values?.some((key) => !store.values.has(key))) throw new Error("not found");
        await right.forget(what);
      },
    }),
  ),
  wrong(
    "takes a write over a record that was let go of for a create",
    "forget: a write over a record that was let go of finds none and does not bring it back",
    (store, right) => {
      const gone = new Set<string>();
      return {
        async forget(what) {
          for (const record of what.records ?? []) gone.add(store.key(record));
          await right.forget(what);
        },
        isExpected: (current, expected) => right.isExpected(current, expected) || (current === undefined && gone.size > 0),
      };
    },
  ),
  wrong(
    "keeps the wake time of what it lets go of",
    "forget: a record that was let go of is not leased, and wakes no more when another takes its place",
    (store, right) => {
      const woken = new Map<string, number | undefined>();
      return {
        async forget(what) {
          for (const record of what.records ?? []) woken.set(store.key(record), store.records.get(store.key(record))?.wakeAt);
          await right.forget(what);
        },
        write(record) {
          const wakeAt = record.wakeAt ?? woken.get(store.key(record));
          right.write(wakeAt === undefined ? record : { ...record, wakeAt });
        },
      };
    },
  ),
  wrong("lets go of a hundred at once, no more", "forget: thousands at once", (_, right) => ({
    forget: async (what) => right.forget({ ...what, windows: what.windows?.slice(0, 100) ?? [] }),
  })),
];

const wrongLives: readonly WrongStore[] = [
  wrong(
    "forgets by its own clock what callers' clocks keep",
    "life: what a caller keeps whose clock is years behind, or ahead, is kept as long",
    (store, right) => ({
      write(record) {
        right.write(record);
        if (record.now < Date.now() - 3_600_000) store.records.delete(store.key(record));
      },
    }),
  ),
  wrong("purges a window by the caller's clock", "life: a caller who is two days ahead ends nothing that the others keep", (store, right) => ({
    take(claim) {
      right.take(claim);
      if ("window" in claim) for (const [member, at] of store.window(claim.window)) if (at <= claim.since) store.leave({ ...claim, member });
    },
  })),
  wrong("purges a sum by the caller's clock", "life: a caller who is two days ahead ends nothing that the others keep", (store, right) => ({
    weigh(claim) {
      right.weigh(claim);
      for (const at of store.sum(claim.sum).keys()) if (at <= claim.since) store.sum(claim.sum).delete(at);
    },
  })),
  wrong("purges records by the caller's clock", "life: a caller who is two days ahead ends nothing that the others keep", (store, right) => ({
    write(record) {
      for (const [key, { keepUntil }] of store.records) if (keepUntil <= record.now) store.records.delete(key);
      right.write(record);
    },
  })),
  wrong(
    "lets the last claim's end hold for the whole window",
    "life: a nearer end never shortens what a window, a sum or a counter keeps for longer",
    (store, right) => ({
      take(claim) {
        right.take(claim);
        if (claim.keepUntil <= claim.now) store.windows.delete(nameOf(claim));
      },
    }),
  ),
  wrong(
    "lets the last add's end hold for the whole counter",
    "life: a nearer end never shortens what a window, a sum or a counter keeps for longer",
    (store, right) => ({
      async tally(adds, reads) {
        const counts = await right.tally(adds, reads);
        for (const { counter, keepUntil, now } of adds) if (keepUntil <= now) store.counters.delete(counter);
        return counts;
      },
    }),
  ),
];

/** Looks at everything, and does it a round trip later where `lags` says so. */
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

const wrongRacers: readonly WrongStore[] = [
  wrong(
    "creates by a look, then a write",
    "commit: of 50 racing creates exactly one is done, and the others get its record",
    lagging(({ record, expected = null }) => record !== undefined && expected === null),
  ),
  wrong(
    "reads, then writes after a round trip",
    "commit: of 50 racing writes from one token exactly one is done, and the others get its record",
    lagging(({ record, expected = null }) => record !== undefined && expected !== null),
  ),
  wrong(
    "claims in a step of its own, and undoes nothing when the race for the record is lost",
    "commit: of 50 racing creates with claims of their own exactly the claims of the one that is done are counted",
    (_, right) => ({
      claim(claims) {
        right.claim(claims);
        return () => {};
      },
    }),
    TwoStepStore,
  ),
  wrong(
    "undoes a lost race by the member's name, also where the winner claimed the same",
    "commit: of 50 racing writes that claim one member one is done, and the member stays counted",
    (store, right) => ({
      claim(claims) {
        const undo = right.claim(claims);
        return (landed) => {
          undo(landed);
          if (!landed) for (const claim of claims) if ("window" in claim) store.leave(claim);
        };
      },
    }),
    TwoStepStore,
  ),
  wrong(
    "undoes what a repeat has claimed that was quicker than the first",
    "commit: one write sent 50 times at once is done every time, written once and counted once",
    (store, right) => ({
      claim(claims) {
        const undo = right.claim(claims);
        return (landed) => {
          undo(landed);
          if (landed) for (const claim of claims) if ("window" in claim) store.leave(claim);
        };
      },
    }),
    TwoStepStore,
  ),
  wrong(
    "refuses a write that is sent many times at once",
    "commit: one write sent 50 times at once is done every time, written once and counted once",
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
  wrong("overwrites when an answer comes too late", "commit: no update is lost among callers that write until they land", (store, right) => ({
    async commit(change) {
      const expected = change.record && store.isExpected(store.records.get(store.key(change.record)), change.expected ?? null);
      await roundTrip();
      return expected ? (store.refusal(change.claims ?? []) ?? store.apply(change)) : right.commit(change);
    },
  })),
  wrong(
    "compares the count, then adds after a round trip",
    "window: of 50 racers never more than `limit` are granted, and one after another exactly `limit`",
    lagging(({ claims = [], record }) => !record && claims.length === 1 && !claims.some(isSum)),
  ),
  wrong(
    "locks windows one by one, so that callers in two orders block each other",
    "window: of 50 racers for two in both orders never more than `limit` are granted, and refusals charge nothing",
    (store, right) => ({
      async commit(change) {
        if (change.record || change.claims?.some(isSum)) return right.commit(change);
        for (const [i, claim] of (change.claims ?? []).entries()) {
          if (store.isFull(claim)) return { done: false, refusedBy: i, count: store.others(claim) };
          store.take(claim);
          await roundTrip();
        }
        return right.commit(change);
      },
    }),
  ),
  wrong("counts members that race as many", "window: one member claimed by 50 racers is granted to all and counted once", (store, right) => ({
    async commit(change) {
      const known = (change.claims ?? []).map((claim) => "window" in claim && store.window(claim.window).has(claim.member));
      await roundTrip();
      const full = (change.claims ?? []).findIndex((claim, i) => !known[i] && "window" in claim && store.isFull({ ...claim, member: "" }));
      return full < 0 ? right.commit(change) : { done: false, refusedBy: full, count: store.others(change.claims?.[full] as Claim) };
    },
  })),
  wrong(
    "compares the count, then adds and writes after a round trip",
    "window: of 50 racers with records of their own never more than `limit` are done, and who is refused leaves no record",
    lagging(({ claims = [], record }) => record !== undefined && claims.length > 1),
  ),
  wrong(
    "writes the record before the claims, and leaves it where they are refused",
    "window: of 50 racers with records of their own never more than `limit` are done, and who is refused leaves no record",
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
    "sum: of 50 racers never more than the limit is granted, and one after another exactly the limit",
    lagging(({ claims = [], record }) => record !== undefined && claims.length === 1 && claims.some(isSum)),
  ),
  wrong(
    "compares two sums, then adds after a round trip",
    "sum: of 50 racers for two in both orders never more than the limits are granted, and refusals charge nothing",
    lagging(({ claims = [], record }) => !record && claims.length > 1 && claims.every(isSum)),
  ),
  wrong("reads a sum, and writes it a round trip later", "sum: of 50 racers that claim and give back nothing is lost", (store, right) => ({
    async commit(change) {
      const [claim] = change.claims ?? [];
      if (change.record || claim?.limit !== undefined || !claim || !("sum" in claim)) return right.commit(change);
      const parts = new Map(store.sum(claim.sum));
      await roundTrip();
      store.sums.set(claim.sum, parts);
      return right.commit(change);
    },
  })),
  wrong(
    "tells racers what was there before the race",
    "commit: 50 racers that claim without a limit and ask are told themselves and all before them",
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
  wrong("appends a value piece by piece", "put: of 50 racing puts one stays whole", (store) => ({
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
  wrongLeases,
  wrongTallies,
  wrongValues,
  wrongForgets,
  wrongLives,
  wrongRacers,
].flat();
