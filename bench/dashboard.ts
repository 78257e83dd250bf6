import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createVerifier, type SendOutcome } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { nodeHandler } from "phoneproof/node";
import { launchChromium } from "../test/support/chromium.js";

/*
 * Draws the dashboard's panels as a picture. A verifier under traffic is scraped by Prometheus (`apt-get install
 * prometheus`) for a minute or two, each panel's queries are sent as by Grafana, and chart.js draws the series in
 * Chromium.
 *
 *     npm run build && npx tsx bench/dashboard.ts dashboard.png
 */

const seconds = 100;
const [picture = "dashboard.png"] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "phoneproof-dashboard-"));
const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";

interface Panel {
  readonly title: string;
  readonly fieldConfig: { readonly defaults: { readonly unit: string; readonly custom: { readonly stacking: { readonly mode: string } } } };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Series {
  readonly label: string;
  readonly values: readonly (readonly [time: number, value: string])[];
}

/** A store that can be made to fail for a while. */
const store = memoryStore();
const commit = store.commit.bind(store);
const codes = new Map<string, string>();
let ids = 0;

const verifier = createVerifier({
  store,
  sender: {
    async send({ authentication_uuid, code, country }): Promise<SendOutcome> {
      codes.set(authentication_uuid, code);
      await sleep(country === "FR" ? 30 + Math.random() * 60 : 200 + Math.random() * 700);
      const route = country === "FR" ? "local" : "world";
      if (Math.random() < 0.06) return { outcome: Math.random() < 0.7 ? "rejected" : "unknown", route };
      return { outcome: "accepted", route, messageId: String(ids++), idSpace: "bench" };
    },
  },
  secret: "a secret of the bench, long enough to be one",
  countries: "all",
  customers: [{ customer_uuid, keys: ["k".repeat(32)] }],
  onEvent: () => undefined,
  callbacks: { sender: { post: async () => ({ status: Math.random() < 0.9 ? 204 : 410 }) } },
  logger: { info() {}, warn() {}, error() {} },
});

/** The prefix of each country's numbers, and how many random digits follow. */
const ranges = [
  ["+336", 8],
  // A single range: SMS pumping.
  ["+3361234", 4],
  ["+447911", 6],
  ["+491511", 7],
  ["+346", 8],
] as const;

async function visit(index: number): Promise<void> {
  const [beginning, digits] = ranges[index % ranges.length] as (typeof ranges)[number];
  const phone_number = `${beginning}${String(Math.floor(Math.random() * 10 ** digits)).padStart(digits, "0")}`;
  const { authentication_uuid, status } = await verifier.createAuthentication({
    customer_uuid,
    phone_number,
    callback_url: "https://example.com/hook",
    ip: `203.0.113.${index % 200}`,
  });
  if (status !== "pending") return;
  await verifier.settleReceipts([{ messageId: String(ids - 1), idSpace: "bench", status: Math.random() < 0.9 ? "delivered" : "undeliverable" }]);
  if (Math.random() < 0.2) await verifier.check({ customer_uuid, authentication_uuid, check_code: "000000" });
  if (Math.random() < 0.75) await verifier.check({ customer_uuid, authentication_uuid, check_code: codes.get(authentication_uuid) ?? "" });
  if (index % 9 === 0) await verifier.lookup({ customer_uuid, phone_number });
}

const api = nodeHandler(verifier);
const metrics = nodeHandler(verifier.metricsHandler);
const server = createServer((request, response) => (request.url === "/metrics" ? metrics : api)(request, response));
await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
const { port } = server.address() as AddressInfo;
const free = createServer();
await new Promise<void>((listening) => free.listen(0, "127.0.0.1", listening));
const prometheusPort = (free.address() as AddressInfo).port;
await new Promise((closed) => free.close(closed));

writeFileSync(
  join(folder, "prometheus.yml"),
  JSON.stringify({ global: { scrape_interval: "1s" }, scrape_configs: [{ job_name: "phoneproof", static_configs: [{ targets: [`127.0.0.1:${port}`] }] }] }),
);
const prometheus = spawn(
  "prometheus",
  [
    `--config.file=${join(folder, "prometheus.yml")}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${prometheusPort}`,
    "--log.level=error",
  ],
  { stdio: "ignore" },
);

try {
  const began = Date.now();
  for (let index = 0; Date.now() - began < seconds * 1000; index++) {
    const passed = (Date.now() - began) / 1000;
    const down = passed > 55 && passed < 65;
    (store as { commit: typeof commit }).commit = down ? async () => Promise.reject(new Error("down")) : commit;
    void visit(index).catch(() => undefined);
    if (index % 4 === 0)
      void fetch(`http://127.0.0.1:${port}/v1/check`, {
        method: "POST",
        headers: { "x-api-key": index % 8 === 0 ? "wrong" : "k".repeat(32) },
        body: "{}",
      }).catch(() => undefined);
    await sleep(passed > 30 && passed < 45 ? 40 : 110);
  }

  const end = Date.now() / 1000;
  const { panels } = JSON.parse(readFileSync(join(import.meta.dirname, "../observability/dashboard.json"), "utf8")) as { panels: readonly Panel[] };
  const drawn = [];
  for (const { title, fieldConfig, targets } of panels) {
    const series: Series[] = [];
    for (const { expr, legendFormat } of targets) {
      const query = new URLSearchParams({ query: expr.replaceAll("$__rate_interval", "15s"), start: String(end - seconds), end: String(end), step: "1" });
      const answer = (await (await fetch(`http://127.0.0.1:${prometheusPort}/api/v1/query_range?${query}`)).json()) as {
        readonly data: { readonly result: readonly { readonly metric: Record<string, string>; readonly values: Series["values"] }[] };
      };
      for (const { metric, values } of answer.data.result)
        series.push({ label: legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label) => metric[label] ?? ""), values });
    }
    console.log(`${title}: ${series.length} series`);
    drawn.push({ title, unit: fieldConfig.defaults.unit, stacked: fieldConfig.defaults.custom.stacking.mode === "normal", series });
  }

  const browser = await launchChromium();
  const page = await browser.newPage({ viewport: { width: 1500, height: 1900 } });
  await page.setContent(
    `<style>body{font:13px sans-serif;margin:12px;display:grid;grid-template-columns:1fr 1fr;gap:12px}section{height:290px}h2{font-size:14px;margin:0}</style>`,
  );
  await page.addScriptTag({ path: join(import.meta.dirname, "../node_modules/chart.js/dist/chart.umd.min.js") });
  await page.addScriptTag({ path: join(import.meta.dirname, "dashboard-page.js") });
  await page.evaluate((all) => (globalThis as unknown as { draw(panels: unknown): void }).draw(all), drawn);
  await page.screenshot({ path: picture, fullPage: true });
  await browser.close();
} finally {
  prometheus.kill();
  server.close();
  server.closeAllConnections();
  await verifier.close();
  await sleep(500);
  rmSync(folder, { recursive: true, force: true });
}
