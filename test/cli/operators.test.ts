import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { redisStore } from "../../adapters/store/redis/index.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { firstDayHint } from "../../src/cli/first-day.js";
import { reportOf } from "../../src/cli/operators/why.js";
import { systemClock } from "../../src/core/clocks.js";
import { createVerifier, type SendOutcome, type Store, type Verifier, type VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { type Connected, clients } from "../support/redis-clients.js";
import { inbox, logger, numberOf, secret, setUp } from "../support/verifier.js";
import { type BuiltCommand, buildCommand, post, runInProcess, spawnToEnd, startDemo } from "./demo.js";
import { startServe } from "./serve-process.js";

let command: BuiltCommand;
let folder: string;
let file: string;
beforeAll(async () => {
  command = await buildCommand({ verifier: fileURLToPath(new URL("./operators-verifier.ts", import.meta.url)) });
});
afterAll(() => command?.remove());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "phoneproof-operators-"));
  file = join(folder, "store.db");
});
afterEach(() => rm(folder, { recursive: true }));

const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const landline = "+33142685300";
const phone = numberOf(1);

/** A verifier whose sender returns `answers` in turn, and then accepts. */
function service(store: Store, options: Partial<VerifierOptions> = {}) {
  const box = inbox();
  const answers: SendOutcome[] = [];
  box.answer = async () => answers.shift() ?? { outcome: "accepted", route: "beta" };
  const verifier = createVerifier({ store, sender: box, secret, countries: ["FR"], callbacks: { worker: false }, logger: logger(), ...options });
  return { verifier, box, answers };
}

/** Creates an empty store. */
async function makeFile(): Promise<void> {
  const store = sqliteStore({ file });
  await store.get("any");
  await store.close?.();
}

/** Runs a command on the store that `env` names, as its documentation does. */
async function run(words: readonly string[], env: Readonly<Record<string, string>>) {
  const all = { PHONEPROOF_SECRET: secret, ...env };
  const needsProcess = words[0] === "erase" || words.some((word) => word.endsWith(".js"));
  return needsProcess ? spawnToEnd(command.path, words, all) : runInProcess(words, all);
}

async function json(words: readonly string[], env: Readonly<Record<string, string>>) {
  const { code, stdout, stderr } = await run([...words, "--json"], env);
  expect(stderr).toBe("");
  return { code, answer: JSON.parse(stdout) as Record<string, unknown> };
}

/** Creates what a support agent asks about: a rejected message, a sent one with a wrong code, a limit, a landline. */
async function aDay({ verifier, answers, box }: ReturnType<typeof service>): Promise<void> {
  answers.push({ outcome: "rejected", route: "alpha", reason: "HTTP 400, code 21211" });
  await verifier.createAuthentication({ phone_number: phone });
  const { authentication_uuid } = await verifier.createAuthentication({ phone_number: phone });
  await verifier.check({ authentication_uuid, check_code: box.code() === "000000" ? "111111" : "000000" });
  for (let more = 0; more < 4; more++) await verifier.createAuthentication({ phone_number: phone });
  await verifier.createAuthentication({ phone_number: landline }).catch(() => undefined);
  // Waits until the rejected create is written, which the commands read.
  await verifier.history({ phone_number: phone });
}

/** Runs why, stats, unlock and erase for a number, as a support agent would. */
async function life({ verifier }: { readonly verifier: Verifier }, env: Readonly<Record<string, string>>): Promise<void> {
  const read = await run(["why", "+33 6 12 00 00 01"], env);
  expect(read).toMatchObject({ code: 0, stderr: "" });
  const blocks = read.stdout.split("\n\n");
  expect(blocks).toHaveLength(7);
  expect(blocks[0]).toBe(phone);
  expect(blocks[1]).toMatch(
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC {2}[0-9a-f-]{36}\n {2}Not sent: a limit was reached \(rate_limited\)\.\n {2}Blocked by the rule perNumber 5\/600s\. The number has reached the maximum number of messages for this period\. It counted 5; the threshold is 5\. There is room again at \d\d:\d\d:\d\d UTC, in 10 minutes\.\n {2}What to do: Wait until there is room, or lift it once a day with `phoneproof unlock`\.$/,
  );
  expect(blocks[5]).toMatch(
    /\n {2}A code was sent, and the right one has not been entered yet\.\n {2}Message 1 at \d\d:\d\d:\d\d UTC: beta accepted it; no delivery was reported\.\n {2}1 wrong code entered\.\n {2}Left: 4 tries to enter a code, 4 more messages, 10 minutes\.$/,
  );
  expect(blocks[6]).toMatch(
    /\n {2}Nothing was sent: no carrier took the message\.\n {2}Message 1 at \d\d:\d\d:\d\d UTC: alpha rejected it: HTTP 400, code 21211\. It was not sent\.\n$/,
  );

  const { code, answer } = await json(["why", phone], env);
  expect(code).toBe(0);
  expect(answer).toMatchObject({
    phone_number: phone,
    authentications: [
      { status: "rate_limited", decisions: [{ rule: "perNumber 5/600s", value: 5, threshold: 5, until: expect.any(String) }], sentences: expect.any(Array) },
      {},
      {},
      {},
      { status: "pending", wrong_codes: 1, sends: [{ attempt: 1, state: "accepted", route: "beta" }] },
      { status: "pending", sends: [{ attempt: 1, state: "rejected", route: "alpha", reason: "HTTP 400, code 21211" }] },
    ],
    refusals: [],
  });

  const refused = await run(["why", landline], env);
  expect(refused).toMatchObject({ code: 0, stderr: "" });
  expect(refused.stdout).toMatch(
    /^\+33142685300\n\n\S+ \S+ UTC {2}invalid_line\n {2}1 request rejected with the error invalid_line in the hour from \d\d:00:00 UTC; nothing was sent\. The number is a landline .*\n {2}What to do: Ask the user for a mobile number\.\n$/,
  );

  // Makes this process write its counts to the store, where the command reads them.
  await verifier.stats({ from: new Date(Date.now() - 3_600_000), to: new Date() });
  const stats = await run(["stats", "--days", "1"], env);
  expect(stats).toMatchObject({ code: 0, stderr: "" });
  expect(stats.stdout).toMatch(/\n4 messages sent, 0 verified \(0 %\), 1 blocked, cost 0\n\ncountry {2}route {2}sent {2}verified\nFR {7}beta {6}4 {9}0\n/);
  expect(stats.stdout).toMatch(/\ncountry {2}rule {14}blocked\nFR {7}perNumber 5\/600s {8}1\n$/);
  expect(await json(["stats"], env)).toMatchObject({ code: 0, answer: { sends: 4, refused: 1, refusals: [{ rule: "perNumber 5/600s" }] } });

  const unlocked = await run(["unlock", phone], env);
  expect(unlocked).toMatchObject({ code: 0, stderr: "" });
  expect(unlocked.stdout).toMatch(
    /^The limits of \+33612000001 are lifted: the user can ask for a code again\. They can be lifted again from \S+ \S+ UTC on\.\n$/,
  );
  expect((await verifier.createAuthentication({ phone_number: phone })).status).toBe("pending");
  expect(await json(["unlock", phone], env)).toMatchObject({ code: 1, answer: { unlocked: false, next_unlock_at: expect.any(String) } });

  expect(await run(["erase", phone], env)).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("Add --yes to erase without a question") });
  expect(await verifier.history({ phone_number: phone })).toHaveLength(7);
  expect(await json(["erase", phone, "--yes"], env)).toMatchObject({ code: 0, answer: { phone_number: phone, erased: 7, counts_until: expect.any(String) } });
  const nothing = await run(["why", phone], env);
  expect(nothing.stdout).toMatch(/^Nothing is stored about \+33612000001\.\n/);
  expect(nothing.code).toBe(0);
}

test("why, stats, unlock and erase handle a number in an SQLite file", async () => {
  const store = sqliteStore({ file });
  const one = service(store);
  try {
    await aDay(one);
    await life(one, { PHONEPROOF_DATA: file });
  } finally {
    await one.verifier.close();
  }
});

describe.skipIf(!redisIsInstalled("phoneproof why on Redis"))("on Redis", () => {
  let redis: RedisServer;
  let connected: Connected;
  beforeAll(async () => {
    redis = await startRedis();
    connected = await (clients["ioredis 6"] as (typeof clients)[string])(redis);
  });
  afterAll(async () => {
    await connected?.close();
    await redis?.stop();
  });

  test("why, stats, unlock and erase handle a number", async () => {
    const one = service(redisStore({ client: connected.client }));
    await aDay(one);
    await life(one, { PHONEPROOF_STORE: redis.url });
  });

  test("--store and --prefix take precedence over the environment", async () => {
    const { verifier } = service(redisStore({ client: connected.client, prefix: "other" }));
    await verifier.createAuthentication({ phone_number: phone });
    const { answer } = await json(["why", phone, "--store", redis.url, "--prefix", "other"], { PHONEPROOF_DATA: file });
    expect(answer["authentications"]).toHaveLength(1);
  });

  test("serve uses PHONEPROOF_STORE for its module, and its log has the error code of a rejected request", async () => {
    const env = { PHONEPROOF_SECRET: secret, PHONEPROOF_STORE: redis.url };
    const module = join(command.folder, "verifier.js");
    const served = await startServe(command.path, [module], env);
    try {
      const response = await fetch(`${served.url}/v1/authentication`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": "k".repeat(40) },
        body: JSON.stringify({ customer_uuid, phone_number: landline }),
      });
      expect(response.status).toBe(400);
      await expect.poll(() => served.lines.find(({ type }) => type === "request")).toMatchObject({ status: 400, code: "invalid_line" });
      expect(served.written()).not.toContain(landline);
    } finally {
      served.signal("SIGTERM");
      expect(await served.exited).toEqual([0, null]);
    }
    expect(await json(["why", landline, module, "--customer", customer_uuid], env)).toMatchObject({
      answer: { refusals: [{ code: "invalid_line", count: 1 }] },
    });
  });
});

describe("the first afternoon: the sixth test message to one range is blocked, and a hint explains why", () => {
  const hint = { type: "hint", rule: "range 4", message: expect.stringMatching(/lists\.safe .*testNumbers .*docs\/carriers\.md#the-first-afternoon/) };

  test("phoneproof serve prints the hint once for several blocked messages", async () => {
    const served = await startServe(command.path, [join(command.folder, "verifier.js"), "--data", file], { PHONEPROOF_SECRET: secret });
    try {
      for (let index = 0; index < 7; index++)
        await fetch(`${served.url}/v1/authentication`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-api-key": "k".repeat(40) },
          body: JSON.stringify({ customer_uuid, phone_number: numberOf(index) }),
        });
      const hints = () => served.lines.filter(({ type }) => type === "hint");
      await expect.poll(() => hints()).toEqual([{ time: expect.any(String), ...hint }]);
    } finally {
      served.signal("SIGTERM");
      await served.exited;
    }
  });

  test("phoneproof dev prints the hint", async () => {
    const demo = await startDemo();
    for (let index = 0; index < 6; index++) await post(demo, "authentication", { phone_number: numberOf(index) });
    expect(await demo.next("hint")).toEqual(hint);
    expect(await demo.stop()).toBe(0);
  });

  test("no hint if messages were sent more than a day ago, or for a custom rule", async () => {
    const set = setUp({
      policy: { spam: {} },
      statistics: {},
      spamRules: [{ name: "own", judge: ({ phone_number }) => (phone_number === numberOf(99) ? { reason: "no" } : undefined) }],
    });
    const blocked = async (phone_number: string) => {
      const { authentication_uuid, status } = await set.create({ phone_number });
      expect(status).toBe("spam_detected");
      return firstDayHint(set.verifier, { customer_uuid: set.customer, authentication_uuid }, set.clock.now());
    };
    for (let index = 0; index < 5; index++) await set.create({ phone_number: numberOf(index) });
    expect(await blocked(numberOf(99))).toBeUndefined();
    expect(await blocked(numberOf(5))).toMatchObject({ rule: "range 4" });
    set.clock.advance(2 * 86_400_000);
    for (let index = 0; index < 5; index++) await set.create({ phone_number: numberOf(index) });
    expect(await blocked(numberOf(5))).toBeUndefined();
  });
});

describe("why", () => {
  /** Its sentences about the newest request of the number, without line breaks. */
  const newest = async () => {
    const { answer } = await json(["why", phone], { PHONEPROOF_DATA: file });
    const [first] = answer["authentications"] as readonly { readonly sentences: readonly string[] }[];
    return first?.sentences.join(" ");
  };
  const desk = (options: Partial<VerifierOptions> = {}) => {
    const { verifier, box } = service(sqliteStore({ file }), options);
    onTestFinished(() => verifier.close());
    return { verifier, box };
  };

  test.each([
    ["a code", [{ code: "123456" }]],
    ["a notice", [{ text: "You signed in." }]],
    ["five codes", ["1", "2", "3", "4", "5"].map((digit) => ({ code: digit.repeat(6) }))],
  ])("reports that a delivery of %s was sent, and then that it was confirmed", async (_what, messages) => {
    const { verifier } = desk({ conversion: "reported" });
    for (const message of messages) expect(await verifier.deliver({ phone_number: phone, ...message })).toMatchObject({ status: "sent" });
    const open = await newest();
    expect(open).toMatch(/^A code was sent, and has not been confirmed yet\. Message \d at \S+ UTC: beta accepted it/);
    expect(open).not.toMatch(/Ended|wrong codes|tries|start a new verification/);
    await verifier.confirm({ phone_number: phone });
    expect(await newest()).toMatch(/^Confirmed: the user got in\. /);
  });

  test("reports that a verification was canceled, not that it expired at a time yet to come", async () => {
    const { verifier } = desk();
    await verifier.verifications.start({ phone_number: phone });
    await verifier.verifications.cancel({ phone_number: phone });
    expect(await newest()).toMatch(/^Ended without a right code: it was canceled\. /);
  });

  test("reports that a limit was lifted, and of one that is reached again, when there is room", async () => {
    const { verifier } = desk({ policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
    const createTwice = async () => {
      for (const expected of ["pending", "rate_limited"]) expect((await verifier.createAuthentication({ phone_number: phone })).status).toBe(expected);
      await verifier.history({ phone_number: phone });
    };
    await createTwice();
    expect(await newest()).toMatch(/ There is room again at \S+ UTC, in 24 hours\. What to do: Wait until there is room/);
    await verifier.unlock({ phone_number: phone });
    expect(await newest()).toMatch(/ the threshold is 1\. It was lifted at \S+ UTC: the user can ask for a code again\.$/);
    await createTwice();
    expect(await newest()).toMatch(/ There is room again at /);
    const [tomorrow] = reportOf(phone, await verifier.history({ phone_number: phone }), [], Date.now() + 90_000_000).authentications;
    expect(tomorrow?.sentences.join(" ")).toMatch(/ There has been room again since \S+ UTC: the user can ask for a code again\.$/);
  });

  test("reports a country without a route, not a rejection by a carrier", async () => {
    const sender = router({ routes: [{ name: "alpha", sender: inbox(), countries: ["GB"] }] });
    await desk({ sender }).verifier.createAuthentication({ phone_number: phone });
    expect(await newest()).toMatch(/^Nothing was sent: no carrier took the message\. Message 1 at \S+ UTC: there is no route for FR\. It was not sent\.$/);
  });

  test("reports a country that is no longer allowed on a retry in one sentence", async () => {
    const { verifier } = desk();
    const clock = { ...systemClock(), now: () => Date.now() + 60_000 };
    const stricter = desk({ countries: ["GB"], clock });
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number: phone });
    expect(await stricter.verifier.retry({ authentication_uuid })).toMatchObject({ status: "rate_limited" });
    await stricter.verifier.history({ phone_number: phone });
    expect(await newest()).toMatch(/Blocked by the rule unsupported_region\. [^.]+\. Reason: [^.]+\. What to do: /);
  });

  test("reports that a delivery expired", async () => {
    const { verifier } = desk({ conversion: "reported", clock: { ...systemClock(), now: () => Date.now() - 60_000 } });
    await verifier.deliver({ phone_number: phone, code: "123456", expires_in: 30 });
    expect(await newest()).toMatch(/^Ended without a confirmation: it expired at \S+ UTC\. /);
  });
});

describe("the verifier that the commands use", () => {
  test("a module's own policy and pepper apply; without --customer, an error asks for it", async () => {
    const { verifier: build } = (await import(join(command.folder, "verifier.js"))) as { verifier: (parts: { store: Store }) => Verifier };
    process.env["PHONEPROOF_SECRET"] = secret;
    const verifier = build({ store: sqliteStore({ file }) });
    for (let more = 0; more < 2; more++) await verifier.createAuthentication({ customer_uuid, phone_number: phone });
    const module = join(command.folder, "verifier.js");
    const env = { PHONEPROOF_DATA: file };
    const unnamed = await run(["why", phone, module], env);
    expect(unnamed).toEqual({ code: 2, stdout: "", stderr: "phoneproof: this verifier has customers: name one with --customer UUID\n" });
    const of = ["--customer", customer_uuid];
    const { answer } = await json(["why", phone, module, ...of], env);
    expect(answer["authentications"]).toMatchObject([{ decisions: [{ rule: "perNumber 1/86400s" }] }, { status: "pending" }]);
    // Without the pepper, nothing is found for the number.
    expect(await json(["why", phone, ...of], env)).toMatchObject({ code: 0, answer: { authentications: [] } });
    expect((await json(["why", phone, ...of], { ...env, PHONEPROOF_PEPPER: "a pepper of thirty-two characters" })).answer["authentications"]).toHaveLength(2);
    expect(await json(["unlock", phone, module, ...of], env)).toMatchObject({ code: 0 });
    expect((await verifier.createAuthentication({ customer_uuid, phone_number: phone })).status).toBe("pending");
    await verifier.close();
  });

  test("a stored customer's own policy applies, even while it is suspended", async () => {
    const { verifier } = service(sqliteStore({ file }), { customers: "store" });
    const { customer_uuid } = await verifier.customers.create({ policy: { checks: 2 } });
    await verifier.createAuthentication({ customer_uuid, phone_number: phone });
    await verifier.customers.suspend({ customer_uuid });
    const { answer } = await json(["why", phone, "--customer", customer_uuid], { PHONEPROOF_DATA: file });
    expect(answer["authentications"]).toMatchObject([{ left: { checks: 2 } }]);
    await verifier.close();
  });

  test("the file of phoneproof dev contains the secret and the customer", async () => {
    const demo = await startDemo(["--port", "0", "--data", file]);
    expect(await post(demo, "authentication", { phone_number: phone })).toMatchObject({ status: "pending" });
    const { code, stdout, stderr } = await runInProcess(["why", phone, "--data", file]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("A code was sent, and the right one has not been entered yet.");
    expect(await demo.stop()).toBe(0);
  });

  test("a missing file is reported, and not created", async () => {
    const missing = `phoneproof: there is no file ${file}: name the store with PHONEPROOF_STORE or PHONEPROOF_DATA, or with --store or --data\n`;
    expect(await run(["why", phone, "--data", file], {})).toEqual({ code: 1, stdout: "", stderr: missing });
    expect(existsSync(file)).toBe(false);
  });

  test("the error for a file without a secret names PHONEPROOF_SECRET", async () => {
    await makeFile();
    const { code, stderr } = await runInProcess(["why", phone, "--data", file]);
    expect([code, stderr]).toEqual([2, "phoneproof: the environment variable PHONEPROOF_SECRET is not set: it is the secret of your verifier\n"]);
  });
});

test("stats counts as many days as are kept, up to seven; --days above that is an error", async () => {
  await makeFile();
  const module = join(command.folder, "verifier.js");
  const counted = async (days: number, ...words: string[]) => {
    const env = { PHONEPROOF_DATA: file, PHONEPROOF_CUSTOMER: customer_uuid, STATISTICS_KEEP: String(days * 86_400) };
    return run(["stats", module, "--json", ...words], env);
  };
  for (const [kept, shown] of [
    [1, 2],
    [6, 7],
    [90, 7],
  ] as const) {
    const { from, to } = JSON.parse((await counted(kept)).stdout) as { readonly from: string; readonly to: string };
    // Widened to whole hours.
    expect(Math.floor((Date.parse(to) - Date.parse(from)) / 86_400_000)).toBe(shown);
  }
  expect(await counted(1, "--days", "2")).toMatchObject({ code: 0 });
  expect(await counted(1, "--days", "3")).toMatchObject({
    code: 1,
    stderr: "phoneproof: --days may be at most 2: statistics are kept for statistics.keep seconds.\n",
  });
});

test.each(["why", "unlock"])("%s of a module with memoryStore fails: it cannot see the store of the running app", async (name) => {
  await makeFile();
  const env = { PHONEPROOF_DATA: file, PHONEPROOF_CUSTOMER: customer_uuid, IN_MEMORY: "1" };
  expect(await run([name, phone, join(command.folder, "verifier.js")], env)).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining("the module's store is memoryStore: the running app has its own"),
  });
});

test("erase asks for confirmation, and acts only on `yes`", async () => {
  const store = sqliteStore({ file });
  const { verifier } = service(store);
  await verifier.createAuthentication({ phone_number: phone });
  const answer = async (line: string) => {
    const child = spawn(process.execPath, [command.path, "erase", phone, "--data", file], { env: { PATH: process.env.PATH, PHONEPROOF_SECRET: secret } });
    let written = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (written += chunk));
    child.stdin.end(`${line}\n`);
    const [code] = (await once(child, "close")) as [number];
    return { code, written };
  };
  const declined = await answer("y");
  expect(declined.code).toBe(1);
  expect(declined.written).toMatch(/^Erase \+33612000001: 1 authentication will be deleted, .*Type yes to continue: Nothing was erased\.\n$/);
  expect(await verifier.history({ phone_number: phone })).toHaveLength(1);
  expect(await answer("yes")).toMatchObject({ code: 0, written: expect.stringContaining("1 authentication of +33612000001 erased.") });
  expect(await verifier.history({ phone_number: phone })).toEqual([]);
  expect((await answer("no")).written).toMatch(
    /^No authentication of \+33612000001 is stored\. Erase what remains of its history and trust\? This cannot be undone\. /,
  );
  await verifier.close();
});

describe("errors", () => {
  test.each([
    [["why"], "why needs the number: phoneproof why +33612345678"],
    [["why", phone, "./verifier.js", "more"], 'unexpected argument "more": put a number'],
    [["stats", "--days", "0"], "--days takes a whole number from 1 to 90"],
    [["why", phone, "--days", "2"], "--days has no effect with why"],
    [["unlock", phone, "--yes"], "--yes has no effect with unlock"],
    [["why", phone, "--data", "memory"], "why needs a file or a store"],
    [["why", phone, "--store", "redis://127.0.0.1:1", "--data", "x"], "--data has no effect with --store"],
    [["why", phone, "--store", "ftp://x"], "--store takes a URL"],
  ])("%j exits with 2 and prints the reason", async (words, message) => {
    const ended = await run(words, {});
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr.startsWith(`phoneproof: ${message}`), ended.stderr).toBe(true);
  });

  test("environment variables: both at once, an invalid URL, a missing secret and an unreachable server are errors", async () => {
    const both = await run(["why", phone], { PHONEPROOF_STORE: "redis://127.0.0.1:1", PHONEPROOF_DATA: file });
    expect(both).toMatchObject({ code: 2, stderr: expect.stringMatching(/^phoneproof: PHONEPROOF_STORE and PHONEPROOF_DATA are both set: unset one\n/) });
    const wrong = await run(["why", phone], { PHONEPROOF_STORE: "mysql://user:hunter2@host" });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/^phoneproof: PHONEPROOF_STORE takes a URL/) });
    expect(wrong.stderr).not.toContain("hunter2");
    const quoted = await run(["why", phone], { PHONEPROOF_STORE: '"redis://user:hunter2@host"' });
    expect(quoted).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^phoneproof: PHONEPROOF_STORE has quotation marks around its value: remove them\n/),
    });
    const broken = await run(["why", phone], { PHONEPROOF_DATA: "phoneproof\n.db" });
    expect(broken).toMatchObject({ code: 2, stderr: expect.stringMatching(/^phoneproof: PHONEPROOF_DATA contains a line break or another control character/) });
    const trimmed = await run(["why", phone], { PHONEPROOF_DATA: " memory\r\n" });
    expect(trimmed).toMatchObject({ code: 2, stderr: expect.stringMatching(/^phoneproof: why needs a file or a store: --data memory is empty\n/) });
    const bare = await runInProcess(["why", phone], { PHONEPROOF_STORE: "redis://127.0.0.1:1" });
    expect(bare).toMatchObject({ code: 2, stderr: expect.stringMatching(/^phoneproof: why needs the environment variable PHONEPROOF_SECRET/) });
    const down = await run(["why", phone], { PHONEPROOF_STORE: "redis://user:hunter2@127.0.0.1:1" });
    expect(down).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/^phoneproof: PHONEPROOF_STORE: the server cannot be used/) });
    expect(down.stderr).not.toContain("hunter2");
  });

  test("an invalid number or customer exits with 2", async () => {
    await makeFile();
    const env = { PHONEPROOF_DATA: file };
    for (const number of ["0612345678", "+33", "+336"])
      expect(await run(["why", number], env)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/^phoneproof: this is not a valid number in international form, for example \+33612345678\n/),
      });
    const named = (name: string) => ({ code: 2, stderr: expect.stringContaining(`phoneproof: ${name} must be a UUID\n`) });
    expect(await run(["why", phone, "--customer", "acme"], env)).toMatchObject(named("--customer"));
    expect(await run(["stats"], { ...env, PHONEPROOF_CUSTOMER: "acme" })).toMatchObject(named("PHONEPROOF_CUSTOMER"));
  });
});
