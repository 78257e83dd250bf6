/**
 * Child process that simulates the people of one app: raw HTTP/1.1 over persistent connections, with one request at a
 * time on each.
 *
 * It never sleeps while it measures. A server on the same machine pays for waking its client in its own write call: a
 * fast server, whose client is always busy, would seldom pay, and a slower one always (measured: 12 µs against 40 µs
 * per write). And a timer of Node is up to a millisecond late, which is as long as a response takes.
 */
import { type AddressInfo, connect, createServer } from "node:net";
import { checkPath, createPath } from "./apps.js";
import { answerCalls } from "./processes.js";
import { latencyOf } from "./report.js";
import { apiKey, customer_uuid, expect } from "./service.js";
import { type Visitor, visitors, wrongCode } from "./traffic.js";

/** The ports of the processes for create and check, and the party of people. */
export interface Target {
  readonly create: number;
  readonly check: number;
  readonly party: number;
}

/**
 * A closed loop: clients that send the next request after each response. Or an open loop: people who arrive at random,
 * and enter the code 0.2 to 2 s after its message.
 */
export type Loop = { readonly connections: number } | { readonly perSecond: number };

/** In milliseconds; in an open loop, from the time when the request was due. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
}

export interface Played {
  readonly flows: number;
  /** Requests that the service could not handle in time: 503. */
  readonly failed: number;
  /** Milliseconds. */
  readonly took: number;
  readonly create: Latency;
  readonly check: Latency;
}

interface Flow extends Visitor {
  readonly authentication_uuid: string;
}

/** By number. */
const codes = new Map<string, string>();
const waitingForCode = new Map<string, () => void>();
let target: Target;
let nextVisitor: () => Visitor;

answerCalls({
  /** Returns the port that receives the codes. */
  async listen(): Promise<number> {
    const server = createServer((socket) => {
      let text = "";
      socket.setEncoding("latin1").on("data", (chunk: string) => {
        const lines = (text + chunk).split("\n");
        text = lines.pop() ?? "";
        for (const line of lines) {
          const [number = "", code = ""] = line.split(" ");
          codes.set(number, code);
          waitingForCode.get(number)?.();
        }
      });
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return (server.address() as AddressInfo).port;
  },
  aim(at: Target) {
    target = at;
    nextVisitor = visitors(at.party);
  },
  /** Starts no flow after `seconds`, and completes those that were started. */
  async play({ loop, seconds }: { readonly loop: Loop; readonly seconds: number }): Promise<Played> {
    let playing = true;
    const stayAwake = () => void (playing && setImmediate(stayAwake));
    stayAwake();
    try {
      return await ("connections" in loop ? playClosed(loop.connections, seconds) : playOpen(loop.perSecond, seconds));
    } finally {
      playing = false;
      codes.clear();
    }
  },
});

/** The results of the requests so far. */
interface Tally {
  readonly creates: number[];
  readonly checks: number[];
  failed: number;
}

function playedSince(started: number, { creates, checks, failed }: Tally): Played {
  return { flows: creates.length, failed, took: performance.now() - started, create: latencyOf(creates), check: latencyOf(checks) };
}

/** Sends a request that was due at this time. Returns the authentication's id, or `undefined` if the status is 503. */
async function ask({ exchange }: Pick<Connection, "exchange">, tally: Tally, kind: "creates" | "checks", due: number, request: string, expected: string) {
  const { status, body } = await exchange(request);
  tally[kind].push(performance.now() - due);
  if (status === 503) {
    tally.failed++;
    return undefined;
  }
  if (status !== 200) throw new Error(`answered ${status}: ${body}`);
  const answer = JSON.parse(body) as { readonly authentication_uuid: string; readonly status: string };
  // Rejected requests must not be measured.
  expect(answer.status, expected);
  return answer.authentication_uuid;
}

async function playClosed(connections: number, seconds: number): Promise<Played> {
  const tally: Tally = { creates: [], checks: [], failed: 0 };
  const started = performance.now();
  const client = async () => {
    const creator = await open(target.create);
    const checker = target.check === target.create ? creator : await open(target.check);
    const check = async ({ authentication_uuid, fields, typing }: Flow) => {
      const code = await takeCode(fields.phone_number);
      if (typing === "wrong first") await ask(checker, tally, "checks", performance.now(), checkOf(authentication_uuid, wrongCode(code)), "invalid");
      await ask(checker, tally, "checks", performance.now(), checkOf(authentication_uuid, code), "valid");
    };
    const begun: Flow[] = [];
    while (performance.now() - started < 1000 * seconds) {
      const visitor = nextVisitor();
      const authentication_uuid = await ask(creator, tally, "creates", performance.now(), createOf(visitor), "pending");
      if (authentication_uuid !== undefined && visitor.typing !== "nothing") begun.push({ ...visitor, authentication_uuid });
      const [first] = begun;
      if (first !== undefined && (codes.has(first.fields.phone_number) || begun.length > 64)) await check(begun.shift() as Flow);
    }
    for (const flow of begun) await check(flow);
    for (const connection of new Set([creator, checker])) connection.close();
  };
  await Promise.all(Array.from({ length: connections }, client));
  return playedSince(started, tally);
}

/** Something that is due at a time, by `performance.now`. */
interface Due {
  readonly at: number;
  run(): void;
}

async function playOpen(perSecond: number, seconds: number): Promise<Played> {
  const tally: Tally = { creates: [], checks: [], failed: 0 };
  const [creators, checkers] = [poolOf(target.create), poolOf(target.check)];
  const started = performance.now();
  const arrivals: number[] = [];
  for (let at = started; at < started + 1000 * seconds; at += (-Math.log(1 - Math.random()) * 1000) / perSecond) arrivals.push(at);

  // There are ten lengths of pauses, so that the entries of each length are in the order in which they are due.
  const pauses: Due[][] = Array.from({ length: 10 }, () => []);
  const pause = (run: (due: number) => void) => {
    const length = Math.floor(10 * Math.random());
    const at = performance.now() + 200 * (1 + length);
    pauses[length]?.push({ at, run: () => run(at) });
  };
  let under = 0;
  let failure: unknown;
  const step = (work: () => Promise<void>) => {
    under++;
    work()
      .catch((error) => {
        failure ??= error;
      })
      .finally(() => under--);
  };
  const arrive = (due: number) =>
    step(async () => {
      const visitor = nextVisitor();
      const authentication_uuid = await ask(creators, tally, "creates", due, createOf(visitor), "pending");
      if (authentication_uuid === undefined || visitor.typing === "nothing") return;
      pause((later) => check({ ...visitor, authentication_uuid }, later));
    });
  const check = ({ authentication_uuid, fields, typing }: Flow, due: number) =>
    step(async () => {
      const code = await takeCode(fields.phone_number);
      const right = (at: number) => ask(checkers, tally, "checks", at, checkOf(authentication_uuid, code), "valid");
      if (typing === "right") return void (await right(due));
      await ask(checkers, tally, "checks", due, checkOf(authentication_uuid, wrongCode(code)), "invalid");
      pause((later) => step(async () => void (await right(later))));
    });

  let next = 0;
  await new Promise<void>((done) => {
    const turn = () => {
      const now = performance.now();
      for (; next < arrivals.length && (arrivals[next] as number) <= now; next++) arrive(arrivals[next] as number);
      for (const line of pauses) while (line[0] !== undefined && line[0].at <= now) line.shift()?.run();
      const isOver = failure !== undefined || (next === arrivals.length && under === 0 && pauses.every((line) => line.length === 0));
      if (isOver) done();
      else setImmediate(turn);
    };
    turn();
  });
  for (const pool of [creators, checkers]) pool.close();
  if (failure !== undefined) throw failure;
  return playedSince(started, tally);
}

/** The code sent to a number, once it has arrived. */
async function takeCode(number: string): Promise<string> {
  if (!codes.has(number)) await new Promise<void>((done) => waitingForCode.set(number, done));
  waitingForCode.delete(number);
  const code = codes.get(number) as string;
  codes.delete(number);
  return code;
}

const createOf = ({ fields }: Visitor) => post(createPath, { customer_uuid, ...fields });
const checkOf = (authentication_uuid: string, check_code: string) => post(checkPath, { customer_uuid, authentication_uuid, check_code });

function post(path: string, value: object): string {
  const body = JSON.stringify(value);
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${apiKey}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

interface Connection {
  exchange(request: string): Promise<Answer>;
  close(): void;
}

async function open(port: number): Promise<Connection> {
  const socket = connect(port, "127.0.0.1");
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  socket.setNoDelay(true).setEncoding("latin1");
  let text = "";
  let resolve: (answer: Answer) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const fail = (error: Error) => reject(error);
  socket.on("error", fail);
  socket.on("close", () => fail(new Error("the server closed the connection")));
  socket.on("data", (chunk: string) => {
    text += chunk;
    const head = text.indexOf("\r\n\r\n");
    if (head === -1) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
    if (length === undefined) return fail(new Error(`an answer without content-length: ${text}`));
    const body = text.slice(head + 4);
    if (body.length < Number(length)) return;
    const status = Number(text.slice(9, 12));
    text = "";
    resolve({ status, body });
  });
  return {
    exchange: (request) =>
      new Promise((done, failed) => {
        resolve = done;
        reject = failed;
        socket.write(request);
      }),
    close: () => socket.end(),
  };
}

interface Pool {
  exchange(request: string): Promise<Answer>;
  close(): void;
}

/** Concurrent connections to an app, as a proxy in front would allow: waiting for a free one counts as latency. */
const mostConnections = 256;

function poolOf(port: number): Pool {
  const idle: Connection[] = [];
  const waiting: ((connection: Connection) => void)[] = [];
  let opened = 0;
  return {
    async exchange(request) {
      const isFull = idle.length === 0 && opened === mostConnections;
      if (idle.length === 0 && !isFull) opened++;
      const connection = isFull ? await new Promise<Connection>((take) => waiting.push(take)) : (idle.pop() ?? (await open(port)));
      const answer = await connection.exchange(request);
      const taker = waiting.shift();
      if (taker === undefined) idle.push(connection);
      else taker(connection);
      return answer;
    },
    close() {
      for (const connection of idle) connection.close();
    },
  };
}
