import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { connect } from "node:net";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { fetchHandler } from "../../adapters/http/fetch.js";
import { nodeHandler } from "../../adapters/http/node.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import type { SmsMessage } from "../../src/index.js";
import { dial } from "../http/client.js";
import { listen } from "../http/hosts.js";
import { type RedisServer, redisIsInstalled, startRedis, until } from "../support/redis.js";
import { type Connected, clients, hurried } from "../support/redis-clients.js";
import { startProxy } from "../support/redis-proxy.js";
import { keyOf, tallied } from "./kit.js";
import { type Answer, codeOf, count, customerAt, fresh, idOf, makeVerifier, type Shop, shop, statuses, waves, wrongFor } from "./together-kit.js";

const installed = redisIsInstalled("the hostile tests of what goes together");
/** `storeTimeout`, and what a loaded machine may take on top. */
const deadline = 2_000 + 4_000;

describe.runIf(installed)("requests that go together, on Redis", () => {
  let server: RedisServer;
  let connected: Connected;
  const open: { close(): unknown }[] = [];
  const opened = <T extends { close(): unknown }>(one: T): T => {
    open.push(one);
    return one;
  };
  const storeOf = (prefix = randomUUID()) => redisStore({ client: connected.client, prefix });
  beforeAll(async () => {
    server = await startRedis();
    connected = await (clients["ioredis 6"] as (typeof clients)[string])(server);
  });
  afterEach(async () => {
    vi.useRealTimers();
    for (const one of open.splice(0).reverse()) await one.close();
  });
  afterAll(async () => {
    await connected?.close();
    await server?.stop();
  });

  it.each(["node:http", "Fastify 5 bare"])("over %s everyone gets the answer to their own request, in crowds and alone", async (mounted) => {
    await waves(opened(await shop(storeOf(), { mounted })), [60, 1, 2, 1, 1, 60, 1, 30]);
  });

  it("a code verifies its own authentication, and no other of the same crowd", async () => {
    const at = opened(await shop(storeOf()));
    const created = await Promise.all(count(80, (i) => at.create(customerAt(at, i), fresh())));
    const codes = created.map((one) => codeOf(at, idOf(one)));
    const others = count(80, (i) => (codes[i] === codes[(i + 1) % 80] ? wrongFor(codes[i] as string) : (codes[(i + 1) % 80] as string)));
    expect(statuses(await Promise.all(created.map((one, i) => at.check(customerAt(at, i), idOf(one), others[i] as string))))).toEqual({ invalid: 80 });
    expect(statuses(await Promise.all(created.map((one, i) => at.check(customerAt(at, i), idOf(one), codes[i] as string))))).toEqual({ valid: 80 });
  });

  it("requests that one client writes into one connection at once are answered in their order, each with its own", async () => {
    const at = opened(await shop(storeOf()));
    const customer = customerAt(at, 0);
    const asked = count(40, fresh);
    const bytes = asked.map((phone_number) => {
      const body = JSON.stringify({ customer_uuid: customer, phone_number });
      return `POST /v1/authentication HTTP/1.1\r\nhost: x\r\nx-api-key: ${keyOf(customer)}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    });
    let received = "";
    const socket = connect(at.host.port as number, "127.0.0.1", () => socket.write(bytes.join("")));
    socket.on("data", (chunk) => {
      received += chunk;
    });
    await until("all are answered", async () => received.split("HTTP/1.1 200").length === 41 && received.endsWith("}"));
    socket.destroy();
    expect([...received.matchAll(/x-phoneproof-phone-number: (\S+)/gi)].map(([, number]) => number)).toEqual(asked);
    const ids = [...received.matchAll(/"authentication_uuid":"([^"]+)"/g)].map(([, id]) => id as string);
    expect(ids.map((id) => at.sent.find((one) => one.authentication_uuid === id)?.to)).toEqual(asked);
  });

  it("two verifiers on one Redis, and two on one store, judge no more guesses, admit no more creates and spend no more than one may", async () => {
    const other = opened(await (clients["redis 6"] as (typeof clients)[string])(server));
    const prefix = randomUUID();
    const sent: SmsMessage[] = [];
    const options = { policy: { limits: { spend: [{ amount: 12, per: "day" as const }] } } };
    const priced = {
      sender: { plan: () => ({ route: "only", price: 1 }), send: async (one: SmsMessage) => ({ outcome: sent.push(one) ? "accepted" : "unknown" }) as const },
    };
    const store = storeOf(prefix);
    const a = opened(await shop(store, { ...options, ...priced, like: { customers: count(5, () => randomUUID()), sent } }));
    const b = opened(await shop(redisStore({ client: other.client, prefix }), { ...options, ...priced, like: a }));
    const c = opened(await shop(store, { ...options, ...priced, like: a }));
    const at = (i: number) => [a, b, c][i % 3] as Shop;
    const [guessed, capped, spent, keyed, raced] = a.customers as [string, string, string, string, string];

    const id = idOf(await a.create(guessed, fresh()));
    // Calls go together after a turn in which several came.
    await Promise.all(count(6, (i) => at(i).create(guessed, fresh())));
    const guesses = await Promise.all(count(200, (i) => at(i).check(guessed, id, wrongFor(codeOf(a, id)))));
    expect(statuses(guesses)).toEqual({ invalid: 5, rate_limited: 195 });
    expect(statuses([await b.check(guessed, id, codeOf(a, id))])).toEqual({ rate_limited: 1 });

    const number = fresh();
    expect(statuses(await Promise.all(count(50, (i) => at(i).create(capped, number))))).toEqual({ pending: 5, rate_limited: 45 });
    expect(sent.filter(({ to }) => to === number)).toHaveLength(5);

    expect(statuses(await Promise.all(count(60, (i) => at(i).create(spent, fresh()))))).toEqual({ pending: 12, rate_limited: 48 });

    const twin = fresh();
    const twins = await Promise.all(count(60, (i) => at(i).create(keyed, twin, `key ${i % 2}`)));
    expect(statuses(twins)).toEqual({ pending: 60 });
    expect(count(2, (odd) => new Set(twins.filter((_, i) => i % 2 === odd).map(idOf)).size)).toEqual([1, 1]);
    expect(sent.filter(({ to }) => to === twin)).toHaveLength(2);

    const race = idOf(await a.create(raced, fresh()));
    const right = await Promise.all(count(60, (i) => at(i).check(raced, race, codeOf(a, race))));
    expect(statuses(right)).toEqual({ valid: 1, already_validated: 59 });
  });

  it("200 guesses and 50 creates at once in one process are held to the same, beside a crowd of others", async () => {
    const at = opened(await shop(storeOf()));
    const customer = customerAt(at, 0);
    const id = idOf(await at.create(customer, fresh()));
    const number = fresh();
    await waves(at, [6]);
    const [guesses, creates] = await Promise.all([
      Promise.all(count(200, () => at.check(customer, id, wrongFor(codeOf(at, id))))),
      Promise.all(count(50, () => at.create(customer, number))),
      waves(at, [40]),
    ]);
    expect(statuses(guesses)).toEqual({ invalid: 5, rate_limited: 195 });
    expect(statuses(creates)).toEqual({ pending: 5, rate_limited: 45 });
  });

  it("clients that go away, and bodies that are slow, broken, too large or nobody's, hold up none of the crowd", async () => {
    const at = opened(await shop(storeOf()));
    const port = at.host.port as number;
    const customer = customerAt(at, 0);
    const line = (body: string, length = body.length, key = keyOf(customer)) =>
      dial(port, `POST /v1/authentication HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\ncontent-length: ${length}\r\n\r\n${body}`);
    const whole = () => JSON.stringify({ customer_uuid: customer, phone_number: fresh() });
    const slow = count(20, () => {
      const body = whole();
      return { body, line: line(body.slice(0, 30), body.length) };
    });
    const rude = count(60, (i) => {
      const body = whole();
      return line(i % 3 ? body : body.slice(0, 40), body.length);
    });
    const fates = count(30, (i) =>
      i % 3 === 0
        ? at.ask(customer, "/v1/authentication", '{"customer_uuid": "')
        : i % 3 === 1
          ? at.ask(customer, "/v1/authentication", { customer_uuid: customer, phone_number: "x".repeat(17_000) }).catch(() => undefined)
          : at.ask(customer, "/v1/authentication", whole(), { "x-api-key": keyOf(randomUUID()) }),
    );
    const began = performance.now();
    const crowd = waves(at, [60, 1, 20]);
    setImmediate(() => {
      for (const one of rude.slice(0, 30)) one.close();
    });
    await until("some are on their way", async () => at.sent.length > 20);
    for (const one of rude) one.close();
    await crowd;
    // A body may take ten seconds.
    expect(performance.now() - began).toBeLessThan(9_000);
    expect((await Promise.all(fates)).map((one, i) => one?.status ?? [400, 413, 403][i % 3])).toEqual(count(30, (i) => [400, 413, 403][i % 3]));
    const late = await Promise.all(
      slow.map(({ body, line }) => {
        line.write(body.slice(30));
        return line.answer();
      }),
    );
    for (const [i, { status, body }] of late.entries()) {
      expect(status).toBe(200);
      const message = at.sent.find((one) => one.authentication_uuid === body["authentication_uuid"]);
      expect(message?.to).toBe(JSON.parse(slow[i]?.body as string).phone_number);
    }
    for (const { line } of slow) line.close();
    await waves(at, [1, 20]);
  });

  it("connections to Redis that break in the midst: each request ends in time, and nothing is sent or counted twice", async () => {
    const proxy = opened(await startProxy(server.port));
    const client = opened(await (clients["ioredis 6"] as (typeof clients)[string])(proxy, hurried));
    const prefix = randomUUID();
    const calm = opened(await shop(storeOf(prefix)));
    const at = opened(await shop(redisStore({ client: client.client, prefix }), { storeTimeout: 2, like: calm }));
    const seen: Answer[] = [];
    const told = async (asked: Promise<Answer>) => {
      const answer = await asked;
      seen.push(answer);
      expect([200, 503]).toContain(answer.status);
      expect(answer.took).toBeLessThan(deadline);
      return answer;
    };
    /** As clients do: again, under its key, until there is an answer. */
    const insisted = async (ask: () => Promise<Answer>): Promise<Answer> => {
      let answer = await told(ask());
      await until("it is answered", async () => answer.status === 200 || (answer = await told(ask())).status === 200);
      return answer;
    };
    for (const cut of ["from the start", "after some answers", "for a blink"]) {
      const guessed = await Promise.all(count(20, async (i) => ({ customer: customerAt(at, i), id: idOf(await calm.create(customerAt(at, i), fresh())) })));
      const created = count(40, (i) => ({ customer: customerAt(at, i), number: fresh(), key: randomUUID() }));
      const before = seen.length;
      proxy.cutAnswers(cut !== "after some answers");
      const creates = created.map(({ customer, number, key }) => insisted(() => at.create(customer, number, key)));
      const checks = guessed.map(({ customer, id }) => insisted(() => at.check(customer, id, wrongFor(codeOf(calm, id)), id)));
      if (cut === "after some answers") await until("some are answered", async () => seen.length > before + 10);
      proxy.cutAnswers(true);
      const { client: redis } = client as { client: unknown } as { client: Redis };
      await until("it has broken", async () => redis.status !== "ready" || seen.length >= before + 60);
      if (cut !== "for a blink") await until("it tells", async () => seen.slice(before).some(({ status }) => status === 503) || seen.length >= before + 60);
      proxy.cutAnswers(false);
      const answers = await Promise.all(creates);
      expect(statuses(answers)).toEqual({ pending: 40 });
      const wrong = await Promise.all(checks);
      expect(wrong.map(({ json, headers }) => `${json["status"]} ${headers["x-phoneproof-remaining-checks"]}`)).toEqual(count(20, () => "invalid 4"));
      for (const [i, { customer, number, key }] of created.entries()) {
        const id = idOf(answers[i] as Answer);
        expect(at.sent.filter(({ to }) => to === number).map((one) => one.authentication_uuid)).toEqual([id]);
        expect(idOf(await calm.create(customer, number, key))).toBe(id);
        expect(statuses([await calm.check(customer, id, codeOf(at, id))])).toEqual({ valid: 1 });
      }
      for (const { customer, id } of guessed) expect(statuses([await calm.check(customer, id, codeOf(at, id))])).toEqual({ valid: 1 });
      // What was lost is taken back beside the requests: in the end there is room for four more, and for no fifth.
      const { customer, number } = created[0] as (typeof created)[number];
      const sentTo = () => at.sent.filter(({ to }) => to === number).length;
      await until("there is room for four more", async () => (await calm.create(customer, number)).status === 200 && sentTo() === 5);
      expect(statuses(await Promise.all(count(5, () => calm.create(customer, number))))).toEqual({ rate_limited: 5 });
    }
    expect(seen.some(({ status }) => status === 503)).toBe(true);
  });

  it("a Redis that hangs under a crowd: every request ends within its deadline, and once it goes on all is as before", async () => {
    const policy = { retryCooldowns: [1, 1, 1, 1] };
    const patient = opened(await shop(storeOf(), { storeTimeout: 2, policy }));
    const client = opened(await (clients["redis 6"] as (typeof clients)[string])(server, hurried));
    const quick = opened(await shop(redisStore({ client: client.client, prefix: randomUUID() }), { storeTimeout: 2, policy }));
    const shops = [patient, quick];
    await Promise.all(shops.map((at) => waves(at, [20])));
    const jobs = count(80, (i) => {
      const at = shops[i % 2] as Shop;
      return { at, customer: customerAt(at, i), number: fresh(), key: randomUUID() };
    });
    const known = await Promise.all(jobs.slice(0, 20).map(async ({ at, customer }) => ({ at, customer, id: idOf(await at.create(customer, fresh())) })));
    let answered = 0;
    const ended = async (asked: Promise<Answer>) => {
      const answer = await asked;
      answered++;
      expect(answer.took).toBeLessThan(deadline);
      expect([200, 503]).toContain(answer.status);
      return answer;
    };
    const creates = jobs.map(({ at, customer, number, key }) => ended(at.create(customer, number, key)));
    const checks = known.map(({ at, customer, id }) => ended(at.check(customer, id, wrongFor(codeOf(at, id)), id)));
    await until("the first are answered", async () => answered > 0);
    await server.signal("SIGSTOP");
    let first: Answer[];
    try {
      first = await Promise.all(creates);
      await Promise.all(checks);
      const meanwhile = await Promise.all(jobs.slice(0, 30).map(({ at, customer }) => ended(at.create(customer, fresh()))));
      expect(statuses(meanwhile)).toEqual({ 503: 30 });
    } finally {
      await server.signal("SIGCONT");
    }
    for (const [i, { at, customer, number, key }] of jobs.entries()) {
      let answer = first[i] as Answer;
      await until("it is served again", async () => answer.status === 200 || (answer = await at.create(customer, number, key)).status === 200);
      const id = idOf(answer);
      const sentTo = () => at.sent.filter(({ to }) => to === number).map((one) => one.authentication_uuid);
      // "If the repeat answers `pending` and no message comes, that is what retry is for" (docs/operations.md).
      const retry = () => at.ask(customer, "/v1/retry", { customer_uuid: customer, authentication_uuid: id });
      await until("it is sent", async () => sentTo().length > 0 || (await retry()).json["status"] === "approved");
      expect(sentTo()).toEqual([id]);
      expect(statuses([await at.check(customer, id, codeOf(at, id))])).toEqual({ valid: 1 });
    }
    for (const { at, customer, id } of known) {
      const again = await at.check(customer, id, wrongFor(codeOf(at, id)), id);
      expect(`${again.json["status"]} ${again.headers["x-phoneproof-remaining-checks"]}`).toBe("invalid 4");
    }
    await Promise.all(shops.map((at) => waves(at, [1, 20])));
  });

  it.each(["a string", "a list"])("keys of one customer that have become %s fail its requests, and nobody else's", async (what) => {
    const prefix = randomUUID();
    const at = opened(await shop(storeOf(prefix)));
    const [victim, ...others] = at.customers as [string, ...string[]];
    const ids = await Promise.all(count(10, async () => idOf(await at.create(victim, fresh()))));
    const theirs = await Promise.all(count(20, async (i) => [others[i % 4] as string, idOf(await at.create(others[i % 4] as string, fresh()))] as const));
    const keys = (await server.cli("KEYS", `${prefix}*${Buffer.from(victim.replaceAll("-", ""), "hex").toString("base64url")}*`)).split("\n").filter(Boolean);
    expect(keys.length).toBeGreaterThan(10);
    for (const key of keys) {
      await server.cli("DEL", key);
      await server.cli(what === "a list" ? "RPUSH" : "SET", key, "junk");
    }
    const hurt: Promise<Answer>[] = [];
    const fine: Promise<Answer>[] = [];
    for (const [i, [customer, id]] of theirs.entries()) {
      hurt.push(at.check(victim, ids[i % 10] as string, "000000"), at.create(victim, fresh()));
      fine.push(at.check(customer, id, codeOf(at, id)), at.create(customer, fresh()), at.create(others[i % 4] as string, fresh()));
    }
    expect(statuses(await Promise.all(fine))).toEqual({ valid: 20, pending: 40 });
    for (const { status } of await Promise.all(hurt)) expect([500, 503]).toContain(status);
    await server.cli("DEL", ...keys);
    await waves(at, [20]);
  });

  it("scripts that Redis forgets between crowds and during them, and a process that stands still for 300 ms, change no answer", async () => {
    const at = opened(await shop(storeOf()));
    await waves(at, [20]);
    await server.cli("SCRIPT", "FLUSH");
    await waves(at, [30, 1]);
    let over = false;
    const flushes = (async () => {
      while (!over) await server.cli("SCRIPT", "FLUSH");
    })();
    await waves(at, [50, 1, 50]).finally(() => {
      over = true;
    });
    await flushes;
    const crowd = waves(at, [60, 1, 20]);
    const before = at.sent.length;
    for (const more of [10, 20, 40]) {
      await until("it is in the midst", async () => at.sent.length > before + more);
      for (const end = performance.now() + 300; performance.now() < end; );
    }
    await crowd;
  });

  it("a Redis that is killed and started between crowds serves the next, and what it kept", async () => {
    const own = await startRedis(["--appendonly", "yes", "--appendfsync", "always"]);
    opened({ close: () => own.stop() });
    const client = opened(await (clients["redis 6"] as (typeof clients)[string])(own));
    const at = opened(await shop(redisStore({ client: client.client })));
    for (let round = 0; round < 2; round++) {
      const created = await Promise.all(count(40, (i) => at.create(customerAt(at, i), fresh())));
      await own.signal("SIGKILL");
      expect(statuses(await Promise.all(count(20, (i) => at.create(customerAt(at, i), fresh()))))).toEqual({ 503: 20 });
      await own.restart();
      await until("it serves", async () => (await at.create(customerAt(at, 0), fresh())).status === 200);
      expect(statuses(await Promise.all(created.map((one, i) => at.check(customerAt(at, i), idOf(one), codeOf(at, idOf(one))))))).toEqual({ valid: 40 });
      await waves(at, [20]);
    }
  });

  it("each request keeps the host's own context, though others go on with it; a rule that throws, or asks the service itself, holds up nobody", async () => {
    const context = new AsyncLocalStorage<string>();
    const wrong: string[] = [];
    const isMine = (number: string) => context.getStore() === number || wrong.push(`${number} in ${context.getStore()}`);
    const sent: SmsMessage[] = [];
    const customers = [randomUUID()] as const;
    let port = 0;
    const verifier = opened(
      makeVerifier(storeOf(), customers, sent, {
        sender: {
          async send(message) {
            isMine(message.to);
            sent.push(message);
            return { outcome: "accepted" };
          },
        },
        spamRules: [
          {
            name: "own",
            judge: async ({ phone_number }) => {
              isMine(phone_number);
              if (sent.length % 3 === 0) throw new Error("a rule that throws");
              const headers = { "x-api-key": keyOf(customers[0]), "customer-uuid": customers[0], "x-number": phone_number };
              const looked = (await (await fetch(`http://127.0.0.1:${port}/v1/lookup/${phone_number}`, { headers })).json()) as { phone_number: string };
              return looked.phone_number === phone_number ? undefined : { reason: "not what was asked" };
            },
          },
        ],
      }),
    );
    const handler = nodeHandler(verifier);
    const host = opened(await listen(createServer((asked, answer) => context.run(String(asked.headers["x-number"]), () => handler(asked, answer)))));
    port = host.port as number;
    for (const size of [40, 1, 40]) {
      const answers = await Promise.all(
        count(size, () => {
          const phone_number = fresh();
          const headers = { "x-api-key": keyOf(customers[0]), "x-number": phone_number };
          return host.send({ method: "POST", path: "/v1/authentication", headers, body: JSON.stringify({ customer_uuid: customers[0], phone_number }) });
        }),
      );
      expect(tallied(answers.map(({ text }) => JSON.parse(text).status))).toEqual({ pending: size });
    }
    expect(wrong).toEqual([]);
  });

  it.each(["memory", "redis"])("fake timers that a user's test switches on hang no request on %s", async (which) => {
    const realSetTimeout = setTimeout;
    const sent: SmsMessage[] = [];
    const customer = randomUUID();
    const verifier = makeVerifier(which === "memory" ? memoryStore({ name: randomUUID() }) : storeOf(), [customer], sent);
    const handler = fetchHandler(verifier);
    const post = async (path: string, body: object) => {
      const init = {
        method: "POST",
        headers: { "x-api-key": keyOf(customer), "content-type": "application/json" },
        body: JSON.stringify({ customer_uuid: customer, ...body }),
      };
      return (await (await handler(new Request(`http://localhost/v1/${path}`, init))).json()) as { authentication_uuid: string; status: string };
    };
    const wave = async (size: number) => {
      const created = await Promise.all(count(size, () => post("authentication", { phone_number: fresh() })));
      const checked = await Promise.all(
        created.map(({ authentication_uuid: id }) => post("check", { authentication_uuid: id, check_code: codeOf({ sent }, id) })),
      );
      return tallied([...created, ...checked].map(({ status }) => status));
    };
    const all = async () => {
      for (const size of [1, 30, 1, 30, 30]) expect(await wave(size)).toEqual({ pending: size, valid: size });
    };
    const within = <T>(work: Promise<T>) => Promise.race([work, new Promise((_, reject) => realSetTimeout(() => reject(new Error("it hangs")), 8_000))]);
    await within(all());
    const midst = wave(30);
    vi.useFakeTimers();
    await within(midst);
    await within(all());
    vi.useRealTimers();
    await within(all());
    await verifier.close();
  });
});
