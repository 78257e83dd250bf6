import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { nodeHandler } from "../../adapters/http/node.js";
import { type Client, type ClientFetch, type ClientOptions, createClient, TransportError } from "../../clients/client/index.js";
import { createTestVerifier } from "../../src/testing/index.js";
import { hasChromium } from "../support/chromium.js";
import { type Field, openField } from "./front-end-kit.js";

const apiKey = "pp_a-key-that-no-error-shows";
const customerUuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const authentication_uuid = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";
const phone_number = "+33612345678";
const check_code = "908172";
const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Seen {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
}

async function serve(answer: (response: ServerResponse, index: number, request: IncomingMessage) => void) {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    request.resume();
    seen.push({ path: request.url ?? "", headers: request.headers });
    answer(response, seen.length - 1, request);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { seen, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const clientOf = (options: Partial<ClientOptions>) => createClient({ baseUrl: "http://127.0.0.1:1", apiKey, customerUuid, ...options });
const check = (client: Client, options?: Parameters<Client["check"]>[1]) => client.check({ authentication_uuid, check_code }, options);
const reply = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) =>
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(typeof body === "string" ? body : JSON.stringify(body));
const valid = { authentication_uuid, status: "valid" };
const away = { code: "unavailable", message: "down", doc_url: "https://docs.example/errors#unavailable" };

/** How a call ended. Fails if its error shows the key or the code. */
async function endOf(call: Promise<unknown>): Promise<string> {
  try {
    return (await call) === undefined ? "nothing" : "answered";
  } catch (error) {
    const all = `${inspect(error, { depth: 9, showHidden: true })} ${JSON.stringify(error)}`;
    for (const secret of [apiKey, check_code]) expect(all).not.toContain(secret);
    const { name, code, status } = error as TransportError;
    return [name, code, status].filter((part) => part !== undefined).join(" ");
  }
}

/** Whether a call ends within two seconds, and how. */
async function endsSoon(call: Promise<unknown>): Promise<string> {
  let end = "still waits";
  void endOf(call).then((how) => {
    end = how;
  });
  await expect
    .poll(() => end, { timeout: 2_000, interval: 20 })
    .not.toBe("still waits")
    .catch(() => {});
  return end;
}

describe("the client", () => {
  it("accepts only the service's response to this call as a result (docs/front-end.md#from-other-servers-the-client)", async () => {
    const html = { "content-type": "text/html" };
    const answers: [what: string, how: (response: ServerResponse) => unknown, end: string][] = [
      ["a page", (r) => reply(r, 200, "<html>", html), "TransportError bad_answer 200"],
      ["a page of 403", (r) => reply(r, 403, "<html>", html), "TransportError bad_answer 403"],
      ["a page of 429", (r) => reply(r, 429, "<html>", html), "TransportError bad_answer 429"],
      ["nothing", (r) => r.writeHead(200).end(), "TransportError bad_answer 200"],
      ["no content", (r) => r.writeHead(204).end(), "TransportError bad_answer 204"],
      ["half a result", (r) => reply(r, 200, '{"authentication_uuid":"'), "TransportError bad_answer 200"],
      ["null", (r) => reply(r, 200, "null"), "TransportError bad_answer 200"],
      ["a list", (r) => reply(r, 200, "[]"), "TransportError bad_answer 200"],
      ["another call's status", (r) => reply(r, 200, { ...valid, status: "pending" }), "TransportError bad_answer 200"],
      ["a status that every object has", (r) => reply(r, 200, { ...valid, status: "toString" }), "TransportError bad_answer 200"],
      ["a list of statuses", (r) => reply(r, 200, { ...valid, status: ["valid"] }), "TransportError bad_answer 200"],
      ["another authentication's result", (r) => reply(r, 200, { ...valid, authentication_uuid: customerUuid }), "TransportError bad_answer 200"],
      ["a result with 500", (r) => reply(r, 500, valid), "TransportError bad_answer 500"],
      ["a result with 201", (r) => reply(r, 201, valid), "TransportError bad_answer 201"],
      ["a redirect with a result", (r) => reply(r, 307, valid, { location: "/elsewhere" }), "TransportError bad_answer 307"],
      ["an error without its page", (r) => reply(r, 400, { code: "bad_request", message: "no" }), "TransportError bad_answer 400"],
      ["an error", (r) => reply(r, 500, { ...away, code: "internal_server_error" }), "FaultError internal_server_error 500"],
    ];
    let now: (response: ServerResponse) => unknown = () => {};
    const { baseUrl, seen } = await serve((response) => now(response));
    for (const [what, how, end] of answers) {
      now = how;
      expect(await endOf(check(clientOf({ baseUrl }))), what).toBe(end);
    }
    expect(new Set(seen.map(({ path }) => path))).toEqual(new Set(["/v1/check"]));
  });

  it("repeats a check under one key, and never repeats a retry (docs/front-end.md#from-other-servers-the-client)", async () => {
    let fail: (response: ServerResponse, request: IncomingMessage) => unknown = () => {};
    const { baseUrl, seen } = await serve((response, _, request) => fail(response, request));
    const client = clientOf({ baseUrl, timeout: 1 });
    const ways: [(response: ServerResponse, request: IncomingMessage) => unknown, string][] = [
      [(_, { socket }) => socket.destroy(), "TransportError network"],
      [() => {}, "TransportError timeout"],
      [(r) => r.writeHead(200, { "content-type": "application/json" }).write("{"), "TransportError timeout"],
      [(r) => reply(r, 503, away), "FaultError unavailable 503"],
      [(r) => r.writeHead(502).end("<html>"), "TransportError bad_answer 502"],
    ];
    for (const [way, end] of ways) {
      fail = way;
      expect(await endOf(check(client))).toBe(end);
      const keys = seen.splice(0).map(({ headers }) => headers["idempotency-key"]);
      expect(keys).toEqual([expect.stringMatching(/^[\da-f-]{36}$/), keys[0]]);
    }
    expect(await endOf(client.retry({ authentication_uuid }))).toBe("TransportError bad_answer 502");
    expect(seen).toHaveLength(1);
    fail = (r) => reply(r, 503, away, { "retry-after": "6" });
    expect(await endOf(check(client))).toBe("FaultError unavailable 503");
    expect(seen, "5 seconds are the longest wait").toHaveLength(2);
  });

  it("sends no second message and counts no second wrong code when responses are lost (docs/front-end.md#from-other-servers-the-client)", async () => {
    const test = createTestVerifier();
    const handle = nodeHandler(test.verifier);
    const server = createServer((request, response) => void handle(request, response)).listen(0, "127.0.0.1");
    await once(server, "listening");
    closing.push(
      () => server.close(),
      () => server.closeAllConnections(),
      () => test.close(),
    );
    let lost = 0;
    const losing: ClientFetch = async (url, init) => {
      const response = await fetch(url, init);
      const text = await response.text();
      if (lost-- > 0) throw new Error("lost");
      return { status: response.status, headers: response.headers, text: async () => text };
    };
    const client = createClient({
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
      apiKey: test.apiKey,
      customerUuid: test.customer_uuid,
      fetch: losing,
    });
    lost = 1;
    const created = await client.createAuthentication({ phone_number });
    expect([created.status, test.inbox.messages.length]).toEqual(["pending", 1]);
    const of = { authentication_uuid: created.authentication_uuid };
    const code = test.inbox.codeFor(phone_number);
    lost = 1;
    const wrong = await client.check({ ...of, check_code: code === "000000" ? "000001" : "000000" });
    expect([wrong.status, wrong.remaining_checks]).toEqual(["invalid", 4]);
    lost = 1;
    expect(await client.check({ ...of, check_code: code })).toMatchObject({ status: "valid", phone_number });
    expect((await client.check({ ...of, check_code: code })).status).toBe("already_validated");
  });

  it("accepts a base URL with or without a path or a trailing slash (the types of phoneproof/client)", async () => {
    const { baseUrl, seen } = await serve((response) => reply(response, 200, valid));
    for (const end of ["", "/", "/api", "/api/"]) await check(clientOf({ baseUrl: baseUrl + end }));
    expect(seen.map(({ path }) => path)).toEqual(["/v1/check", "/v1/check", "/api/v1/check", "/api/v1/check"]);
  });

  it("gives each of many concurrent calls its own key, and leaves no listener on a shared signal (docs/front-end.md#from-other-servers-the-client)", async () => {
    const { baseUrl, seen } = await serve((response) => reply(response, 200, valid));
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener: add, removeEventListener: remove } = signal;
    signal.addEventListener = (...given: Parameters<typeof add>) => {
      listeners++;
      add.apply(signal, given);
    };
    signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      listeners--;
      remove.apply(signal, given);
    };
    await Promise.all(Array.from({ length: 30 }, () => check(clientOf({ baseUrl }), { signal })));
    expect([new Set(seen.map(({ headers }) => headers["idempotency-key"])).size, listeners]).toEqual([30, 0]);
  });

  it("ends at its timeout and at an abort, even with a fetch that ignores the signal (docs/front-end.md#from-other-servers-the-client)", async () => {
    const deaf: ClientFetch = () => new Promise(() => {});
    const half: ClientFetch = async () => ({ status: 200, headers: { get: () => null }, text: () => new Promise(() => {}) });
    const late = [deaf, half].map((fetch) => check(clientOf({ fetch, timeout: 0.05, retries: 0 })));
    const aborted = check(clientOf({ fetch: deaf, retries: 0 }), { signal: AbortSignal.timeout(50) });
    expect(await Promise.all([...late, aborted].map(endsSoon))).toEqual(["TransportError timeout", "TransportError timeout", "TimeoutError 23"]);
  });

  it("shows no whole number in the error of a redirected lookup (docs/privacy.md#what-is-stored-where-and-for-how-long)", async () => {
    const { baseUrl } = await serve((response, _, { url }) => void response.writeHead(308, { location: `https://other.example${url}/` }).end());
    const error = await clientOf({ baseUrl })
      .lookup({ phone_number })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TransportError);
    expect(inspect(error)).not.toContain(phone_number.slice(1));
  });

  it("never sends a null key as the text `null`, which all such calls would share (the types of phoneproof/client)", async () => {
    const { baseUrl, seen } = await serve((response) => reply(response, 200, valid));
    await endOf(check(clientOf({ baseUrl }), { idempotencyKey: null as never }));
    expect(seen.map(({ headers }) => headers["idempotency-key"])).not.toContain("null");
  });

  it.each([
    ["fetch", "fetch"],
    ["fetch", {}],
    ["baseUrl", "http://[::1"],
    ["baseUrl", "otp.example.com"],
    ["apiKey", `${apiKey}\n`],
    ["customerUuid", "mine"],
    ["timeout", 0],
    ["retries", -1],
  ])("throws a TypeError for an invalid option: %s %o (the types of phoneproof/client)", (name, value) => {
    expect(() => clientOf({ [name]: value })).toThrow(TypeError);
  });
});

it("phoneproof/otp-input can be imported outside a browser (docs/front-end.md#the-code-otp-input)", async () => {
  expect(Object.keys((await import("phoneproof/otp-input")).otpWords)).toHaveLength(16);
});

describe.skipIf(!hasChromium("the code field under attack"))("the code field", () => {
  let field: Field;
  beforeAll(async () => {
    field = await openField();
  });
  afterAll(() => field?.close());

  const form = (more = "") => `<form id="f"><otp-input id="a" name="code" label="Code" required></otp-input><button id="b"${more}>Check</button></form>`;
  const autoSubmit = `$("a").addEventListener("otp-complete", () => $("f").requestSubmit()); $("a").focus()`;

  it("extracts codes from pasted text: in groups, in messages and in digits of other scripts (docs/front-end.md#the-code-otp-input)", async () => {
    const pasted: Record<string, string> = {
      "123 456": "123456",
      "123-456": "123456",
      " 123456\n": "123456",
      "Your code is 123456.": "123456",
      "Your code is 123 456": "123456",
      "Order 12345678: your code is 424242": "424242",
      "Code: 123456, call +33612345678": "123456",
      "Your verification code is 135790\n\n@example.com #135790": "135790",
      "<#> 123456 is your code FA+9qCX9VSu": "123456",
      "１２３４５６": "123456",
      "١٢٣٤٥٦": "123456",
      "१२३४५६": "123456",
      "12345": "12345",
      abc: "",
    };
    await field.on(form(), async (page, ask) => {
      for (const [text, value] of Object.entries(pasted)) {
        await ask(`$("a").value = ""; take(); $("a").focus(); navigator.clipboard.writeText(${JSON.stringify(text)})`);
        await page.keyboard.press("Control+v");
        const events = value.length === 6 ? `input otp-complete:${value}` : value === "" ? "" : "input";
        expect(await ask('[$("a").value, take()]'), text).toEqual([value, events]);
      }
    });
  });

  it("edits like any field, and reports a complete code once, but not for an undo (docs/front-end.md#attributes-properties-events)", async () => {
    await field.on(form(), async (page, ask) => {
      await ask('$("a").focus()');
      await page.keyboard.type("12a345");
      expect(await ask('[$("a").value, $("a").validity.valid, take()]')).toEqual(["12345", false, "input input input input input"]);
      await page.keyboard.type("67");
      expect(await ask('[$("a").value, $("a").validity.valid, take()]')).toEqual(["123456", true, "input otp-complete:123456"]);
      await page.keyboard.press("Backspace");
      await page.keyboard.press("Control+z");
      expect(await ask('[$("a").value, take()]')).toEqual(["123456", "input input"]);
      await page.keyboard.press("Control+a");
      await page.keyboard.press("Control+x");
      expect(await ask('navigator.clipboard.readText().then((cut) => [$("a").value, cut])')).toEqual(["", "123456"]);
      await ask('take(); $("a").value = "Your code is 654 321"; $("a").length = 4; $("a").length = 6');
      expect(await ask('[$("a").value, take()]'), "a script fires nothing").toEqual(["6543", ""]);
    });
  });

  it("takes part in its form: required, reset, disabled, another form, a move (docs/front-end.md#attributes-properties-events)", async () => {
    const body = `<form id="f"><fieldset id="s" disabled><otp-input id="a" name="code" required value="12"></otp-input></fieldset></form><form id="g"></form>
      <otp-input id="c" name="other" form="g"></otp-input>`;
    await field.on(body, async (_, ask) => {
      const fields = (id: string) => ask(`[...new FormData($("${id}"))].join(";")`);
      expect(await ask('[$("a").matches(":disabled"), $("a").willValidate, $("f").checkValidity()]')).toEqual([true, false, true]);
      expect(await fields("f")).toBe("");
      await ask('$("s").disabled = false');
      expect([await fields("f"), await ask('$("f").checkValidity()')]).toEqual(["code,12", false]);
      await ask('$("a").value = "123456"; $("c").value = "7"');
      expect([await fields("f"), await ask('$("f").checkValidity()'), await fields("g")]).toEqual(["code,123456", true, "other,7"]);
      await ask('$("g").append($("a"))');
      expect([await fields("f"), await fields("g"), await ask('$("a").form.id')]).toEqual(["", "code,123456;other,7", "g"]);
      await ask('$("g").reset()');
      expect(await fields("g")).toBe("code,12;other,");
    });
  });

  it("is sent empty if nothing was entered, like any field (docs/front-end.md#attributes-properties-events)", async () => {
    await field.on('<form id="f"><otp-input id="a" name="code"></otp-input><input name="plain"></form>', async (_, ask) => {
      expect(await ask('String(new URLSearchParams(new FormData($("f"))))')).toBe("code=&plain=");
    });
  });

  it("does not submit a code again on Enter after the last digit, even once it is verified (docs/front-end.md#attributes-properties-events)", async () => {
    for (const status of ["", "invalid", "valid"])
      await field.on(form(), async (page, ask) => {
        await ask(`${autoSubmit}; document.addEventListener("submit", () => { if ("${status}") $("a").answer = { status: "${status}" } })`);
        await page.keyboard.type("123456");
        await page.keyboard.press("Enter");
        expect((await ask("take()")) as string, status).toMatch(/^(?!.*submit.*submit)/);
      });
  });

  it("does not submit on Enter while the button is disabled, like any field (docs/front-end.md#the-code-otp-input)", async () => {
    await field.on(form(" disabled"), async (page, ask) => {
      await ask('$("a").focus()');
      await page.keyboard.type("123456");
      await page.keyboard.press("Enter");
      expect(await ask("take()")).not.toContain("submit");
    });
  });

  it("submits on Enter with the form's button, its name and its formaction, like any field (docs/front-end.md#the-code-otp-input)", async () => {
    await field.on(form(' name="step" value="check" formaction="/code"'), async (page, ask) => {
      await ask('$("a").focus()');
      await page.keyboard.type("123456");
      await page.keyboard.press("Enter");
      expect(await ask("take()")).toContain("submit:code=123456&step=check/code");
    });
  });

  it("fires change before the submit on Enter, like any field (docs/front-end.md#attributes-properties-events)", async () => {
    await field.on(`${form()}<form id="g"><input id="i" name="code"><button>Check</button></form>`, async (page, ask) => {
      const order: unknown[] = [];
      for (const id of ["i", "a"]) {
        await ask(`$("${id}").focus()`);
        await page.keyboard.type("123456");
        await ask("take()");
        await page.keyboard.press("Enter");
        order.push(await ask("take()"));
      }
      expect(order).toEqual(["change submit:code=123456", "change submit:code=123456"]);
    });
  });

  it("fires one input event for each key, for listeners of the page (docs/front-end.md#attributes-properties-events)", async () => {
    await field.on(form(), async (page, ask) => {
      await ask('window.caught = 0; document.addEventListener("input", () => { caught++ }); $("a").focus()');
      await page.keyboard.type("1");
      expect(await ask("[take(), caught]")).toEqual(["input", 1]);
    });
  });

  it("keeps its state when it is moved, re-added or upgraded late, and a clone is independent (docs/front-end.md#attributes-properties-events)", async () => {
    await field.on(
      '<form id="f"><otp-input id="a" name="code" label="Code" length="4"></otp-input></form><div id="d"></div>',
      async (page, ask) => {
        await ask('$("a").value = "12"; $("a").answer = { status: "invalid", remaining_checks: 2 }');
        await ask(`import("/script.js").then(() => { const copy = $("a").cloneNode(true); copy.id = "c"; document.body.append(copy) })`);
        await expect.poll(() => ask('shown("a")')).toBe("That code is not right. 2 tries left");
        expect(await ask('[$("a").value, $("a").shadowRoot.querySelectorAll(".box").length]')).toEqual(["12", 4]);
        await ask('const it = $("a"); for (let i = 0; i < 50; i++) { $("d").append(it); $("f").append(it) } take(); it.value = ""; it.focus()');
        await page.keyboard.type("1234");
        await ask('$("c").focus()');
        await page.keyboard.type("9876");
        const complete = (code: string) => `input input input input otp-complete:${code}`;
        expect(await ask('[$("a").value, $("c").value, take()]')).toEqual(["1234", "9876", `${complete("1234")} change ${complete("9876")}`]);
      },
      { late: true },
    );
  });

  it("works in a shadow tree and follows the languages around it (docs/front-end.md#words)", async () => {
    await field.on('<div id="h"></div><otp-input id="a"></otp-input>', async (page, ask) => {
      await ask(`$("h").attachShadow({ mode: "open" }).append(Object.assign(document.createElement("form"), { lang: "fr" }));
        window.deep = document.createElement("otp-input"); deep.name = "code"; $("h").shadowRoot.firstChild.append(deep); deep.status = "invalid"; deep.focus()`);
      await page.keyboard.type("123456");
      expect(await ask('[take().split(" ").at(-1), new FormData(deep.form).get("code")]')).toEqual(["otp-complete:123456", "123456"]);
      await expect.poll(() => ask('deep.shadowRoot.querySelector(".words").textContent')).toBe("Ce code est incorrect.");
      await ask('$("a").status = "invalid"; document.documentElement.lang = "de"; document.documentElement.dir = "rtl"');
      await expect.poll(() => ask('shown("a")')).toBe("Dieser Code ist nicht richtig.");
      expect(await ask('[getComputedStyle($("a").shadowRoot.querySelector(".root")).direction, getComputedStyle(inner("a")).direction]')).toEqual([
        "rtl",
        "ltr",
      ]);
    });
  });

  it("has one name for screen readers, and announces a repeated status again (docs/front-end.md#accessibility)", async () => {
    const body = `<label for="a">Outer</label><otp-input id="a"></otp-input><label>Around <otp-input></otp-input></label><span id="t">By id</span>
      <otp-input aria-labelledby="t"></otp-input><otp-input aria-label="By aria" aria-describedby="t"></otp-input><otp-input label="Own"></otp-input><otp-input></otp-input>`;
    await field.on(body, async (page, ask) => {
      const names = ["Outer", "Around", "By id", "By aria", "Own", "Verification code"];
      for (const name of names) expect(await page.getByRole("textbox", { name, exact: true }).count(), name).toBe(1);
      await ask(`window.heard = []; const live = $("a").shadowRoot.querySelector("[role=status]");
        new MutationObserver(() => heard.push(live.textContent.trim())).observe(live, { childList: true, subtree: true, characterData: true });`);
      const invalid = '$("a").answer = { status: "invalid", remaining_checks: 2 }';
      for (const count of [1, 2]) {
        await ask(invalid);
        await expect.poll(() => ask("heard.length")).toBe(count);
      }
      expect(await ask("[...new Set(heard)].join()")).toBe("That code is not right. 2 tries left");
      expect(await ask('inner("a").getAttribute("aria-invalid")')).toBe("true");
    });
  });

  it("fills the field that last had focus from the message (docs/front-end.md#autofill)", async () => {
    // As in Chrome, a new request ends the one before.
    const before = `window.OTPCredential = class {}; window.asked = [];
      const get = () => new Promise((give, end) => { asked.at(-1)?.end(new DOMException("", "AbortError")); asked.push({ give, end }); });
      Object.defineProperty(navigator, "credentials", { value: { get } });`;
    await field.on(
      '<otp-input id="a"></otp-input><otp-input id="c"></otp-input>',
      async (_, ask) => {
        await ask('$("c").focus(); $("a").focus()');
        await expect.poll(() => ask("asked.length"), { timeout: 5_000 }).toBe(3);
        await ask('asked.at(-1).give({ code: "112233" })');
        await expect.poll(() => ask('[$("a").value, $("c").value]')).toEqual(["112233", ""]);
      },
      { before },
    );
  });
});
