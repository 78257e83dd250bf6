import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent, createServer, request as httpRequest } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { nodeHandler } from "../../adapters/http/node.js";
import { lazyVerifier } from "../../src/index.js";
import { freePort } from "../support/ports.js";
import { numberOf, setUp } from "../support/verifier.js";
import { apiKey as appKey, bundled, run, shown } from "./apps-kit.js";
import { apiKey, call, customer, healthOf, numberOf as numberAt, ordinary, place, serve, start, until, wire } from "./command-kit.js";

const root = join(import.meta.dirname, "../..");
const text = (path: string) => readFileSync(join(root, path), "utf8");
const memory = ["./verifier.js", "--data", "memory"];

describe("stopping a server", () => {
  it("ends even if a client keeps its connection busy (docs/operations.md#deploy, server.ts)", async () => {
    const files = {
      "required.ts": shown("install.md", "required.ts"),
      "service.ts": shown("install.md", "service.ts"),
      "server.ts": shown("operations.md", "server.ts"),
    };
    const program = await run(["--input-type=module", "--eval", await bundled("server.ts", files)]);
    onTestFinished(() => program.end());
    const body = JSON.stringify({ customer_uuid: customer, phone_number: "+33612345678" });
    const socket = connect(Number(new URL(program.base).port), "127.0.0.1").on("error", () => {});
    onTestFinished(() => void socket.destroy());
    socket.write(`POST /v1/authentication HTTP/1.1\r\nhost: a\r\nx-api-key: ${appKey}\r\nexpect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n`);
    let got = "";
    // As a connection pool does: the next request follows the response.
    socket.setEncoding("utf8").on("data", (part: string) => {
      got += part;
      if (part.includes("HTTP/1.1 200") && !/connection: close/i.test(got)) setTimeout(() => socket.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n"), 100);
    });
    await until(() => got.includes("100 Continue"));
    program.process.kill("SIGTERM");
    await until(() =>
      fetch(program.base).then(
        () => false,
        () => true,
      ),
    );
    socket.write(body);
    await until(() => program.process.exitCode !== null, 8_000);
    expect(program.process.exitCode).toBe(0);
  });

  it("ends within --grace even if no one reads its log (docs/serve.md#how-it-stops)", async () => {
    const server = await serve([...memory, "--grace", "2"], { cwd: place({ "verifier.js": ordinary }) });
    server.process.stdout?.pause();
    // More lines than the pipe and its reader can buffer.
    for (let left = 2_500; left > 0; left -= 50)
      expect(await Promise.all(Array.from({ length: 50 }, () => healthOf(server)))).toEqual(Array.from({ length: 50 }, () => 200));
    server.kill();
    await until(() => server.process.exitCode !== null, 6_000);
  });

  it.each(["await new Promise((resolve) => setTimeout(resolve, 600_000));", "setInterval(() => {}, 1_000); await new Promise(() => {});"])(
    "ends at once while its module still awaits: %s (docs/serve.md#how-it-stops)",
    async (code) => {
      const cwd = place({ "verifier.js": `console.error("begun"); ${code}\n${ordinary}` });
      const command = start(["serve", ...memory, "--port", "0"], { cwd });
      await until(() => command.err.includes("begun"));
      command.kill();
      await command.end;
      expect([command.ended, command.out]).toEqual([0, ""]);
    },
  );
});

describe("a verifier", () => {
  it("can be closed before its first call, twice, concurrently and during a create, and keeps no process alive (docs/api.md#run-it)", async () => {
    const cwd = place({
      "life.js": `
        import { lazyVerifier } from "phoneproof";
        process.on("warning", ({ message }) => console.log(message));
        process.on("unhandledRejection", (error) => console.log(error));
        const all = { secret: env.PHONEPROOF_SECRET, countries: ["FR"] };
        const unused = createVerifier({ ...all, sender, store: memoryStore() });
        await Promise.all([unused.close(), unused.close()]);
        const lazy = lazyVerifier(() => ({ ...all, sender, store: memoryStore() }));
        await lazy.close();
        console.log((await lazy.createAuthentication({ phone_number: "+33612345678" })).status);
        await Promise.all([lazy.close(), lazy.close()]);
        let take;
        const asked = new Promise((resolve) => (take = resolve));
        let answer;
        const slow = { send: () => (take(), new Promise((resolve) => (answer = resolve))) };
        const busy = createVerifier({ ...all, sender: slow, store: memoryStore() });
        const created = busy.createAuthentication({ phone_number: "+33612345678" });
        await asked;
        await busy.close();
        answer({ outcome: "accepted" });
        console.log((await created).status);
        await busy.close();
        console.log((await busy.stats({ from: new Date(Date.now() - 3_600_000), to: new Date() })).sends);
        for (let index = 0; index < 100; index++) createVerifier({ ...all, sender, store: memoryStore() });
      `,
    });
    const child = spawn(process.execPath, ["life.js"], {
      cwd,
      env: { PATH: process.env["PATH"], PHONEPROOF_SECRET: apiKey },
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let out = "";
    child.stdout.on("data", (part) => (out += part));
    const [code] = await once(child, "close");
    expect([code, out]).toEqual([0, "pending\npending\n1\n"]);
  });
});

describe("the log of an outage", () => {
  it("has a single line about a webhook receiver that is down, however many callbacks are waiting (docs/watching.md#events)", async () => {
    const origin = `http://127.0.0.1:${await freePort()}`;
    const { verifier, log, create } = setUp({ callbacks: { worker: false, allowOrigins: [origin] } });
    for (let index = 0; index < 30; index++) await create({ phone_number: numberOf(index), callback_url: `${origin}/${index}` });
    expect(await verifier.flush()).toMatchObject({ failed: 30 });
    expect(log.lines.map(({ message }) => message)).toHaveLength(1);
    await verifier.close();
  });

  it("has a single line about invalid options of a lazy verifier, however many requests arrive (docs/watching.md#events, docs/contract.md#outages)", async () => {
    const told = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => told.mockRestore());
    const verifier = lazyVerifier(() => {
      throw new Error("PHONEPROOF_SECRET is not set");
    });
    const server = createServer(nodeHandler(verifier)).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close().closeAllConnections());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (let index = 0; index < 30; index++) expect((await call({ url }, "authentication")).status).toBe(500);
    expect(told.mock.calls).toHaveLength(1);
  });
});

describe("the log of serve", () => {
  it("shows 499 for a client that disconnects in the middle of its body (docs/serve.md#what-it-logs)", async () => {
    const server = await serve(memory, { cwd: place({ "verifier.js": ordinary }) });
    const head = `POST /v1/authentication HTTP/1.1\r\nhost: x\r\nx-api-key: ${apiKey}\r\ncontent-length: 100\r\n`;
    // The response to "Expect" shows that the request is being read.
    const client = wire(server, `${head}expect: 100-continue\r\n\r\n`);
    await until(() => client.got.includes("100 Continue"));
    client.socket.write("{");
    client.socket.destroy();
    await until(() => server.lines().some(({ type }) => type === "request"));
    expect(server.lines().find(({ type }) => type === "request")).toMatchObject({ route: "/v1/authentication", status: 499 });
  });
});

describe("serve", () => {
  it("without free file descriptors serves its open connections, and new ones once there is room (docs/serve.md#limits)", async () => {
    const server = await serve(memory, { cwd: place({ "verifier.js": ordinary }) });
    execFileSync("prlimit", ["--pid", String(server.process.pid), "--nofile=80:80"]);
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => kept.destroy());
    const ask = () =>
      new Promise<number>((resolve, reject) => {
        httpRequest(`${server.url}/healthz`, { agent: kept }, (response) => response.resume().on("end", () => resolve(response.statusCode ?? 0)))
          .on("error", reject)
          .end();
      });
    expect(await ask()).toBe(200);
    const idle: Socket[] = [];
    onTestFinished(() => idle.forEach((one) => void one.destroy()));
    let refused = 0;
    for (let index = 0; index < 150; index++)
      idle.push(
        connect(Number(new URL(server.url).port), "127.0.0.1")
          .on("error", () => {})
          .on("close", () => refused++),
      );
    await until(() => refused > 50);
    expect(await ask()).toBe(200);
    for (const one of idle) one.destroy();
    await until(() => refused === idle.length);
    await until(() =>
      healthOf(server).then(
        (status) => status === 200,
        () => false,
      ),
    );
    const created = await call(server, "authentication", { phone_number: numberAt(1) });
    expect([created.json["status"], server.err]).toEqual(["pending", ""]);
  });

  it("can write its data under the documented systemd unit (docs/serve.md#how-it-stops)", () => {
    const unit = /```ini\n([\s\S]*?)```/.exec(text("docs/serve.md"))?.[1] ?? "";
    // systemd.exec(5): DynamicUser= implies ProtectSystem=strict, so the working directory, where phoneproof.db goes by default, is read-only.
    expect(unit).toContain("DynamicUser=yes");
    expect(unit).toMatch(/^(StateDirectory|ReadWritePaths)=|PHONEPROOF_(STORE|DATA)/m);
  });

  it("gets each variable that its module reads from .env through compose.yaml (docs/serve.md#two-files, examples/serve)", () => {
    const read = [...text("examples/serve/verifier.js").matchAll(/(?:process\.env\.|required\(")([A-Z_]+)/g)].map(([, name = ""]) => name);
    const passed = text("examples/serve/compose.yaml");
    const shownThere = text("examples/serve/.env.example");
    expect(read.length).toBeGreaterThan(4);
    expect(read.filter((name) => !passed.includes(`${name}:`))).toEqual([]);
    expect(read.filter((name) => !shownThere.includes(`${name}=`))).toEqual([]);
  });
});
