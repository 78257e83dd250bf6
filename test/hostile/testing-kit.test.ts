import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { verifyWebhook } from "../../clients/webhooks.js";
import { mapStore } from "../../examples/map-store.js";
import type { Change, Claim, CodeMessage, SendContext, SendOutcome, Store } from "../../src/index.js";
import { createTestVerifier, fixedClock, type SenderBench, senderContract, storeContract } from "../../src/testing/index.js";

const root = join(import.meta.dirname, "../..");
const phone_number = "+33612345678";

/** The first rule that a store breaks. */
async function brokenBy(open: () => Store): Promise<string | undefined> {
  for (const { name, run } of storeContract({ racers: 5 })) {
    try {
      await run({ store: open() });
    } catch (error) {
      expect((error as Error).message, name).not.toBe("");
      return name;
    }
  }
  return undefined;
}

/** A correct store, with some of its methods changed. */
const but = (change: (right: Store) => Partial<Store>) => () => {
  const right = mapStore();
  return { ...right, ...change(right) };
};
const changed = (change: (given: Change) => Change | Promise<Change>) => but(({ commit }) => ({ commit: async (given) => commit(await change(given)) }));
const claimsOf = (given: Change, change: (claim: Claim) => Claim | undefined): Change => ({
  ...given,
  claims: (given.claims ?? []).flatMap((claim) => change(claim) ?? []),
});
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A correct store, except that it respells the names of windows, sums, counters or values. */
const named = (what: "windows" | "sums" | "counters" | "values", spell: (name: string) => string) =>
  but((right) => {
    const as = (kind: typeof what) => (kind === what ? spell : (name: string) => name);
    const sum = <T extends { readonly sum: string }>(parts: T): T => ({ ...parts, sum: as("sums")(parts.sum) });
    const claim = (one: Claim): Claim => ("sum" in one ? sum(one) : { ...one, window: as("windows")(one.window) });
    return {
      commit: ({ claims = [], asks = [], revoke, ...rest }) =>
        right.commit({ ...rest, claims: claims.map(claim), asks: asks.map(sum), ...(revoke && { revoke: { ...revoke, claims: revoke.claims.map(claim) } }) }),
      members: (window, limit) => right.members(as("windows")(window), limit),
      tally: (adds, reads) =>
        right.tally(
          adds.map((add) => ({ ...add, counter: as("counters")(add.counter) })),
          reads.map(as("counters")),
        ),
      get: (key) => right.get(as("values")(key)),
      put: (key, value, expiry) => right.put(as("values")(key), value, expiry),
      delete: ({ windows = [], sums = [], values = [], ...rest }) =>
        right.delete({ ...rest, windows: windows.map(as("windows")), sums: sums.map(sum), values: values.map(as("values")) }),
    };
  });

describe("storeContract", () => {
  it("passes a correct store (docs/testing.md#your-own-store-sender-or-lookup)", async () => {
    expect(await brokenBy(mapStore)).toBeUndefined();
  });

  it.each<[string, () => Store]>([
    ["finds nothing", but(() => ({ find: async () => undefined }))],
    ["finds null for nothing", but(({ find }) => ({ find: async (...of) => (await find(...of)) ?? (null as never) }))],
    ["returns nothing from a commit", but(({ commit }) => ({ commit: async (given) => void (await commit(given)) as never }))],
    ["does not look at the expected token", changed(async (given) => given && { ...given, expected: given.record?.tokens[1] ?? null })],
    ["grants one over the limit", changed((given) => claimsOf(given, (claim) => (claim.limit === undefined ? claim : { ...claim, limit: claim.limit + 1 })))],
    ["never refuses", changed((given) => claimsOf(given, ({ limit: _, ...claim }) => claim as Claim))],
    ["takes no claim out", changed((given) => claimsOf(given, (claim) => ("out" in claim && claim.out ? undefined : claim)))],
    ["forgets floors", changed((given) => claimsOf(given, (claim) => ("sum" in claim ? { ...claim, floor: Number.MIN_SAFE_INTEGER } : claim)))],
    ["never undoes", changed(({ revoke: _, ...given }) => given)],
    [
      "reads before it writes, in two steps",
      but(({ commit, find }) => ({
        async commit({ expected: _, ...given }) {
          const stored = given.record && (await find(given.record.customer, given.record.id));
          await tick();
          return commit({ ...given, expected: stored?.tokens[0] ?? null });
        },
      })),
    ],
    [
      "counts a claim twice if a write is repeated",
      but(({ commit }) => ({
        async commit({ record, ...given }) {
          const result = await commit({ ...given, ...(record && { record }) });
          if (result.done && record)
            await commit({ claims: (given.claims ?? []).filter((claim) => "sum" in claim).map(({ limit: _, ...claim }) => claim as Claim) });
          return result;
        },
      })),
    ],
    [
      "leases one record to two",
      but(({ lease }) => {
        let last: Awaited<ReturnType<typeof lease>> = [];
        return {
          async lease(...given) {
            const due = await lease(...given);
            return (last = due.length > 0 ? due : last);
          },
        };
      }),
    ],
    ["leases the latest first", but(({ lease }) => ({ lease: async (...given) => (await lease(...given)).reverse() }))],
    ["lists the oldest members first", but(({ members }) => ({ members: async (...of) => (await members(...of)).reverse() }))],
    ["loses adds of counters", but(({ tally }) => ({ tally: (adds, reads) => tally(adds.slice(0, 1), reads) }))],
    ["forgets values at once", but(() => ({ put: async () => {} }))],
    [
      "ends a record by the caller's clock",
      but(({ find }) => ({
        async find(...of) {
          const found = await find(...of);
          return found && found.keepUntil > Date.now() ? found : undefined;
        },
      })),
    ],
    ["deletes nothing", but(() => ({ delete: async () => {} }))],
  ])("rejects a store that %s (docs/testing.md#your-own-store-sender-or-lookup)", async (_, open) => {
    expect(await brokenBy(open)).toBeDefined();
  });

  it.each(["windows", "sums", "counters", "values"] as const)(
    "rejects a store that confuses names of %s that differ only in case, as MySQL does (docs/testing.md#your-own-store-sender-or-lookup)",
    async (what) => {
      expect(await brokenBy(named(what, (name) => name.toLowerCase()))).toBeDefined();
    },
  );
});

/** A sender with a carrier in memory, and what it does differently. */
function benchOf(different: { text?: (text: string) => string; fault?: SendOutcome; refusal?: SendOutcome; times?: number; deaf?: true; nothing?: true }) {
  return async (behaviour: string): Promise<SenderBench> => {
    const received: { to: string; text: string }[] = [];
    const send = async ({ to, text }: CodeMessage, { signal }: SendContext): Promise<SendOutcome> => {
      if (behaviour === "unreachable" || behaviour === "refuses" || behaviour === "throttles") return different.refusal ?? { outcome: "rejected" };
      if (behaviour === "fails" || behaviour === "garbles") return different.fault ?? { outcome: "unknown" };
      for (let i = 0; i < (different.times ?? 1); i++) received.push({ to, text: (different.text ?? String)(text) });
      if (behaviour === "withholds") await new Promise<void>((end) => different.deaf || signal.addEventListener("abort", () => end(), { once: true }));
      if (behaviour === "withholds" || behaviour === "cuts") return different.fault ?? { outcome: "unknown" };
      return different.nothing ? (undefined as never) : { outcome: "accepted", messageId: `m${received.length}` };
    };
    return { sender: { send }, received: () => received };
  };
}

async function brokenBySender(different: Parameters<typeof benchOf>[0]): Promise<string | undefined> {
  for (const { name, run } of senderContract({ crowd: 5, patience: 0.3 })) {
    try {
      await run({ open: benchOf(different) });
    } catch {
      return name;
    }
  }
  return undefined;
}

describe("senderContract", () => {
  it("passes a correct sender (docs/testing.md#your-own-store-sender-or-lookup)", async () => {
    expect(await brokenBySender({})).toBeUndefined();
  });

  it.each<[string, Parameters<typeof benchOf>[0]]>([
    ["returns nothing", { nothing: true }],
    ["calls a fault a rejection", { fault: { outcome: "rejected" } }],
    ["calls a fault a success", { fault: { outcome: "accepted" } }],
    ["does not know that it was rejected", { refusal: { outcome: "unknown" } }],
    ["sends twice", { times: 2 }],
    ["waits past its signal", { deaf: true }],
    ["replaces letters", { text: (text) => text.replace(/[^\x20-\x7e\n]/g, "?") }],
    ["joins lines", { text: (text) => text.replace(/\s+/g, " ") }],
    ["cuts a text at 160 characters", { text: (text) => text.slice(0, 160) }],
  ])("rejects a sender that %s (docs/testing.md#your-own-store-sender-or-lookup)", async (_, different) => {
    expect(await brokenBySender(different)).toBeDefined();
  });

  it("names an unknown behaviour (docs/testing.md#your-own-store-sender-or-lookup)", () => {
    expect(() => senderContract({ behaviours: ["acepts" as never] })).toThrow(/acepts/);
  });
});

describe("createTestVerifier", () => {
  it("shares nothing between two verifiers, and everything between two on one store (docs/testing.md#a-verifier-for-each-test)", async () => {
    const store = memoryStore();
    const [one, other, first, second] = [createTestVerifier(), createTestVerifier(), createTestVerifier({ store }), createTestVerifier({ store })];
    const { authentication_uuid } = await one.verifier.createAuthentication({ phone_number });
    await expect(other.verifier.check({ authentication_uuid, check_code: "123456" })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
    expect([other.inbox.messages, other.apiKey === one.apiKey, other.customer_uuid === one.customer_uuid]).toEqual([[], false, false]);
    const shared = await first.verifier.createAuthentication({ phone_number });
    const check_code = first.inbox.codeFor(phone_number);
    expect(await second.verifier.check({ authentication_uuid: shared.authentication_uuid, check_code })).toMatchObject({ status: "valid" });
    expect([second.apiKey, second.customer_uuid]).toEqual([first.apiKey, first.customer_uuid]);
    for (const each of [one, other, first, second]) await each.close();
    await one.close();
  });

  it("keeps no process alive when it is not closed, with a stopped or a running clock (docs/testing.md#a-verifier-for-each-test)", async () => {
    const program = `import { createTestVerifier } from "phoneproof/testing";
      for (const clock of [undefined, "running"]) {
        const { verifier } = createTestVerifier({ clock });
        await verifier.createAuthentication({ phone_number: "${phone_number}", callback_url: "https://app.example/hook" });
      }`;
    const { stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], { cwd: root, timeout: 60_000 });
    expect(stderr).toBe("");
  });

  it("throws for an invalid number instead of finding no message (the types of phoneproof/testing)", async () => {
    const { inbox, verifier, close } = createTestVerifier();
    await verifier.createAuthentication({ phone_number });
    expect(inbox.lastMessage(phone_number)?.to).toBe(phone_number);
    expect(inbox.lastMessage("+33612345679")).toBeUndefined();
    for (const wrong of ["0612345678", "somebody"]) {
      expect.soft(() => inbox.codeFor(wrong), wrong).toThrow(Error);
      expect.soft(() => inbox.lastMessage(wrong), wrong).toThrow(Error);
    }
    await close();
  });

  it("rejects the options that createVerifier rejects (docs/testing.md#a-verifier-for-each-test)", () => {
    for (const wrong of [{ codes: "424242" }, { secret: "short" }, { store: {} }, { code: "12" }, { clock: "walking" }, { sender: {} }])
      expect.soft(() => createTestVerifier(wrong as never), JSON.stringify(wrong)).toThrow(expect.objectContaining({ code: "invalid_options" }));
  });

  it("makes callbacks that a receiver can verify, and the page shows how to do so with a stopped clock (docs/testing.md#receipts-and-callbacks)", async () => {
    const test = createTestVerifier({ clock: fixedClock(Date.UTC(2026, 0, 1)) });
    await test.verifier.createAuthentication({ phone_number, callback_url: "https://app.example/hook" });
    await test.flush();
    const [{ headers, body }] = test.callbacks as [(typeof test.callbacks)[0]];
    const secret = await test.verifier.webhookSecrets();
    expect(verifyWebhook({ secret, headers, body, now: test.clock.now() }).data.status).toBe("submitted");
    await test.close();
    const [, section] = /## Receipts and callbacks\n([\s\S]*?)\n## /.exec(readFileSync(join(root, "docs/testing.md"), "utf8")) as unknown as [string, string];
    expect(section, "verifyWebhook reads the system's clock").toMatch(/\bnow: (test\.)?clock\.now\(\)/);
  });
});
