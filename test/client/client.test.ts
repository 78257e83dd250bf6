import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, expectTypeOf, onTestFinished, test, vi } from "vitest";
import { nodeHandler } from "../../adapters/http/node.js";
import {
  type CheckResult,
  type ClientOptions,
  type CreateResult,
  createClient,
  type ErrorCode,
  FaultError,
  type RetryResult,
  type TransportCode,
  TransportError,
} from "../../clients/client/index.js";
import { authenticationStatuses } from "../../src/contract/authentication.js";
import type { Channel } from "../../src/contract/channel.js";
import { checkStatuses } from "../../src/contract/check.js";
import { retryStatuses } from "../../src/contract/retry.js";
import { router } from "../../src/routing/router.js";
import { inbox, numberOf, setUp } from "../support/verifier.js";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A server on loopback; `asked` lists the requests it received, in order. */
async function serve(handler: RequestListener) {
  const asked: { readonly method: string | undefined; readonly url: string | undefined; readonly headers: IncomingMessage["headers"] }[] = [];
  const server = createServer((request, response) => {
    asked.push({ method: request.method, url: request.url, headers: request.headers });
    handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** A client of a real verifier over HTTP. A request for which `before` returns true does not reach the verifier. */
async function realService(
  options: Partial<ClientOptions> = {},
  before: (request: IncomingMessage, response: ServerResponse, asked: number) => boolean | Promise<boolean> = () => false,
  made = setUp(),
) {
  const handler = nodeHandler(made.verifier);
  const { baseUrl, asked } = await serve(async (request, response) => {
    if (!(await before(request, response, asked.length))) handler(request, response);
  });
  return { ...made, asked, client: createClient({ baseUrl, apiKey: made.apiKey, customerUuid: made.customer, ...options }) };
}

const fake = { apiKey: "k".repeat(40), customerUuid: "5f0c7f3e-1d2b-4c3a-9e8f-7a6b5c4d3e2f" };
const id = "11111111-2222-3333-4444-555555555555";
const pending = { authentication_uuid: id, created_at: "2026-03-01T12:00:00.000Z", expires_at: "2026-03-01T12:10:00.000Z", status: "pending" };

/** A client of a server with this handler. */
async function clientOf(handler: RequestListener, options: Partial<ClientOptions> = {}) {
  const { baseUrl, asked } = await serve(handler);
  return { asked, client: createClient({ baseUrl, ...fake, ...options }) };
}

const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) =>
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));

const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    (answer) => ({ answer }),
    (error: unknown) => error,
  );

describe("a client of a real service", () => {
  test("verifies a number and looks it up", async () => {
    const { client, box, clock, wrong } = await realService();
    const { authentication_uuid, ...created } = await client.createAuthentication({ phone_number: numberOf(1), device_type: "WEB", ip: "203.0.113.7" });
    expect(created).toMatchObject({ created_at: "2026-03-01T12:00:00.000Z", expires_at: "2026-03-01T12:10:00.000Z", status: "pending" });
    expect(created).toMatchObject({ phone_number: numberOf(1), next_retry_at: "2026-03-01T12:00:30.000Z", remaining_retry: 4, remaining_checks: 5 });
    expect(await client.check({ authentication_uuid, check_code: wrong() })).toMatchObject({ authentication_uuid, status: "invalid", remaining_checks: 4 });
    expect(await client.retry({ authentication_uuid })).toMatchObject({ status: "denied", next_retry_at: "2026-03-01T12:00:30.000Z", remaining_retry: 4 });
    clock.advance(30_000);
    expect(await client.retry({ authentication_uuid })).toMatchObject({ status: "approved", remaining_retry: 3 });
    expect(await client.check({ authentication_uuid, check_code: box.code() })).toMatchObject({
      authentication_uuid,
      status: "valid",
      phone_number: numberOf(1),
    });
    expect(await client.check({ authentication_uuid, check_code: box.code() })).toMatchObject({ status: "already_validated" });
    expect(await client.lookup({ phone_number: numberOf(1) })).toEqual({ phone_number: numberOf(1), country_code: "FR", line_type: "Mobile" });
  });

  test("requests a call, and returns the channel of the newest message unless it is an SMS", async () => {
    const [sms, calls] = [inbox(), inbox()];
    const routes = [
      { name: "sms", sender: sms },
      { name: "calls", sender: Object.assign(calls, { channel: "voice" as const }) },
    ];
    const { client, clock } = await realService({}, undefined, setUp({ sender: router({ routes }) }));
    const created = await client.createAuthentication({ phone_number: numberOf(1) });
    expect(created).not.toHaveProperty("channel");
    const { authentication_uuid } = created;
    clock.advance(59_999);
    const early = await client.retry({ authentication_uuid, channel: "voice" });
    expect(early).toMatchObject({ status: "denied", next_retry_at: "2026-03-01T12:01:00.000Z" });
    expect(early).not.toHaveProperty("channel");
    clock.advance(1);
    expect(await client.retry({ authentication_uuid, channel: "voice" })).toMatchObject({ status: "approved", channel: "voice", remaining_retry: 3 });
    expect(await client.check({ authentication_uuid, check_code: calls.code() })).toMatchObject({ status: "valid" });
    expect(sms.messages).toHaveLength(1);

    const called = await client.createAuthentication({ phone_number: numberOf(2), channel: "voice" });
    expect(called).toMatchObject({ status: "pending", channel: "voice" });
    expectTypeOf(called.channel).toEqualTypeOf<Channel | undefined>();
    expect(await failure(client.createAuthentication({ phone_number: numberOf(3), channel: "telegram" }))).toMatchObject({ code: "bad_request" });
  });

  test("an error response is a FaultError with its code, message and doc_url", async () => {
    const { client } = await realService();
    const error = await failure(client.check({ authentication_uuid: id, check_code: "123456" }));
    expect(error).toBeInstanceOf(FaultError);
    expect(error).toMatchObject({ name: "FaultError", code: "invalid_auth_uuid", status: 400, retry_after: undefined });
    expect((error as FaultError).message).not.toBe("");
    expect((error as FaultError).doc_url).toMatch(/^https?:\/\//);
  });

  test("a wrong API key gives `forbidden`, and the error does not contain the key", async () => {
    const { client } = await realService({ apiKey: "pp_not_the_right_key" });
    const error = await failure(client.lookup({ phone_number: numberOf(1) }));
    expect(error).toMatchObject({ code: "forbidden", status: 403 });
    expect(JSON.stringify(error) + (error as Error).stack).not.toContain("pp_not_the_right_key");
  });

  test("a store that is down gives `unavailable` with retry_after, and the client does not repeat a retry", async () => {
    const { client, asked, store } = await realService();
    store.find = async () => Promise.reject(new Error("gone"));
    expect(await failure(client.retry({ authentication_uuid: id }))).toMatchObject({ name: "FaultError", code: "unavailable", status: 503, retry_after: 2 });
    expect(asked).toHaveLength(1);
  });

  test("a create whose response was lost is repeated with the same key: one message, one authentication", async () => {
    const { client, asked, box } = await realService({}, async (request, response, count) => {
      if (count > 1) return false;
      // The verifier handles the first request, but its response is lost.
      const write = response.end.bind(response);
      response.end = ((...args: Parameters<typeof write>) => {
        response.end = write;
        request.socket.destroy();
        return args && response;
      }) as typeof response.end;
      return false;
    });
    const { authentication_uuid, status } = await client.createAuthentication({ phone_number: numberOf(1) });
    expect(status).toBe("pending");
    expect(asked.map(({ headers }) => headers["idempotency-key"])).toEqual([expect.stringMatching(/^[\da-f-]{36}$/), asked[0]?.headers["idempotency-key"]]);
    expect(box.messages).toHaveLength(1);
    expect((await client.check({ authentication_uuid, check_code: box.code() })).status).toBe("valid");
  });

  test("each create and check has its own idempotency key; a given key is used, and repeating it returns the same result", async () => {
    const { client, asked, box } = await realService();
    const first = await client.createAuthentication({ phone_number: numberOf(1) }, { idempotencyKey: "sign-up 17" });
    const again = await client.createAuthentication({ phone_number: numberOf(1) }, { idempotencyKey: "sign-up 17" });
    const other = await client.createAuthentication({ phone_number: numberOf(1) });
    expect(again.authentication_uuid).toBe(first.authentication_uuid);
    expect(other.authentication_uuid).not.toBe(first.authentication_uuid);
    expect(box.messages).toHaveLength(2);
    await client.check({ authentication_uuid: other.authentication_uuid, check_code: box.code() });
    const keys = asked.map(({ headers }) => headers["idempotency-key"]);
    expect(keys.slice(0, 2)).toEqual(["sign-up 17", "sign-up 17"]);
    expect(new Set(keys).size).toBe(3);
    const { headers } = await client.retry({ authentication_uuid: first.authentication_uuid }).then(() => asked.at(-1) as (typeof asked)[0]);
    expect(headers).not.toHaveProperty("idempotency-key");
  });
});

describe("requests", () => {
  test.each(["", "/", "/v1", "/v1/"])("go to /v1 below the path of a base URL that ends with %j", async (end) => {
    const { baseUrl, asked } = await serve((_, response) => json(response, 200, pending));
    await createClient({ baseUrl: `${baseUrl}/api${end}`, ...fake }).createAuthentication({ phone_number: "+33612345678" });
    expect(asked[0]).toMatchObject({ method: "POST", url: "/api/v1/authentication" });
  });

  test("percent-encode the number of a lookup, so that it cannot change the path", async () => {
    const { client, asked } = await clientOf((_, response) => json(response, 200, { phone_number: "+1", line_type: "Unknown" }));
    await client.lookup({ phone_number: "+1/../retry?x=#" });
    expect(asked[0]).toMatchObject({ method: "GET", url: "/v1/lookup/%2B1%2F..%2Fretry%3Fx%3D%23", headers: { "customer-uuid": fake.customerUuid } });
  });

  test("are sent for the customer of the options, even if the request contains another", async () => {
    let body: unknown;
    const { client } = await clientOf(async (request, response) => {
      body = JSON.parse(await text(request));
      json(response, 200, { authentication_uuid: id, status: "invalid" });
    });
    await client.check({ authentication_uuid: id, check_code: "１２３", customer_uuid: "another" } as never);
    expect(body).toEqual({ authentication_uuid: id, check_code: "１２３", customer_uuid: fake.customerUuid });
  });
});

describe("facts in response headers", () => {
  const headers = {
    "x-phoneproof-phone-number": "+33612345678",
    "x-phoneproof-next-retry-at": "2026-03-01T12:00:30.000Z",
    "x-phoneproof-remaining-retry": "0",
    "x-phoneproof-remaining-checks": "4",
    "x-phoneproof-retry-after": "61",
    "x-phoneproof-carrier-refused": "true",
    "x-phoneproof-channel": "voice",
  };

  test("are returned under the names of the direct calls", async () => {
    const { client } = await clientOf((_, response) => json(response, 200, pending, headers));
    expect(await client.createAuthentication({ phone_number: "+33612345678" })).toEqual({
      ...pending,
      phone_number: "+33612345678",
      next_retry_at: "2026-03-01T12:00:30.000Z",
      remaining_retry: 0,
      remaining_checks: 4,
      retry_after: 61,
      carrier_refused: true,
      channel: "voice",
    });
  });

  test("are left out if they are invalid", async () => {
    const wrong = { "x-phoneproof-carrier-refused": "yes", "x-phoneproof-channel": "<b>", "x-phoneproof-remaining-retry": "-1" };
    const { client } = await clientOf((_, response) => json(response, 200, pending, wrong));
    expect(await client.createAuthentication({ phone_number: "+33612345678" })).toEqual(pending);
  });

  test("do not override the fields of the body", async () => {
    const answer = { authentication_uuid: id, created_at: "a", next_retry_at: "b", remaining_retry: 3, status: "approved" };
    const { client } = await clientOf((_, response) => json(response, 200, answer, headers));
    expect(await client.retry({ authentication_uuid: id })).toMatchObject(answer);
  });

  test("are left out if they are absent", async () => {
    const { client } = await clientOf((_, response) => json(response, 200, pending));
    expect(await client.createAuthentication({ phone_number: "+33612345678" })).toEqual(pending);
  });
});

describe("a response that does not fit its call is bad_answer", () => {
  const calls: Record<"create" | "retry" | "check" | "lookup", (client: ReturnType<typeof createClient>) => Promise<unknown>> = {
    create: (client) => client.createAuthentication({ phone_number: "+33612345678" }),
    retry: (client) => client.retry({ authentication_uuid: id }),
    check: (client) => client.check({ authentication_uuid: id, check_code: "123456" }),
    lookup: (client) => client.lookup({ phone_number: "+33612345678" }),
  };
  const statuses = { create: authenticationStatuses, retry: retryStatuses, check: checkStatuses, lookup: [] } as Record<keyof typeof calls, readonly string[]>;
  const every = [...new Set(Object.values(statuses).flat()), "ok", "", "validated", null, undefined, 1];

  test.each(Object.entries(calls))("%s: only its own statuses are accepted", async (call, make) => {
    for (const status of every) {
      const { client } = await clientOf((_, response) => json(response, 200, { authentication_uuid: id, status }));
      const expected = statuses[call as keyof typeof calls].includes(status as string) ? { answer: { status } } : { code: "bad_answer", status: 200 };
      expect(await failure(make(client)), `${status}`).toMatchObject(expected);
    }
  });

  const another = "99999999-2222-3333-4444-555555555555";
  const wrong: [what: string, call: keyof typeof calls, body: object][] = [
    ["a create without an id", "create", { status: "pending" }],
    ["a check without an id", "check", { status: "valid" }],
    ["a check of another authentication", "check", { status: "valid", authentication_uuid: another }],
    ["a retry of another authentication", "retry", { status: "approved", authentication_uuid: another }],
    ["a lookup without a number", "lookup", { line_type: "Mobile" }],
    ["a lookup without a kind of line", "lookup", { phone_number: "+33612345678" }],
    ["a lookup with a status", "lookup", { phone_number: "+33612345678", status: "ok" }],
  ];
  test.each(wrong)("%s", async (_, call, body) => {
    const { client, asked } = await clientOf((_, response) => json(response, 200, body));
    expect(await failure(calls[call](client))).toMatchObject({ name: "TransportError", code: "bad_answer", status: 200 });
    expect(asked).toHaveLength(1);
  });

  test("an id sent in capitals matches the same id in lower case", async () => {
    const uuid = "abcdefab-2222-3333-4444-555555555555";
    const { client } = await clientOf((_, response) => json(response, 200, { authentication_uuid: uuid, status: "valid" }));
    expect(await client.check({ authentication_uuid: uuid.toUpperCase(), check_code: "123456" })).toMatchObject({ status: "valid" });
  });
});

test.each(["two\nlines", "ключ", 7 as never])("an idempotency key that a header cannot contain is a TypeError: %j", async (idempotencyKey) => {
  const { client, asked } = await clientOf((_, response) => json(response, 200, pending));
  const error = await failure(client.createAuthentication({ phone_number: "+33612345678" }, { idempotencyKey }));
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({ message: "createClient: idempotencyKey must be 1 to 255 printable ASCII characters" });
  expect(asked).toEqual([]);
});

describe("invalid and missing responses", () => {
  const create = (client: ReturnType<typeof createClient>, signal?: AbortSignal) => client.createAuthentication({ phone_number: "+33612345678" }, { signal });
  const oops = (response: ServerResponse, status: number, headers: Record<string, string> = {}) =>
    response.writeHead(status, { "content-type": "text/html", ...headers }).end("<html><h1>Bad gateway</h1></html>");

  const bad: [what: string, attempts: number, status: number, message: RegExp, handler: RequestListener][] = [
    ["a proxy's page with 502", 2, 502, /HTTP 502 \(text\/html\) is not ours: is the service up/, (_, response) => oops(response, 502)],
    ["a proxy's page with 504", 2, 504, /HTTP 504/, (_, response) => oops(response, 504)],
    ["a proxy's page with 429", 1, 429, /HTTP 429/, (_, response) => oops(response, 429, { "retry-after": "1" })],
    ["a page with 200", 1, 200, /HTTP 200 \(text\/html\)/, (_, response) => oops(response, 200)],
    ["no body", 1, 200, /HTTP 200 \(no content-type\) is not ours: check baseUrl/, (_, response) => response.end()],
    ["another's JSON", 1, 200, /HTTP 200/, (_, response) => json(response, 200, { hello: "world" })],
    ["JSON that is no object", 1, 200, /HTTP 200/, (_, response) => json(response, 200, null)],
    ["another's code", 1, 404, /HTTP 404/, (_, response) => json(response, 404, { code: "not_found", message: "no such route" })],
    ["another's fault", 1, 404, /HTTP 404/, (_, response) => json(response, 404, { error: "no such route" })],
    ["a redirect, which is not followed", 1, 301, /HTTP 301 \(\/v1\/elsewhere\)/, (_, response) => oops(response, 301, { location: "/v1/elsewhere" })],
    [
      "a redirect to a trailing slash",
      1,
      308,
      /HTTP 308 \(\/v1\/authentication\/\) .*trailing slash.*skipTrailingSlashRedirect/,
      ({ url }, response) => oops(response, 308, { location: `${url}/` }),
    ],
    ["a redirect that keeps the method, which is not followed", 1, 307, /HTTP 307/, (_, response) => oops(response, 307, { location: "https://a.example/" })],
  ];
  test.each(bad)("%s: bad_answer, number of attempts: %i", async (_, attempts, status, message, handler) => {
    const { client, asked } = await clientOf(handler);
    const error = await failure(create(client));
    expect(error).toBeInstanceOf(TransportError);
    expect(error).toMatchObject({ name: "TransportError", code: "bad_answer", status, message: expect.stringMatching(message) });
    expect(asked).toHaveLength(attempts);
  });

  const late: [what: string, handler: RequestListener][] = [
    ["a server that hangs", () => undefined],
    ["a body that hangs", (_, response) => void response.writeHead(200, { "content-type": "application/json" }).write('{"authentication_uuid":')],
  ];
  test.each(late)("%s: timeout, after two attempts with one key", async (_, handler) => {
    const { client, asked } = await clientOf(handler, { timeout: 1 });
    const error = await failure(create(client));
    expect(error).toMatchObject({ name: "TransportError", code: "timeout", message: "no full response in 1 s" });
    expect((error as TransportError).status).toBeUndefined();
    expect(new Set(asked.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    expect(asked).toHaveLength(2);
  });

  const broken: [what: string, handler: RequestListener][] = [
    ["a connection that breaks before the answer", (request) => void request.socket.destroy()],
    [
      "a connection that breaks in the body",
      (request, response) => void response.writeHead(200, { "content-length": "100" }).write('{"authentication_uuid":', () => request.socket.destroy()),
    ],
  ];
  test.each(broken)("%s: network, with the underlying error as cause", async (_, handler) => {
    const { client, asked } = await clientOf(handler);
    const error = await failure(create(client));
    expect(error).toMatchObject({ code: "network", cause: expect.any(Error) });
    expect((error as TransportError).status).toBeUndefined();
    expect(asked).toHaveLength(2);
  });

  test("no server: network, and the error of a lookup does not contain the number", async () => {
    const { baseUrl } = await serve(() => undefined);
    await closing.pop()?.();
    const error = (await failure(createClient({ baseUrl, ...fake, retries: 0 }).lookup({ phone_number: "+33612345678" }))) as TransportError;
    expect(error).toMatchObject({ code: "network" });
    expect(`${error.stack}${(error.cause as Error).stack}`).not.toContain("33612345678");
  });

  test("a lookup is repeated and a retry is not; with retries: 0, not even a create is", async () => {
    const breaking: RequestListener = (request) => void request.socket.destroy();
    const { client, asked } = await clientOf(breaking);
    await failure(client.lookup({ phone_number: "+33612345678" }));
    expect(asked).toHaveLength(2);
    await failure(client.retry({ authentication_uuid: id }));
    expect(asked).toHaveLength(3);
    const once = await clientOf(breaking, { retries: 0 });
    await failure(create(once.client));
    expect(once.asked).toHaveLength(1);
  });

  test("a slow body that arrives before the timeout is accepted", async () => {
    const { client } = await clientOf((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const pieces = [...JSON.stringify(pending)];
      const next = () => (pieces.length > 0 ? response.write(pieces.shift(), () => setImmediate(next)) : response.end());
      next();
    });
    expect(await create(client)).toEqual(pending);
  });
});

describe("503", () => {
  const unavailable = { code: "unavailable", message: "The store cannot answer.", doc_url: "https://docs.example/#unavailable" };
  const then = (first: (response: ServerResponse) => unknown): RequestListener => {
    let count = 0;
    return (_, response) => void (count++ === 0 ? first(response) : json(response, 200, pending));
  };
  const create = (client: ReturnType<typeof createClient>) => client.createAuthentication({ phone_number: "+33612345678" });

  test("is repeated after its retry-after, with the same key", async () => {
    const { client, asked } = await clientOf(then((response) => json(response, 503, unavailable, { "retry-after": "1" })));
    const from = performance.now();
    expect(await create(client)).toEqual(pending);
    expect(performance.now() - from).toBeGreaterThanOrEqual(990);
    expect(asked[1]?.headers["idempotency-key"]).toBe(asked[0]?.headers["idempotency-key"]);
  });

  test("of a proxy is repeated too", async () => {
    const { client } = await clientOf(then((response) => response.writeHead(503).end("down")));
    expect(await create(client)).toEqual(pending);
  });

  test("of a proxy is repeated after its retry-after, and thrown at once if that is more than five seconds", async () => {
    const { client } = await clientOf(then((response) => response.writeHead(503, { "retry-after": "1" }).end("down")));
    const from = performance.now();
    expect(await create(client)).toEqual(pending);
    expect(performance.now() - from).toBeGreaterThanOrEqual(990);
    const { client: another, asked } = await clientOf((_, response) => response.writeHead(503, { "retry-after": "6" }).end("down"));
    expect(await failure(create(another))).toMatchObject({ code: "bad_answer", status: 503, retry_after: 6 });
    expect(asked).toHaveLength(1);
  });

  test("with a retry-after of more than five seconds is thrown at once", async () => {
    const { client, asked } = await clientOf(then((response) => json(response, 503, unavailable, { "retry-after": "6" })));
    expect(await failure(create(client))).toMatchObject({ ...unavailable, name: "FaultError", status: 503, retry_after: 6 });
    expect(asked).toHaveLength(1);
  });

  test("with a date as retry-after is thrown at once if that is more than five seconds away", async () => {
    vi.useFakeTimers({ now: Date.parse("2026-03-01T12:00:00.200Z"), toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const { client, asked } = await clientOf((_, response) => response.writeHead(503, { "retry-after": "Sun, 01 Mar 2026 12:01:00 GMT" }).end("down"));
    expect(await failure(create(client))).toMatchObject({ code: "bad_answer", status: 503, retry_after: 60 });
    expect(asked).toHaveLength(1);
  });

  test.each(["soon", "", "in 3000", "never GMT", "Wed, 21 Oct 2015 07:28:00 GMT"])("with %j as retry-after has no retry_after", async (value) => {
    const { client } = await clientOf((_, response) => json(response, 503, unavailable, { "retry-after": value }), { retries: 0 });
    expect(await failure(create(client))).toMatchObject({ status: 503, retry_after: undefined });
  });

  test("that persists is thrown after the configured number of retries", async () => {
    const { client, asked } = await clientOf((_, response) => json(response, 503, unavailable, { "retry-after": "0" }), { retries: 3 });
    expect(await failure(create(client))).toMatchObject(unavailable);
    expect(asked).toHaveLength(4);
  });
});

describe("an aborted signal rejects the call with its reason", () => {
  const reason = new Error("the user went away");
  const check = (client: ReturnType<typeof createClient>, signal: AbortSignal) => client.check({ authentication_uuid: id, check_code: "123456" }, { signal });

  test("before the call: no request is sent", async () => {
    const { client, asked } = await clientOf((_, response) => json(response, 200, pending));
    expect(await failure(check(client, AbortSignal.abort(reason)))).toBe(reason);
    expect(asked).toEqual([]);
  });

  const during: [when: string, handler: (abort: () => void) => RequestListener][] = [
    ["while the answer is waited for", (abort) => abort],
    ["in the body", (abort) => (_, response) => void response.writeHead(200).write("{", abort)],
  ];
  test.each(during)("%s: no further request is sent", async (_, handler) => {
    const controller = new AbortController();
    const { client, asked } = await clientOf(handler(() => controller.abort(reason)));
    expect(await failure(check(client, controller.signal))).toBe(reason);
    expect(asked).toHaveLength(1);
  });

  test("in the pause before a repeat: the call does not wait for it to end", { timeout: 4_000 }, async () => {
    const controller = new AbortController();
    const { client, asked } = await clientOf(
      (_, response) => json(response, 503, { code: "unavailable", message: "-", doc_url: "-" }, { "retry-after": "5" }),
      {
        async fetch(url, init) {
          const answer = await fetch(url, init);
          const whole = await answer.text();
          setImmediate(() => controller.abort(reason));
          return { status: answer.status, headers: answer.headers, text: async () => whole };
        },
      },
    );
    expect(await failure(check(client, controller.signal))).toBe(reason);
    expect(asked).toHaveLength(1);
  });
});

describe("invalid options throw when the client is created", () => {
  const good: ClientOptions = { baseUrl: "https://otp.example.com", ...fake };
  const wrong: [option: keyof ClientOptions, value: unknown][] = [
    ["baseUrl", undefined],
    ["baseUrl", "otp.example.com"],
    ["baseUrl", "https://user:secret@otp.example.com"],
    ["baseUrl", "https://otp.example.com/?a"],
    ["apiKey", undefined],
    ["apiKey", ""],
    ["apiKey", "a key"],
    ["customerUuid", undefined],
    ["customerUuid", "me"],
    ["timeout", 0],
    ["timeout", Number.NaN],
    ["timeout", 10_000],
    ["retries", -1],
    ["retries", 1.5],
  ];
  test.each(wrong)("%s: %j", (option, value) => {
    expect(() => createClient({ ...good, [option]: value })).toThrow(new RegExp(`^createClient: ${option} must be `));
  });

  test.each([undefined, null])("options that are %s", (options) => {
    expect(() => createClient(options as never)).toThrow(/^createClient: baseUrl must be /);
  });

  test("the message does not contain the API key", () => {
    expect(() => createClient({ ...good, apiKey: "pp_two words" })).toThrow(/^(?!.*words)/);
  });
});

test("the result types are distinguished by status, and each error class has its own codes", () => {
  const told = (answer: CreateResult | RetryResult | CheckResult) => {
    switch (answer.status) {
      case "pending":
      case "spam_detected":
        return expectTypeOf(answer.expires_at).toEqualTypeOf<string>();
      case "approved":
      case "denied":
      case "no_attempt":
        return expectTypeOf(answer.remaining_retry).toEqualTypeOf<number>();
      case "valid":
        expectTypeOf(answer.phone_number).toEqualTypeOf<string | undefined>();
        return expectTypeOf(answer.remaining_checks).toEqualTypeOf<number | undefined>();
      case "invalid":
      case "without_attempt":
      case "rate_limited":
      case "already_validated":
      case "expired_auth":
        return expectTypeOf(answer.authentication_uuid).toEqualTypeOf<string>();
      default:
        return expectTypeOf(answer).toEqualTypeOf<never>();
    }
  };
  expect(told).toBeTypeOf("function");
  expectTypeOf<Extract<CheckResult, { status: "valid" }>["status"]>().toEqualTypeOf<"valid">();
  expectTypeOf<FaultError["code"]>().toEqualTypeOf<ErrorCode>();
  expectTypeOf<TransportError["code"]>().toEqualTypeOf<TransportCode>();
  // @ts-expect-error the client knows its customer
  expect((client: ReturnType<typeof createClient>) => client.retry({ authentication_uuid: id, customer_uuid: id })).toBeTypeOf("function");
  // @ts-expect-error a retry takes no key
  expect((client: ReturnType<typeof createClient>) => client.retry({ authentication_uuid: id }, { idempotencyKey: "1" })).toBeTypeOf("function");
});
