import { expect, it } from "vitest";
import { french } from "./one-commit-kit.js";
import { type Ask, ceiling, type Entry, type History, hour, invariants, type Message, minute, second, storyOf, violations } from "./soak-model.js";

const start = Date.UTC(2026, 0, 1);
const one = french(1);

type What = Partial<Omit<Entry, "ask" | "answer">> &
  Partial<Ask> & { readonly result?: string; readonly status?: number; readonly of?: string; readonly took?: number };

/** A request at a time, in milliseconds from the start. Without a `result` it never got a response. */
function entry(at: number, operation: Ask["operation"], what: What = {}): Entry {
  const { result, status = 200, of, took = 1, process = 1, lost = false, faulty = false, quiet = false, customer = "open", number = one, ...rest } = what;
  const asked = start + at;
  const base = { process, ask: { operation, customer, number, ...rest }, asked, answered: asked + 10, lost, faulty, quiet };
  return result === undefined ? base : { ...base, answer: { status, result, took, ...(of !== undefined && { id: of }) } };
}

function message(at: number, what: Partial<Message> = {}): Message {
  return { customer: "open", id: "a", to: one, code: "111111", attempt: 1, cost: 1, process: 1, at: start + at + 5, ...what };
}

const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const created = (at: number, id: string, what: What = {}) => entry(at, "create", { result: "pending", of: id, ...what });
const wrong = (at: number, id: string, what: What = {}) => entry(at, "check", { id, code: "999999", result: "invalid", ...what });
const right = (at: number, id: string, result: string | undefined, what: What = {}) =>
  entry(at, "check", { id, code: "111111", ...(result && { result }), ...what });
const history = (entries: readonly Entry[] = [], messages: readonly Message[] = [], traces: readonly string[] = []): History => ({ entries, messages, traces });
/** Creates with their messages, each with a separate id. */
const sends = (count: number, when: (at: number) => number, what: (at: number) => What = () => ({})): History =>
  history(
    times(count, (at) => created(when(at), `s${at}`, what(at))),
    times(count, (at) => message(when(at), { id: `s${at}`, to: what(at).number ?? one, customer: what(at).customer ?? "open", cost: 3 })),
  );
const join = (...all: readonly History[]): History =>
  history(
    all.flatMap(({ entries }) => entries),
    all.flatMap(({ messages }) => messages),
  );
const guarded = (at: number): What => ({ customer: "guarded", number: french(at) });
const apart = (at: number) => (at % 5) * second + Math.floor(at / 5) * 11 * minute;

const good: Readonly<Record<string, History>> = {
  "nothing at all": history(),
  "a life: wrong, right, late": history([created(0, "a"), wrong(20, "a"), right(40, "a", "valid"), right(60, "a", "already_validated")], [message(0)]),
  "a key that is repeated": history(
    [created(0, "a", { key: "k" }), created(50, "a", { key: "k" }), right(80, "a", "valid", { key: "c" }), right(99, "a", "valid", { key: "c" })],
    [message(0)],
  ),
  "ten a day, and ten more after an unlock": join(
    sends(10, apart),
    history([entry(hour, "unlock", { result: "unlocked" })]),
    history(
      times(10, (at) => created(2 * hour + apart(at), `t${at}`)),
      times(10, (at) => message(2 * hour + apart(at), { id: `t${at}` })),
    ),
  ),
  "five open in a range, and two more for who verified": join(
    history([created(0, "v", guarded(99)), right(20, "v", "valid", guarded(99))], [message(0, { id: "v", customer: "guarded", to: french(99) })]),
    sends(7, (at) => hour + at, guarded),
  ),
  "a create that died after its message": history([entry(0, "create", { lost: true })], [message(0)]),
  "a refusal by what the killed left": join(
    sends(4, apart),
    history([entry(minute, "create", { lost: true }), entry(2 * minute, "create", { result: "rate_limited", quiet: true })]),
  ),
  "an erased one whose key is refused": history(
    [
      created(0, "a", { key: "k" }),
      entry(50, "erase", { result: "erased" }),
      entry(70, "create", { key: "k", result: "spam_detected", of: "a" }),
      entry(90, "retry", { id: "a", result: "no_attempt" }),
      right(99, "a", "without_attempt"),
    ],
    [message(0)],
  ),
  "an erasure": history([created(0, "a"), entry(50, "erase", { result: "erased" }), entry(99, "history", { result: "0", quiet: true })], [message(0)]),
};

it.each(Object.entries(good))("the model accepts %s", (_, story) => {
  expect(violations(story)).toEqual([]);
});

const devices = (at: number): What => ({ device: "d", number: french(at) });
const bad: readonly (readonly [keyof typeof invariants, string, History])[] = [
  ["noAuthenticationIsGuessedMoreThanFiveTimes", "six wrong codes", history(times(6, (at) => wrong(at, "a")))],
  ["noNumberIsGuessedBeyondItsBudget", "51 wrong codes of one number in a day", history(times(51, (at) => wrong(at * minute, `a${at % 20}`)))],
  [
    "noNumberIsGuessedBeyondItsBudget",
    "101 of them on a day with an unlock",
    history([entry(50 * minute, "unlock", { result: "unlocked" }), ...times(101, (at) => wrong(at * minute, `a${at % 40}`))]),
  ],
  [
    "noAuthenticationIsValidTwice",
    "valid of two processes",
    history([created(0, "a"), right(20, "a", "valid"), right(40, "a", "valid", { process: 2 })], [message(0)]),
  ],
  [
    "noAuthenticationIsValidTwice",
    "valid under two keys",
    history([created(0, "a"), right(20, "a", "valid", { key: "x" }), right(40, "a", "valid", { key: "y" })], [message(0)]),
  ],
  ["onlyACodeThatWasSentIsValid", "another code is valid", history([created(0, "a"), right(20, "a", "valid")], [message(0, { code: "222222" })])],
  ["noNumberGetsMoreMessagesThanItsCaps", "six within ten minutes", sends(6, (at) => at * minute)],
  ["noNumberGetsMoreMessagesThanItsCaps", "eleven in a day", sends(11, (at) => at * 2 * hour)],
  [
    "noNumberGetsMoreMessagesThanItsCaps",
    "six right after an unlock",
    join(
      history([entry(0, "unlock", { result: "unlocked" })]),
      sends(6, (at) => minute + at),
    ),
  ],
  [
    "noNumberGetsMoreMessagesThanItsCaps",
    "eleven around an unlock",
    join(
      sends(11, (at) => at * second),
      history([entry(5_500, "unlock", { result: "unlocked" })]),
    ),
  ],
  ["noNumberIsUnlockedTwiceInADay", "two unlocks", history([0, 23 * hour].map((at) => entry(at, "unlock", { result: "unlocked" })))],
  [
    "noDeviceCreatesMoreThanItsCaps",
    "six in an hour",
    sends(
      6,
      (at) => at * 9 * minute,
      () => ({ device: "d" }),
    ),
  ],
  ["noDeviceCreatesMoreThanItsCaps", "four numbers in a day", sends(4, (at) => at * 5 * hour, devices)],
  [
    "noDayCostsMoreThanItsCeiling",
    "a message more than the ceiling allows",
    sends(
      ceiling / 3 + 1,
      (at) => at * minute,
      (at) => ({ number: french(at) }),
    ),
  ],
  ["noRangeIsOpenBeyondWhatItVerified", "six numbers of a range", sends(6, (at) => at * second, guarded)],
  [
    "noRangeIsOpenBeyondWhatItVerified",
    "eight where one verified, twice in a day",
    join(
      history(
        [0, 1].flatMap((at) => [created(at * hour, `v${at}`, guarded(99)), right(at * hour + 20, `v${at}`, "valid", guarded(99))]),
        [0, 1].map((at) => message(at * hour, { id: `v${at}`, customer: "guarded", to: french(99) })),
      ),
      sends(8, (at) => 2 * hour + at, guarded),
    ),
  ],
  [
    "noRangeIsOpenBeyondWhatItVerified",
    "thirteen in ten ranges of a hundred thousand",
    sends(
      13,
      (at) => at,
      (at) => ({ customer: "guarded", number: french(at, at % 10) }),
    ),
  ],
  ["noRangeIsCrowded", "26 to one range", sends(26, (at) => at * minute, guarded)],
  ["eachApprovalSendsOneMessage", "pending without a message", history([created(0, "a")])],
  ["eachApprovalSendsOneMessage", "two messages of one create", history([created(0, "a")], [message(0), message(1)])],
  [
    "eachApprovalSendsOneMessage",
    "two messages under one key",
    history([created(0, "a", { key: "k" }), created(50, "a", { key: "k", process: 2 })], [message(0), message(50, { process: 2 })]),
  ],
  [
    "eachApprovalSendsOneMessage",
    "an approved retry without one",
    history([created(0, "a"), entry(minute, "retry", { id: "a", result: "approved" })], [message(0)]),
  ],
  [
    "eachApprovalSendsOneMessage",
    "a retry that sends, and answers 503",
    history([created(0, "a"), entry(minute, "retry", { id: "a", result: "unavailable", status: 503 })], [message(0), message(minute, { attempt: 2 })]),
  ],
  ["eachApprovalSendsOneMessage", "a create that sends, and answers 503", history([entry(0, "create", { result: "unavailable", status: 503 })], [message(0)])],
  [
    "nothingIsCountedWithoutAMessage",
    "a refusal after four messages",
    join(sends(4, apart), history([entry(minute, "create", { result: "rate_limited", quiet: true })])),
  ],
  [
    "nothingIsCountedWithoutAMessage",
    "a refusal by what an unlock lifted",
    join(sends(5, apart), history([entry(10 * second, "unlock", { result: "unlocked" }), entry(minute, "create", { result: "rate_limited", quiet: true })])),
  ],
  ...["invalid", "without_attempt", "already_validated", "rate_limited", "expired_auth", "invalid_auth_uuid"].map(
    (result) => ["theNewestCodeIsNeverWrong", `the newest code is ${result}`, history([created(0, "a"), right(minute, "a", result)], [message(0)])] as const,
  ),
  [
    "whatWasSentIsNeverSaidToBeUnsent",
    "no_attempt after a message",
    history([created(0, "a"), entry(minute, "retry", { id: "a", result: "no_attempt" })], [message(0)]),
  ],
  [
    "whatWasSentIsNeverSaidToBeUnsent",
    "without_attempt after an erasure",
    history([created(0, "a"), entry(50, "erase", { result: "erased" }), right(99, "a", "without_attempt")], [message(0)]),
  ],
  [
    "anErasedNumberIsGone",
    "a history after an erasure",
    history([created(0, "a"), entry(50, "erase", { result: "erased" }), entry(99, "history", { result: "1", quiet: true })], [message(0)]),
  ],
  ["anErasedNumberIsGone", "a trace in the dump", history([], [], [one])],
  ["eachRequestEndsInTimeAndInOrder", "a create of 20 s", history([created(0, "a", { took: 20 * second })], [message(0)])],
  ["eachRequestEndsInTimeAndInOrder", "a fault of ours", history([wrong(0, "a", { result: "internal_server_error", status: 500 })])],
];

it.each(bad)("%s is violated by %s", (name, _, story) => {
  expect(invariants[name](story)).not.toEqual([]);
});

it("every invariant has a history that violates it", () => {
  expect(new Set(bad.map(([name]) => name))).toEqual(new Set(Object.keys(invariants)));
});

it("the story of a violation lists in order the requests and messages of its authentication, and other requests about its number", () => {
  const [id, other] = ["a0000000-0000-4000-8000-000000000000", "b0000000-0000-4000-8000-000000000000"];
  const story = history(
    [
      created(0, id),
      entry(50, "erase", { result: "erased" }),
      created(60, other),
      wrong(70, other),
      created(80, other, { number: french(2) }),
      right(99, id, "without_attempt"),
    ],
    [message(0, { id }), message(60, { id: other })],
  );
  const lines = violations(story).map((violation) => storyOf(story, violation));
  const told = lines[0]?.map((line) =>
    line
      .split(" ")
      .slice(1, 5)
      .join(" ")
      .replace(/to \S+ /, "")
      .replace(/ \{.*/, ""),
  );
  expect(told).toEqual(["create: 200", "message", "erase: 200", "create: 200", "check: 200"]);
});
