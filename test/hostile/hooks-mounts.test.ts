import { randomUUID } from "node:crypto";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { nextHandlers } from "../../adapters/http/next.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { hooks } from "../../src/hooks/index.js";
import { createVerifier, type SpamRule } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import type { Answer, Call } from "../http/client.js";
import { type Mounting, mountings } from "../http/hosts.js";
import { inbox, logger, secret, start } from "../support/verifier.js";
import { type Ask, casdoor, logto, logtoToken, type Speaker, supabase, supabaseSecret } from "./identity-servers.js";

const refused = "+33612000099";

/** Next.js handlers of a catch-all route, called as Next.js calls them. */
const next: Mounting = {
  name: "Next.js, called directly",
  fetch: true,
  direct: true,
  start: async (handler) => {
    const handlers = nextHandlers(handler as never) as unknown as Record<string, (request: Request) => Promise<Response>>;
    return {
      prefix: "",
      close: async () => undefined,
      async send({ method, path, headers, body }: Call): Promise<Answer> {
        const given = body === undefined ? {} : { body: Buffer.from(Array.isArray(body) ? body.join("") : (body as string)) };
        const response = await (handlers[method] as (request: Request) => Promise<Response>)(
          new Request(`http://localhost${path}`, { method, headers: headers as Record<string, string>, ...given }),
        );
        return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() };
      },
    };
  },
};

async function mounted({ start: mount }: Mounting) {
  const clock = fixedClock(start);
  const box = inbox();
  const log = logger();
  const spamRules: SpamRule[] = [{ name: "mine", judge: ({ phone_number }) => (phone_number === refused ? { reason: "mine" } : undefined) }];
  const verifier = createVerifier({
    store: memoryStore({ name: randomUUID() }),
    sender: router({ routes: [{ name: "main", sender: box, price: 0.01 }] }),
    secret,
    countries: ["FR"],
    conversion: "reported",
    callbacks: { worker: false },
    spamRules,
    logger: log,
    clock,
    policy: { spam: noSpamRules, limits: { spend: [{ amount: 1_000, per: "day" }] } },
  });
  const host = await mount(hooks(verifier, [supabase.hook(), logto.hook(), casdoor.hook()]));
  onTestFinished(async () => {
    await host.close();
    await verifier.close();
  });
  let asked = 0;
  return {
    box,
    log: log.lines,
    /** Sends one request of the identity server, modified by `change`. */
    async send(speaker: Speaker, ask: Partial<Ask> = {}, change: (call: Call) => Partial<Call> = () => ({})) {
      asked++;
      const call = speaker.request({ to: `+3361200000${asked}`, code: `48291${asked}`, ...ask }, clock.now());
      const answer = await host.send({ ...call, ...change(call), path: host.prefix + call.path });
      // hooks.test.ts checks the log further.
      for (const word of [supabaseSecret, logtoToken, `48291${asked}`]) expect(answer.text + JSON.stringify(log.lines)).not.toContain(word);
      return { ...answer, told: speaker.conclude(answer).result };
    },
  };
}

const all = [...mountings, next];
/** A host that has parsed the JSON no longer has its raw bytes. */
const parsesJson = ({ name, decodes, keepsNoBytes }: Mounting) =>
  /express\.json\(\)|all four parsers/.test(name) && !name.includes("before") && (decodes === true || keepsNoBytes === true);

describe("hooks mounted in every host", () => {
  test.each(all)("$name: verifies Supabase's signature over the raw bytes, and logs the fix if the host has parsed the body", async (mounting) => {
    const { send, box, log } = await mounted(mounting);
    const sent = await send(supabase, { locale: "fr" });
    if (parsesJson(mounting)) {
      expect(sent.told).toBe("refused");
      expect(sent.status).toBe(500);
      expect(sent.text, "strangers learn nothing").not.toMatch(/supabase|secret|parser|raw/i);
      expect(box.messages).toEqual([]);
      expect(log.map(({ message }) => message).join("\n"), "the operator reads what to do").toMatch(/raw|parser|mount.* before/i);
      return;
    }
    expect(sent.told, `${sent.status} ${sent.text} ${JSON.stringify(log)}`).toBe("sent");
    expect(box.messages).toHaveLength(1);
    const refusal = await send(supabase, { to: refused });
    expect([refusal.status, refusal.told, supabase.conclude(refusal).status]).toEqual([200, "refused", 429]);
    const wrong = await send(supabase, {}, ({ headers }) => ({ headers: { ...headers, "webhook-id": "another" } }));
    expect([wrong.status, wrong.told]).toEqual([401, "refused"]);
    expect(box.messages).toHaveLength(1);
  });

  test.each(all)("$name: authenticates Logto by its token", async (mounting) => {
    const { send, box, log } = await mounted(mounting);
    const sent = await send(logto);
    expect(sent.told, `${sent.status} ${sent.text} ${JSON.stringify(log)}`).toBe("sent");
    const refusal = await send(logto, { to: refused });
    expect([refusal.status, refusal.headers["content-type"]]).toEqual([429, expect.stringMatching(/^text\/plain/)]);
    expect((await send(logto, {}, ({ headers }) => ({ headers: { ...headers, authorization: "Bearer none" } }))).status).toBe(401);
    expect(box.messages).toHaveLength(1);
  });

  test.each(all)("$name: sends the code of Casdoor's form", async (mounting) => {
    const { send, box, log } = await mounted(mounting);
    const sent = await send(casdoor);
    expect(sent.told, `${sent.status} ${sent.text} ${JSON.stringify(log)}`).toBe("sent");
    expect(box.messages).toHaveLength(1);
  });

  test.each(all)("$name: rejects oversized bodies, and gzipped ones unless the host decompresses them", async (mounting) => {
    const { send, box } = await mounted(mounting);
    for (const speaker of [supabase, logto]) {
      const large = await send(speaker, {}, () => ({ body: `{"to":"${"x".repeat(70_000)}"}` }));
      // 401 where the host reads the body first.
      expect([401, 413], `${large.status}`).toContain(large.status);
      const packed = await send(speaker, {}, ({ headers, body }) => ({ headers: { ...headers, "content-encoding": "gzip" }, body: gzipSync(body as string) }));
      if (mounting.unpacks === undefined) expect(packed.status).toBeGreaterThanOrEqual(400);
      // A signed hook without the raw bytes is the operator's error, a 5xx.
      if (speaker === logto || !parsesJson(mounting)) expect(packed.status).toBeLessThan(500);
    }
    if (mounting.unpacks === undefined) expect(box.messages).toEqual([]);
  });
});
