import { afterAll, beforeAll, describe, it } from "vitest";
import { runtimeOf } from "../package/programs.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { startUpstash, type UpstashServer } from "../support/upstash.js";
import { runInDeno, startFunction, startWorker, type Worker } from "./edge-runtimes-kit.js";

const installed = redisIsInstalled("the hostile tests of serverless platforms");
const [miniflare, deno] = await Promise.all([runtimeOf("Workers"), runtimeOf("Deno")]);

describe.runIf(installed).concurrent("on serverless platforms", () => {
  let redis: RedisServer;
  let upstash: UpstashServer;
  beforeAll(async () => {
    redis = await startRedis();
    upstash = await startUpstash(redis.url);
  });
  afterAll(async () => {
    await upstash?.close();
    await redis?.stop();
  });

  describe.runIf(miniflare !== undefined).concurrent("the documents' worker.ts, on workerd", () => {
    let documented: Worker;
    let lasting: Worker;
    beforeAll(async () => {
      const imported = `import { waitUntil } from "cloudflare:workers";\n`;
      [documented, lasting] = await Promise.all([
        startWorker(miniflare as string, upstash),
        startWorker(miniflare as string, upstash, (text) => imported + text.replace("callbacks: { worker: false }", "callbacks: { waitUntil }")),
      ]);
    });
    afterAll(async () => void (await Promise.all([documented?.close(), lasting?.close()])));

    /** Creates for a number until a cap blocks one, and the id of that one. */
    const blocked = async (worker: Worker, phone_number: string): Promise<string> => {
      for (let tries = 0; tries < 6; tries++) {
        const { status, authentication_uuid } = await worker.call("/v1/authentication", { phone_number });
        if (status === "rate_limited") return String(authentication_uuid);
      }
      throw new Error("no cap blocked a create");
    };

    it("responds to a check and a retry of a create that a cap has blocked, within the deadline (docs/contract.md#store-deadline, docs/contract.md#life-of-an-authentication, docs/frameworks.md#cloudflare-workers)", async ({
      expect,
    }) => {
      const authentication_uuid = await blocked(documented, "+33612345678");
      const answers = await Promise.all([
        documented.call("/v1/check", { authentication_uuid, check_code: "123456" }),
        documented.call("/v1/retry", { authentication_uuid }),
      ]);
      const short = answers.map(({ http, status, code }) => [http, status ?? code]);
      expect(short).toEqual([
        [200, "rate_limited"],
        [200, "rate_limited"],
      ]);
    });

    it("finds the earlier verification of a number by its id, after a newer one has begun (docs/contract.md#slot, docs/contract.md#store-deadline)", async ({
      expect,
    }) => {
      const phone_number = "+33655443322";
      const { result } = (await documented.direct("verifications.start", { phone_number })) as { result: { authentication_uuid: string } };
      const { authentication_uuid } = result;
      for (const check_code of ["a", "b", "c", "d", "e"]) await documented.direct("verifications.check", { phone_number, check_code });
      await documented.direct("verifications.start", { phone_number });
      expect(await documented.direct("verifications.get", { authentication_uuid })).toMatchObject({ http: 200, result: { status: "used_up" } });
    });

    it("answers history, refusals and unlock after a request that was rejected by its country (docs/api.md#help-users, docs/frameworks.md#cloudflare-workers)", async ({
      expect,
    }) => {
      const phone_number = "+14155552671";
      expect(await documented.call("/v1/authentication", { phone_number })).toMatchObject({ http: 400, code: "unsupported_region" });
      const calls = ["history", "refusals", "unlock"];
      const answers = await Promise.all(calls.map(async (call) => [call, (await documented.direct(call, { phone_number }))["http"]]));
      expect(answers).toEqual(calls.map((call) => [call, 200]));
    });

    it("with `waitUntil` finds rejected creates and counts rejected requests (docs/callbacks.md#who-delivers, docs/contract.md#refused-records, docs/contract.md#uncreated)", async ({
      expect,
    }) => {
      const authentication_uuid = await blocked(lasting, "+33687654321");
      expect(await lasting.call("/v1/check", { authentication_uuid, check_code: "123456" })).toMatchObject({ http: 200, status: "rate_limited" });
      await lasting.call("/v1/authentication", { phone_number: "+14155552672" });
      expect(await lasting.direct("refusals", { phone_number: "+14155552672" })).toMatchObject({ result: [{ code: "unsupported_region", count: 1 }] });
    });

    it("with `waitUntil` and no flush, posts a callback again that its receiver did not accept (docs/contract.md#callback-ladder, docs/callbacks.md#who-delivers)", async ({
      expect,
    }) => {
      await lasting.call("/v1/authentication", { phone_number: "+33677889900", callback_url: "https://receiver.example/status" });
      await expect.poll(lasting.posts, { timeout: 5000 }).toBe(1);
      const again = async () => {
        await lasting.call("/v1/lookup/+33612345678"); // gives the isolate requests to work in
        return lasting.posts();
      };
      await expect.poll(again, { timeout: 9000, interval: 1000 }).toBe(2); // due after 5 to 6 s
    });
  });

  it("a function that was frozen between two requests serves the next one from `redis` with the documented settings, while Redis runs (docs/frameworks.md#aws-lambda, docs/stores.md#redis)", async ({
    expect,
    onTestFinished,
  }) => {
    const functions = await Promise.all(Array.from({ length: 4 }, () => startFunction("redis.ts", { REDIS_URL: redis.url })));
    onTestFinished(async () => void (await Promise.all(functions.map((one) => one.end()))));
    const statuses = functions.map(async (one, which) => {
      const seen: number[] = [];
      for (let index = 0; index < 4; index++) seen.push(await one.thaw(`+336${12_000_000 + which * 1_000_000 + index * 110_000}`, 1700));
      return seen;
    });
    expect((await Promise.all(statuses)).flat().filter((status) => status !== 200)).toEqual([]);
  });

  it.runIf(deno !== undefined)("Deno needs --allow-net alone, without callbacks over https (docs/runtimes.md#bun-deno-workers)", async ({ expect }) => {
    const module = `
      import { createVerifier } from "phoneproof";
      import { memoryStore } from "phoneproof/memory";
      import { redisStore } from "phoneproof/redis";
      import { consoleSender } from "phoneproof/senders/console";
      import { inboxSender } from "phoneproof/senders/inbox";
      const secret = "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6";
      const store = redisStore({ client: async () => null });
      const parts = {
        createVerifier: () => createVerifier({ store, sender: inboxSender(), secret, countries: ["FR"], callbacks: { worker: false } }),
        memoryStore: () => memoryStore(),
        consoleSender: () => consoleSender(),
      };
      for (const [name, make] of Object.entries(parts)) {
        try {
          make();
          console.log(name);
        } catch (error) {
          console.log(error.message);
        }
      }`;
    expect((await runInDeno(deno as string, ["--allow-net"], module)).split("\n")).toEqual(["createVerifier", "memoryStore", "consoleSender"]);
  });
});
