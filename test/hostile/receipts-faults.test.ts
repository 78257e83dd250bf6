import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisStore } from "../../adapters/store/redis/index.js";
import { PlainStore } from "../store/plain-store.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { type Connected, clients } from "../support/redis-clients.js";
import { drive, type Fate, ForgetfulStore, fates, pass, rigged, turns } from "./kit.js";
import { atSecret, base, begin, listening, messageOf, noon, post, providers, tellers, told, wordOf } from "./receipt-kit.js";

const dashboard = (id: string, status: string) => ({
  url: `${base}/receipts/africastalking?key=${atSecret}`,
  headers: { "content-type": "application/x-www-form-urlencoded" },
  body: new URLSearchParams({ id, status }).toString(),
});
const faulty = fates.filter((fate) => fate !== "late");

describe("a store that hangs", () => {
  it.each(providers)("%s: gives 503 with retry-after within storeTimeout, and the carrier's repeat is reported", async (provider) => {
    const store = rigged(new PlainStore());
    const one = listening({ store });
    const id = await begin(one);
    const word = await wordOf(provider, one, id);
    store.fate = () => "silent";
    const asked = one.clock.now();
    const answer = await drive(one.clock, post(one.verifier, word));
    expect(answer).toMatchObject({ status: 503, headers: { "retry-after": expect.stringMatching(/^\d+$/) } });
    expect(one.clock.now() - asked).toBeLessThanOrEqual(2_200);
    store.fate = () => "done";
    expect((await post(one.verifier, word)).status).toBe(200);
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("gets one storeTimeout for a post of a hundred results, not one for each", async () => {
    const store = rigged(new PlainStore());
    const one = listening({ store });
    const ids: string[] = [];
    for (let i = 0; i < 100; i++) ids.push(await begin(one, i));
    const results = ids.map((id) => ({ messageId: "m", status: { groupName: "DELIVERED" }, callbackData: messageOf(one, id).receipt_reference }));
    store.fate = () => "late";
    const asked = one.clock.now();
    // Each call takes a second.
    const answer = post(one.verifier, { url: `${base}/receipts/infobip`, body: JSON.stringify({ results }) });
    let settled = false;
    void answer.then(() => (settled = true));
    for (let second = 0; second < 400 && !settled; second++) {
      await turns(4);
      await pass(one.clock, 1_000, 1_000);
      await store.release();
      await turns(4);
    }
    expect([200, 503]).toContain((await answer).status);
    expect(one.clock.now() - asked).toBeLessThanOrEqual(5_000);
  });
});

/** Posts a receipt with an error at its nth store call; the carrier repeats it if the response was not 2xx. */
async function withError(by: "africastalking" | "infobip", fate: Fate, at: number) {
  const store = rigged(new PlainStore());
  const one = listening({ store });
  const id = await begin(one);
  const word = await wordOf(by, one, id);
  const before = store.count();
  store.fate = () => (store.count() - before === at ? fate : "done");
  const answered = drive(one.clock, post(one.verifier, word));
  const first = await answered;
  const calls = store.count() - before;
  store.fate = () => "done";
  if (first.status >= 300) {
    expect(first.status).toBe(503);
    await drive(one.clock, post(one.verifier, word));
  }
  await store.release();
  await turns();
  // Another repeat, later, changes nothing.
  await post(one.verifier, word);
  return { story: await told(one, id), calls };
}

describe.each(["africastalking", "infobip"] as const)("%s: a store error at each step of a receipt", (by) => {
  it.each(faulty)("%s: the receipt is neither lost nor reported twice", async (fate) => {
    for (let at = 1; at <= 8; at++) {
      const { story, calls } = await withError(by, fate, at);
      expect(story, `call ${at}`).toEqual(["1:submitted", "1:delivered"]);
      if (at > calls) break;
    }
  });
});

describe("a receipt that arrives before its message's id", () => {
  const early = (words: readonly string[], store = rigged(new PlainStore())) => {
    const one = listening({ store });
    let count = 0;
    one.sender.answer = async () => {
      const messageId = `AT${++count}`;
      for (const word of words) expect((await post(one.verifier, dashboard(messageId, word))).status).toBe(200);
      return { outcome: "accepted", messageId, idSpace: "africastalking" };
    };
    return { one, store };
  };

  it.each<[string, readonly string[], string]>([
    ["rejected at once", ["Rejected"], "1:undeliverable"],
    ["delivered at once", ["Success"], "1:delivered"],
    ["the whole life", ["Sent", "Submitted", "Buffered", "Success"], "1:delivered"],
    ["backwards", ["Success", "Buffered", "Sent"], "1:delivered"],
    ["contradictory: one of the finals", ["Success", "Rejected"], "final"],
    ["repeated", ["Rejected", "Rejected", "Rejected"], "1:undeliverable"],
  ])("%s", async (_, words, last) => {
    const { one } = early(words);
    const id = await begin(one);
    const story = await told(one, id);
    expect(new Set(story).size).toBe(story.length);
    expect(story[0]).toBe("1:submitted");
    if (last === "final") expect(["1:delivered", "1:undeliverable"]).toContain(story.at(-1));
    else expect(story.at(-1)).toBe(last);
    expect(story.filter((line) => line === "1:delivered" || line === "1:undeliverable")).toHaveLength(1);
    for (const word of words) await post(one.verifier, dashboard("AT1", word));
    expect(await told(one, id)).toEqual(story);
    expect((await one.check(id, one.sender.codeOf(id))).status).toBe("valid");
  });

  it.each(["held", "late"] as const)(
    "in another process, with each of its store calls %s until the create has ended, is neither lost nor reported twice",
    async (fate) => {
      for (const status of ["Rejected", "Buffered"])
        for (let at = 1; at <= 6; at++) {
          const data = new PlainStore();
          const sending = listening({ store: data });
          const slow = rigged(data);
          const hearing = listening({
            ...sending.settings,
            store: slow,
            customer: sending.customer,
            clock: sending.clock,
            callbacks: { sender: sending.hook },
          } as never);
          slow.fate = () => (slow.count() === at ? fate : "done");
          let answered: Promise<{ status: number }> | undefined;
          sending.sender.answer = async () => {
            answered = post(hearing.verifier, dashboard("AT7", status));
            await turns();
            return { outcome: "accepted", messageId: "AT7", idSpace: "africastalking" };
          };
          const id = await begin(sending);
          slow.fate = () => "done";
          await slow.release();
          expect((await answered)?.status).toBe(200);
          const story = await told(sending, id);
          expect(story, `call ${at}`).toEqual(["1:submitted", status === "Rejected" ? "1:undeliverable" : "1:in_transit"]);
        }
    },
  );

  it("is matched to a retry's message as well as to the first", async () => {
    const { one } = early(["Rejected"]);
    const id = await begin(one);
    one.clock.advance(31_000);
    expect((await one.retry(id)).status).toBe("approved");
    expect((await told(one, id)).sort()).toEqual(["1:submitted", "1:undeliverable", "2:submitted", "2:undeliverable"]);
  });

  it("with a store error at any call of a create after the send: create returns no error, and nothing is reported twice", async () => {
    for (const fate of faulty)
      for (let at = 2; at <= 8; at++) {
        const { one, store } = early(["Rejected"]);
        const plain = one.sender.answer;
        let out = false;
        let answered = 0;
        one.sender.answer = async (message, context) => {
          const answer = await plain(message, context);
          out = true;
          answered = store.count();
          return answer;
        };
        store.fate = () => (out && store.count() - answered === at - 1 ? fate : "done");
        const { authentication_uuid: id, status } = await drive(one.clock, one.create(1, { callback_url: "https://receiver.example/hook" }));
        expect(status, `${fate} ${at}`).toBe("pending");
        store.fate = () => "done";
        await store.release();
        await pass(one.clock, 60_000, 5_000);
        const story = await told(one, id);
        expect(new Set(story).size, `${fate} ${at}: ${story}`).toBe(story.length);
        expect((await one.check(id, one.sender.codeOf(id))).status, `${fate} ${at}`).toBe("valid");
      }
  });

  it("is not lost when the store fails once as the id is written", async () => {
    for (const fate of ["refused", "lost"] as const) {
      const { one, store } = early(["Rejected"]);
      let hit = false;
      store.fate = (method, args) => {
        if (method !== "put" || hit || !String(args[0]).includes("AT1") || String(args[0]).includes("early")) return "done";
        hit = true;
        return fate;
      };
      const { authentication_uuid: id } = await drive(one.clock, one.create(1, { callback_url: "https://receiver.example/hook" }));
      expect(hit).toBe(true);
      store.fate = () => "done";
      await pass(one.clock, 30_000, 1_000);
      expect(await told(one, id), fate).toContain("1:undeliverable");
    }
  });

  /** The sending process dies `after` store calls past the send; another process receives the remaining receipts. */
  const dies = async (after: number) => {
    const data = new PlainStore();
    const store = rigged(data);
    const dying = listening({ store });
    const other = listening({ ...dying.settings, store: data, customer: dying.customer, clock: dying.clock, callbacks: { sender: dying.hook } } as never);
    let from = Number.POSITIVE_INFINITY;
    dying.sender.answer = async () => {
      expect((await post(other.verifier, dashboard("AT9", "Buffered"))).status).toBe(200);
      from = store.count();
      return { outcome: "accepted", messageId: "AT9", idSpace: "africastalking" };
    };
    store.fate = () => (store.count() - from > after ? "silent" : "done");
    const { authentication_uuid: id } = await drive(dying.clock, dying.create(1, { callback_url: "https://receiver.example/hook" }));
    await pass(dying.clock, 30_000, 5_000);
    expect((await post(other.verifier, dashboard("AT9", "Success"))).status).toBe(200);
    await other.verifier.flush();
    const story = dying.hook.story(id);
    expect(new Set(story).size, String(story)).toBe(story.length);
    expect((await other.check(id, dying.sender.codeOf(id))).status).toBe("valid");
    return story;
  };

  it.each([2, 3, 4, 5, 6])("when its process dies %i store calls after the send, the carrier's next receipt is still reported, once", async (after) => {
    expect((await dies(after)).at(-1)).toBe("1:delivered");
  });

  it("when its process dies between the writes of the record and the id, the carrier's next receipt is still reported", async () => {
    expect((await dies(1)).at(-1)).toBe("1:delivered");
  });

  it("one hanging store call prevents neither the write of the record nor that of the id", async () => {
    const store = rigged(new PlainStore());
    const one = listening({ store });
    let from = Number.POSITIVE_INFINITY;
    one.sender.answer = async () => {
      from = store.count();
      return { outcome: "accepted", messageId: "AT1", idSpace: "africastalking" };
    };
    store.fate = () => (store.count() - from === 1 ? "silent" : "done");
    const { authentication_uuid: id } = await drive(one.clock, one.create(1, { callback_url: "https://receiver.example/hook" }));
    await pass(one.clock, 60_000, 1_000);
    expect((await post(one.verifier, dashboard("AT1", "Success"))).status).toBe(200);
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("waits up to two minutes, by the verifier's clock", async () => {
    for (const [wait, heard] of [
      [119_000, true],
      [121_000, false],
    ] as const) {
      const one = listening();
      expect((await post(one.verifier, dashboard("AT5", "Rejected"))).status).toBe(200);
      one.clock.advance(wait);
      one.sender.answer = async () => ({ outcome: "accepted", messageId: "AT5", idSpace: "africastalking" });
      const id = await begin(one);
      expect((await told(one, id)).includes("1:undeliverable")).toBe(heard);
    }
  });

  it("finds its message for three days, and not afterwards", async () => {
    for (const [days, heard] of [
      [0.9, true],
      [3.1, false],
    ] as const) {
      const one = listening({ policy: { tombstone: 10 * 86_400 } });
      const id = await begin(one);
      one.clock.advance(days * 86_400_000);
      expect((await post(one.verifier, dashboard("SM1", "Success"))).status).toBe(200);
      expect((await told(one, id)).includes("1:delivered")).toBe(heard);
    }
  });

  it("for an unknown message stores nothing for longer than two minutes", async () => {
    const store = rigged(new PlainStore());
    const one = listening({ store });
    for (let i = 0; i < 50; i++) await post(one.verifier, dashboard(`campaign-${i}`, "Success"));
    for (const { method, args } of store.calls) {
      if (method !== "put") continue;
      const { keepUntil } = args[2] as { keepUntil: number };
      expect(keepUntil).toBeLessThanOrEqual(one.clock.now() + 120_000);
    }
    expect(store.count("put")).toBeGreaterThan(0);
  });
});

describe("receipts of an expired record", () => {
  it.each(providers)("%s: get 200 or 403 and do not create the record again", async (provider) => {
    const clock = listening().clock;
    const inner = new ForgetfulStore(() => clock.now());
    const store = rigged(inner);
    const one = listening({ store, clock });
    const id = await begin(one);
    const message = messageOf(one, id);
    await told(one, id);
    clock.advance(10 * 86_400_000);
    const word = await tellers[provider]!.tell({
      url: (message.receipt_url ?? "").replace("{provider}", provider),
      reference: message.receipt_reference ?? "",
      id: "SM1",
      status: "delivered",
      at: clock.now(),
    });
    expect([200, 403]).toContain((await post(one.verifier, word)).status);
    await inner.find(one.customer, id);
    expect(inner.records.size).toBe(0);
    expect(one.hook.story(id)).toEqual(["1:submitted"]);
  });
});

describe.runIf(redisIsInstalled("the hostile tests of receipts on Redis"))("several processes on one Redis", () => {
  let server: RedisServer;
  let connections: Connected[];
  beforeAll(async () => {
    server = await startRedis();
    connections = await Promise.all([0, 1, 2].map(() => clients["redis 6"]!(server)));
  });
  afterAll(async () => {
    for (const connection of connections ?? []) await connection.close();
    await server?.stop();
  });
  const processes = (prefix: string) => {
    const stores = connections.map(({ client }) => redisStore({ client, prefix }));
    const first = listening({ store: stores[0]! });
    const rest = stores
      .slice(1)
      .map((store) => listening({ ...first.settings, store, customer: first.customer, clock: first.clock, callbacks: { sender: first.hook } } as never));
    return [first, ...rest];
  };

  it("receipts for 150 messages at once that reach other processes before the id is stored are neither lost nor reported twice", async () => {
    const [one, two, three] = processes("early");
    const posts: Promise<{ status: number }>[] = [];
    let count = 0;
    one!.sender.answer = async () => {
      const messageId = `R${++count}`;
      const words = count % 2 ? ["Sent", "Rejected", "Rejected"] : ["Buffered", "Success"];
      // Not awaited: each may arrive at any point of the create.
      for (const [i, word] of words.entries()) posts.push(post((i % 2 ? two : three)!.verifier, dashboard(messageId, word)));
      if (count % 3 === 0) await turns(count % 7);
      return { outcome: "accepted", messageId, idSpace: "africastalking" };
    };
    const ids = await Promise.all(Array.from({ length: 150 }, (_, i) => begin(one!, i)));
    expect(new Set((await Promise.all(posts)).map(({ status }) => status))).toEqual(new Set([200]));
    await one!.verifier.flush();
    one!.clock.advance(120_000);
    await one!.verifier.flush();
    for (const id of ids) {
      const story = one!.hook.story(id);
      expect(new Set(story).size).toBe(story.length);
      expect(
        story.filter((line) => /delivered|undeliverable/.test(line)),
        String(story),
      ).toHaveLength(1);
    }
  });

  it("five hundred posts of one receipt to three processes are reported once", async () => {
    const all = processes("one");
    const id = await begin(all[0]!);
    const word = await wordOf("twilio", all[0]!, id);
    const answers = await Promise.all(Array.from({ length: 500 }, (_, i) => post(all[i % 3]!.verifier, word)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await told(all[0]!, id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("a stopped Redis gives 503, and the repeated receipt is reported", async () => {
    const [one] = processes("stopped");
    const id = await begin(one!);
    const word = await wordOf("infobip", one!, id);
    const before = await post(one!.verifier, { ...word, body: (word.body as string).replace("DELIVERED", "PENDING") });
    expect(before.status).toBe(200);
    await server.signal("SIGSTOP");
    try {
      const asked = post(one!.verifier, word);
      await turns(50);
      expect((await drive(one!.clock, asked)).status).toBe(503);
    } finally {
      await server.signal("SIGCONT");
    }
    expect((await post(one!.verifier, word)).status).toBe(200);
    expect((await told(one!, id)).filter((line) => line === "1:delivered")).toHaveLength(1);
    expect(noon).toBeLessThan(one!.clock.now());
  });
});
