import { randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type CodeMessage, createVerifier, type SendOutcome, type VerifierOptions } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { sqliteStore } from "phoneproof/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { freePort } from "../support/ports.js";
import { receiver } from "../support/receiver.js";
import { bundled, shown } from "./apps-kit.js";
import { apiKey, call, customer, place, secret, serve, start, until } from "./command-kit.js";
import { clusterOf, endProcess, isAlive, launch, slowStore, steppedClock } from "./deployments-kit.js";

const root = resolve(import.meta.dirname, "../..");
const numberOf = (index: number) => `+3361${2_000_000 + index * 9_013}`;
const silent = { info() {}, warn() {}, error() {} };
const accepted = async (): Promise<SendOutcome> => ({ outcome: "accepted" });
const options = {
  secret: randomBytes(32).toString("base64"),
  countries: ["FR"],
  logger: silent,
  sender: { send: accepted },
} satisfies Partial<VerifierOptions>;

describe("stopping", () => {
  it("server.ts ends on SIGTERM in a worker of node:cluster too (docs/operations.md#deploy)", async () => {
    const folder = place({});
    const files = {
      "required.ts": shown("install.md", "required.ts"),
      "service.ts": shown("install.md", "service.ts"),
      "server.ts": shown("operations.md", "server.ts"),
    };
    writeFileSync(join(folder, "server.mjs"), await bundled("server.ts", files));
    writeFileSync(join(folder, "cluster.mjs"), clusterOf("./server.mjs"));
    const main = launch(process.execPath, ["cluster.mjs"], folder, {
      PATH: process.env["PATH"],
      PORT: String(await freePort()),
      PHONEPROOF_SECRET: secret,
      PHONEPROOF_API_KEY: apiKey,
    });
    onTestFinished(() => endProcess(main.process.pid));
    await until(() => main.text().includes("up ") || main.process.exitCode !== null);
    const pids = (/up (.*)/.exec(main.text())?.[1] ?? "").split(" ").map(Number);
    onTestFinished(() => pids.forEach(endProcess));
    expect(pids.length, main.text()).toBe(2);
    for (const pid of pids) process.kill(pid, "SIGTERM");
    await until(() => main.text().match(/ended/g)?.length === 2, 2_000);
    expect(main.text().match(/ended \d+ 0/g)?.length).toBe(2);
  });

  it("`npm start` of examples/serve passes SIGTERM on to the service (docs/serve.md#how-it-stops)", async () => {
    const folder = place({ "verifier.js": "export const verifier = ({ store }) => createVerifier({ ...options, store });" });
    copyFileSync(join(root, "examples/serve/package.json"), join(folder, "package.json"));
    mkdirSync(join(folder, "node_modules/.bin"));
    symlinkSync(join(root, "dist/dev.js"), join(folder, "node_modules/.bin/phoneproof"));
    const npm = launch("npm", ["start"], folder, {
      PATH: process.env["PATH"],
      HOME: folder,
      PORT: String(await freePort()),
      PHONEPROOF_DATA: "memory",
      PHONEPROOF_SECRET: secret,
      PHONEPROOF_API_KEY: apiKey,
    });
    onTestFinished(() => endProcess(npm.process.pid));
    await until(() => npm.text().includes('"listening"') || npm.process.exitCode !== null);
    const pid = Number(/"pid":(\d+)/.exec(npm.text())?.[1]);
    onTestFinished(() => endProcess(pid));
    expect(pid, npm.text()).toBeGreaterThan(0);
    npm.process.kill("SIGTERM");
    await until(() => npm.process.exitCode !== null || npm.process.signalCode !== null);
    await until(() => !isAlive(pid), 2_000);
    expect(npm.text()).toContain('"stopped"');
  });

  it("close() waits for everything that is stored in the background, and then uses the client no more (docs/operations.md#deploy)", async () => {
    const inner = memoryStore();
    const { store, late, end } = slowStore(inner, 60);
    const verifier = createVerifier({ ...options, store, customers: "store" });
    const { customer_uuid } = await verifier.customers.create({ name: "ACME" });
    const { key } = await verifier.customers.keys.issue({ customer_uuid });
    for (let index = 0; index < 6; index++) await verifier.createAuthentication({ customer_uuid, phone_number: numberOf(0) });
    await expect(verifier.createAuthentication({ customer_uuid, phone_number: "+14155552671" })).rejects.toMatchObject({ code: "unsupported_region" });
    await verifier.customerOf(key);
    await verifier.close();
    end();
    const next = createVerifier({ ...options, store: inner, customers: "store", callbacks: { worker: false } });
    onTestFinished(() => next.close());
    const { sends, refused } = await next.stats({ customer_uuid, from: new Date(Date.now() - 3_600_000), to: new Date() });
    expect({
      late,
      history: (await next.history({ customer_uuid, phone_number: numberOf(0) })).map(({ status }) => status),
      refusals: (await next.refusals({ customer_uuid, phone_number: "+14155552671" })).length,
      used: (await next.customers.keys.list({ customer_uuid }))[0]?.last_used_on?.length,
      stats: { sends, refused },
    }).toEqual({ late: [], history: ["rate_limited", ...Array(5).fill("pending")], refusals: 1, used: 10, stats: { sends: 5, refused: 1 } });
  });

  it("a worker that is stopped completes the callback it is posting, and no other posts it again (docs/callbacks.md#who-delivers)", async () => {
    const target = await receiver();
    const text =
      "export const verifier = ({ store }) => createVerifier({ ...options, store, callbacks: { ...options.callbacks, worker: env.WORKER === 'yes' } });";
    const cwd = place({ "verifier.js": text });
    const env = { ORIGIN: target.origin, PHONEPROOF_DATA: join(cwd, "data.db") };
    onTestFinished(() => target.close());
    let answer = () => {};
    target.answer = (_, response) => void (answer = () => void response.writeHead(204).end());
    const worker = start(["worker", "./verifier.js", "--interval", "1"], { cwd, env: { ...env, WORKER: "yes" } });
    const server = await serve(["./verifier.js"], { cwd, env });
    expect((await call(server, "authentication", { phone_number: numberOf(0), callback_url: `${target.origin}/` })).status).toBe(200);
    await until(() => target.received.length === 1);
    worker.kill();
    await until(() => worker.err.includes("stopping"));
    answer();
    expect(await worker.end).toBe(0);
    const next = createVerifier({
      ...options,
      secret,
      store: sqliteStore({ file: env.PHONEPROOF_DATA }),
      customers: [{ customer_uuid: customer, keys: [apiKey] }],
      callbacks: { worker: false, allowOrigins: [target.origin] },
    });
    onTestFinished(() => next.close());
    expect(await next.flush()).toEqual({ delivered: 0, failed: 0, dead: 0 });
    expect(target.received.length).toBe(1);
  });
});

describe("a system clock that is set back an hour", () => {
  it("keeps no revoked key in use, and no outage beyond its end (docs/contract.md#key-revocation, docs/contract.md#outages)", async () => {
    const clock = steppedClock();
    const store = memoryStore({ now: () => clock.now() });
    const sent: CodeMessage[] = [];
    let works = false;
    const verifier = createVerifier({
      ...options,
      store,
      clock,
      customers: "store",
      sender: {
        async send(message) {
          sent.push(message);
          if (!works) throw new Error("no carrier");
          return { outcome: "accepted" };
        },
      },
    });
    onTestFinished(() => verifier.close());
    const other = createVerifier({ ...options, store, clock, customers: "store", callbacks: { worker: false } });
    onTestFinished(() => other.close());
    const { customer_uuid } = await verifier.customers.create({ name: "ACME" });
    const { key, key_id } = await verifier.customers.keys.issue({ customer_uuid });
    expect(await verifier.customerOf(key)).toBe(customer_uuid);
    const { authentication_uuid } = await verifier.createAuthentication({ customer_uuid, phone_number: numberOf(0) });
    clock.back(3_600_000);
    await other.customers.keys.revoke({ customer_uuid, key_id });
    clock.pass(2_000);
    await expect(verifier.customerOf(key)).rejects.toMatchObject({ code: "forbidden" });
    works = true;
    await verifier.createAuthentication({ customer_uuid, phone_number: numberOf(1) });
    clock.pass(11_000);
    expect(verifier.metrics()).toMatch(/phoneproof_outage\{part="sender"\} 0/);
    expect((await verifier.check({ customer_uuid, authentication_uuid, check_code: sent[0]?.code ?? "" })).status).toBe("valid");
  });
});
