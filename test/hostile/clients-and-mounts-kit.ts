import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Receipt, ReceiptReading, ReceiptSource } from "phoneproof";
import { fetchHandler } from "phoneproof/fetch";
import { httpReceipts } from "phoneproof/senders/http";
import type { CarrierBehaviour, SenderBench } from "phoneproof/testing";
import { createTestVerifier, senderContract } from "phoneproof/testing";

const root = join(import.meta.dirname, "../..");

interface Operation {
  readonly operationId?: string;
  readonly responses?: Readonly<Record<string, unknown>>;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

export const readDocument = (name: string): OpenApi => JSON.parse(readFileSync(join(root, name), "utf8")) as OpenApi;

const pascal = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

/**
 * The names that orval declares twice: for each operation it exports a type `<OperationId>Result` next to the types of
 * the schemas.
 */
export function namesDeclaredTwice({ paths, components }: OpenApi): string[] {
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  const results = operations.flatMap(({ operationId }) => (operationId ? [`${pascal(operationId)}Result`] : []));
  return results.filter((name) => name in components.schemas);
}

/** A service with one receipt source: posts to it, and returns the response, the log and the callbacks. */
export function receiptBench(source: ReceiptSource) {
  const errors: string[] = [];
  const note = (...logged: unknown[]) => void errors.push(JSON.stringify(logged));
  const logger = { info() {}, warn: note, error: note };
  const test = createTestVerifier({ logger, receipts: { baseUrl: "https://app.example", sources: [source] } });
  const handle = fetchHandler(test.verifier.receipts);
  return {
    errors,
    close: test.close,
    advance: (ms: number) => test.clock.advance(ms),
    /** Sends a message to a number, and returns its reference. */
    async send(phone_number: string) {
      await test.verifier.createAuthentication({ phone_number, callback_url: "https://app.example/hook" });
      return test.inbox.lastMessage(phone_number)?.receipt_reference;
    },
    async post(path: string, body: unknown) {
      const headers = { "content-type": "application/json" };
      const answer = await handle(new Request(`https://app.example${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
      await test.flush();
      return { status: answer.status, text: await answer.text() };
    },
    statuses: () => test.callbacks.map(({ event }) => event.data.status),
  };
}

const key = "a-secret-in-the-url-1";

/** An aggregator with one URL in its dashboard, which echoes a reference and posts lists of reports. */
export const aggregator = {
  path: `/receipts/aggregator?key=${key}`,
  source: httpReceipts({
    provider: "aggregator",
    secret: key,
    statuses: { DELIVRD: "delivered" } satisfies Record<string, Receipt["status"]>,
    reference: "ref",
  }),
};

/** A source whose author forgot to return the reading. */
export const forgetful: ReceiptSource = { provider: "forgetful", read: async () => undefined as unknown as ReceiptReading };

let call = () => {};

/** A source that waits for something that never comes; `called` resolves when it has been asked. */
export const hanging: ReceiptSource & { readonly called: Promise<void> } = {
  provider: "hanging",
  called: new Promise<void>((resolve) => {
    call = resolve;
  }),
  read() {
    call();
    return new Promise(() => {});
  },
};

/** Runs the cases of `senderContract` for a carrier that gives no response, against a sender that never reaches the carrier. */
export function withholding(send: SenderBench["sender"]["send"]) {
  const open = async (_: CarrierBehaviour) => ({ sender: { send }, received: () => [], close: async () => {} });
  return senderContract({ behaviours: ["withholds"] }).map(({ run }) => run({ open }));
}

/** How a promise stands after a time. */
export async function stateWithin(ms: number, work: Promise<unknown>) {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, ms, "still waiting");
  });
  const settled = work.then(
    () => "passed",
    () => "failed",
  );
  const state = await Promise.race([settled, late]);
  clearTimeout(timer);
  return state;
}

/** Runs a module of ES code in its own process. */
export const runModule = (code: string) => runNode(["--input-type=module", "--eval", code], "pipe");

/** Runs node in the root of the repository; `stdout` may be a file's descriptor. */
export async function runNode(args: readonly string[], stdout: "pipe" | number, signal?: AbortSignal) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", stdout, "pipe"], ...(signal && { signal }) });
  child.on("error", () => {});
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => void (output += chunk));
  const exitCode = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { output, exitCode };
}
