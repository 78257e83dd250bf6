import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type ClientFetch, type ClientOptions, createClient, FaultError, TransportError } from "../../clients/client/index.js";

const apiKey = "pp_the-key-of-the-client";
const customerUuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const id = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";
const open: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A server on loopback that handles each request with `answer`. */
async function server(answer: (response: ServerResponse, seen: Seen, index: number) => void) {
  const seen: Seen[] = [];
  const made = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const one = { method: request.method ?? "", url: request.url ?? "", headers: request.headers, body };
    seen.push(one);
    answer(response, one, seen.length - 1);
  });
  made.listen(0, "127.0.0.1");
  await once(made, "listening");
  open.push(() => {
    made.closeAllConnections();
    made.close();
  });
  return { seen, baseUrl: `http://127.0.0.1:${(made.address() as AddressInfo).port}` };
}

const client = (baseUrl: string, options: Partial<ClientOptions> = {}) => createClient({ baseUrl, apiKey, customerUuid, ...options });
const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string | string[]> = {}) =>
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(typeof body === "string" ? body : JSON.stringify(body));
const valid = { authentication_uuid: id, status: "valid" };
const guess = { authentication_uuid: id, check_code: "123456" };
const fault = (code: string) => ({ code, message: "no", doc_url: `https://docs.example/errors#${code}` });

/** How a call ended. Fails if its error contains the key. */
async function end(call: Promise<unknown>): Promise<string> {
  try {
    return JSON.stringify(await call);
  } catch (error) {
    const { code, status, message, cause } = error as TransportError;
    expect(`${message} ${JSON.stringify(error)} ${(error as Error).stack} ${String(cause)}`).not.toContain(apiKey);
    if (error instanceof FaultError) return `fault ${code} ${status}`;
    if (error instanceof TransportError) return `${code}${status === undefined ? "" : ` ${status}`}`;
    return `${(error as Error).name}: ${message}`;
  }
}

describe("a malformed response is `bad_answer`, never valid", () => {
  it.each<[string, string]>([
    ["nothing", ""],
    ["a page", "<html>valid</html>"],
    ["half of the JSON", '{"authentication_uuid":"0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d","status":"val'],
    ["null", "null"],
    ["a string", '"valid"'],
    ["true", "true"],
    ["a list", `[${JSON.stringify(valid)}]`],
    ["no status", `{"authentication_uuid":"${id}"}`],
    ["a status that is a list", `{"authentication_uuid":"${id}","status":["valid"]}`],
    ["a status that is true", `{"authentication_uuid":"${id}","status":true}`],
    ["a status that is null", `{"authentication_uuid":"${id}","status":null}`],
    ["two documents", JSON.stringify(valid) + JSON.stringify(valid)],
  ])("%s", async (_, body) => {
    const { baseUrl } = await server((response) => json(response, 200, body));
    const one = client(baseUrl);
    expect(await end(one.check(guess))).toBe("bad_answer 200");
    expect(await end(one.createAuthentication({ phone_number: "+33612345678" }))).toBe("bad_answer 200");
    expect(await end(one.retry({ authentication_uuid: id }))).toBe("bad_answer 200");
  });

  it.each([201, 202, 204, 206, 301, 302, 303, 307, 308, 304, 400, 401, 404, 418, 429, 500])("HTTP %i with the body of a valid check", async (status) => {
    const { baseUrl, seen } = await server((response) => json(response, status, valid, status < 300 || status >= 400 ? {} : { location: "/v1/check" }));
    const ended = await end(client(baseUrl).check(guess));
    expect(ended).toBe(`bad_answer ${status}`);
    expect(seen.length).toBe(1);
  });

  it("an error whose fields have other types", async () => {
    for (const body of [
      { code: 5, message: "no", doc_url: "x" },
      { code: "bad_request" },
      { error: "bad_request" },
      [fault("bad_request")],
      { ...fault("bad_request"), message: { a: 1 } },
    ]) {
      const { baseUrl } = await server((response) => json(response, 400, body));
      expect(await end(client(baseUrl).check(guess)), JSON.stringify(body)).toMatch(/^(bad_answer 400|fault bad_request 400)$/);
    }
  });

  it("a malformed lookup", async () => {
    for (const body of ["[]", "null", "{}", '"+33612345678"', '{"phone_number":"+33612345678","line_type":5}']) {
      const { baseUrl } = await server((response) => json(response, 200, body));
      expect(await end(client(baseUrl).lookup({ phone_number: "+33612345678" })), body).toBe("bad_answer 200");
    }
  });
});

it("an unknown status is not turned into a known one", async () => {
  const { baseUrl } = await server((response) => json(response, 200, { authentication_uuid: id, status: "VALID " }));
  const ended = await end(client(baseUrl).check(guess));
  if (ended !== "bad_answer 200") expect(JSON.parse(ended).status).toBe("VALID ");
});

describe("the key is sent to the configured host only", () => {
  it.each([301, 302, 303, 307, 308])("a %i to another host is not followed by any call", async (status) => {
    const elsewhere = await server((response) => json(response, 200, valid));
    const { baseUrl, seen } = await server((response) => response.writeHead(status, { location: `${elsewhere.baseUrl}/v1/check` }).end());
    const one = client(baseUrl);
    const ends = [
      await end(one.check(guess)),
      await end(one.retry(guess)),
      await end(one.createAuthentication({ phone_number: "+33612345678" })),
      await end(one.lookup({ phone_number: "+33612345678" })),
    ];
    expect(ends).toEqual(Array(4).fill(`bad_answer ${status}`));
    expect(elsewhere.seen).toEqual([]);
    expect(seen.length).toBe(4);
  });

  it("a lookup of any text stays on the lookup path and host", async () => {
    const { baseUrl, seen } = await server((response) => json(response, 200, { phone_number: "+33612345678", line_type: "Mobile" }));
    for (const phone_number of ["../check", "//evil.example/x", "+33?x=1#y", "%2e%2e/retry", "../../x", "", "\r\nx: y", "\ud800"])
      await end(client(baseUrl).lookup({ phone_number }));
    for (const { url } of seen) expect(url).toMatch(/^\/v1\/lookup\/[^/?#]*$/);
  });
});

describe("connections that break", () => {
  /** A raw TCP server: `script` responds to each request on a connection. */
  async function raw(script: (socket: Socket, request: number) => void) {
    const requests: string[] = [];
    const sockets = new Set<Socket>();
    const made = createSocketServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      let text = "";
      socket.on("data", (piece) => {
        text += piece;
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
        const at = text.indexOf("\r\n\r\n");
        if (at < 0 || text.length < at + 4 + length) return;
        requests.push(text);
        text = "";
        script(socket, requests.length - 1);
      });
    });
    made.listen(0, "127.0.0.1");
    await once(made, "listening");
    open.push(() => {
      for (const socket of sockets) socket.destroy();
      made.close();
    });
    return { requests, baseUrl: `http://127.0.0.1:${(made.address() as AddressInfo).port}` };
  }
  const whole = (body: unknown, headers = "") => {
    const text = JSON.stringify(body);
    return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n${headers}\r\n${text}`;
  };
  const keyOf = (request: string) => /idempotency-key: (.*)\r/i.exec(request)?.[1];

  it.each<[string, (socket: Socket) => void]>([
    ["closed without a word", (socket) => socket.destroy()],
    ["reset", (socket) => socket.resetAndDestroy()],
    ["cut within the headers", (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-ty")],
    ["cut within the body", (socket) => socket.end(whole(valid).slice(0, -5))],
    ["cut within a chunk", (socket) => socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n40\r\n{"authentication_uuid":"')],
    ["that speaks something else", (socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n")],
    ["with a body that is said to be packed", (socket) => socket.end(whole(valid, "content-encoding: gzip\r\n"))],
  ])("%s: a check and a create are repeated once under one key, a retry never", async (_, break_) => {
    const { requests, baseUrl } = await raw((socket) => break_(socket));
    const one = client(baseUrl);
    expect(await end(one.check(guess))).toMatch(/^(network|bad_answer.*)$/);
    expect(requests.length).toBe(2);
    expect(keyOf(requests[0] as string)).toBeTruthy();
    expect(keyOf(requests[1] as string)).toBe(keyOf(requests[0] as string));
    await end(one.createAuthentication({ phone_number: "+33612345678" }));
    expect(requests.length).toBe(4);
    expect(keyOf(requests[3] as string)).toBe(keyOf(requests[2] as string));
    expect(keyOf(requests[2] as string)).not.toBe(keyOf(requests[0] as string));
    expect(await end(one.retry({ authentication_uuid: id }))).toMatch(/^(network|bad_answer.*)$/);
    expect(requests.length).toBe(5);
    expect(keyOf(requests[4] as string)).toBeUndefined();
  });

  it("a check whose reused connection is reset is repeated, and gets its result", async () => {
    const { requests, baseUrl } = await raw((socket, index) => (index === 1 ? socket.resetAndDestroy() : socket.write(whole(valid))));
    const one = client(baseUrl);
    expect(JSON.parse(await end(one.check(guess)))).toMatchObject({ status: "valid" });
    expect(JSON.parse(await end(one.check(guess)))).toMatchObject({ status: "valid" });
    expect(requests.length).toBe(3);
    expect(keyOf(requests[2] as string)).toBe(keyOf(requests[1] as string));
  });

  it("a slow body without an end ends with the timeout of the attempt", async () => {
    const { requests, baseUrl } = await raw((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
      const timer = setInterval(() => (socket.writable ? socket.write("1\r\n \r\n") : clearInterval(timer)), 20);
      socket.on("close", () => clearInterval(timer));
    });
    const started = performance.now();
    expect(await end(client(baseUrl, { timeout: 1, retries: 0 }).check(guess))).toBe("timeout");
    expect(performance.now() - started).toBeLessThan(20_000);
    expect(requests.length).toBe(1);
  });

  it("a huge body ends the attempt with `timeout` or `bad_answer`", async () => {
    const { baseUrl } = await raw((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
      const piece = Buffer.alloc(65_536, 32);
      const more = () => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on("drain", more);
      more();
    });
    expect(await end(client(baseUrl, { timeout: 0.4, retries: 0 }).check(guess))).toMatch(/^(timeout|bad_answer 200)$/);
  });

  it("a closed port gives `network`", async () => {
    const { baseUrl } = await raw(() => {});
    await open.pop()?.();
    expect(await end(client(baseUrl).check(guess))).toBe("network");
  });
});

describe("503", () => {
  it.each<[string | undefined, number | undefined, number]>([
    [undefined, undefined, 2],
    ["0", 0, 2],
    ["5.5", undefined, 2],
    ["-1", undefined, 2],
    ["soon", undefined, 2],
    ["", undefined, 2],
    ["1e1", undefined, 2],
    ["0x1", undefined, 2],
    ["6", 6, 1],
    ["86400", 86_400, 1],
    ["NaN", undefined, 2],
  ])("retry-after %j: reported as %j, %i requests", async (header, told, requests) => {
    const { baseUrl, seen } = await server((response) => json(response, 503, fault("unavailable"), header === undefined ? {} : { "retry-after": header }));
    const error = await client(baseUrl)
      .check(guess)
      .catch((one: unknown) => one);
    expect(error).toBeInstanceOf(FaultError);
    expect(error).toMatchObject({ code: "unavailable", status: 503 });
    expect((error as FaultError).retry_after).toBe(told);
    expect(seen.length).toBe(requests);
  });

  it.each(["99999999999999999999999999", "1".repeat(400), new Date(Date.now() + 3_600_000).toUTCString(), new Date(0).toUTCString()])(
    "retry-after %s makes no call hang, and is reported as a valid number or not at all",
    async (header) => {
      const { baseUrl, seen } = await server((response) => json(response, 503, fault("unavailable"), { "retry-after": header }));
      const started = performance.now();
      const error = (await client(baseUrl)
        .check(guess)
        .catch((one: unknown) => one)) as FaultError;
      expect(performance.now() - started).toBeLessThan(30_000);
      if (error.retry_after !== undefined) expect(Number.isSafeInteger(error.retry_after) && error.retry_after >= 0, String(error.retry_after)).toBe(true);
      expect(seen.length).toBeLessThanOrEqual(2);
    },
  );

  it("from a proxy, with a page: repeated like a request without a response", async () => {
    const { baseUrl, seen } = await server((response, _, index) => (index === 0 ? response.writeHead(503).end("<html>") : json(response, 200, valid)));
    expect(JSON.parse(await end(client(baseUrl).check(guess)))).toMatchObject({ status: "valid" });
    expect(seen.length).toBe(2);
  });
});

describe("facts in headers", () => {
  it.each(["", " ", "-1", "1.5", "1e3", "0x10", "NaN", "Infinity", "five", "5, 5", "９", "99999999999999999999"])(
    "an invalid count %j is left out",
    async (value) => {
      const { baseUrl } = await server((response) => {
        const header = Buffer.from(value).toString("latin1");
        json(
          response,
          200,
          { authentication_uuid: id, status: "invalid" },
          { "x-phoneproof-remaining-checks": header, "x-phoneproof-retry-after": header, "x-phoneproof-remaining-retry": header },
        );
      });
      expect(await client(baseUrl).check(guess)).toEqual({ authentication_uuid: id, status: "invalid" });
    },
  );

  it.each(["false", "1", "TRUE", "yes", "", "true, true"])("carrier_refused is true or absent: %j", async (value) => {
    const { baseUrl } = await server((response) =>
      json(
        response,
        200,
        { authentication_uuid: id, status: "pending", created_at: "2026-03-01T12:00:00.000Z", expires_at: "2026-03-01T12:10:00.000Z" },
        { "x-phoneproof-carrier-refused": value },
      ),
    );
    const answer = await client(baseUrl).createAuthentication({ phone_number: "+33612345678" });
    expect([undefined, true]).toContain(answer.carrier_refused);
    if (value === "false" || value === "") expect("carrier_refused" in answer).toBe(false);
  });

  it.each(["", "33612345678", "+33612345678, +33699999999", "+33 6 12 34 56 78", "javascript:alert(1)", "+3361234567800000000"])(
    "an invalid number %j is left out, so that no user is bound to it",
    async (value) => {
      const { baseUrl } = await server((response) => json(response, 200, valid, { "x-phoneproof-phone-number": value }));
      expect(await client(baseUrl).check(guess)).toEqual(valid);
    },
  );

  it.each(["", "soon", "1772366430", "Sun, 01 Mar 2026 12:00:30 GMT"])("an invalid time %j is left out", async (value) => {
    const { baseUrl } = await server((response) => json(response, 200, { ...valid, status: "invalid" }, { "x-phoneproof-next-retry-at": value }));
    expect(await client(baseUrl).check(guess)).toEqual({ ...valid, status: "invalid" });
  });

  it("headers do not override the body", async () => {
    const body = {
      authentication_uuid: id,
      status: "denied",
      created_at: "2026-03-01T12:00:00.000Z",
      next_retry_at: "2026-03-01T12:00:30.000Z",
      remaining_retry: 4,
    };
    const { baseUrl } = await server((response) =>
      json(response, 200, body, { "x-phoneproof-remaining-retry": "99", "x-phoneproof-next-retry-at": "2027-03-01T12:00:30.000Z" }),
    );
    expect(await client(baseUrl).retry({ authentication_uuid: id })).toMatchObject(body);
  });

  it("a body's __proto__ pollutes nothing", async () => {
    const { baseUrl } = await server((response) => json(response, 200, `{"__proto__":{"polluted":true},"authentication_uuid":"${id}","status":"invalid"}`));
    const answer = await client(baseUrl).check(guess);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect((answer as unknown as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

describe("signals", () => {
  const reason = new Error("the user went away");

  it("aborted before the call: no request", async () => {
    const { baseUrl, seen } = await server((response) => json(response, 200, valid));
    for (const call of ["check", "retry", "createAuthentication", "lookup"] as const)
      await expect(client(baseUrl)[call]({ ...guess, phone_number: "+33612345678" } as never, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(seen).toEqual([]);
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ["before the headers", () => {}],
    ["within the body", (response) => void response.writeHead(200, { "content-length": "100" }).write('{"status":')],
    ["while a repeat is waited for", (response) => void json(response, 503, fault("unavailable"), { "retry-after": "4" })],
  ])("aborted %s: rejects with the reason at once, without a repeat", async (_, answer) => {
    const controller = new AbortController();
    const { baseUrl, seen } = await server((response) => {
      answer(response);
      setTimeout(() => controller.abort(reason), 60);
    });
    const started = performance.now();
    await expect(client(baseUrl).check(guess, { signal: controller.signal })).rejects.toBe(reason);
    expect(performance.now() - started).toBeLessThan(3_900);
    expect(seen.length).toBe(1);
  });

  it("aborted at any moment of a response: the result or the reason, and nothing else", async () => {
    const { baseUrl } = await server((response) => json(response, 200, valid));
    const one = client(baseUrl);
    for (let wait = 0; wait < 40; wait++) {
      const controller = new AbortController();
      setTimeout(() => controller.abort(reason), wait / 8);
      const ended = await one.check(guess, { signal: controller.signal }).then(
        ({ status }) => status,
        (error) => (error === reason ? "reason" : error),
      );
      expect(["valid", "reason"]).toContain(ended);
    }
  });

  it("a reason that is null or not an error is passed on", async () => {
    const { baseUrl } = await server(() => {});
    for (const odd of [null, 0, "away"]) {
      const controller = new AbortController();
      setTimeout(() => controller.abort(odd), 20);
      expect(
        await client(baseUrl)
          .check(guess, { signal: controller.signal })
          .catch((error: unknown) => ({ error })),
      ).toEqual({ error: odd });
    }
  });

  it("one signal for a thousand calls accumulates no listeners", async () => {
    const controller = new AbortController();
    let listeners = 0;
    const { signal } = controller;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = ((...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    }) as typeof add;
    signal.removeEventListener = ((...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    }) as typeof remove;
    const fetch: ClientFetch = async () => ({ status: 200, headers: new Headers(), text: async () => JSON.stringify(valid) });
    const one = client("http://127.0.0.1:1", { fetch });
    for (let i = 0; i < 1_000; i++) await one.check(guess, { signal });
    expect(listeners).toBeLessThan(5);
  });
});

describe("a custom fetch that misbehaves", () => {
  it.each<[string, ClientFetch]>([
    [
      "throws at once",
      () => {
        throw new Error(`key ${"x"}`);
      },
    ],
    ["rejects with nothing", () => Promise.reject()],
    ["rejects with an AbortError of its own", () => Promise.reject(new DOMException("aborted", "AbortError"))],
    ["answers nothing", (async () => undefined) as never],
    [
      "has a body that throws",
      async () => ({
        status: 200,
        headers: new Headers(),
        text: () => {
          throw new Error("used");
        },
      }),
    ],
  ])(
    "%s: a TransportError",
    async (_, fetch) => {
      const error = await client("http://127.0.0.1:1", { fetch, timeout: 0.1, retries: 1 })
        .check(guess)
        .catch((one: unknown) => one);
      expect(error).toBeInstanceOf(TransportError);
    },
    5_000,
  );
});

describe("invalid and unusual options", () => {
  it.each<[string, Record<string, unknown>]>([
    ["no address", { baseUrl: undefined }],
    ["an address without a scheme", { baseUrl: "otp.example.com" }],
    ["ftp", { baseUrl: "ftp://otp.example.com" }],
    ["an empty address", { baseUrl: "" }],
    ["a list", { baseUrl: ["https://otp.example.com"] }],
    ["no key", { apiKey: undefined }],
    ["an empty key", { apiKey: "" }],
    ["a key with its end of line", { apiKey: `${apiKey}\n` }],
    ["a key in typographic quotes", { apiKey: `“${apiKey}”` }],
    ["no customer", { customerUuid: undefined }],
    ["a customer that is no UUID", { customerUuid: "acme" }],
    ["milliseconds", { timeout: 10_000 }],
    ["a timeout of 0", { timeout: 0 }],
    ["a timeout in words", { timeout: "10s" }],
    ["a timeout of NaN", { timeout: Number.NaN }],
    ["half a retry", { retries: 0.5 }],
    ["retries below 0", { retries: -1 }],
    ["retries for ever", { retries: Number.POSITIVE_INFINITY }],
  ])("%s is a TypeError at construction, which does not show the key", (_, options) => {
    let told: unknown;
    try {
      client("https://otp.example.com", options as never);
    } catch (error) {
      told = error;
    }
    expect(told).toBeInstanceOf(TypeError);
    expect((told as Error).message).not.toContain(apiKey);
  });

  it("missing options are a TypeError too", () => {
    for (const odd of [undefined, null, "https://otp.example.com"]) expect(() => createClient(odd as never)).toThrow(TypeError);
  });

  it.each(["", "/", "/api", "/api/", "/api//"])("a base URL that ends in %j is used before /v1", async (tail) => {
    const { baseUrl, seen } = await server((response) => json(response, 200, valid));
    await client(baseUrl + tail).check(guess);
    expect(seen.map(({ url }) => url)).toEqual([`${tail.replace(/\/+$/, "")}/v1/check`]);
  });

  it.each(["", "é", "x".repeat(256)])("an invalid idempotency key %j is rejected, without a request", async (idempotencyKey) => {
    const { baseUrl, seen } = await server((response) => json(response, 200, valid));
    expect(await end(client(baseUrl).check(guess, { idempotencyKey }))).toMatch(/^TypeError: createClient: idempotencyKey must be/);
    expect(seen).toEqual([]);
  });

  it("a customer_uuid in the request does not replace the client's", async () => {
    const { baseUrl, seen } = await server((response) => json(response, 200, valid));
    await client(baseUrl).check({ ...guess, customer_uuid: "another" } as never);
    expect(JSON.parse(seen[0]?.body ?? "")).toMatchObject({ customer_uuid: customerUuid });
  });
});
