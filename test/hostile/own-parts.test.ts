import { createTestVerifier } from "phoneproof/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { codeOf, number, own, revoked, senderOf, storeBut } from "./own-parts-kit.js";

const closing = <T extends { readonly verifier: { close(): Promise<void> } }>(made: T): T => {
  onTestFinished(() => made.verifier.close().catch(() => undefined));
  return made;
};
const unknown = { authentication_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f" };

describe("a host's store", () => {
  test("that finds null, as most drivers do, gets no error of our insides (docs/contract.md#values-and-faults)", async () => {
    const { verifier } = closing(own({ store: storeBut({ find: async () => null }) }));
    expect(["invalid_auth_uuid", "unavailable"]).toContain(await codeOf(() => verifier.check({ ...unknown, check_code: "000000" })));
    expect(["invalid_auth_uuid", "unavailable"]).toContain(await codeOf(() => verifier.retry(unknown)));
  });

  test.each(["undefined", "null"])("whose commit returns %s fails closed with 503, and the log says why (docs/contract.md#fail-closed)", async (what) => {
    const { verifier, codes, lines } = closing(own({ store: storeBut({ commit: async () => (what === "null" ? null : undefined) }) }));
    expect(await codeOf(() => verifier.createAuthentication({ phone_number: number }))).toBe("unavailable");
    expect(codes).toEqual([]);
    expect(lines.join("\n")).toContain("store failed");
  });

  test("that throws a revoked proxy does not make ping reject (docs/contract.md#ping)", async () => {
    const { verifier } = closing(own({ store: storeBut({ get: () => Promise.reject(revoked()) }) }));
    expect(await verifier.ping()).toMatchObject({ ok: false });
  });
});

describe("a host's sender", () => {
  test("that throws a revoked proxy after the message is out: the outcome is unknown (docs/contract.md#send-outcome)", async () => {
    const codes: string[] = [];
    const sender = senderOf(async (code) => {
      codes.push(code);
      throw revoked();
    });
    const { verifier } = closing(own({ sender }));
    const { authentication_uuid, status } = await verifier.createAuthentication({ phone_number: number });
    expect(status).toBe("pending");
    expect(await verifier.check({ authentication_uuid, check_code: codes[0] ?? "" })).toMatchObject({ status: "valid" });
  });

  test("that throws a carrier's page of a megabyte blocks the process no longer than other parts do (docs/contract.md#answer-time)", async () => {
    const page = "a1b2".repeat(250_000);
    const timed = async (call: () => Promise<unknown>) => {
      const began = performance.now();
      await call();
      return performance.now() - began;
    };
    const fails = async () => {
      throw new Error(page);
    };
    const lookup = closing(own({ lookup: { lookup: fails, price: 0 } })).verifier;
    const { verifier } = closing(own({ sender: { send: fails } }));
    await lookup.lookup({ phone_number: "+33612345679" });
    const usual = await timed(() => lookup.lookup({ phone_number: number }));
    expect(await timed(() => verifier.createAuthentication({ phone_number: number }))).toBeLessThan(usual + 500);
  });

  test("that names a route of 100,000 characters has its acceptance recorded and posted (docs/contract.md#callback-stored)", async () => {
    const verifier = createTestVerifier({ sender: senderOf(async () => ({ outcome: "accepted", route: "r".repeat(100_000) })) });
    onTestFinished(() => verifier.close());
    await verifier.verifier.createAuthentication({ phone_number: number, callback_url: "https://example.com/hook" });
    await verifier.flush();
    expect(verifier.callbacks.map(({ event }) => event.data.status)).toEqual(["submitted"]);
  });
});

test("a challenge that throws a revoked proxy: the spam rules apply (docs/contract.md#challenge)", async () => {
  const { verifier } = closing(own({ challenge: { verify: () => Promise.reject(revoked()) } }));
  expect(await verifier.createAuthentication({ phone_number: number, proof: "a-proof" })).toMatchObject({ status: "pending" });
});

describe("a host's clock", () => {
  const after = (ms: number, run: () => void) => {
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  };

  test("whose now returns no number is an error, not a pending without a message (docs/contract.md#stored-first)", async () => {
    const now = () => new Date().toISOString() as unknown as number;
    const answer = await codeOf(async () => {
      const { verifier, codes } = closing(own({ clock: { now, after } }));
      const { status } = await verifier.createAuthentication({ phone_number: number });
      return { status, messages: codes.length };
    });
    expect(answer).not.toContain("no error");
  });

  test("whose after returns a timer instead of a function is reported, not a failure of the store (docs/contract.md#undefined-options)", async () => {
    const wrong = (ms: number, run: () => void) => setTimeout(run, ms).unref() as unknown as () => void;
    const reported: string[] = [];
    try {
      const { verifier, lines } = closing(own({ clock: { now: Date.now, after: wrong } }));
      await codeOf(() => verifier.createAuthentication({ phone_number: number }));
      reported.push(...lines);
    } catch (error) {
      reported.push((error as Error).message);
    }
    expect(reported.join("\n")).toContain("clock.after");
  });
});
