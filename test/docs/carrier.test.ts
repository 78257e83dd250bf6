import { createHmac } from "node:crypto";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { senderContract } from "../../src/testing/sender-contract.js";
import { aReceipt } from "../support/carriers/messages.js";
import { type CarrierScript, json, subjectOf } from "../support/carriers/server.js";
import { readPage } from "./pages.js";

const root = join(import.meta.dirname, "../..");
const folder = join(root, "node_modules/.cache/phoneproof-acme");
const text = readPage("docs/carriers/own-sender.md").blocks.find(({ name }) => name === "acme.ts")?.text ?? "";

interface Acme {
  acmeSender(options: object): SmsSender;
  acmeReceipts(options: object): ReceiptSource;
}
let acme: Acme;

/** The page's made-up carrier, as its documentation would describe it. */
const carrier: CarrierScript = {
  name: "acme",
  take({ headers, body, method, url }, index) {
    const asked = JSON.parse(body) as { to: string; text: string; from?: string; callback?: string };
    if (method !== "POST" || url.pathname !== "/messages" || headers["authorization"] !== "Bearer acme-key")
      return { reply: json(401, { error: { code: "key" } }) };
    return { message: { to: asked.to, text: asked.text, from: asked.from, receiptUrl: asked.callback }, reply: json(202, { id: `acme-${index}` }) };
  },
  refusal: json(422, { error: { code: "unfit" } }),
  throttled: json(429, { error: { code: "slow" } }),
  failure: json(500, { error: { code: "sorry" } }),
  sender: (baseUrl) => acme.acmeSender({ apiKey: "acme-key", from: "Acme", baseUrl }),
};

describe("docs/carriers/own-sender.md: a custom carrier built with phoneproof/senders/kit", () => {
  beforeAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, "node_modules"), { recursive: true });
    symlinkSync(root, join(folder, "node_modules/phoneproof"), "dir");
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    writeFileSync(join(folder, "acme.ts"), text);
    acme = (await import(/* @vite-ignore */ pathToFileURL(join(folder, "acme.ts")).href)) as Acme;
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("shows the sender in 30 lines", () => {
    const sender = text.slice(0, text.indexOf("const words"));
    expect(sender.trim().split("\n").length).toBeLessThanOrEqual(30);
  });

  for (const { name, run } of senderContract()) it(`passes the contract: ${name}`, () => run(subjectOf(carrier)));

  it("reads the carrier's receipts, and rejects unsigned ones", async () => {
    const source = acme.acmeReceipts({ secret: "acme-secret" });
    const body = JSON.stringify({ id: "acme-1", status: "delivered" });
    const signature = createHmac("sha256", "acme-secret").update(body).digest("hex");
    expect(await source.read(aReceipt({ body, headers: { "x-acme-signature": signature } }), 0)).toEqual({
      receipts: [{ messageId: "acme-1", status: "delivered" }],
    });
    expect(await source.read(aReceipt({ body }), 0)).toMatchObject({ refused: "signature" });
  });

  it("throws at construction if an option is missing", () => {
    expect(() => acme.acmeSender({ from: "Acme" })).toThrow("acmeSender: option apiKey is missing. Pass the API key of the Acme console.");
    expect(() => acme.acmeSender({ apiKey: "k" })).toThrow(/^acmeSender: option from is missing/);
  });
});
