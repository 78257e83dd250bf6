import { expect, test } from "vitest";
import { missing, runtimeOf } from "../package/programs.js";
import { redisIsInstalled, startRedis } from "../support/redis.js";
import { startUpstash } from "../support/upstash.js";
import { startDocumentedWorker } from "./edge-runtimes-kit.js";

const installed = redisIsInstalled("test/hostile/edge-runtimes.test.ts");

test.runIf(installed)(
  "the documented Worker finishes its work after the responses (docs/frameworks.md#cloudflare-workers)",
  async ({ skip, onTestFinished }) => {
    const miniflare = await runtimeOf("Workers");
    if (miniflare === undefined) return skip(missing("miniflare"));
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const upstash = await startUpstash(redis.url);
    onTestFinished(() => upstash.close());
    const worker = await startDocumentedWorker(miniflare, upstash);
    onTestFinished(() => worker.close());
    const { call, direct } = worker;

    // It stores rejected creates.
    const phone_number = "+33612345678";
    let created = await call("/v1/authentication", { phone_number });
    for (let tries = 0; tries < 6 && created["status"] === "pending"; tries++) created = await call("/v1/authentication", { phone_number });
    const { authentication_uuid } = created;
    expect(created).toMatchObject({ status: "rate_limited" });
    expect(await call("/v1/check", { authentication_uuid, check_code: "123456" })).toMatchObject({ http: 200, status: "rate_limited" });
    expect(await call("/v1/retry", { authentication_uuid })).toMatchObject({ http: 200, status: "rate_limited" });

    // It counts requests that no authentication was made for.
    const rejected = { phone_number: "+14155552671" };
    expect(await call("/v1/authentication", rejected)).toMatchObject({ http: 400, code: "unsupported_region" });
    expect(await direct("refusals", rejected)).toMatchObject({ http: 200, result: [{ code: "unsupported_region", count: 1 }] });
    expect(await direct("history", rejected)).toMatchObject({ http: 200 });
    expect(await direct("unlock", rejected)).toMatchObject({ http: 200 });

    // It keeps an ended verification when the number's next one begins.
    const number = { phone_number: "+33655443322" };
    const started = (await direct("verifications.start", number))["result"] as { readonly authentication_uuid: string };
    for (const check_code of ["a", "b", "c", "d", "e"]) await direct("verifications.check", { ...number, check_code });
    await direct("verifications.start", number);
    const { authentication_uuid: earlier } = started;
    expect(await direct("verifications.get", { authentication_uuid: earlier })).toMatchObject({ http: 200, result: { status: "used_up" } });
  },
);
