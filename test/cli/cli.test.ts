import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import manifest from "../../package.json";
import { carriers } from "../support/carriers/all.js";
import { awsCredentials } from "../support/carriers/aws.js";
import { startCarrier } from "../support/carriers/server.js";
import { twilioCarrier } from "../support/carriers/twilio.js";
import { vonageVoiceOptions } from "../support/carriers/voice.js";
import { whatsappOptions } from "../support/carriers/whatsapp.js";
import { buildCommand, type Demo, post, runInProcess, spawnCommand, spawnDemo, spawnToEnd, startDemo } from "./demo.js";

let command: Awaited<ReturnType<typeof buildCommand>>;
beforeAll(async () => {
  command = await buildCommand();
});
afterAll(() => command?.remove());

async function withDemo(args: readonly string[], run: (demo: Demo) => Promise<void>, env?: Readonly<Record<string, string>>) {
  const demo = await startDemo(args, env);
  try {
    await run(demo);
  } finally {
    expect(await demo.stop()).toBe(0);
  }
}

describe("phoneproof dev --json", () => {
  test("runs the whole life of a verification: create, wrong code, cool-down, valid, already_validated, lookup", () =>
    withDemo(["--port", "0"], async (demo) => {
      expect(demo.api_key).toMatch(/^pp_/);
      const created = await post(demo, "authentication", { phone_number: "+14155552671" });
      expect(created).toMatchObject({ http: 200, status: "pending" });
      const sms = await demo.sms();
      expect(sms).toEqual({
        type: "sms",
        to: "+14155552671",
        text: expect.stringContaining(sms.code),
        code: expect.stringMatching(/^\d{6}$/),
        authentication_uuid: created.authentication_uuid,
      });
      const { authentication_uuid } = sms;
      const wrong = sms.code === "000000" ? "000001" : "000000";
      expect(await post(demo, "check", { authentication_uuid, check_code: wrong })).toMatchObject({ http: 200, status: "invalid" });
      expect(await post(demo, "retry", { authentication_uuid })).toMatchObject({ http: 200, status: "denied", remaining_retry: 4 });
      expect(await post(demo, "check", { authentication_uuid, check_code: sms.code })).toMatchObject({ http: 200, status: "valid" });
      expect(await post(demo, "check", { authentication_uuid, check_code: sms.code })).toMatchObject({ http: 200, status: "already_validated" });
      const lookup = await fetch(`${demo.url}/v1/lookup/+33612345678`, { headers: { "x-api-key": demo.api_key, "customer-uuid": demo.customer_uuid } });
      expect(await lookup.json()).toEqual({ phone_number: "+33612345678", country_code: "FR", line_type: "Mobile" });
      expect(demo.stderr()).toContain(`${demo.url}/`);
    }));

  test("calls and callbacks are printed as lines too, with the request and its outcome", () =>
    withDemo(["--port", "0"], async (demo) => {
      const { authentication_uuid } = await post(demo, "authentication", { phone_number: "+14155552671", callback_url: `${demo.url}/dev/callbacks` });
      expect(await demo.next("call")).toEqual({
        type: "call",
        method: "POST",
        path: "/v1/authentication",
        http: 200,
        authentication_uuid,
        created_at: expect.any(String),
        expires_at: expect.any(String),
        status: "pending",
        took: expect.any(Number),
      });
      expect(await demo.next("callback")).toEqual({ type: "callback", authentication_uuid, sequence: 1, status: "submitted", outcome: "delivered" });
      await post(demo, "authentication", { phone_number: "12" });
      expect(await demo.next("call")).toMatchObject({ http: 400, code: "invalid_phone_number" });
    }));

  test("an unsigned callback is rejected", () =>
    withDemo(["--port", "0"], async (demo) => {
      const forged = await fetch(`${demo.url}/dev/callbacks`, { method: "POST", body: JSON.stringify({ type: "delivery_status", data: {} }) });
      expect(forged.status).toBe(400);
    }));

  test("the sixth message to one number in ten minutes is rate_limited", () =>
    withDemo(["--port", "0"], async (demo) => {
      const statuses: unknown[] = [];
      for (let sent = 0; sent < 6; sent++) statuses.push((await post(demo, "authentication", { phone_number: "+14155552671" })).status);
      expect(statuses).toEqual(["pending", "pending", "pending", "pending", "pending", "rate_limited"]);
    }));

  test("--cooldown sets the cool-downs and with them the number of retries", () =>
    withDemo(["--port", "0", "--cooldown", "0,60"], async (demo) => {
      const { authentication_uuid } = await post(demo, "authentication", { phone_number: "+14155552671" });
      expect(await post(demo, "retry", { authentication_uuid })).toMatchObject({ status: "approved", remaining_retry: 1 });
      expect(await post(demo, "retry", { authentication_uuid })).toMatchObject({ status: "denied", remaining_retry: 1 });
    }));

  test("--lifetime sets the seconds after which an authentication is expired_auth", () =>
    withDemo(["--port", "0", "--lifetime", "1"], async (demo) => {
      const { authentication_uuid } = await post(demo, "authentication", { phone_number: "+14155552671" });
      await expect.poll(async () => (await post(demo, "retry", { authentication_uuid })).status).toBe("expired_auth");
      expect(await post(demo, "check", { authentication_uuid, check_code: "000000" })).toMatchObject({ http: 200, status: "expired_auth" });
    }));

  test("reads customer, key and secret from the environment", () => {
    const customer_uuid = "2f0e6f5c-3b7a-4d58-9c1e-6a1b2c3d4e5f";
    const api_key = "a-key-of-at-least-thirty-two-characters";
    const env = { PHONEPROOF_DEV_CUSTOMER_UUID: customer_uuid, PHONEPROOF_DEV_API_KEY: api_key, PHONEPROOF_DEV_SECRET: "s".repeat(32) };
    return withDemo(
      ["--port", "0"],
      async (demo) => {
        expect(demo).toMatchObject({ customer_uuid, api_key });
        expect(await post(demo, "authentication", { phone_number: "+14155552671" })).toMatchObject({ http: 200, status: "pending" });
      },
      env,
    );
  });

  test("listens on 127.0.0.1 and rejects other host names, so that DNS rebinding cannot expose the codes", () =>
    withDemo(["--port", "0"], async (demo) => {
      expect(new URL(demo.url).hostname).toBe("127.0.0.1");
      const get = (host: string, path: string) =>
        new Promise<number | undefined>((resolve, reject) => {
          request(new URL(path, demo.url), { headers: { host } }, (response) => resolve(response.resume().statusCode))
            .on("error", reject)
            .end();
        });
      const { port } = new URL(demo.url);
      for (const path of ["/", "/dev/session", "/dev/events", "/v1/check"]) expect(await get(`rebound.example:${port}`, path)).toBe(403);
      for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) expect(await get(host, "/dev/session")).toBe(200);
    }));

  test.each(["SIGTERM", "SIGINT"] as const)("%s stops it at once with exit code 0, even with an open event stream", async (signal) => {
    const demo = await spawnDemo(command.path);
    const stream = await fetch(`${demo.url}/dev/events`);
    expect(stream.headers.get("content-type")).toBe("text/event-stream");
    const ended = stream.text();
    expect(await demo.stop(signal)).toBe(0);
    expect(await ended).toContain("retry:");
  });
});

/** The environment variables that each carrier's stand-in expects. */
const credentials: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  twilio: { TWILIO_ACCOUNT_SID: "AC00000000000000000000000000000001", TWILIO_AUTH_TOKEN: "twilio-auth-token", TWILIO_FROM: "+15005550006" },
  vonage: { VONAGE_API_KEY: "abcd1234", VONAGE_API_SECRET: "vonage-api-secret", VONAGE_FROM: "ACME" },
  aws: {
    AWS_ACCESS_KEY_ID: awsCredentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: awsCredentials.secretAccessKey,
    AWS_REGION: "eu-west-1",
    ...(awsCredentials.sessionToken !== undefined && { AWS_SESSION_TOKEN: awsCredentials.sessionToken }),
  },
  messagebird: { MESSAGEBIRD_ACCESS_KEY: "live_key", MESSAGEBIRD_FROM: "ACME" },
  plivo: { PLIVO_AUTH_ID: "MAXXXXXXXXXXXXXXXXXX", PLIVO_AUTH_TOKEN: "plivo-auth-token", PLIVO_FROM: "+14155550100" },
  sinch: { SINCH_SERVICE_PLAN_ID: "plan1", SINCH_API_TOKEN: "sinch-token", SINCH_FROM: "ACME" },
  infobip: { INFOBIP_API_KEY: "infobip-key", INFOBIP_FROM: "ACME" },
  telnyx: { TELNYX_API_KEY: "KEY0123", TELNYX_FROM: "+15005550006" },
  africastalking: { AFRICASTALKING_USERNAME: "acme", AFRICASTALKING_API_KEY: "at-key", AFRICASTALKING_FROM: "ACME" },
  telegram: { TELEGRAM_GATEWAY_TOKEN: "telegram-token" },
  whatsapp: {
    WHATSAPP_TOKEN: "whatsapp-token",
    WHATSAPP_PHONE_NUMBER_ID: whatsappOptions.phoneNumberId,
    WHATSAPP_TEMPLATE: "otp",
    WHATSAPP_LANGUAGE: "en_US",
  },
  "twilio-whatsapp": {
    TWILIO_ACCOUNT_SID: "AC00000000000000000000000000000001",
    TWILIO_AUTH_TOKEN: "twilio-auth-token",
    TWILIO_CONTENT_SID: `HX${"0".repeat(32)}`,
    TWILIO_WHATSAPP_FROM: "+15005550006",
  },
  "vonage-whatsapp": {
    VONAGE_API_KEY: "abcd1234",
    VONAGE_API_SECRET: "vonage-api-secret",
    VONAGE_WHATSAPP_FROM: "14157386102",
    WHATSAPP_TEMPLATE: "otp",
    WHATSAPP_LANGUAGE: "en_US",
  },
  "twilio-voice": {
    TWILIO_ACCOUNT_SID: "AC00000000000000000000000000000001",
    TWILIO_AUTH_TOKEN: "twilio-auth-token",
    TWILIO_VOICE_FROM: "+15005550006",
    TWILIO_VOICE_COUNTRIES: "FR, US",
  },
  "vonage-voice": {
    VONAGE_APPLICATION_ID: "app-1",
    VONAGE_PRIVATE_KEY: vonageVoiceOptions.privateKey,
    VONAGE_VOICE_FROM: "14155550100",
    VONAGE_VOICE_COUNTRIES: "US",
  },
};

describe("phoneproof dev --sender", () => {
  test.each(Object.keys(credentials))("%s really sends the message, which is still shown", async (name) => {
    const script = carriers.find((one) => one.name === name);
    if (script === undefined) throw new Error(`there is no stand-in for ${name}`);
    const carrier = await startCarrier(script, "accepts");
    try {
      await withDemo(
        ["--port", "0", "--sender", name],
        async (demo) => {
          const created = await post(demo, "authentication", { phone_number: "+14155552671" });
          expect(created).toMatchObject({ http: 200, status: "pending" });
          const { text, code, authentication_uuid } = await demo.sms();
          expect(carrier.taken).toHaveLength(1);
          expect(carrier.taken[0]).toMatchObject({ text: (script.sender(carrier.url).channel ?? "sms") === "sms" ? text : code });
          expect(carrier.taken[0]?.to).toMatch(/^\+?14155552671$/);
          // No carrier accepts a receipt URL that only this machine can reach.
          expect(carrier.taken[0]?.receiptUrl).toBeUndefined();
          expect(demo.stderr()).toMatch(new RegExp(`^(SMS|Message) to \\+14155552671 by ${name}: accepted \\(\\S+\\)$`, "m"));
          expect(demo.stderr()).toContain(`Messages are really sent, by ${name}`);
          expect(await post(demo, "check", { authentication_uuid, check_code: code })).toMatchObject({ status: "valid" });
          expect(await (await fetch(`${demo.url}/dev/session`)).json()).toMatchObject({ carrier: name });
        },
        { ...credentials[name], [`${name.toUpperCase().replace(/-.*/, "")}_BASE_URL`]: carrier.url },
      );
    } finally {
      await carrier.close();
    }
  });

  test("twilio accepts a messaging service instead of a sender; without either, the error names both variables", async () => {
    const carrier = await startCarrier(twilioCarrier, "accepts");
    const { TWILIO_FROM: _, ...account } = credentials["twilio"] as Record<string, string>;
    try {
      await withDemo(
        ["--port", "0", "--sender", "twilio"],
        async (demo) => {
          await post(demo, "authentication", { phone_number: "+14155552671" });
          expect(carrier.taken).toMatchObject([{ from: "MG0123" }]);
        },
        { ...account, TWILIO_MESSAGING_SERVICE_SID: "MG0123", TWILIO_BASE_URL: carrier.url },
      );
    } finally {
      await carrier.close();
    }
    const { code, stderr } = await runInProcess(["dev", "--sender", "twilio"], account);
    expect(code).toBe(2);
    expect(stderr.split("\n")[0]).toBe(
      "phoneproof: --sender twilio needs the environment variable TWILIO_FROM or TWILIO_MESSAGING_SERVICE_SID: set it and start again",
    );
  });

  test("a message that the carrier rejects is not shown, and the terminal shows the reason", async () => {
    const carrier = await startCarrier(twilioCarrier, "refuses");
    try {
      await withDemo(
        ["--port", "0", "--sender", "twilio"],
        async (demo) => {
          const { authentication_uuid } = await post(demo, "authentication", { phone_number: "+14155552671" });
          expect(demo.stderr()).toMatch(/^SMS to \+14155552671 by twilio: rejected, so it is not shown \(.*21211.*\)$/m);
          expect(await post(demo, "check", { authentication_uuid, check_code: "000000" })).toMatchObject({ status: "without_attempt" });
        },
        { ...credentials["twilio"], TWILIO_BASE_URL: carrier.url },
      );
    } finally {
      await carrier.close();
    }
  });

  test.each(Object.keys(credentials))("%s: a missing environment variable is named, with exit code 2, and no value is shown", async (name) => {
    const all = { ...credentials[name], ...(name === "infobip" && { INFOBIP_BASE_URL: "http://127.0.0.1:9" }) };
    const needed = Object.keys(all).filter((variable) => !["AWS_SESSION_TOKEN", "SINCH_FROM", "AFRICASTALKING_FROM"].includes(variable));
    const none = await runInProcess(["dev", "--sender", name]);
    expect(none.code).toBe(2);
    for (const variable of needed) expect(none.stderr.split("\n")[0]).toContain(variable);
    const [missing, ...rest] = needed as [string, ...string[]];
    const env = Object.fromEntries(rest.map((variable) => [variable, all[variable as keyof typeof all] as string]));
    const { code, stderr } = await runInProcess(["dev", "--sender", name], { ...env, [missing]: "" });
    expect(code).toBe(2);
    expect(stderr.split("\n")[0]).toBe(`phoneproof: --sender ${name} needs the environment variable ${missing}: set it and start again`);
  });

  test("an invalid base URL is reported by the name of its variable, without its value", async () => {
    const { code, stderr } = await runInProcess(["dev", "--sender", "twilio"], { ...credentials["twilio"], TWILIO_BASE_URL: "ftp://carrier" });
    expect(code).toBe(2);
    expect(stderr.split("\n")[0]).toContain("TWILIO_BASE_URL must be a URL");
    expect(stderr).not.toContain("ftp://");
  });
});

describe("phoneproof dev --fail and --latency", () => {
  test("--fail rejected: no message is shown and no code can be checked", () =>
    withDemo(["--port", "0", "--fail", "rejected"], async (demo) => {
      const { authentication_uuid } = await post(demo, "authentication", { phone_number: "+14155552671" });
      expect(demo.stderr()).toContain("SMS to +14155552671: rejected, so it is not shown (--fail rejected)");
      const stream = (await fetch(`${demo.url}/dev/events`)).body as ReadableStream<Uint8Array>;
      const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
      expect((await reader.read()).value).toMatch(/^retry: 1000\n\n(?!.*event: message)/s);
      await reader.cancel();
      expect(await post(demo, "check", { authentication_uuid, check_code: "000000" })).toMatchObject({ status: "without_attempt" });
    }));

  test("--fail unknown: the message is shown and its code is valid", () =>
    withDemo(["--port", "0", "--fail", "unknown"], async (demo) => {
      const { authentication_uuid } = await post(demo, "authentication", { phone_number: "+14155552671" });
      const { code, text } = await demo.sms();
      expect(text).toContain(code);
      expect(demo.stderr()).toContain("SMS to +14155552671: outcome unknown, so it counts as sent (--fail unknown)");
      expect(await post(demo, "check", { authentication_uuid, check_code: code })).toMatchObject({ status: "valid" });
    }));

  test("--fail timeout: the response comes after the time limit of a send, and the code is valid", () =>
    withDemo(["--port", "0", "--fail", "timeout"], async (demo) => {
      const began = performance.now();
      const { authentication_uuid, status } = await post(demo, "authentication", { phone_number: "+14155552671" });
      expect(performance.now() - began).toBeGreaterThan(4_900);
      expect(status).toBe("pending");
      const { code } = await demo.sms();
      expect(await post(demo, "check", { authentication_uuid, check_code: code })).toMatchObject({ status: "valid" });
    }));

  test("--latency delays the response of a send; past the time limit its outcome is unknown", async () => {
    await withDemo(["--port", "0", "--latency", "1"], async (demo) => {
      const began = performance.now();
      expect(await post(demo, "authentication", { phone_number: "+14155552671" })).toMatchObject({ status: "pending" });
      expect(performance.now() - began).toBeGreaterThan(950);
      expect(demo.stderr()).not.toContain("unknown");
    });
    await withDemo(["--port", "0", "--latency", "60"], async (demo) => {
      expect(await post(demo, "authentication", { phone_number: "+14155552671" })).toMatchObject({ status: "pending" });
      await expect.poll(demo.stderr).toContain("outcome unknown, so it counts as sent (no response within the time limit of a send)");
    });
  });

  test("a send in progress does not delay shutdown", async () => {
    const demo = await startDemo(["--port", "0", "--latency", "60"]);
    const asked = post(demo, "authentication", { phone_number: "+14155552671" }).catch(() => "cut");
    // The response to a second request shows that the first one is being processed.
    await post(demo, "check", { authentication_uuid: demo.customer_uuid, check_code: "000000" });
    const began = performance.now();
    expect(await demo.stop()).toBe(0);
    expect(performance.now() - began).toBeLessThan(30_000);
    expect(await asked).toBe("cut");
    expect(demo.stderr()).toContain("SMS to +14155552671: outcome unknown");
  });
});

describe("phoneproof dev", () => {
  test("prints key, customer and four curl commands that a shell runs as they are, and shows each message in a box", async () => {
    const child = spawnCommand(command.path, ["dev", "--port", "0"]);
    let printed = "";
    child.stdout.on("data", (chunk) => (printed += chunk));
    try {
      await expect.poll(() => printed).toContain("Ctrl+C");
      expect(printed).toMatch(/API key +pp_\S+\n +Customer UUID +[0-9a-f-]{36}\n/);
      const commands = printed.split("\n").filter((line) => /^(ANSWER=|curl )/.test(line));
      expect(commands).toHaveLength(4);
      const { stdout, stderr } = await promisify(execFile)("bash", ["-c", commands.join("\n")]);
      expect(stderr).toBe("");
      const answers = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect(answers.map(({ status, line_type }) => status ?? line_type)).toEqual(["pending", "denied", "invalid", "Unknown"]);
      expect(answers[2].authentication_uuid).toBe(answers[0].authentication_uuid);
      await expect.poll(() => printed).toMatch(/┌ SMS to \+14155552671 ─+┐\n│ .*\d{6}.* │\n└─+┘\n/);
    } finally {
      child.kill("SIGTERM");
      expect(await once(child, "exit")).toEqual([0, null]);
    }
  });

  test("refuses to run with NODE_ENV=production, and prints the reason and the fix", async () => {
    const { code, stdout, stderr } = await spawnToEnd(command.path, ["dev", "--port", "0"], { NODE_ENV: "production" });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("NODE_ENV is production");
    expect(stderr).toContain("Unset NODE_ENV");
  });

  test.each([
    [["dev", "--nonsense"], "dev has no option --nonsense: its options are --port, --host, --store,"],
    [["dev", "--prot", "3000"], "dev has no option --prot: did you mean --port?"],
    [["dev", "-p", "3000"], "dev has no option -p: its options are"],
    [["dev", "--latency", "-1"], '--latency takes a whole number from 0 to 60, not "-1"'],
    [["dev", "--port", "--json"], "--port needs a value"],
    [["serve", "./verifier.js", "--host"], "--host needs a value"],
    [["dev", "--json=yes"], "--json takes no value"],
    [["dev", "--port", "70000"], "--port"],
    [["dev", "--port", "http"], "--port"],
    [["dev", "--lifetime", "0"], "--lifetime"],
    [["dev", "--cooldown", "30,,60"], "--cooldown"],
    [["dev", "surplus"], 'unexpected argument "surplus"'],
    [["dev", "--sender", "pigeon"], "--sender takes one of twilio, vonage, aws"],
    [["dev", "--latency", "61"], "--latency"],
    [["dev", "--latency", "soon"], "--latency"],
    [["dev", "--fail", "sometimes"], "--fail takes one of rejected, unknown, timeout"],
    [["dev", "--fail", "timeout", "--latency", "1"], "--latency"],
    [["dev", "--fail", "rejected", "--sender", "twilio"], "--fail has no effect with --sender"],
    [["dev", "--store", "mysql://127.0.0.1/codes"], "--store"],
    [["dev", "--store", "redis://"], "--store"],
    [["dev", "--store", "https://eu1-example.upstash.io"], "UPSTASH_REDIS_REST_TOKEN"],
    [["dev", "--store", "https://user:password@eu1-example.upstash.io"], "--store takes"],
    [["dev", "--store", "http://eu1-example.upstash.io"], "--store"],
    [["dev", "--store", "redis://127.0.0.1:1", "--data", "a.db"], "--data has no effect with --store"],
    [["serve", "./verifier.js", "--store", "redis://127.0.0.1:1", "--data", "a.db"], "--data has no effect with --store"],
    [["worker", "./verifier.js", "--store", "redis://127.0.0.1:1", "--data", "a.db"], "--data has no effect with --store"],
    [["doctor", "./verifier.js", "--store", "redis://127.0.0.1:1", "--data", "a.db"], "--data has no effect with --store"],
    [["worker"], "./verifier.js"],
    [["worker", "./verifier.js", "surplus"], 'unexpected argument "surplus"'],
    [["worker", "./verifier.js", "--interval", "0"], "--interval"],
    [["worker", "./verifier.js", "--once", "--interval", "5"], "--interval"],
    [["worker", "./verifier.js", "--port", "0"], "--port"],
    [["worker", "./verifier.js", "--metrics-port", "65536"], "--metrics-port takes a whole number"],
    [["worker", "./verifier.js", "--once", "--metrics-port", "0"], "--metrics-port has no effect with --once"],
    [["worker", "./verifier.js", "--host", "0.0.0.0"], "--host has no effect without --metrics-port"],
    [["worker", "./verifier.js", "--once", "--host", "0.0.0.0"], "--host has no effect without --metrics-port"],
    [["serve"], "serve"],
  ])("%j: exit code 2, the error and the command's usage on stderr, nothing on stdout", async (args, named) => {
    const { code, stdout, stderr } = await runInProcess(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    const [fault, ...usage] = stderr.trimEnd().split("\n");
    expect(fault).toContain(named);
    expect(usage).toEqual(["", expect.stringMatching(new RegExp(`^Usage: phoneproof ${args[0]} .*\\[options\\]$`)), `       phoneproof ${args[0]} --help`]);
  });

  test.each([
    ["PHONEPROOF_DEV_CUSTOMER_UUID", "not-a-uuid"],
    ["PHONEPROOF_DEV_API_KEY", "short"],
    ["PHONEPROOF_DEV_SECRET", "short"],
  ])("an invalid %s is reported by name, without its value", async (name, value) => {
    const { code, stderr } = await runInProcess(["dev"], { [name]: value });
    expect(code).toBe(2);
    expect(stderr.split("\n")[0]).toContain(`${name} must be`);
    expect(stderr).not.toContain(value === "short" ? "short" : "not-a-uuid");
  });

  test.each([
    [["whi", "+33612345678"], "unknown command whi"],
    [[], "a command is missing"],
  ])("%j exits with 2, and prints one line and the list of commands", async (args, message) => {
    const { code, stdout, stderr } = await spawnToEnd(command.path, args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    const [first, empty, ...list] = stderr.trimEnd().split("\n");
    expect([first, empty]).toEqual([`phoneproof: ${message}`, ""]);
    expect(list.map((line) => /^(?:Usage:| {6}) phoneproof (\S+)/.exec(line)?.[1])).toEqual([
      "dev",
      "serve",
      "worker",
      "customers",
      "keys",
      "doctor",
      "why",
      "unlock",
      "erase",
      "stats",
      "--help",
      "--version",
    ]);
  });

  test("--version prints the version of the package", async () => {
    expect(await spawnToEnd(command.path, ["--version"])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: "" });
  });

  test("--help prints the usage on stdout", async () => {
    const { code, stdout } = await runInProcess(["--help"]);
    expect(code).toBe(0);
    for (const option of [
      "--port",
      "--host",
      "--store",
      "--json",
      "--lifetime",
      "--cooldown",
      "--sender",
      "--latency",
      "--fail",
      "TWILIO_FROM",
      "[AFRICASTALKING_BASE_URL]",
      "worker MODULE",
      "--interval",
      "--once",
    ])
      expect(stdout).toContain(option);
  });

  test.each([
    ["dev", "dev"],
    ["serve", "serve MODULE"],
    ["worker", "worker MODULE"],
    ["keys", "customers, phoneproof keys"],
    ["doctor", "doctor MODULE"],
    ["why", "why, unlock, erase, stats"],
    ["stats", "why, unlock, erase, stats"],
  ])("%s --help prints only its own section", async (name, title) => {
    const { code, stdout } = await runInProcess([name, "--help"]);
    expect(code).toBe(0);
    expect(stdout.split("\n").filter((line) => line.startsWith("phoneproof "))).toEqual([`phoneproof ${title}`]);
    expect(stdout).toContain("--store");
  });

  test("a port in use is an error if it was requested; otherwise the next free port is used", async () => {
    const other = createServer();
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    const taken = String((other.address() as AddressInfo).port);
    const { code, stderr } = await runInProcess(["dev", "--port", taken]);
    other.close();
    expect(code).toBe(1);
    expect(stderr).toContain(`port ${taken} of 127.0.0.1 is taken`);

    // Two demos cannot both have the first free port.
    const [first, second] = [await startDemo([]), await startDemo([])];
    const ports = [first, second].map((demo) => Number(new URL(demo.url).port));
    expect([await first.stop(), await second.stop()]).toEqual([0, 0]);
    expect(ports[0]).toBeGreaterThanOrEqual(3000);
    expect(ports[1]).toBeGreaterThan(ports[0] as number);
  });
});
