import { describe, expect, it } from "vitest";
import { VerifierError } from "../../../src/errors.js";
import type { HttpBody, HttpRequest } from "../../../src/http/message.js";
import { fixedClock } from "../../../src/testing/fixed-clock.js";
import { answer, WireError, wireHandler } from "../../../src/wires/kit/wire.js";

/** A wire with one of everything. */
function setUp() {
  const warnings: string[] = [];
  const handler = wireHandler(
    { clock: fixedClock(), warn: (message) => void warnings.push(message) },
    {
      root: "/v9",
      roots: ["/things"],
      routes: {
        "/things/{id}": { GET: ({ params }) => answer(200, { params }) },
        "/v9/things": { POST: async ({ json }) => answer(201, { got: await json() }), GET: ({ query }) => answer(200, { page: query.get("page") }) },
        "/v9/things/count": { GET: () => answer(200, { count: 1 }) },
        "/v9/things/{id}/forms/{name}": { POST: async ({ params, form }) => answer(200, { params, form: [...(await form())] }) },
        "/v9/things/{id}": { GET: ({ params, caller, requestId }) => answer(200, { params, caller, requestId }) },
        "/v9/fails/{how}": {
          GET: ({ params }) => {
            if (params.how === "wire") throw new WireError(429, 60203, "Too many", { more: "text" }, { "x-should-retry": "false" });
            if (params.how === "verifier") throw new VerifierError("unavailable", "later");
            if (params.how === "options") throw new VerifierError("invalid_options", "policy.hunter2 is wrong");
            throw new Error("the database's password is hunter2");
          },
        },
      },
      unknownPath: (path) => `There is no route ${path}.`,
      async authenticate(request) {
        if (request.header("authorization") !== undefined) return "someone";
        throw new WireError(401, 20003, "Authenticate");
      },
      translate: (error) => new WireError(error.status, `translated ${error.code}`, error.message),
      errorBody: ({ code, message, details }, requestId) => ({ code, message, ...details, requestId }),
    },
  );
  const call = async (method: string, path: string, more: { headers?: Record<string, string>; body?: HttpBody; asked?: HttpRequest["asked"] } = {}) => {
    const headers: Record<string, string> = { authorization: "yes", "x-request-id": "req-1", ...more.headers };
    const [bare = "", query] = path.split("?");
    const response = await handler.handle({
      method,
      path: bare,
      query: query === undefined ? "" : `?${query}`,
      ...(more.asked !== undefined && { asked: more.asked }),
      header: (name) => headers[name],
      body: async () => more.body ?? { kind: "text", text: "" },
    });
    return { ...response, json: JSON.parse(response.body) };
  };
  return { handler, warnings, call };
}

describe("a wire's routes", () => {
  it("match whole segments, the first in the table first, with one trailing slash", async () => {
    const { call } = setUp();
    expect((await call("GET", "/v9/things/count")).json).toEqual({ count: 1 });
    expect((await call("GET", "/v9/things/7/")).json).toEqual({ params: { id: "7" }, caller: "someone", requestId: "req-1" });
    for (const path of ["/v9", "/v9/things//", "/v9/things/7/forms", "/v9/Things", "/v9/things/7/forms/a/b"])
      expect(await call("GET", path), path).toMatchObject({ status: 404, json: { code: "translated not_found", message: `There is no route ${path}.` } });
  });

  it("read a `+` in a path raw or as %2B, and reject bad percent-encoding", async () => {
    const { call } = setUp();
    expect((await call("GET", "/v9/things/+33612345678")).json.params).toEqual({ id: "+33612345678" });
    expect((await call("GET", "/v9/things/%2B33612345678")).json.params).toEqual({ id: "+33612345678" });
    expect(await call("GET", "/v9/things/%zz")).toMatchObject({ status: 400, json: { code: "translated bad_request" } });
  });

  it("return 405 with Allow, before the caller is authenticated", async () => {
    const { call } = setUp();
    const answered = await call("DELETE", "/v9/things", { headers: { authorization: undefined as never } });
    expect(answered).toMatchObject({ status: 405, headers: { allow: "POST, GET" }, json: { code: "translated method_not_allowed" } });
    expect(await call("toString", "/v9/things")).toMatchObject({ status: 405 });
  });

  it("name the base path that a request with another prefix would need", async () => {
    const { call } = setUp();
    const { json } = await call("GET", "/", { asked: { path: "/api/v9/things/count", prefix: "/app" } });
    expect(json.message).toContain('give it { basePath: "/api" }');
    const other = await call("GET", "/", { asked: { path: "/api/things/7", prefix: "/app" } });
    expect(other.json.message).toContain('/api/things/{id}, and the handler is mounted under "/app": give it { basePath: "/api" }');
  });
});

it("a wire names the route of a path for logs, without the values in the path", () => {
  const { handler } = setUp();
  expect(handler.routeOf?.("/v9/things/+33612345678/")).toBe("/v9/things/{id}");
  expect(handler.routeOf?.("/v9/none")).toBeUndefined();
});

describe("a wire's bodies", () => {
  it("are read as JSON, after the caller is authenticated", async () => {
    const { call } = setUp();
    const bytes = new TextEncoder().encode('{"a":1}');
    expect(await call("POST", "/v9/things", { body: { kind: "bytes", bytes } })).toMatchObject({ status: 201, json: { got: { a: 1 } } });
    expect(await call("POST", "/v9/things", { body: { kind: "refused", reason: "too_large" } })).toMatchObject({ status: 413 });
    const unknown = { headers: { authorization: undefined as never }, body: { kind: "refused", reason: "too_large" } as const };
    expect(await call("POST", "/v9/things", unknown)).toMatchObject({ status: 401, json: { code: 20003 } });
  });

  const form = { "content-type": "application/x-www-form-urlencoded;charset=utf-8" };
  it.each<[what: string, body: HttpBody]>([
    ["bytes", { kind: "bytes", bytes: new TextEncoder().encode("To=%2B33612345678&Tag=a&Tag=b+c&Locale=") }],
    ["text", { kind: "text", text: "\ufeffTo=%2B33612345678&Tag=a&Tag=b+c&Locale=" }],
    ["what a host's parser made", { kind: "parsed", value: { To: "+33612345678", Tag: ["a", "b c"], Locale: "", nested: { left: "out" } } }],
  ])("are read as a form: %s", async (_what, body) => {
    const { call } = setUp();
    const { json } = await call("POST", "/v9/things/7/forms/start", { headers: form, body });
    expect(json).toEqual({
      params: { id: "7", name: "start" },
      form: [
        ["To", "+33612345678"],
        ["Tag", "a"],
        ["Tag", "b c"],
        ["Locale", ""],
      ],
    });
  });

  it("are rejected if they have another type than the route's, or are over 16 KiB", async () => {
    const { call } = setUp();
    const path = "/v9/things/7/forms/start";
    expect(await call("POST", path, { headers: { "content-type": "application/json" } })).toMatchObject({ status: 400 });
    expect(await call("POST", "/v9/things", { headers: form })).toMatchObject({ status: 400 });
    const long = "x".repeat(16 * 1024);
    expect(await call("POST", path, { headers: form, body: { kind: "text", text: `a=${long}` } })).toMatchObject({ status: 413 });
    expect(await call("POST", path, { headers: form, body: { kind: "parsed", value: { a: long } } })).toMatchObject({ status: 413 });
  });
});

describe("a wire's errors", () => {
  it("are those that it throws, with their headers, and those of the verifier, translated", async () => {
    const { call, warnings } = setUp();
    const answered = await call("GET", "/v9/fails/wire");
    expect(answered).toMatchObject({ status: 429, headers: { "content-type": "application/json", "x-should-retry": "false" } });
    expect(answered.json).toEqual({ code: 60203, message: "Too many", more: "text", requestId: "req-1" });
    expect(await call("GET", "/v9/fails/verifier")).toMatchObject({ status: 503, json: { code: "translated unavailable" } });
    expect(warnings).toEqual([]);
  });

  it("reveal nothing about an unexpected error, which is logged with the request's id", async () => {
    const { call, warnings } = setUp();
    const answered = await call("GET", "/v9/fails/otherwise");
    expect(answered).toMatchObject({ status: 500, json: { code: "translated internal_server_error" } });
    expect(answered.body).not.toContain("hunter2");
    expect(warnings).toEqual([expect.stringMatching(/^a request to \/v9 failed unexpectedly \(request req-1\): Error: .*hunter2/)]);
  });

  it("reveal nothing about invalid options, which a lazy verifier may find and which are logged", async () => {
    const { call, warnings } = setUp();
    const answered = await call("GET", "/v9/fails/options");
    expect(answered).toMatchObject({ status: 500, json: { code: "translated internal_server_error" } });
    expect(answered.body).not.toContain("hunter2");
    expect(warnings).toEqual([expect.stringContaining("policy.hunter2 is wrong")]);
  });

  it("and other responses contain a random id if the host gives none or an invalid one", async () => {
    const { call } = setUp();
    for (const given of [undefined, "", "a\nb", "x".repeat(129)])
      expect((await call("GET", "/v9/things/7", { headers: { "x-request-id": given as never } })).json.requestId).toMatch(/^[0-9a-f-]{36}$/);
  });
});

it("a wire cannot be mounted for a verifier without customers", () => {
  const wire = {
    root: "/v9",
    routes: {},
    unknownPath: () => "",
    authenticate: async () => "",
    translate: () => new WireError(500, "", ""),
    errorBody: () => ({}),
  };
  const { unmountable } = wireHandler({ clock: fixedClock(), warn: () => undefined, unmountable: "/v1 has no keys" }, wire);
  expect(unmountable).toContain("/v9 is for customers with API keys");
});
