import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { usage } from "../../src/cli/command.js";
import { generateApiKey } from "../../src/index.js";
import { root } from "../package/built.js";
import { type RunningCarrier, startCarrier } from "../support/carriers/server.js";
import { twilioCarrier, twilioOptions } from "../support/carriers/twilio.js";
import { freePort } from "../support/ports.js";
import { example, layOut, readCompose, readDockerfile, words } from "./serve-folder.js";

const page = readFileSync(join(root, "docs/serve.md"), "utf8");
const block = (language: string) => new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(page)?.[1] as string;
const manifest = (folder: string) =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<"dependencies" | "devDependencies", Record<string, string>> & { version: string };

const stages = readDockerfile(readFileSync(join(example, "Dockerfile"), "utf8"));
const last = stages.at(-1) ?? [];
const of = (name: string) => last.filter((one) => one.name === name).map(({ rest }) => rest);
const env = {
  PHONEPROOF_SECRET: "c2VjcmV0IG9mIHRoZSBjb21wb3NlIHRlc3RzIG9ubHk=",
  PHONEPROOF_API_KEY: generateApiKey().key,
  TWILIO_ACCOUNT_SID: twilioOptions.accountSid,
  TWILIO_AUTH_TOKEN: twilioOptions.authToken,
  TWILIO_FROM: twilioOptions.from,
};

describe("docs/serve.md", () => {
  test("shows the module of the example unchanged", () => {
    expect(block("js")).toBe(readFileSync(join(example, "verifier.js"), "utf8"));
  });

  test("its table has the options of the command's help, with their defaults", () => {
    const [, table = ""] = /<!-- serve: .*?-->\n([\s\S]*?)<!-- \/serve -->/.exec(page) ?? [];
    const rows = [...table.matchAll(/^\| `(--[a-z-]+ [A-Z]+)` \| (.+?) \|/gm)].map(([, option, value]) => [option, value?.replaceAll("`", "")]);
    const help = /\nphoneproof serve MODULE\n([\s\S]*?)\nphoneproof worker/.exec(usage)?.[1] ?? "";
    const options = [...help.matchAll(/^ {2}(--\S+ [A-Z]+) (?:(?!\n {2}--)[\s\S])*?\(default:? (?:the environment variable )?([^:;,)]+(?:, or \d+)?)/gm)];
    expect(rows).toEqual(options.map(([, option, value]) => [option, value === "not served" ? "none" : value]));
    expect(rows).toHaveLength(7);
  });
});

describe("examples/serve", () => {
  test("depends only on the packed library of this version", () => {
    const { dependencies } = manifest(example);
    expect(dependencies).toEqual({ phoneproof: `file:phoneproof-${manifest(root).version}.tgz` });
  });

  test("Dockerfile: two stages, only production dependencies, not root, a health check, a data volume, and only existing files", () => {
    expect(stages).toHaveLength(2);
    expect(stages[0]?.find(({ name }) => name === "RUN")?.rest).toMatch(/^npm install --omit=dev /);
    expect(last.some(({ name }) => name === "RUN")).toBe(false);
    expect(of("COPY")[0]).toBe("--from=dependencies /app/node_modules ./node_modules");
    expect(of("COPY")[1]).toBe("--from=dependencies --chown=node:node /data /data");
    expect(of("VOLUME")).toEqual(["/data"]);
    expect(of("ENV")[0]).toContain(" PHONEPROOF_DATA=/data/phoneproof.db");
    for (const file of of("COPY")[2]?.split(" ").slice(0, -1) ?? []) expect(existsSync(join(example, file)), file).toBe(true);
    expect(of("USER")).toEqual(["node"]);
    expect(of("HEALTHCHECK")[0]).toMatch(/CMD \["node", /);
    expect(of("CMD")[0]).toMatch(/^\["node_modules\/\.bin\/phoneproof", "serve", /);
    expect(last.findIndex(({ name }) => name === "USER")).toBeGreaterThan(last.findLastIndex(({ name }) => name === "COPY"));
  });

  test("compose.yaml: needs its secret, publishes on loopback only, stores data in a volume, and has the variables of .env.example", () => {
    expect(() => readCompose({ ...env, PHONEPROOF_SECRET: "" })).toThrow("PHONEPROOF_SECRET: see .env.example");
    const { services, volumes } = readCompose(env);
    expect(services["verification"]).toMatchObject({ build: ".", ports: ["127.0.0.1:3000:3000"], volumes: ["data:/data"] });
    expect([Object.keys(services), Object.keys(volumes)]).toEqual([["verification"], ["data"]]);
    const asked = [...readFileSync(join(example, ".env.example"), "utf8").matchAll(/^([A-Z_]+)=$/gm)].map(([, name]) => name);
    expect(Object.keys(services["verification"]?.environment ?? {})).toEqual(asked);
  });

  test(".env.example: names what verifier.js needs, and its command generates an API key in the documented form", async () => {
    const text = readFileSync(join(example, ".env.example"), "utf8");
    const needed = [...readFileSync(join(example, "verifier.js"), "utf8").matchAll(/required\("(\w+)"\)/g)].map(([, name]) => `${name}=`);
    expect(needed.filter((line) => !text.split("\n").includes(line))).toEqual([]);
    const made = await promisify(execFile)("sh", ["-c", /node --input.*/.exec(text)?.[0] ?? ""], { cwd: root });
    expect(made.stdout).toMatch(/^pp_[0-9A-Za-z]{49}\n$/);
  });
});

describe("the container as a process, called by curl, Python and the shell", () => {
  const { services } = readCompose({ ...env, PUBLIC_URL: "https://verify.example.com" });
  let twilio: RunningCarrier;
  let laidOut: ReturnType<typeof layOut>;
  let container: NodeJS.ProcessEnv;
  let url: string;
  let stop: () => Promise<unknown>;

  beforeAll(async () => {
    twilio = await startCarrier(twilioCarrier, "accepts");
    laidOut = layOut(last);
    const image = Object.fromEntries(
      of("ENV")
        .join(" ")
        .split(" ")
        .map((pair) => pair.split("=") as [string, string]),
    );
    // As in the container, except for host names and ports, and with a stand-in for Twilio.
    const environment = services["verification"]?.environment ?? {};
    container = {
      PATH: process.env["PATH"] ?? "",
      ...image,
      ...environment,
      TWILIO_BASE_URL: twilio.url,
      PORT: String(await freePort()),
      PHONEPROOF_DATA: "store.db",
    } as unknown as NodeJS.ProcessEnv;
    const command = words(of("CMD")[0] ?? "").map((word) => ({ "0.0.0.0": "127.0.0.1", "9464": "0" })[word] ?? word);
    const child = spawn(command[0] as string, command.slice(1), { cwd: laidOut.folder, env: container, stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    stop = () => {
      child.kill("SIGTERM");
      return exited;
    };
    const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    url = JSON.parse(line).url;
    child.stdout.resume();
  });
  afterAll(async () => {
    await stop?.();
    await twilio?.close();
    laidOut?.remove();
  });

  const healthcheck = () => {
    const [program, ...args] = words(of("HEALTHCHECK")[0]?.split("CMD ")[1] ?? "");
    return promisify(execFile)(program as string, args, { env: container }).then(
      () => 0,
      ({ code }: { code: number }) => code,
    );
  };
  const codeOf = (text: string | undefined) => /\d{6}/.exec(text ?? "")?.[0] as string;

  test("the curl command of docs/serve.md sends a message through Twilio with a receipt URL; a wrong key is forbidden", async () => {
    const script = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text).find((text) => text.includes("/v1/authentication")) ?? "";
    const curl = (key: string) =>
      promisify(execFile)("sh", ["-c", script.replace(/^URL=.*$/m, `URL=${url}`)], { env: { ...container, PHONEPROOF_API_KEY: key } });
    expect(JSON.parse((await curl(env.PHONEPROOF_API_KEY)).stdout)).toMatchObject({ status: "pending" });
    expect(twilio.taken.at(-1)?.to).toBe("+33612345678");
    expect(twilio.taken.at(-1)?.receiptUrl).toMatch(/^https:\/\/verify\.example\.com\/receipts\/twilio\?/);
    expect(JSON.parse((await curl("pp_wrong")).stdout)).toMatchObject({ code: "forbidden" });
  });

  test("the Python client of docs/serve.md enters a wrong code, then the right one", async () => {
    const child = spawn("python3", ["-u", "-c", block("python"), "+447400123456"], {
      env: { ...container, PHONEPROOF_URL: url },
      stdio: ["pipe", "pipe", "inherit"],
    });
    let printed = "";
    child.stdout.on("data", (chunk) => (printed += chunk));
    const exited = once(child, "close");
    await expect.poll(() => printed).toBe("pending\ncode: ");
    const code = codeOf(twilio.taken.find(({ to }) => to === "+447400123456")?.text);
    child.stdin.write(`${code === "000000" ? "000001" : "000000"}\n`);
    await expect.poll(() => printed).toBe("pending\ncode: invalid\ncode: ");
    child.stdin.write(`${code.slice(0, 3)} ${code.slice(3)}\n`);
    expect(await exited).toEqual([0, null]);
    expect(printed).toBe("pending\ncode: invalid\ncode: valid\n");
  });

  test("the support commands of docs/serve.md and docs/no-code.md work while it runs: why, stats, unlock and erase", async () => {
    const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
    const shell = (text: string) =>
      promisify(execFile)("sh", ["-c", text], {
        cwd: laidOut.folder,
        env: { ...container, PHONEPROOF_DATA: "store.db", PHONEPROOF_CUSTOMER: customer_uuid },
      }).then(
        ({ stdout }) => ({ code: 0, printed: stdout }),
        ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, printed: stdout + stderr }),
      );
    const commands = (text: string) => [...text.matchAll(/^npx phoneproof (?:why|unlock|erase|stats) .*$/gm)].map(([line]) => line);
    const create = async () => {
      const headers = { "x-api-key": env.PHONEPROOF_API_KEY, "content-type": "application/json" };
      const body = JSON.stringify({ customer_uuid, phone_number: "+33612345678" });
      return ((await (await fetch(`${url}/v1/authentication`, { method: "POST", headers, body })).json()) as { status: string }).status;
    };

    const [whyByModule = "", stats = ""] = commands(page);
    const sent = await shell(whyByModule);
    expect(sent).toMatchObject({ code: 0, printed: expect.stringContaining("A code was sent, and the right one has not been entered yet") });
    expect(sent.printed).toContain("Message 1");
    // "those of other processes may lag by two seconds"
    await expect.poll(() => shell(stats)).toMatchObject({ code: 0, printed: expect.stringMatching(/2 messages sent, 1 verified/) });

    const statuses = [];
    while (statuses.at(-1) !== "rate_limited" && statuses.length < 10) statuses.push(await create());
    expect(statuses).toEqual([...Array(4).fill("pending"), "rate_limited"]);
    const [why = "", unlock = "", erase = "", again = ""] = commands(readFileSync(join(root, "docs/no-code.md"), "utf8"));
    expect(again).toBe(whyByModule);
    const blocked = await shell(why);
    expect(blocked).toMatchObject({ code: 0, printed: expect.stringContaining("Not sent: a limit was reached (rate_limited).") });
    expect(blocked.printed).toMatch(/Blocked by the rule perNumber 5\/600s\. .* It counted 5; the threshold is 5\. There is room again at /);

    expect(await shell(unlock)).toMatchObject({ code: 0 });
    expect(await create()).not.toBe("rate_limited");
    expect(await shell(unlock)).toMatchObject({ code: 1 });

    expect(await shell(`${erase} < /dev/null`), "it asks first").toMatchObject({ code: 1 });
    expect(await shell(`${erase} --yes`)).toMatchObject({ code: 0 });
    expect(await shell(why)).toMatchObject({ code: 0, printed: expect.stringContaining("Nothing is stored about +33") });
  });

  test("the shell of `npm start` becomes the service, so that it receives signals", async () => {
    const { scripts } = JSON.parse(readFileSync(join(laidOut.folder, "package.json"), "utf8")) as { scripts: { start: string } };
    const child = spawn("sh", ["-c", `${scripts.start} --port 0 --data memory`], {
      cwd: laidOut.folder,
      env: { ...container, PATH: `${join(laidOut.folder, "node_modules/.bin")}:${container["PATH"]}` },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    child.stdout.resume();
    process.kill(JSON.parse(line).pid, "SIGTERM");
    expect(JSON.parse(line).pid).toBe(child.pid);
    expect(await exited).toEqual([0, null]);
  });

  test("the health check exits with 0 while the service runs and 1 after it stops; the service exits with 0 and leaves its file", async () => {
    expect(await healthcheck()).toBe(0);
    expect(await stop()).toEqual([0, null]);
    expect(await healthcheck()).toBe(1);
    expect(existsSync(join(laidOut.folder, "store.db"))).toBe(true);
  });
});
