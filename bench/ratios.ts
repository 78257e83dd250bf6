import { memoryStore } from "phoneproof/memory";
import { redisIsInstalled, startRedis } from "../test/support/redis.js";
import { startProxy } from "../test/support/redis-proxy.js";
import { frameworks } from "./apps.js";
import { handmadeInMemory } from "./handmade.js";
import { type Comparison, type Cost, type Costs, compare, type Kind, middleOf, ratioOf, type Spread, spreadOf } from "./pairs.js";
import { runAlone } from "./processes.js";
import { number, type Part, type Row } from "./report.js";
import { benchVerifier, customerFor, customerOf, numberOf } from "./service.js";

/** Create + check against bare routes that look at the number and do one script each, and against services made by hand. */
export const ratiosPart: Part = {
  name: "ratios",
  title:
    "One flow (create + check, the right code), in processes of their own, interleaved; medians of rounds, the least and the most in brackets. `control` is the bare routes against themselves",
  async measure() {
    return [...(await inMemory()), ...(await inProcess()), ...(await onRedis()), ...(await betterAuth())];
  },
};

async function inMemory(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const framework of Object.keys(frameworks)) {
    const costs = await compare({ framework, store: "memory:", kinds: ["bare", "control", "mounted"], rounds: 9, pairs: 1000, connections: 16 });
    rows.push(ratio(`CPU, ${framework}, memory store, against bare routes`, costs, "cpu", "mounted", "bare", framework === "Fastify 5" ? { most: 2 } : {}));
    rows.push(ratio(`CPU, ${framework}, memory store: control`, costs, "cpu", "control", "bare"));
  }
  return rows;
}

async function onRedis(): Promise<Row[]> {
  if (!redisIsInstalled("the bench's part ratios"))
    return [{ figure: "redis-server is missing", measured: "SKIPPED; get it with: apt-get install redis-server" }];
  const server = await startRedis();
  const storeCpu = async () => {
    const [, user = "", system = ""] = /used_cpu_sys:([\d.]+)[\s\S]*?used_cpu_user:([\d.]+)/.exec(await server.cli("INFO", "cpu")) ?? [];
    return 1e6 * (Number(user) + Number(system));
  };
  /** Each begins with nothing stored: all use the same numbers, and to a number that it knows the service made by hand sends one command less. */
  const compareAnew = async <K extends Kind>(comparison: Comparison<K>): Promise<Costs<K>> => {
    await server.cli("FLUSHALL");
    return compare(comparison);
  };
  try {
    const rows: Row[] = [];
    const all = { store: server.url, kinds: ["bare", "control", "handmade", "mounted"] as const, rounds: 9, pairs: 1000, connections: 16, storeCpu };
    const fastify = await compareAnew({ ...all, framework: "Fastify 5" });
    rows.push(ratio("CPU, Fastify 5, Redis, against bare routes of one script each", fastify, "cpu", "mounted", "bare", { most: 1.6 }));
    rows.push(ratio("CPU, Fastify 5, Redis: control", fastify, "cpu", "control", "bare"));
    rows.push(ratio("flows a second, Fastify 5, Redis, against a service made by hand", fastify, "flows", "mounted", "handmade", { least: 0.75 }));
    rows.push(ratio("flows a second, Fastify 5, Redis: control", fastify, "flows", "control", "bare"));
    rows.push(ratio("CPU of Redis against a service made by hand", fastify, "storeCpu", "mounted", "handmade", { most: 1.2 }));
    const express = await compareAnew({ ...all, framework: "Express 5", kinds: ["handmade", "mounted"] });
    rows.push(ratio("flows a second, Express 5, Redis, against a service made by hand", express, "flows", "mounted", "handmade", { least: 1.1 }));
    const fields = await compareAnew({ ...all, framework: "Fastify 5", kinds: ["bare", "mounted"], shape: "with ip and device" });
    rows.push(ratio("CPU, Fastify 5, Redis, with ip and device, against bare routes", fields, "cpu", "mounted", "bare"));
    const elsewhere = await compareAnew({ ...all, framework: "Fastify 5", kinds: ["bare", "mounted"], elsewhere: true });
    rows.push(ratio("CPU, Fastify 5, Redis, checks in another process, against bare routes", elsewhere, "cpu", "mounted", "bare"));
    const proxy = await startProxy(server.port);
    proxy.delay(1);
    try {
      const far = await compareAnew({
        ...all,
        framework: "Fastify 5",
        store: proxy.url,
        kinds: ["bare", "handmade", "mounted"],
        rounds: 5,
        pairs: 100,
        connections: 1,
      });
      rows.push(ratio("flows a second with 2 ms to Redis, against a service made by hand", far, "flows", "mounted", "handmade", { least: 2.5 }));
      rows.push(ratio("flows a second with 2 ms to Redis, against bare routes", far, "flows", "mounted", "bare"));
    } finally {
      await proxy.close();
    }
    return rows;
  } finally {
    await server.stop();
  }
}

/** Direct calls: the verifier on the memory store, and maps with a timer for each entry. */
async function inProcess(): Promise<Row[]> {
  const { ours, byHand } = await runAlone<{ readonly ours: readonly number[]; readonly byHand: readonly number[] }>("./ratios.ts", "measureDirect");
  const spread = spreadOf(ours.map((micros, round) => micros / (byHand[round] as number)));
  return [
    row(
      "CPU of direct calls, memory store, against maps with timers",
      spread,
      `${number(spreadOf(ours).middle)} µs against ${number(spreadOf(byHand).middle)}`,
      { most: 3.5 },
    ),
  ];
}

/** Microseconds of CPU of one flow, by rounds. Run in a process of its own. */
export async function measureDirect(): Promise<{ readonly ours: readonly number[]; readonly byHand: readonly number[] }> {
  const { verifier, codes } = benchVerifier(memoryStore());
  const sent = new Map<string, string>();
  const backend = handmadeInMemory((id, code) => sent.set(id, code));
  let index = 0;
  const round = async (create: (body: never) => unknown, check: (body: never) => unknown, codeOf: (id: string) => string | undefined): Promise<number> => {
    const requests = Array.from({ length: 3_000 }, () => ({ customer_uuid: customerOf(customerFor(index)), phone_number: numberOf(index++) }));
    const before = process.cpuUsage();
    for (const request of requests) {
      const { authentication_uuid } = (await create(request as never)) as { authentication_uuid: string };
      const { customer_uuid } = request;
      const { status } = (await check({ customer_uuid, authentication_uuid, check_code: codeOf(authentication_uuid) } as never)) as { status: string };
      if (status !== "valid") throw new Error(`expected valid, got ${status}`);
    }
    const { user, system } = process.cpuUsage(before);
    return (user + system) / requests.length;
  };
  const [ours, byHand]: [number[], number[]] = [[], []];
  for (let turn = 0; turn < 12; turn++) {
    ours.push(await round(verifier.createAuthentication, verifier.check, (id) => codes.get(id)));
    byHand.push(await round(backend.create, backend.check, (id) => sent.get(id)));
    codes.clear();
    sent.clear();
  }
  await verifier.close();
  return { ours: ours.slice(3), byHand: byHand.slice(3) };
}

/** better-auth's plugin `phone-number`, which one takes who has better-auth already; in memory, since it makes a user of a number that was verified, and so wants a database of its own. */
async function betterAuth(): Promise<Row[]> {
  const costs = await compare({ framework: "Fastify 5", store: "memory:", kinds: ["better-auth", "mounted"], rounds: 9, pairs: 200, connections: 16 });
  return [
    ratio("CPU, Fastify 5, memory store, against better-auth with its phone plugin", costs, "cpu", "mounted", "better-auth"),
    ratio("flows a second, Fastify 5, memory store, against better-auth with its phone plugin", costs, "flows", "mounted", "better-auth"),
  ];
}

type Target = { readonly most?: number; readonly least?: number };

const units: Readonly<Record<keyof Cost, string>> = { cpu: "µs", storeCpu: "µs", latency: "ms", flows: "a second" };

function ratio<K extends Kind>(name: string, costs: Costs<K>, figure: keyof Cost, kind: K, against: K, target: Target = {}): Row {
  const figures = `${number(middleOf(costs[kind], figure))} ${units[figure]} against ${number(middleOf(costs[against], figure))}`;
  return row(name, ratioOf(costs, figure, kind, against), figures, target);
}

function row(figure: string, { middle, least: low, most: high }: Spread, figures: string, { most, least }: Target = {}): Row {
  const measured = `${middle.toFixed(2)} × [${low.toFixed(2)} to ${high.toFixed(2)}] (${figures})`;
  if (most !== undefined) return { figure, measured, target: `≤ ${most} ×`, reached: middle <= most };
  if (least !== undefined) return { figure, measured, target: `≥ ${least} ×`, reached: middle >= least };
  return { figure, measured };
}
