import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { VerifierError } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { openTelemetry } from "phoneproof/otel";
import { router } from "phoneproof/router";
import { httpSender } from "phoneproof/senders/http";
import { describe, expect, it, onTestFinished } from "vitest";
import { blackHole, ending, hang, hangingStore, plainServer, program, service, slowStore, takes } from "./rough-days-kit.js";

const phone_number = "+33612345678";
const boom = (): never => {
  throw new Error("boom");
};
const texts = { default: "Your code is {code}", fr: "Votre code est {code}" };

describe("a locale function that fails", () => {
  const failing = (): { locale: () => string | undefined; fail: boolean } => {
    const self = { fail: true, locale: () => (self.fail ? boom() : undefined) };
    return self;
  };

  it.each(["throws", "returns no text"])("%s: the message is sent in another language (docs/contract.md#one-segment)", async (how) => {
    const locale = how === "throws" ? boom : ((() => 5) as unknown as () => string);
    const { verifier, sent } = service({ message: { text: texts, locale } });
    expect([await ending(verifier.createAuthentication({ phone_number })), sent.length]).toEqual(["pending", 1]);
  });

  it("at creates: what is thrown is a VerifierError, and the caps have counted nothing (docs/errors.md, docs/contract.md#caps)", async () => {
    const language = failing();
    const { verifier, sent } = service({ message: { text: texts, locale: language.locale } });
    const create = () => verifier.createAuthentication({ phone_number });
    const thrown = await create().then(
      () => undefined,
      (error: unknown) => error,
    );
    for (let tries = 0; tries < 4; tries++) await ending(create());
    language.fail = false;
    const paid = sent.length;
    expect.soft(thrown === undefined || thrown instanceof VerifierError, String(thrown)).toBe(true);
    if (paid < 5) expect(await ending(create())).toBe("pending");
  });

  it("at retries: the code that the user has stays live, and no retry is used up without a message (docs/contract.md#live-codes)", async () => {
    const language = failing();
    language.fail = false;
    const { verifier, clock, sent } = service({ message: { text: texts, locale: language.locale } });
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number });
    const [first] = sent;
    language.fail = true;
    for (let tries = 0; tries < 2; tries++) {
      clock.advance(95_000);
      await ending(verifier.retry({ authentication_uuid }));
    }
    const { left, sends } = await verifier.explain({ authentication_uuid });
    // Every message in the record was handed over, whichever way the failure is handled.
    expect.soft({ retries: left.retries, sends: sends.length }).toEqual({ retries: 5 - sent.length, sends: sent.length });
    const newest = sent.at(-1)?.code ?? first?.code ?? "";
    expect(await ending(verifier.check({ authentication_uuid, check_code: newest }))).toBe("valid");
  });

  it("deliver returns a status for every outcome, and throws only for malformed requests (docs/api.md#deliver-another-servers-codes)", async () => {
    const { verifier } = service({ message: { text: texts, locale: boom }, conversion: "reported" });
    const statuses = ["sent", "pending", "repeated", "rate_limited", "spam_detected", "no_route", "invalid", "unavailable"];
    expect(statuses).toContain(await ending(verifier.deliver({ phone_number, code: "482913" })));
  });
});

describe("the process", () => {
  const start = (options: string) => `
    import { createVerifier } from "phoneproof";
    import { memoryStore } from "phoneproof/memory";
    const down = async () => { throw new Error("the lookup server is down"); };
    const sender = { send: async () => ({ outcome: "accepted" }) };
    const logger = { info() {}, warn() {}, error() {} };
    const verifier = createVerifier({ store: memoryStore(), sender, secret: "s".repeat(40), countries: ["FR"], logger, ${options} });
    const { status } = await verifier.createAuthentication({ phone_number: "${phone_number}" });
    await new Promise((resolve) => setImmediate(resolve));
    console.log(status);
    await verifier.close();
  `;

  it("survives a cell of the caller's that rejects: it is reported, and the message is allowed (docs/contract.md#own-rules)", async () => {
    expect(await program(start("spamRules: [{ name: 'own', seed: 9, cell: down }]"))).toBe("pending");
  });
});

describe("a response", () => {
  const degraded = {
    sender: { send: hang },
    lists: { block: hang, safe: hang },
    spamRules: [{ name: "own", judge: hang }],
    ipInfo: hang,
    challenge: { verify: hang },
    lookup: { lookup: hang },
    lookupBeforeSend: true,
  };
  const request = { phone_number, ip: "192.0.2.7", device_id: "d", device_type: "WEB", proof: "p" } as const;

  it("of create comes within sendTimeout and storeTimeout, whatever hangs that fails open (docs/operations.md#deploy, Timeouts)", async () => {
    const { verifier, clock } = service(degraded);
    expect(await takes(clock, verifier.createAuthentication(request))).toBeLessThanOrEqual(7_000);
  });

  it("of /v1 comes within the ten seconds that clients are told to wait, with a slow store and a slow source of customers too (docs/serve.md#call-it)", async () => {
    const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
    const key = "k".repeat(40);
    const rig = slowStore(memoryStore());
    const source = () => rig.slowly(1_900, { customer_uuid, keys: [key] });
    const { verifier, clock } = service({ ...degraded, store: rig.store, customers: { find: source, findByKeyDigest: source } });
    rig.start(clock, 900);
    const { handle } = verifier.http;
    const body = async () => ({ kind: "parsed", value: { ...request, customer_uuid } }) as const;
    const answer = handle({ method: "POST", path: "/v1/authentication", header: (name) => ({ "x-api-key": key })[name], body });
    const took = await takes(clock, answer);
    expect((await answer).status).toBe(200);
    expect(took).toBeLessThanOrEqual(10_000);
  });

  it.each(["ping", "stats"] as const)(
    "of %s comes within storeTimeout while the store hangs (docs/contract.md#store-deadline, docs/operations.md#deploy)",
    async (name) => {
      const rig = hangingStore(memoryStore());
      const { verifier, clock } = service({ store: rig.store, statistics: { keep: 86_400 } });
      await verifier.createAuthentication({ phone_number });
      rig.hang();
      const call = name === "ping" ? verifier.ping() : verifier.stats({ from: new Date(clock.now() - 86_400_000), to: new Date(clock.now()) });
      expect(await takes(clock, call)).toBeLessThanOrEqual(2_500);
    },
  );
});

describe("a carrier without a connection", () => {
  it.each([
    ["that drops the packets of new connections", "http", blackHole],
    ["that does not speak TLS on its port", "https", plainServer],
  ])("%s: the router uses the next route, since nothing was sent (docs/operations.md#when-something-is-down)", async (_, scheme, start) => {
    const { port, stop } = await start();
    onTestFinished(stop);
    let next = 0;
    const sender = router({
      routes: [
        { name: "down", priority: 0, sender: httpSender({ url: `${scheme}://127.0.0.1:${port}/?to={to}&text={text}` }) },
        {
          name: "next",
          sender: {
            async send() {
              next++;
              return { outcome: "accepted" };
            },
          },
        },
      ],
    });
    const { verifier } = service({ sender, clock: undefined, store: memoryStore() });
    expect([await ending(verifier.createAuthentication({ phone_number })), next]).toEqual(["pending", 1]);
  });
});

describe("traces", () => {
  it("hold no code and no number of an error that a sender throws, in its name either (docs/privacy.md#what-is-stored-where-and-for-how-long)", async () => {
    const spans = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
    const said: string[] = [];
    const { verifier } = service({
      telemetry: openTelemetry({ tracer: provider.getTracer("test") }),
      sender: {
        async send({ to, code }) {
          said.push(to, code);
          throw Object.assign(new Error("failed"), { name: `Failed(${to}, ${code})` });
        },
      },
    });
    await verifier.createAuthentication({ phone_number });
    const told = JSON.stringify(spans.getFinishedSpans().map(({ name, attributes, events, status }) => ({ name, attributes, events, status })));
    expect(said.filter((one) => told.includes(one))).toEqual([]);
  });
});
