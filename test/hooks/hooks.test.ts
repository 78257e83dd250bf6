import { describe, expect, test } from "vitest";
import { expressHandlers } from "../../adapters/http/express.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { generateApiKey } from "../../src/access/accounts.js";
import { createVerifier } from "../../src/create-verifier.js";
import { type Hook, type HookOptions, hooks, kratosHook, logtoHook } from "../../src/hooks/index.js";
import { byToken, json, makeHook, pick, type TokenHookOptions } from "../../src/hooks/kit/index.js";
import { lazyVerifier } from "../../src/lazy-verifier.js";
import { served, standIn } from "./stand-in.js";

const token = "of-the-connector";
const authorization = `Bearer ${token}`;
const body = { to: "+33612345678", type: "SignIn", payload: { code: "482913" } };

const options = () =>
  ({
    store: memoryStore(),
    sender: { send: async () => ({ outcome: "accepted" as const }) },
    secret: generateApiKey().key,
    countries: ["FR"],
    conversion: "reported",
    callbacks: { worker: false },
    logger: { info() {}, warn() {}, error() {} },
  }) as const;

describe("hooks", () => {
  test("can be mounted with a verifier that has no customers", () => {
    expect(() => expressHandlers(hooks(createVerifier(options()), [logtoHook({ token })]))).not.toThrow();
  });

  test("creates a lazy verifier at the first authentic request, and no sooner", async () => {
    let created = 0;
    const verifier = lazyVerifier(() => {
      created++;
      return options();
    });
    const handler = hooks(verifier, [logtoHook({ token })]);
    expressHandlers(handler);
    const ask = (given: string) =>
      handler.handle({
        method: "POST",
        path: "/hooks/logto",
        header: (name) => (name === "authorization" ? given : undefined),
        body: async () => ({ kind: "parsed", value: body }),
      });
    expect((await ask("Bearer x")).status).toBe(401);
    expect(created).toBe(0);
    await ask(authorization);
    expect(created).toBe(1);
    await verifier.close();
  });

  test("reveals nothing to an unknown caller, and warns the operator once a minute, without data of the request", async () => {
    const { send, warned, clock } = served(logtoHook({ token }));
    const refuse = () => send("logto", body, { authorization: "Bearer 482913" });
    expect(await refuse()).toMatchObject({ status: 401, body: '{"status":"unauthorized","message":"Unauthorized."}' });
    await refuse();
    clock.advance(60_000);
    await refuse();
    expect(warned).toEqual(Array(2).fill("a request to /hooks/logto was rejected: its token is wrong"));
    expect(await send("okta", body)).toMatchObject({ status: 404, body: "There is no such hook." });
    for (const method of ["GET", "HEAD", "OPTIONS", "PUT"])
      expect(await send("logto", body, { authorization }, method)).toMatchObject({ status: 405, headers: { allow: "POST" } });
  });

  test.each([
    [{ phone: 33612345678 }, "+33612345678"],
    [{ phone: " 33 6-12-34-56-78 " }, "+33612345678"],
    [{ phone: "+1 (415) 555-2672" }, "+14155552672"],
    [{ phone: "+33.6.12.34.56.78" }, "+33612345678"],
    [{ phone: "nobody" }, "+nobody"],
  ])("reads the number %j as %s, and leaves its validation to the verifier", async ({ phone }, expected) => {
    const { send, delivered } = served(logtoHook({ token }));
    await send("logto", { ...body, to: phone }, { authorization });
    expect(delivered).toMatchObject([{ phone_number: expected }]);
  });

  test("leaves out what the verifier would reject, and a text without the code", async () => {
    const { send, delivered } = served(kratosHook({ token }));
    const data = { login_code: "482913", identity: { id: "a\u0000b", traits: { locale: "klingon?" } } };
    await send("kratos", { to: body.to, text: "Your code is 482 913", type: "", data }, { authorization });
    expect(delivered).toEqual([{ phone_number: body.to, code: "482913", known: false, idempotency_key: expect.any(String) }]);
  });

  test("logs an unexpected error, and responds with 500", async () => {
    const { send, warned } = served(logtoHook({ token }), new Error("no disk"));
    expect(await send("logto", body, { authorization })).toMatchObject({ status: 500, body: "The message could not be sent. Try again later." });
    expect(warned).toEqual([expect.stringMatching(/^a request to \/hooks\/logto failed: Error: no disk/)]);
  });

  test("names its routes for logs, and nothing else", () => {
    const { handler } = served(kratosHook({ token, name: "ory-2" }));
    expect(["/hooks/ory-2", "/hooks/ory-2/", "/hooks/ory-2/confirmed", "/hooks/ory-2/x", "/hooks/kratos"].map((path) => handler.routeOf?.(path))).toEqual([
      "/hooks/ory-2",
      "/hooks/ory-2",
      "/hooks/ory-2/confirmed",
      undefined,
      undefined,
    ]);
  });

  test.each([
    [[logtoHook({ token }), logtoHook({ token })], /^hooks: two hooks have the name logto\. Give one of them another with its option name/],
    [[], /^hooks: the second argument must be a list of hooks/],
    [[logtoHook], /^hooks: entry 0 of the list is not a hook/],
  ])("rejects an invalid list of hooks", (list, message) => {
    expect(() => hooks(standIn().verifier, list as Hook[])).toThrow(message);
  });

  test.each([
    [{ token: undefined }, "token is missing"],
    [{ token: " " }, "token must be a non-empty string"],
    [{ name: "Logto" }, "name must be 1 to 64 lower-case letters"],
    [{ ip: "yes" }, 'ip must be "trust" or "ignore"'],
    [{ conversion: "soon" }, 'conversion must be "reported", "late" or "unknown"'],
    [{ within: 0.5 }, "within must be a whole number of milliseconds"],
    [{ expiresIn: 5 }, "expiresIn must be a whole number of seconds"],
    [{ customer_uuid: 5 }, "customer_uuid must be a UUID"],
    [{ customer_uuid: "acme" }, "customer_uuid must be a UUID"],
    [{ tokens: "x" }, "tokens is not an option"],
  ])("names the problem in the options %j", (wrong, message) => {
    expect(() => logtoHook({ token, ...wrong } as TokenHookOptions)).toThrow(`logtoHook: option ${message}`);
  });
});

describe("the kit", () => {
  test("makes a custom hook", async () => {
    const ownHook = (options: TokenHookOptions & HookOptions) =>
      makeHook("ownHook", options, {
        defaults: { name: "own", within: 3000 },
        options: ["token", "header"],
        authenticate: byToken("ownHook", options),
        read: (body) => ({ phone_number: pick(body, "msisdn"), code: pick(body, "pin") }),
        write: ({ status, message }) => json(200, { ok: status === "sent", message }),
      });
    const { send, delivered } = served(ownHook({ token, header: "x-key", expiresIn: 120 }));
    expect(await send("own", { msisdn: "33612345678", pin: 482913 }, { "x-key": token })).toMatchObject({ status: 200, body: '{"ok":true}' });
    expect(delivered).toEqual([{ phone_number: "+33612345678", code: "482913", within: 3000, expires_in: 120 }]);
  });
});
