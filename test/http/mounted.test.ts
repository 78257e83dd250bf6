import { createServer } from "node:http";
import express from "express";
import fastify from "fastify";
import { describe, expect, expectTypeOf, test } from "vitest";
import { expressHandlers } from "../../adapters/http/express.js";
import { fastifyPlugin } from "../../adapters/http/fastify.js";
import { fetchHandler } from "../../adapters/http/fetch.js";
import { nextHandlers } from "../../adapters/http/next.js";
import { nodeHandler } from "../../adapters/http/node.js";
import type { Verifier } from "../../src/create-verifier.js";
import type { HttpHandler } from "../../src/http/message.js";
import { listen, mountings } from "./hosts.js";
import { createService, inner, outer } from "./service.js";

type Mount = (given: never) => unknown;
const mounts: Record<string, Mount> = { expressHandlers, fastifyPlugin, nodeHandler, fetchHandler, nextHandlers };

describe("anything that is not a handler is rejected when it is mounted", () => {
  const { verifier } = createService();
  test.each(Object.entries(mounts))("%s", (name, mount) => {
    const faultOf = (given: unknown) => {
      try {
        mount(given as never);
      } catch (error) {
        expect(error).toBeInstanceOf(TypeError);
        return (error as Error).message;
      }
      return "no error";
    };
    const takes = new RegExp(`^phoneproof: \\S*${name}\\(verifier\\)\\S* takes a verifier, verifier\\.receipts, or a list of such; `);
    for (const [given, words] of [
      [undefined, "what it was given is undefined: is it exported, and imported by that name?"],
      [null, "what it was given is null"],
      [() => verifier, "what it was given is a function: pass the verifier that createVerifier returns"],
      [Promise.resolve(verifier), "what it was given is a promise: await it"],
      [{}, "what it was given is not one of these"],
      [[verifier, undefined], "entry 1 of its list is undefined"],
    ] as const) {
      expect(faultOf(given)).toMatch(takes);
      expect(faultOf(given)).toContain(words);
    }
    expect(faultOf([])).toContain("needs at least one handler");
    expect(faultOf([verifier, verifier.receipts, createService().verifier.receipts])).toContain("has two handlers for /receipts");
    expect(faultOf([inner, { ...outer, root: "/own", roots: ["/v2/Attempts"] }])).toContain("has two handlers for /v2/Attempts");
    for (const given of [{ http: undefined }, [verifier, { http: {} }]]) expect(faultOf(given)).toMatch(takes);
    expect(faultOf([verifier, verifier.receipts, outer, inner])).toBe("no error");
    expect(faultOf(verifier.http)).toBe("no error");
  });
});

test("the type of a verifier exposes nothing that only adapters need: that is in `http`", () => {
  expectTypeOf<keyof Verifier & keyof HttpHandler>().toEqualTypeOf<never>();
  const { verifier } = createService();
  expect(Object.keys(verifier)).toEqual(expect.arrayContaining(Object.keys(verifier.http)));
});

describe("a mounting function passed to the framework without being called", () => {
  test("app.use(expressHandlers): every request gets an error that explains this", async () => {
    const app = express();
    app.use(expressHandlers as never);
    const errors: string[] = [];
    app.use((error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
      errors.push(error.message);
      response.status(500).end();
    });
    const host = await listen(createServer(app));
    expect((await host.send({ method: "GET", path: "/" })).status).toBe(500);
    await host.close();
    expect(errors).toEqual([expect.stringMatching(/app\.use\(expressHandlers\(verifier\)\).* is a request: is the function mounted without being called\?/)]);
  });

  test("fastifyPlugin(verifier, { prefix }): the error shows that options belong to app.register", () => {
    const { verifier } = createService();
    expect(() => (fastifyPlugin as (...given: unknown[]) => unknown)(verifier, { prefix: "/api" })).toThrow(
      'fastifyPlugin takes no options: app.register(fastifyPlugin(verifier), { prefix: "/api" })',
    );
  });

  test("app.register(fastifyPlugin): throws an error that explains this", () => {
    expect(() => fastifyPlugin(fastify() as never)).toThrow(
      /app\.register\(fastifyPlugin\(verifier\)\).* is an app: is the function mounted without being called\?/,
    );
  });

  test.each([
    ["serve({ fetch: fetchHandler })", new Request("http://localhost/")],
    ['Hono, app.all("/v1/*", fetchHandler)', { req: { raw: new Request("http://localhost/") } }],
    ["SvelteKit, export const POST = fetchHandler", { request: new Request("http://localhost/"), url: new URL("http://localhost/") }],
  ])("%s: the error explains this", (_, given) => {
    expect(() => fetchHandler(given as never)).toThrow(/is a request: is the function mounted without being called\?/);
  });
});

test.each([
  ["a context of Hono's", { req: { raw: new Request("http://localhost/v1/check") }, header: () => {} }],
  ["an event of SvelteKit's", { request: new Request("http://localhost/v1/check"), url: new URL("http://localhost/v1/check") }],
  ["a request of Node's", { url: "/v1/check", headers: {} }],
  ["nothing", undefined],
])("fetchHandler(verifier), called with %s, reports what it accepts", (_, given) => {
  expect(() => fetchHandler(createService().verifier)(given as never)).toThrow(
    /takes a Request, .*\(c\) => handler\(c\.req\.raw\) in Hono, \(\{ request \}\) => handler\(request\) in SvelteKit$/,
  );
});

test.each<[string, Mount, object | string | null, RegExp]>([
  [
    "nodeHandler",
    nodeHandler as Mount,
    { base_path: "/api" },
    /^nodeHandler: option base_path is not an option\. Remove it or fix its spelling; there is: basePath\.$/,
  ],
  ["nodeHandler", nodeHandler as Mount, { stripped: "/v1" }, /option stripped is not an option/],
  ["nodeHandler", nodeHandler as Mount, "/api", /its options must be an object with any of these: basePath/],
  ["fetchHandler", fetchHandler as Mount, { path: "/api" }, /option path is not an option\. .*; there are: basePath, stripped\.$/],
  ["nextHandlers", nextHandlers as Mount, null, /its options must be an object/],
  ["expressHandlers", expressHandlers as Mount, { basePath: "/api" }, /option basePath is not an option\. .*app\.use\("\/api", expressHandlers\(verifier\)\)/],
  ["expressHandlers", expressHandlers as Mount, { unknownRoutes: "nxt" }, /option unknownRoutes must be "answer" or "next"/],
])("%s(verifier, …) rejects invalid options: %#", (_, mount, options, words) => {
  expect(() => (mount as unknown as (given: unknown, options: unknown) => unknown)(createService().verifier, options)).toThrow(words);
});

describe("several handlers in one mount", () => {
  test.each(mountings)("$name: each serves its own paths, and an unknown path gets one response", async ({ start }) => {
    const { verifier, ...service } = createService();
    const host = await start([verifier, verifier.receipts, verifier.metricsHandler]);
    const answer = async (path: string) => {
      const { status, text } = await host.send({ method: "GET", path: host.prefix + path });
      return [status, (JSON.parse(text) as { message: string }).message];
    };
    expect(await answer("/v1/none")).toEqual([404, expect.stringContaining("the routes are /v1/authentication")]);
    expect(await answer("/receipts/none")).toEqual([404, "There is no such receipts route."]);
    expect(await service.answers()).toEqual([404, 404]);
    await host.close();
  });
});

describe("if the roots of two handlers nest, the longest that matches wins", () => {
  const orders = { "the outer first": [outer, inner], "the inner first": [inner, outer] };
  const cases = mountings.flatMap((mounting) => Object.entries(orders).map(([order, wires]) => ({ ...mounting, order, wires })));
  test.each(cases)("$name, $order", async ({ start, wires }) => {
    const { verifier, ...service } = createService();
    const host = await start([wires[0] as HttpHandler, verifier, verifier.receipts, wires[1] as HttpHandler]);
    const answer = async (method: string, path: string) => {
      const headers: Record<string, string> = method === "POST" ? { "content-type": "application/json" } : {};
      const { text } = await host.send({ method, path: host.prefix + path, headers, ...(method === "POST" && { body: "{}" }) });
      return JSON.parse(text) as unknown;
    };
    for (const method of ["GET", "POST"]) {
      for (const path of ["/v2/verification", "/v2/Servicesx", "/v2/services/a", "/v2/x/Services/a"])
        expect(await answer(method, path)).toEqual({ by: "outer", path });
      for (const path of ["/v2/Services/", "/v2/Services/a/Verifications", "/v2/Attempts/a", "/v2/Services/%2B/v2/x"])
        expect(await answer(method, path)).toEqual({ by: "inner", path });
    }
    expect(await answer("GET", "/v1/check")).toMatchObject({ code: "method_not_allowed" });
    expect(await answer("GET", "/receipts/none")).toMatchObject({ message: "There is no such receipts route." });
    expect(await service.answers()).toEqual([405, 404]);
    await host.close();
  });

  test("under a prefix without basePath, the handler with the longest root in the path responds", async () => {
    for (const wires of Object.values(orders)) {
      const handler = fetchHandler([createService().verifier, ...wires]);
      const by = async (path: string) => ((await (await handler(new Request(`http://localhost${path}`))).json()) as { by?: string }).by;
      expect([await by("/api/v2/Services/a"), await by("/api/v2/verification"), await by("/api/v2/Attempts/a")]).toEqual(["inner", "outer", "inner"]);
    }
  });

  test.each([
    ["/v2/Services", "leave it out"],
    ["/api/v2/Services", 'say "/api"'],
    ["/api/v2/Attempts", 'say "/api"'],
    ["/api/v2", 'say "/api"'],
  ])("a prefix of %s, which already contains a root, is an error with the fix", (basePath, fix) => {
    for (const wires of Object.values(orders))
      for (const mount of [nodeHandler, fetchHandler, nextHandlers]) expect(() => mount(wires, { basePath })).toThrow(fix);
  });
});
