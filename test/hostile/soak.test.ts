import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { below, pick, type Random, stream } from "../../tools/simulate/random.js";
import { bundle } from "../store/processes.js";
import { type Dump, dumpOfMongo, dumpOfPostgres, dumpOfRedis, dumpOfSqlite, spellingsOf, traces } from "../support/dump.js";
import { newDatabase, ownMongoServer } from "../support/mongo.js";
import { newStore, postgresIsInstalled, startPostgres } from "../support/postgres.js";
import { redisIsInstalled, startCluster, startRedis } from "../support/redis.js";
import { newFolder, openSqlite } from "../support/sqlite.js";
import { tallied } from "./kit.js";
import { french } from "./one-commit-kit.js";
import { type Answer, type Ask, day, type Entry, erasedNumbers, hour, type Message, minute, second, storyOf, violations } from "./soak-model.js";
import type { Reply, Setup, Told } from "./soak-process.js";

/**
 * A long run: `SOAK_MINUTES=10 SOAK_SEED=7 npm run test:soak`, for each store. The seed determines the requests and the
 * failures, but not the codes or who wins a race.
 */
const minutes = Number(process.env["SOAK_MINUTES"] ?? 0);
const seed = Number(process.env["SOAK_SEED"] ?? (minutes > 0 ? Date.now() % 1_000_000 : 20_260_301));
/** The time between the last failure and the count: take-backs last up to 45 s (docs/contract.md#lost-write). */
const quietAfter = minutes > 0 ? 50 * second : 2 * second;

/** The server under test, and what may happen to it. */
interface Server extends Pick<Setup, "store" | "url" | "ports"> {
  signal(name: "SIGSTOP" | "SIGCONT"): Promise<void> | void;
  /** Kills it and starts it again with the data that it acknowledged; absent if it would lose data. */
  restart?(): Promise<void>;
  dump(): Promise<Dump>;
  stop(): Promise<void>;
}

interface Member {
  readonly child: ChildProcess;
  readonly name: number;
  readonly waiting: Map<number, (answer: Answer | undefined) => void>;
}

/** An authentication that the driver knows of. */
interface Known extends Pick<Ask, "customer" | "number"> {
  readonly id: string;
  readonly since: number;
}

/** Three processes on one server, the true time, and the history of all requests and messages. */
class Soak {
  readonly entries: Entry[] = [];
  readonly figures = { rounds: 0, kills: 0, pauses: 0, stops: 0, restarts: 0 };
  readonly ended: string[] = [];
  readonly skews: Record<number, number> = {};
  messages: Message[] = [];
  private readonly random: Random;
  private readonly directory = mkdtempSync(join(tmpdir(), "phoneproof-soak-"));
  private readonly log = join(this.directory, "messages");
  private readonly customers = { guarded: randomUUID(), open: randomUUID() };
  /** When the responses since the last count arrived, by the machine's clock. */
  private readonly real = new Map<Entry, number>();
  private members: Member[] = [];
  private starting: Promise<void>[] = [];
  private ahead = 0;
  private lastName = 0;
  private lastTurn = 0;
  private serverIsBack = 0;
  private serverIsAway = 0;
  private known: Known[] = [];
  private keyed: { readonly ask: Ask; readonly since: number }[] = [];
  private quiet = false;
  /** Numbers that most requests of a round are about, so that they race for their caps and guesses. */
  private focus: readonly string[] = [];

  constructor(
    private readonly server: Server,
    private readonly script: string,
  ) {
    this.random = stream(seed, server.store);
    writeFileSync(this.log, "");
  }

  private now = () => Date.now() + this.ahead;

  private async start(): Promise<void> {
    const name = ++this.lastName;
    const { store, url, ports } = this.server;
    const skew = Math.round((this.random() * 2 - 1) * 4_900);
    const setup: Setup = { store, url, ports, log: this.log, name, seed, skew, customers: this.customers };
    const child = fork(this.script, [JSON.stringify(setup)], { execArgv: [] });
    const waiting: Member["waiting"] = new Map();
    await Promise.race([once(child, "message"), once(child, "exit").then(() => Promise.reject(new Error("a process ended before it was ready")))]);
    child.on("message", ({ turn, answer }: Reply) => waiting.get(turn)?.(answer));
    const member: Member = { child, name, waiting };
    child.once("exit", (code, signal) => {
      if (this.members.includes(member)) this.ended.push(`process ${name} ended by itself: ${code ?? signal}`);
      for (const done of waiting.values()) done(undefined);
    });
    child.send({ ahead: this.ahead } satisfies Told);
    this.members.push(member);
    this.skews[name] = skew;
  }

  /** Advances the true time. No request may be in progress. */
  private jump(ms: number): void {
    this.ahead += ms;
    for (const { child } of this.members) child.send({ ahead: this.ahead } satisfies Told);
  }

  private async ask(member: Member, ask: Ask): Promise<Entry> {
    const turn = ++this.lastTurn;
    const entry: Entry = { process: member.name, ask, asked: this.now(), answered: 0, lost: false, faulty: false, quiet: this.quiet };
    this.entries.push(entry);
    const patience = 40 * second;
    let timer: NodeJS.Timeout | undefined;
    const answer = await new Promise<Answer | undefined>((done) => {
      timer = setTimeout(() => done({ status: 500, result: "no answer", took: patience }), patience);
      member.waiting.set(turn, done);
      if (member.child.exitCode !== null || member.child.signalCode !== null) done(undefined);
      else member.child.send({ turn, ask } satisfies Told, (error) => error && done(undefined));
    });
    clearTimeout(timer);
    member.waiting.delete(turn);
    if (answer) {
      entry.answer = answer;
      entry.answered = this.now();
      this.real.set(entry, Date.now());
    } else entry.lost = true;
    entry.faulty = this.serverIsAway > 0 || Date.now() - (answer?.took ?? 20 * second) < this.serverIsBack + 2 * second;
    return entry;
  }

  private number(): string {
    if (this.focus.length > 0 && this.random() < 0.7) return pick(this.random, this.focus);
    const ranges = [french(0, 0), french(0, 1), french(0, 20)];
    // The first three of a range are honest; for the others no one enters a right code.
    const index = this.random() < 0.15 ? 100 + below(this.random, 9_000) : below(this.random, 7);
    return pick(this.random, ranges).slice(0, -4) + String(index).padStart(4, "0");
  }

  private codeOf = (id: string) => this.messages.findLast((one) => one.id === id)?.code;

  private next(): Ask {
    const random = this.random;
    const customer = random() < 0.5 ? "guarded" : "open";
    const what = random();
    const all = this.known.filter(({ since }) => since > this.now() - 11 * minute);
    const focused = all.filter(({ number }) => this.focus.includes(number));
    const alive = focused.length > 0 && random() < 0.7 ? focused : all;
    // After its record has expired, a key makes another authentication.
    const keyed = this.keyed.filter(({ since }) => since > this.now() - 12 * hour);
    if (what < 0.08 && keyed.length > 0) return pick(random, keyed).ask;
    if (what < 0.36 || alive.length === 0) {
      const key = random() < 0.5 ? { key: randomUUID() } : {};
      const device = random() < 0.3 ? { device: `device ${below(random, 12)}` } : {};
      return { customer, operation: "create", number: this.number(), ...key, ...device };
    }
    if (what < 0.38) return { customer, operation: "unlock", number: this.number() };
    // Mostly numbers that occur once: no later request is about them.
    const passing = this.messages.slice(-200).filter(({ to }) => Number(to.slice(-4)) >= 100);
    if (what < 0.4 && passing.length > 0 && random() < 0.7) {
      const { customer, to } = pick(random, passing);
      return { customer, operation: "erase", number: to };
    }
    if (what < 0.4) return { customer, operation: "erase", number: this.number() };
    const { id, number, customer: whose } = pick(random, alive.slice(-25));
    if (what < 0.6) return { customer: whose, operation: "retry", number, id };
    const code = this.codeOf(id);
    const honest = Number(number.slice(-4)) < 3;
    const key = random() < 0.3 ? { key: randomUUID() } : {};
    const right = code !== undefined && honest && what < 0.85;
    return { customer: whose, operation: "check", number, id, code: right ? code : String(100_000 + below(random, 900_000)), ...key };
  }

  /** Sends requests at about the same time, to one process or to all. */
  private async burst(asks: readonly Ask[]): Promise<void> {
    const done = asks.flatMap((ask) => {
      const all = this.random() < 0.25 && ask.operation !== "erase";
      const members = all ? [...this.members] : [pick(this.random, this.members)];
      const wait = below(this.random, 60);
      return members.map(async (member) => {
        await sleep(wait);
        const entry = await this.ask(this.members.includes(member) ? member : pick(this.random, this.members), ask);
        const { customer, number, key } = ask;
        if (entry.answer?.result === "pending" && entry.answer.id !== undefined) this.known.push({ customer, number, id: entry.answer.id, since: entry.asked });
        if (key !== undefined && !this.keyed.some((one) => one.ask === ask)) this.keyed.push({ ask, since: entry.asked });
        // Few check a code again after it was right.
        if (entry.answer?.result === "already_validated") this.known = this.known.filter(({ id }) => id !== ask.id);
      });
    });
    await Promise.all(done);
  }

  private async fault(): Promise<void> {
    const { random, server, figures } = this;
    await sleep(below(random, 80));
    const what = random();
    const ms = 100 + 3_900 * random() ** 2;
    if (what < 0.35) {
      const victim = pick(random, this.members);
      if (this.members.length < 2) return;
      figures.kills++;
      this.members = this.members.filter((one) => one !== victim);
      victim.child.kill("SIGKILL");
      const since = Date.now() - 60 * second;
      for (const [entry, at] of this.real) if (entry.process === victim.name && at > since && entry.answer?.status === 503) entry.lost = true;
      this.starting.push(this.start());
    } else if (what < 0.75) {
      const { child } = pick(random, this.members);
      figures.pauses++;
      child.kill("SIGSTOP");
      await sleep(ms);
      child.kill("SIGCONT");
    } else if (this.serverIsAway === 0) {
      this.serverIsAway++;
      if (server.restart && what > 0.9) {
        figures.restarts++;
        await server.restart();
      } else {
        figures.stops++;
        await server.signal("SIGSTOP");
        await sleep(ms);
        await server.signal("SIGCONT");
      }
      this.serverIsAway--;
      this.serverIsBack = Date.now();
    }
  }

  private async round(): Promise<void> {
    const { random } = this;
    this.figures.rounds++;
    this.focus = random() < 0.4 ? [this.number(), this.number()] : [];
    const { at, to } = this.messages.length > 0 ? pick(random, this.messages.slice(-60)) : { at: 0, to: "" };
    // To shortly before or after the end of a cool-down, a code, a cap's window or a day; else anywhere.
    const edge = at + pick(random, [30 * second, 10 * minute, 10 * minute, hour, day, day]) + below(random, 24 * second) - 12 * second;
    if (random() < 0.3 && edge > this.now()) {
      this.jump(edge - this.now());
      this.focus = [to];
    } else this.jump(below(random, pick(random, [0, 0, 0, 40 * second, 40 * second, 150 * second, 150 * second, 15 * minute, 15 * minute, 13 * hour])));
    const faults = random() < 0.2 ? [this.fault(), ...(random() < 0.3 ? [this.fault()] : [])] : [];
    const asks = Array.from({ length: 6 + below(random, 40) }, () => this.next());
    await Promise.all([this.burst(asks), ...faults]);
    await this.settle();
  }

  /** Waits until killed processes are replaced, and reads the sent messages. */
  private async settle(): Promise<void> {
    await Promise.all(this.starting.splice(0));
    for (const entry of this.entries.slice(-500)) entry.answered ||= this.now();
    const lines = readFileSync(this.log, "utf8").split("\n");
    // A line that a killed process left unfinished is not a message that anyone got.
    this.messages = lines.filter((line) => line.startsWith("{") && line.endsWith("}")).map((line) => JSON.parse(line) as Message);
    this.known = this.known.filter(({ since }) => since > this.now() - 12 * minute);
    const erased = new Set(this.entries.slice(-500).flatMap(({ ask }) => (ask.operation === "erase" ? [`${ask.customer} ${ask.number}`] : [])));
    this.keyed = this.keyed.slice(-20).filter(({ ask }) => !erased.has(`${ask.customer} ${ask.number}`));
  }

  /** Uses up caps, checks the newest codes and asks for erased numbers: without failures, one request at a time. */
  private async countOut(): Promise<void> {
    await sleep(quietAfter);
    // In a short run, these may not have been taken back yet.
    for (const [entry, at] of this.real) if (entry.answer?.status === 503 && at > Date.now() - 49 * second) entry.lost = true;
    this.real.clear();
    this.focus = [];
    this.quiet = true;
    const one = (ask: Ask) => this.ask(pick(this.random, this.members), ask);
    for (const { customer, number, id } of this.known.slice(-12)) {
      const code = this.codeOf(id);
      if (code !== undefined) await one({ customer, operation: "check", number, id, code });
    }
    for (const { customer, number } of erasedNumbers(this.entries).slice(-20)) await one({ customer, operation: "history", number });
    const sample = Array.from({ length: 5 }, (_, at): Pick<Ask, "customer" | "number"> => ({ customer: at < 4 ? "open" : "guarded", number: this.number() }));
    for (let turn = 0; turn < 3; turn++) {
      this.jump(11 * minute);
      for (const { customer, number } of sample)
        for (let more = true; more; ) more = (await one({ customer, operation: "create", number })).answer?.result === "pending";
      await this.settle();
    }
    this.quiet = false;
  }

  async run(ms: number): Promise<string[]> {
    await Promise.all([this.start(), this.start(), this.start()]);
    const end = Date.now() + ms;
    const began = Date.now() + this.ahead;
    while (Date.now() < end) {
      const pause = Math.min(end, Date.now() + 150 * second);
      while (Date.now() < pause) await this.round();
      await this.countOut();
    }
    const erased = erasedNumbers(this.entries);
    const dump = await this.server.dump();
    const found = erased.flatMap(({ number }) =>
      traces(
        dump,
        spellingsOf(number, number).filter((one) => one.length > 9),
      ).map((one) => `${number}: ${one.slice(0, 300)}`),
    );
    const history = { entries: this.entries, messages: this.messages, traces: found, keepsCutShort: this.server.store === "mongo" };
    const broken = [...violations(history), ...this.ended];
    const { store } = this.server;
    const results = tallied(this.entries.map(({ ask, answer }) => `${ask.operation} ${answer?.result ?? "unanswered"}`));
    const days = ((Date.now() + this.ahead - began) / day).toFixed(1);
    console.log(
      `soak of ${store}, seed ${seed}: ${this.entries.length} requests, ${this.messages.length} messages, ${days} days, ${JSON.stringify(this.figures)}, ${erased.length} erased, ${dump.length} texts, ${broken.length} violations\n${JSON.stringify(results)}`,
    );
    for (const one of broken) console.log([one, ...storyOf(history, one)].join("\n"));
    const file = process.env["SOAK_HISTORY"];
    if (file !== undefined)
      writeFileSync(`${file}-${store}.json`, JSON.stringify({ entries: this.entries, messages: this.messages, skews: this.skews, broken }));
    return broken;
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.members.splice(0).map(async ({ child }) => {
        const gone = once(child, "exit");
        child.kill("SIGKILL");
        await gone;
      }),
    );
    rmSync(this.directory, { recursive: true });
  }
}

/** Uses one connection for all keys. */
async function dumpOf(urls: readonly string[]): Promise<Dump> {
  const dumps = await Promise.all(
    urls.map(async (url) => {
      const client = new Redis(url);
      const cli = async (command: string, ...args: string[]) => {
        const said = await client.call(command, ...args);
        return Array.isArray(said) ? said.join("\n") : String(said);
      };
      const dump = await dumpOfRedis({ cli });
      client.disconnect();
      return dump;
    }),
  );
  return dumps.flat();
}

async function onRedis(): Promise<Server> {
  const server = await startRedis(["--appendonly", "yes", "--appendfsync", "always"]);
  const { url } = server;
  return {
    store: "redis",
    url,
    ports: [],
    signal: (name) => server.signal(name),
    async restart() {
      await server.signal("SIGKILL");
      await server.restart();
    },
    dump: () => dumpOf([url]),
    stop: () => server.stop(),
  };
}

async function onCluster(): Promise<Server> {
  const { nodes, masters, stop } = await startCluster();
  let turn = 0;
  return {
    store: "cluster",
    url: "",
    ports: nodes.map(({ port }) => port),
    signal: (name) => masters[(name === "SIGSTOP" ? ++turn : turn) % masters.length]?.signal(name),
    dump: () => dumpOf(masters.map(({ url }) => url)),
    stop,
  };
}

async function onMongo(): Promise<Server | undefined> {
  const server = await ownMongoServer("the soak test on MongoDB");
  if (server === undefined) return undefined;
  const name = newDatabase();
  const url = new URL(server.url);
  url.pathname = name;
  const client = await MongoClient.connect(url.href);
  await mongoStore({ db: client.db() }).ensureIndexes();
  return {
    store: "mongo",
    url: url.href,
    ports: [],
    signal: (word) => server.signal(word),
    dump: () => dumpOfMongo(client, name),
    async stop() {
      await client.close();
      await server.stop();
    },
  };
}

/** Here, a paused server is another connection with an open transaction. */
async function onSqlite(): Promise<Server> {
  const { file, remove } = newFolder();
  const other = openSqlite(file);
  async function begin(): Promise<void> {
    try {
      other.exec("BEGIN IMMEDIATE");
    } catch {
      // One of the processes is writing.
      await sleep(1);
      await begin();
    }
  }
  return {
    store: "sqlite",
    url: file,
    ports: [],
    signal: (name) => (name === "SIGSTOP" ? begin() : void other.exec("ROLLBACK")),
    dump: async () => dumpOfSqlite(file),
    async stop() {
      other.close();
      remove();
    },
  };
}

async function onPostgres(): Promise<Server | undefined> {
  if (!postgresIsInstalled("the soak test on PostgreSQL")) return undefined;
  const server = await startPostgres();
  const { url, pool, close } = await newStore(server);
  return {
    store: "postgres",
    url,
    ports: [],
    signal: (word) => server.signal(word),
    dump: () => dumpOfPostgres(pool),
    async stop() {
      await close();
      await server.stop();
    },
  };
}

const redis = redisIsInstalled("the soak test");
const stores: readonly (readonly [string, () => Promise<Server | undefined>])[] = [
  ...(redis ? ([["a Redis server", onRedis]] as const) : []),
  ...(redis ? ([["a Redis cluster", onCluster]] as const) : []),
  ["PostgreSQL", onPostgres],
  ["MongoDB", onMongo],
  ["an SQLite file", onSqlite],
];

describe.each(stores)("three processes on %s, under random requests, kills and pauses", (_, open) => {
  let server: Server | undefined;
  let script: Awaited<ReturnType<typeof bundle>>;
  let soak: Soak | undefined;
  beforeAll(async () => {
    script = await bundle(new URL("./soak-process.ts", import.meta.url));
    server = await open();
  });
  afterAll(async () => {
    await soak?.stop();
    await server?.stop();
    rmSync(script.outDir, { recursive: true });
  });

  it(
    "violate no invariant of the contract",
    async () => {
      if (server === undefined) return;
      soak = new Soak(server, script.script);
      expect(await soak.run(minutes > 0 ? minutes * minute : 8 * second)).toEqual([]);
    },
    (minutes + 10) * minute,
  );
});
