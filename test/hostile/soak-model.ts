/** Judges the soak test: it knows the contract, the responses and the messages that were sent, but not the code. */

export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** For the customer `open`: the most that its messages of a day may cost, and the most that one costs. */
export const ceiling = 300;
export const dearest = 3;

/** The default caps and budgets (docs/contract.md#caps, docs/contract.md#checks, docs/contract.md#code). */
const perNumber = [
  { limit: 5, length: 10 * minute },
  { limit: 10, length: day },
] as const;
const checks = 5;
const lifetime = 10 * minute;
const tombstone = day;
/** A message goes out up to 2 s after it was counted (docs/contract.md#late-hand-over); the rest is slack. */
const late = 2.5 * second;
/** Windows reach back twice the skew further (docs/contract.md#every-window), and clocks are off by as much. */
const skewed = 20 * second + late;

/** `guarded` has the default policy; `open` has no spam rules and a spend ceiling. */
export interface Ask {
  readonly customer: "guarded" | "open";
  readonly operation: "create" | "retry" | "check" | "unlock" | "erase" | "history";
  readonly number: string;
  readonly id?: string;
  readonly code?: string;
  readonly key?: string;
  readonly device?: string;
}

export interface Answer {
  /** The HTTP status. */
  readonly status: number;
  /** The status of the result, or the code of the error; for `history` the number of entries. */
  readonly result: string;
  readonly id?: string;
  /** In real milliseconds. */
  readonly took: number;
}

/** One request. Times are true, in milliseconds since the epoch. */
export interface Entry {
  readonly process: number;
  readonly ask: Ask;
  readonly asked: number;
  /** Without a response: when the driver stopped waiting, which is after the process was killed. */
  answered: number;
  answer?: Answer;
  /**
   * The process was killed before it responded, or before it took back the counts of a request that got 503:
   * something may be counted or stored for nothing.
   */
  lost: boolean;
  /** While a server was paused or down. */
  faulty: boolean;
  /** Asked at the end, without errors: a rejection must have a cause. */
  readonly quiet: boolean;
}

/** A message that the sender of a process got. */
export interface Message {
  readonly customer: Ask["customer"];
  readonly id: string;
  readonly to: string;
  readonly code: string;
  readonly attempt: number;
  readonly cost: number;
  readonly process: number;
  readonly at: number;
}

export interface History {
  readonly entries: readonly Entry[];
  readonly messages: readonly Message[];
  /** Traces of erased numbers in a dump of the store, made at the end. */
  readonly traces: readonly string[];
  /** On MongoDB, an interrupted commit may stay counted in a sum that others changed (docs/contract.md#two-steps). */
  readonly keepsCutShort?: boolean;
}

interface Span {
  readonly from: number;
  readonly to: number;
}

const ofEntry = ({ asked, answered }: Entry): Span => ({ from: asked, to: answered });
const ofMessage = ({ at }: Message): Span => ({ from: at, to: at });
const told = (at: number) => new Date(at).toISOString();
const owner = ({ customer, number }: Pick<Ask, "customer" | "number">) => `${customer} ${number}`;
const ownerOf = ({ customer, to }: Message) => `${customer} ${to}`;
const result = ({ answer }: Entry) => answer?.result;
/** Whether its outcome is unknown: it got no response, or a 5xx. */
const open = ({ answer }: Entry) => answer === undefined || answer.status >= 500;
const may = (entry: Entry, ...results: readonly string[]) => open(entry) || results.includes(result(entry) as string);

function groups<T>(list: readonly T[], key: (one: T) => string): Map<string, T[]> {
  const map = new Map<string, T[]>();
  for (const one of list) {
    const group = map.get(key(one));
    if (group) group.push(one);
    else map.set(key(one), [one]);
  }
  return map;
}

/**
 * The windows of `length` that are known to hold more than `limit`. A renewal clears once what was counted before it,
 * at an unknown moment in its span.
 */
function beyond(what: string, spans: readonly Span[], limit: number, length: number, renewals: readonly Span[] = []): string[] {
  const faults: string[] = [];
  for (const { to } of spans) {
    const inside = spans.filter((one) => one.from > to - length && one.to <= to);
    const lifting = renewals.filter((one) => one.to > to - length && one.from <= to);
    const since = Math.max(...lifting.map((one) => one.to));
    const after = inside.filter(({ from }) => from > since).length;
    const most = lifting.length > 0 ? 2 * limit : limit;
    if (inside.length > most) faults.push(`${what}: ${inside.length} instead of ${most} within ${length} ms until ${told(to)}`);
    else if (lifting.length > 0 && after > limit) faults.push(`${what}: ${after} instead of ${limit} since the unlock until ${told(to)}`);
  }
  return faults;
}

const unlocksOf = (entries: readonly Entry[]) =>
  groups(
    entries.filter((one) => one.ask.operation === "unlock" && may(one, "unlocked")),
    ({ ask }) => owner(ask),
  );
/** A request that got 503 may still take effect for as long as a server is paused. */
const landing = (entry: Entry) => (open(entry) ? 6 * second : 0);
const erasure = (one: Entry): Span => ({ from: one.asked, to: one.answered + landing(one) });
const erasuresOf = (entries: readonly Entry[]): Map<string, Span[]> =>
  new Map(
    [
      ...groups(
        entries.filter(({ ask }) => ask.operation === "erase"),
        ({ ask }) => owner(ask),
      ),
    ].map(([name, all]) => [name, all.map(erasure)]),
  );
const beside = (spans: readonly Span[] = [], from: number, to: number) => spans.filter((one) => one.from <= to && one.to >= from).length;
const checksOf = ({ entries }: History) => entries.filter(({ ask }) => ask.operation === "check");

/** Each evaluation once: a repeat under a key only returns it again. */
function judged(history: History, as: string): Entry[] {
  const first = new Map<string, Entry>();
  for (const [at, one] of checksOf(history).entries()) {
    const name = one.ask.key === undefined ? `${at}` : `${one.ask.id} ${one.ask.key}`;
    if (result(one) === as && !first.has(name)) first.set(name, one);
  }
  return [...first.values()];
}

/** docs/contract.md#checks */
export function noAuthenticationIsGuessedMoreThanFiveTimes(history: History): string[] {
  const many = [...groups(judged(history, "invalid"), ({ ask }) => ask.id as string)].filter(([, all]) => all.length > checks);
  return many.map(([id, all]) => `${id}: ${all.length} wrong codes judged, the last at ${told(all.at(-1)?.answered as number)}`);
}

/** docs/contract.md#guesses-claimed */
export function noNumberIsGuessedBeyondItsBudget(history: History): string[] {
  const unlocks = unlocksOf(history.entries);
  return [...groups(judged(history, "invalid"), ({ ask }) => owner(ask))].flatMap(([name, all]) =>
    beyond(`wrong codes of ${name}`, all.map(ofEntry), 10 * checks, day, unlocks.get(name)?.map(ofEntry)),
  );
}

/** docs/contract.md#already-validated */
export function noAuthenticationIsValidTwice(history: History): string[] {
  const many = [...groups(judged(history, "valid"), ({ ask }) => ask.id as string)].filter(([, all]) => all.length > 1);
  return many.map(([id, all]) => `${id}: valid ${all.length} times: ${all.map(({ answered, process }) => `${told(answered)} by ${process}`).join(", ")}`);
}

/** docs/contract.md#check-order */
export function onlyACodeThatWasSentIsValid(history: History): string[] {
  const sent = groups(history.messages, ({ id }) => id);
  const wrong = judged(history, "valid").filter(({ ask }) => !sent.get(ask.id as string)?.some(({ code }) => code === ask.code));
  return wrong.map(({ ask, answered }) => `${ask.id}: ${ask.code} is valid at ${told(answered)}, and was never sent`);
}

/** docs/contract.md#caps, docs/contract.md#every-window */
export function noNumberGetsMoreMessagesThanItsCaps({ entries, messages }: History): string[] {
  const unlocks = unlocksOf(entries);
  return [...groups(messages, ownerOf)].flatMap(([name, all]) =>
    perNumber.flatMap(({ limit, length }) => beyond(`messages to ${name}`, all.map(ofMessage), limit, length - late, unlocks.get(name)?.map(ofEntry))),
  );
}

/** docs/contract.md#unlock */
export function noNumberIsUnlockedTwiceInADay({ entries }: History): string[] {
  const done = entries.filter((one) => one.ask.operation === "unlock" && result(one) === "unlocked");
  return [...groups(done, ({ ask }) => owner(ask))].flatMap(([name, all]) => beyond(`unlocks of ${name}`, all.map(ofEntry), 1, day));
}

/** docs/contract.md#caps: creates with one device, and distinct numbers. */
export function noDeviceCreatesMoreThanItsCaps({ entries, messages }: History): string[] {
  const first = new Map(messages.map((one) => [one.id, one] as const).reverse());
  const made = new Map<string, { readonly device: string; readonly message: Message }>();
  for (const one of entries) {
    const message = first.get(one.answer?.id ?? "");
    const { device, customer } = one.ask;
    if (result(one) === "pending" && message && device !== undefined) made.set(message.id, { device: `${customer} ${device}`, message });
  }
  return [...groups([...made.values()], ({ device }) => device)].flatMap(([name, all]) => {
    const creates = all.map(({ message }) => message);
    const crowded = creates.flatMap(({ at }) => {
      const numbers = new Set(creates.filter((one) => one.at > at - day + late && one.at <= at).map(({ to }) => to));
      return numbers.size > 3 ? [`numbers with ${name}: ${numbers.size} instead of 3 in the day until ${told(at)}`] : [];
    });
    return [...beyond(`creates with ${name}`, creates.map(ofMessage), 5, hour - late), ...crowded];
  });
}

/** docs/contract.md#spend-ceiling */
export function noDayCostsMoreThanItsCeiling({ messages }: History): string[] {
  const paid = messages.filter(({ customer }) => customer === "open").sort((a, b) => a.at - b.at);
  const faults: string[] = [];
  let [sum, from] = [0, 0];
  for (const { at, cost } of paid) {
    sum += cost;
    for (let old = paid[from] as Message; old.at <= at - day + late; old = paid[++from] as Message) sum -= old.cost;
    if (sum > ceiling) faults.push(`${sum} instead of ${ceiling} in the day until ${told(at)}`);
  }
  return faults;
}

/**
 * docs/contract.md#spam-range, docs/contract.md#open, docs/contract.md#balance: messages to numbers never verified. A
 * cell counts in parts of half a day: for some beginning 24 to 36 hours ago its messages, less those of numbers verified
 * since, are within the seed and the earned credit.
 */
export function noRangeIsOpenBeyondWhatItVerified(history: History): string[] {
  const mine = history.entries.filter(({ ask }) => ask.customer === "guarded");
  const messages = history.messages.filter(({ customer }) => customer === "guarded");
  const byId = groups(messages, ({ id }) => id);
  const right = checksOf(history).filter((one) => one.ask.customer === "guarded" && byId.get(one.ask.id as string)?.some(({ code }) => code === one.ask.code));
  const proofs = right.filter((one) => may(one, "valid"));
  // Left out too: numbers with an unlock, which takes their messages out of the cells, and messages sent while the
  // server failed, when a second look fails open.
  const known = new Set([...proofs, ...mine.filter(({ ask }) => ask.operation === "unlock")].map(({ ask }) => ask.number));
  const excused = mine.filter(({ faulty }) => faulty);
  const strange = messages.filter(({ to, at }) => !known.has(to) && !excused.some((one) => one.ask.number === to && one.asked <= at && at <= one.answered));
  return [4, 5].flatMap((last) => {
    const seed = last === 4 ? 5 : 12;
    const verified = groups(proofs, ({ ask }) => ask.number.slice(0, -last));
    return [...groups(strange, ({ to }) => to.slice(0, -last))].flatMap(([range, all]) => {
      const here = verified.get(range) ?? [];
      return all.flatMap(({ at: end }) => {
        const within = ({ at }: { at: number }, since: number) => at > since && at <= end;
        const allowed = (since: number) => {
          const validated = here.filter((one) => one.answered > since && one.asked <= end);
          // Messages before the beginning to numbers verified after it: a cell has both only if they are on one side.
          const astride = new Set(validated.map(({ ask }) => ask.id as string));
          const given = [...astride].flatMap((id) => byId.get(id) ?? []).filter(({ at }) => at <= since + skewed).length;
          return seed + 2 * earned(validated) + given;
        };
        const beginnings = [end - 1.5 * day - skewed, ...here.map(({ asked }) => asked - 1), ...all.map(({ at }) => at)];
        const since = beginnings.filter((one) => one >= end - 1.5 * day - skewed && one <= end - day + skewed);
        const fits = since.some((one) => all.filter((other) => within(other, one)).length <= allowed(one));
        const count = all.filter((one) => within(one, end - day)).length;
        return fits ? [] : [`range ${range}: ${count} open in the day until ${told(end)}, with ${allowed(end - 1.5 * day - skewed)} allowed at most`];
      });
    });
  });
}

/** How many of these earn credit: a number does once in 24 hours (docs/contract.md#balance). */
function earned(validated: readonly Entry[]): number {
  let count = 0;
  for (const all of groups(validated, ({ ask }) => ask.number).values()) {
    let next = 0;
    for (const { asked, answered } of all)
      if (answered >= next) {
        count++;
        next = asked + day - skewed;
      }
  }
  return count;
}

/** docs/contract.md#spam-crowd: too few numbers of a range of a million verify for a higher limit. */
export function noRangeIsCrowded({ entries, messages }: History): string[] {
  const guarded = messages.filter(({ customer }) => customer === "guarded");
  const unlocked = new Set(unlocksOf(entries).keys());
  const excused = entries.filter(({ faulty }) => faulty);
  const counted = guarded.filter(
    (one) => !unlocked.has(ownerOf(one)) && !excused.some(({ ask, asked, answered }) => ask.number === one.to && asked <= one.at && one.at <= answered),
  );
  return [...groups(counted, ({ to }) => to.slice(0, -4))].flatMap(([range, all]) => beyond(`messages to range ${range}`, all.map(ofMessage), 25, day - late));
}

/** docs/contract.md#stored-first, docs/contract.md#lost-write, docs/contract.md#no-error-after-hand-over, docs/contract.md#idempotency */
export function eachApprovalSendsOneMessage({ entries, messages }: History): string[] {
  const faults: string[] = [];
  const sent = groups(messages, ({ id }) => id);
  const named = groups(entries, ({ ask, answer }) => ask.id ?? answer?.id ?? "");
  const keyed = groups(
    entries.filter(({ ask }) => ask.operation === "create" && ask.key !== undefined),
    ({ ask }) => `${ask.customer} ${ask.key}`,
  );
  const erasures = erasuresOf(entries);
  const strangers = new Map<string, number>();
  for (const [id, all] of named) {
    const created = all.filter((one) => one.ask.operation === "create" && result(one) === "pending");
    if (created.length === 0) continue;
    const { ask } = created[0] as Entry;
    const retries = all.filter(({ ask }) => ask.operation === "retry");
    const approved = retries.filter((one) => result(one) === "approved").length;
    const unanswered = retries.filter(({ answer }) => answer === undefined).length;
    const twins = ask.key === undefined ? created : (keyed.get(`${ask.customer} ${ask.key}`) as Entry[]);
    // If a create with this key died, or was taken back, a repeat may find its record without a message.
    const least = twins.some(open) ? 0 : 1;
    // An erasure empties a record and then removes it: its key may make a new one after each step.
    const most = 1 + (ask.key === undefined ? 0 : 2 * beside(erasures.get(owner(ask)), twins[0]?.asked ?? 0, twins.at(-1)?.answered ?? 0));
    const count = sent.get(id)?.length ?? 0;
    if (count < least + approved || count > most + approved + unanswered)
      faults.push(`${id} of ${owner(ask)}, ${ask.key ?? "no key"}: ${count} messages for a create, ${approved} approved and ${unanswered} unanswered retries`);
  }
  for (const [id, all] of sent) {
    if (named.get(id)?.some((one) => one.ask.operation === "create" && result(one) === "pending")) continue;
    const name = ownerOf(all[0] as Message);
    strangers.set(name, (strangers.get(name) ?? 0) + 1);
    if (all.length > 1) faults.push(`${id} of ${name}: ${all.length} messages, and nobody was told of it`);
  }
  for (const [name, count] of strangers) {
    const killed = entries.filter((one) => one.ask.operation === "create" && one.answer === undefined && owner(one.ask) === name).length;
    if (count > killed) faults.push(`${name}: ${count} messages of creates that nobody was told of, and ${killed} unanswered creates`);
  }
  return faults;
}

/**
 * docs/contract.md#lost-write, docs/contract.md#two-steps: at the end, without errors, a cap rejects only because of
 * sent messages, and of what killed processes may have left.
 */
export function nothingIsCountedWithoutAMessage({ entries, messages, keepsCutShort = false }: History): string[] {
  const refused = entries.filter((one) => one.quiet && one.ask.operation === "create" && result(one) === "rate_limited");
  const erasures = erasuresOf(entries);
  // "It stays as if it were counted at the time of the erasure" (docs/contract.md#erase).
  const countedAt = (message: Message) =>
    Math.max(
      message.at,
      ...(erasures.get(ownerOf(message)) ?? []).filter(({ from, to }) => to >= message.at && from <= message.at + day + lifetime + skewed).map(({ to }) => to),
    );
  return refused.flatMap(({ ask, asked, answered, process }) => {
    // "An erasure of the number at the same time may keep counted what the unlock would have taken back" (docs/contract.md#unlock).
    const unlocked = entries.filter(
      (one) =>
        one.ask.operation === "unlock" &&
        owner(one.ask) === owner(ask) &&
        result(one) === "unlocked" &&
        one.answered < asked &&
        beside(erasures.get(owner(ask)), one.asked, one.answered) === 0,
    );
    const lifted = Math.max(...unlocked.map((one) => one.asked - late));
    const isLost = ({ lost, answer }: Entry) => lost || (keepsCutShort && answer?.status === 503);
    const lost = (since: number) =>
      entries.filter((one) => isLost(one) && one.ask.customer === ask.customer && ["create", "retry"].includes(one.ask.operation) && one.answered >= since);
    const mine = messages.filter((one) => ownerOf(one) === owner(ask) && one.at >= lifted && one.at <= answered);
    const full = perNumber.some(({ limit, length }) => {
      const since = asked - length - skewed;
      return mine.filter((one) => countedAt(one) >= since).length + lost(since).filter((one) => owner(one.ask) === owner(ask)).length >= limit;
    });
    const since = asked - 26 * hour - skewed;
    const paid = messages.filter(({ customer, at }) => customer === ask.customer && at >= since && at <= answered);
    const spent = paid.reduce((sum, { cost }) => sum + cost, 0) + dearest * lost(since).length;
    if (full || (ask.customer === "open" && spent + dearest > ceiling)) return [];
    const recent = (length: number) => mine.filter(({ at }) => at >= asked - length - skewed).length;
    return [
      `${owner(ask)} is refused by ${process} at ${told(asked)} with ${recent(10 * minute)} messages in 10 min, ${recent(day)} in a day and ${spent} spent`,
    ];
  });
}

/**
 * Whether an earlier create was rejected under the id of a retry or check: the key of an erased authentication makes
 * its id again (docs/contract.md#keyed-id).
 */
function isRefusedAgain(ofNumber: readonly Entry[] = [], { ask: { id }, answered }: Entry): boolean {
  return ofNumber.some((one) => one.answer?.id === id && one.answer?.result !== "pending" && one.asked < answered);
}

/** docs/contract.md#live-codes, docs/contract.md#check-order: what a check with the newest code may return, and why. */
export function theNewestCodeIsNeverWrong(history: History): string[] {
  const { entries } = history;
  const sent = groups(history.messages, ({ id }) => id);
  const about = groups(entries, ({ ask }) => ask.id ?? "");
  const ofNumber = groups(entries, ({ ask }) => owner(ask));
  const erasures = erasuresOf(entries);
  return checksOf(history).flatMap((entry) => {
    const { ask, asked, answered, answer, process } = entry;
    const all = sent.get(ask.id as string) ?? [];
    const [first, newest] = [all[0], all.filter(({ at }) => at <= asked).at(-1)];
    if (open(entry) || !answer || !first || !newest || newest.code !== ask.code) return [];
    const before = (about.get(ask.id as string) ?? []).filter((one) => one !== entry && one.asked < answered);
    const right = ({ ask: { code } }: Entry) => all.some((one) => one.code === code);
    const others = before.filter((one) => one.ask.operation === "check");
    // A retry that died or got 503 may have stored a code that no one got: after two of them this code is not among the
    // newest two.
    const hidden = before.filter((one) => one.ask.operation === "retry" && one.answered >= newest.at && may(one, "approved") && one.asked >= newest.at).length;
    const wrong = others.filter((one) => !right(one) && may(one, "invalid")).length;
    const guessed =
      ofNumber.get(owner(ask))?.filter((one) => one.ask.operation === "check" && one.asked > asked - 36 * hour - skewed && may(one, "invalid")).length ?? 0;
    // An erasure during the create may come between its write and its message.
    const begun = (ofNumber.get(owner(ask)) ?? []).filter((one) => one.answer?.id === ask.id || (one.answer === undefined && one.answered >= first.at));
    const erased = beside(erasures.get(owner(ask)), Math.min(first.at, ...begun.map((one) => one.asked)), answered) > 0;
    const refused = erased && isRefusedAgain(ofNumber.get(owner(ask)), entry);
    const reasons: Readonly<Record<string, boolean | undefined>> = {
      valid: true,
      already_validated: others.some((one) => right(one) && may(one, "valid")),
      rate_limited: wrong >= checks || guessed >= 10 * checks || refused,
      expired_auth: answered >= first.at + lifetime - skewed,
      invalid_auth_uuid: erased || answered >= first.at + lifetime + tombstone - skewed,
      invalid: hidden >= 2,
      without_attempt: refused,
    };
    return reasons[answer.result]
      ? []
      : [`${ask.id} of ${owner(ask)}, sent at ${told(newest.at)}: the newest code is ${answer.result} by ${process} at ${told(asked)}`];
  });
}

/** docs/contract.md#send-under-way */
export function whatWasSentIsNeverSaidToBeUnsent({ entries, messages }: History): string[] {
  const sent = groups(messages, ({ id }) => id);
  const ofNumber = groups(entries, ({ ask }) => owner(ask));
  const erasures = erasuresOf(entries);
  const wrong = entries.filter((one) => {
    const first = sent.get(one.ask.id ?? "")?.[0]?.at ?? Number.POSITIVE_INFINITY;
    if (!["without_attempt", "no_attempt"].includes(result(one) as string) || first > one.asked) return false;
    return beside(erasures.get(owner(one.ask)), first, one.answered) === 0 || !isRefusedAgain(ofNumber.get(owner(one.ask)), one);
  });
  return wrong.map(({ ask, asked, process, answer }) => `${ask.id} of ${owner(ask)}: ${answer?.result} by ${process} at ${told(asked)}`);
}

/** Erased numbers without requests since or at the same time, nor any after a 503 that may still take effect. */
export function erasedNumbers(entries: readonly Entry[]): Pick<Ask, "customer" | "number">[] {
  return [...groups(entries, ({ ask }) => owner(ask)).values()].flatMap((all) => {
    const last = all.filter((one) => one.ask.operation === "erase" && result(one) === "erased").at(-1);
    const rest = all.filter(({ ask }) => ask.operation !== "erase" && ask.operation !== "history");
    return last && rest.every((one) => one.answered + landing(one) < last.asked) ? [last.ask] : [];
  });
}

/** docs/contract.md#erase */
export function anErasedNumberIsGone({ entries, traces }: History): string[] {
  const erased = new Set(erasedNumbers(entries).map(owner));
  const known = entries.filter(
    (one) => one.quiet && one.ask.operation === "history" && erased.has(owner(one.ask)) && one.answer?.status === 200 && result(one) !== "0",
  );
  return [...known.map((one) => `${owner(one.ask)}: erased, and its history has ${result(one)} entries at ${told(one.asked)}`), ...traces];
}

/**
 * docs/contract.md#store-deadline, docs/contract.md#answer-time, docs/contract.md#other-faults: 2 s of store, 5 s of
 * carrier, two pauses of up to 4 s, and a loaded machine.
 */
export function eachRequestEndsInTimeAndInOrder({ entries }: History): string[] {
  return entries.flatMap(({ ask, answer, asked, process }) => {
    const most = ["create", "retry"].includes(ask.operation) ? 19 * second : 14 * second;
    const fine = answer === undefined || (answer.took <= most && (answer.status < 500 || answer.status === 503));
    return fine ? [] : [`${ask.operation} of ${owner(ask)} by ${process} at ${told(asked)}: ${answer.status} ${answer.result} after ${answer.took} ms`];
  });
}

export const invariants = {
  noAuthenticationIsGuessedMoreThanFiveTimes,
  noNumberIsGuessedBeyondItsBudget,
  noAuthenticationIsValidTwice,
  onlyACodeThatWasSentIsValid,
  noNumberGetsMoreMessagesThanItsCaps,
  noNumberIsUnlockedTwiceInADay,
  noDeviceCreatesMoreThanItsCaps,
  noDayCostsMoreThanItsCeiling,
  noRangeIsOpenBeyondWhatItVerified,
  noRangeIsCrowded,
  eachApprovalSendsOneMessage,
  nothingIsCountedWithoutAMessage,
  theNewestCodeIsNeverWrong,
  whatWasSentIsNeverSaidToBeUnsent,
  anErasedNumberIsGone,
  eachRequestEndsInTimeAndInOrder,
} as const;

/** The violations in a history, each under the name of its invariant. */
export function violations(history: History): string[] {
  return Object.entries(invariants).flatMap(([name, broken]) => broken(history).map((how) => `${name}: ${how}`));
}

/**
 * The requests and messages of the authentications, or else of the number, that a violation names, and the requests
 * about their numbers at that time: a line each, in order.
 */
export function storyOf({ entries, messages }: History, violation: string): string[] {
  const ids = new Set(violation.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g));
  const number = /(?:guarded|open) \+\d+/.exec(violation)?.[0];
  const isNamed = ({ ask, answer }: Entry) => (ids.size === 0 ? owner(ask) === number : ids.has(ask.id ?? "") || ids.has(answer?.id ?? ""));
  const named = entries.filter(isNamed);
  const owners = new Set(named.map(({ ask }) => owner(ask)));
  const [from, to] = [Math.min(...named.map(({ asked }) => asked)), Math.max(...named.map(({ answered }) => answered))];
  const isBeside = ({ ask, asked, answered }: Entry) => ask.id === undefined && owners.has(owner(ask)) && asked <= to && answered >= from;
  const lines = [
    ...entries
      .filter((one) => isNamed(one) || isBeside(one))
      .map(({ ask, answer, asked, answered, process, lost, faulty }) => {
        const rest = JSON.stringify({ process, id: ask.id ?? answer?.id, code: ask.code, key: ask.key, lost, faulty });
        const how = answer === undefined ? "unanswered" : `${answer.status} ${answer.result}`;
        return { at: asked, line: `${told(asked)} to ${told(answered)} ${ask.operation}: ${how} ${rest}` };
      }),
    ...messages
      .filter((one) => (ids.size === 0 ? ownerOf(one) === number : ids.has(one.id)))
      .map((one) => ({ at: one.at, line: `${told(one.at)} message ${JSON.stringify(one)}` })),
  ];
  return lines.sort((one, other) => one.at - other.at).map(({ line }) => line);
}
