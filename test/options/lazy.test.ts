import { describe, expect, it, vi } from "vitest";
import { expressHandlers } from "../../adapters/http/express.js";
import { fetchHandler } from "../../adapters/http/fetch.js";
import { consoleSender } from "../../adapters/sms/console.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier, lazyVerifier, type VerifierError, type VerifierOptions } from "../../src/index.js";

const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const key = "a key of the tests that is long enough to be one";
const options = (): VerifierOptions => ({
  store: memoryStore({ name: crypto.randomUUID() }),
  sender: consoleSender({ write: () => undefined }),
  secret: "a secret of the tests, long enough to be one",
  countries: ["FR"],
  customers: [{ customer_uuid, keys: [key] }],
  callbacks: { worker: false },
});

const lookup = () => new Request("http://localhost/v1/lookup/+33612345678", { headers: { "x-api-key": key, "customer-uuid": customer_uuid } });

describe("lazyVerifier: built at first use", () => {
  it("it is not built by importing, mounting, copying, printing or closing it", async () => {
    const make = vi.fn(options);
    const verifier = lazyVerifier(make);
    fetchHandler([verifier, verifier.receipts, verifier.metricsHandler]);
    expressHandlers(verifier);
    JSON.stringify({ ...verifier });
    await verifier.close();
    expect(make).not.toHaveBeenCalled();
  });

  it("it is built once, whatever is called first, and close() closes it", async () => {
    const close = vi.fn(async () => undefined);
    const make = vi.fn(() => ({ ...options(), sender: { ...consoleSender(), close } }));
    const verifier = lazyVerifier(make);
    const handler = fetchHandler([verifier, verifier.receipts, verifier.metricsHandler]);
    expect((await handler(lookup())).status).toBe(200);
    expect(await verifier.createAuthentication({ customer_uuid, phone_number: "0" }).catch((error: VerifierError) => error.code)).toBe("invalid_phone_number");
    expect(verifier.metrics()).toMatch(/phoneproof/);
    expect((await handler(new Request("http://localhost/metrics"))).status).toBe(200);
    expect((await handler(new Request("http://localhost/receipts/none", { method: "POST" }))).status).toBe(404);
    await expect(verifier.customers.list()).rejects.toThrow(/customers/);
    await verifier.close();
    expect([make.mock.calls.length, close.mock.calls.length]).toEqual([1, 1]);
  });

  it("it has every method and handler of a verifier, which pass on their arguments", async () => {
    const whole = createVerifier(options());
    const lazy = lazyVerifier(options);
    // Whether it can be mounted is known once it is built.
    expect(Object.keys(lazy).sort()).toEqual([...Object.keys(whole), "unmountable"].sort());
    expect(await lazy.deadLetters({ limit: 1 })).toEqual([]);
    expect(await lazy.webhookSecrets(customer_uuid)).toEqual(await whole.webhookSecrets(customer_uuid));
  });

  it("without customers it cannot be mounted once it is built", async () => {
    const verifier = lazyVerifier(() => ({ ...options(), customers: undefined }));
    expect(verifier.http.unmountable).toBeUndefined();
    expect((await verifier.ping()).ok).toBe(true);
    expect(() => fetchHandler(verifier)).toThrow(/customers/);
    expect(() => fetchHandler(verifier.http)).toThrow(/customers/);
  });

  it("options that throw or are invalid make each call that needs them reject, until they work", async () => {
    let attempts = 0;
    const verifier = lazyVerifier(() => {
      if (++attempts === 1) throw new Error("PHONEPROOF_SECRET is not set");
      return attempts === 2 ? { ...options(), secret: "" } : options();
    });
    await expect(verifier.flush()).rejects.toThrow("PHONEPROOF_SECRET is not set");
    await expect(verifier.flush()).rejects.toThrow(/secret must have at least 32 characters/);
    await expect(verifier.flush()).resolves.toMatchObject({});
    expect(attempts).toBe(3);
  });

  it("calls of customers reject too if the options throw, and pass on their arguments otherwise", async () => {
    const faulty = lazyVerifier(() => {
      throw new Error("PHONEPROOF_SECRET is not set");
    });
    await expect(faulty.customers.list()).rejects.toThrow("PHONEPROOF_SECRET is not set");
    await expect(faulty.customers.keys.list({ customer_uuid })).rejects.toThrow("PHONEPROOF_SECRET is not set");

    const { customers } = lazyVerifier(() => ({ ...options(), customers: "store" }));
    expect(Object.keys(customers)).toEqual(Object.keys(createVerifier(options()).customers));
    await customers.create({ customer_uuid });
    const { key_id } = await customers.keys.issue({ customer_uuid });
    expect(await customers.keys.list({ customer_uuid })).toMatchObject([{ key_id }]);
  });

  it("ping and diagnose never reject: they report why it cannot be built (docs/contract.md#ping)", async () => {
    const verifier = lazyVerifier(() => ({ ...options(), secret: "short" }));
    const reason = expect.stringMatching(/secret must have at least 32 characters/);
    expect(await verifier.ping()).toEqual({ ok: false, store: { settings: {}, missing: [], fault: reason }, callbacks: { waiting: 0 } });
    expect(await verifier.diagnose()).toEqual([expect.objectContaining({ level: "fault", about: "configuration", message: reason })]);
  });

  it("a request gives 500 in our format if it cannot be built, and the log has the reason", async () => {
    const error = vi.spyOn(console, "error").mockReturnValue();
    const handler = fetchHandler(lazyVerifier(() => ({ ...options(), secret: "short" })));
    const answer = await handler(lookup());
    expect([answer.status, await answer.json()]).toEqual([500, expect.objectContaining({ code: "internal_server_error" })]);
    const err = expect.stringMatching(/secret must have at least 32 characters/);
    expect(error).toHaveBeenCalledWith("phoneproof: a request failed unexpectedly", { err });
    error.mockRestore();
  });

  it("a request to /v1 gives 500 if it turns out to have no customers, and the log has the reason", async () => {
    const error = vi.spyOn(console, "error").mockReturnValue();
    const { customers: _, ...without } = options();
    expect((await fetchHandler(lazyVerifier(() => without))(lookup())).status).toBe(500);
    expect(error).toHaveBeenCalledWith(expect.any(String), { err: expect.stringMatching(/customers/) });
    error.mockRestore();
  });

  it.each([[undefined], [options()], [Promise.resolve(options())]])("an argument that is not a function is rejected: %s", (given) => {
    expect(() => lazyVerifier(given as never)).toThrow(/lazyVerifier takes a function that returns the options/);
  });
});
