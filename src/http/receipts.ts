import { propertiesOf } from "../core/collections.js";
import { withTimeout } from "../core/deadline.js";
import { VerifierError } from "../errors.js";
import type { Messages } from "../messages/messages.js";
import { type ReceiptTarget, readReceiptUrl, readReference } from "../messages/receipt-reference.js";
import { parseReceipt, settleReceipts } from "../messages/receipts.js";
import type { ReceiptReading, ReceiptRequest, ReceiptSource } from "../ports/receipts.js";
import { answer, toErrorResponse, wrongMethod } from "./answer.js";
import { bodyOf, exactBytes } from "./body.js";
import type { HttpBody, HttpRequest, HttpResponse } from "./message.js";
import { notFound } from "./not-found.js";

/** Bytes of a carrier's request; some carriers report a hundred messages at once. */
const bodyLimit = 256 * 1024;

/** Milliseconds that a source may take, for example to fetch the carrier's key. */
const readTime = 10_000;

/** Most carriers post; some send their report in the query of a GET. */
const methods: readonly string[] = ["POST", "GET"];

/**
 * Handles `/receipts/{provider}` (docs/contract.md#receipt-answers): 2xx if authentic, even for unknown messages, so
 * that carriers stop repeating; 403 for bad or old signatures, and unsigned receipts without our reference; 400 for
 * malformed requests; 503 if the store or what verifies a signature fails, so that carriers retry. Never rejects.
 */
export function createReceiptHandler(messages: Messages): (request: HttpRequest) => Promise<HttpResponse> {
  // Signatures cover the exact URL: the public address up to the mount prefix, and the path.
  const { docUrl, receiptBase = "", receiptSources } = messages.settings;
  const byProvider = new Map(receiptSources.map((source) => [source.provider, source]));
  const sourceOf = (path: string) => byProvider.get(path.replace(/^\/receipts\/|\/$/g, ""));
  const routeOf = (path: string) => {
    const provider = sourceOf(path)?.provider;
    return provider === undefined ? undefined : `/receipts/${provider}`;
  };
  return async (request) => {
    try {
      const source = sourceOf(request.path);
      // Do not reveal which providers are configured.
      if (source === undefined) throw notFound(request, "/receipts", "There is no such receipts route.", routeOf);
      // HEAD from link previews and OPTIONS from browsers are not receipts.
      if (!methods.includes(request.method)) return wrongMethod(docUrl, methods);
      const { method, path, query = "", header } = request;
      const body = bytesOf(messages, source.provider, await bodyOf(messages.clock, request, bodyLimit));
      const reading = await readBy(messages, source, { method, url: `${receiptBase}${path}${query}`, header, body });
      return await settle(messages, source.provider, reading, readReceiptUrl(messages.keyring, query));
    } catch (error) {
      return toErrorResponse(messages.logger, docUrl, error);
    }
  };
}

/** A source that fails, or takes too long, is treated like what it verifies signatures with. */
async function readBy({ clock, monitor }: Messages, source: ReceiptSource, request: ReceiptRequest): Promise<ReceiptReading> {
  try {
    const reading = await withTimeout(clock, readTime, () => source.read(request, clock.now()));
    const { refused, receipts } = propertiesOf(reading);
    if (typeof refused === "string" || Array.isArray(receipts)) return reading;
    throw new TypeError("it returned neither { receipts } nor { refused }");
  } catch (err) {
    monitor.throttledLog.error({ err, provider: source.provider }, `the receipt source ${source.provider} failed; the carrier is asked to try again`);
    throw cannotVerify();
  }
}

function bytesOf({ monitor }: Messages, provider: string, body: HttpBody): Uint8Array {
  try {
    return exactBytes(body, bodyLimit, "receipts", "carriers");
  } catch (err) {
    if (err instanceof VerifierError) throw err;
    monitor.throttledLog.error({ err, provider }, `a receipt of ${provider} could not be verified`);
    throw new VerifierError("forbidden", "The receipt was rejected: a body parser has touched its body, so that its signature cannot be verified.");
  }
}

const cannotVerify = () => new VerifierError("unavailable", "The receipt cannot be verified at the moment; try again.");

async function settle(messages: Messages, provider: string, reading: ReceiptReading, url: ReceiptTarget | undefined): Promise<HttpResponse> {
  const { throttledLog } = messages.monitor;
  if ("refused" in reading) {
    if (reading.refused === "unavailable") {
      throttledLog.error({ provider, reason: reading.reason }, `receipts of ${provider} cannot be verified; the carrier is asked to try again`);
      throw cannotVerify();
    }
    throttledLog.warn({ provider, refused: reading.refused, reason: reading.reason }, `a receipt of ${provider} was rejected`);
    throw new VerifierError(reading.refused === "malformed" ? "bad_request" : "forbidden", `The receipt was rejected: ${reading.reason}`);
  }
  const { receipts, ignored = [], vouched, reply } = reading;
  const sound = receipts.map(parseReceipt).filter((receipt) => typeof receipt !== "string");
  if (sound.length < receipts.length) throttledLog.error({ provider }, "a receipt source returned an invalid receipt, which is ignored");
  const settling = settleReceipts(messages, sound, { url, origin: { provider, vouched: vouched !== false } });
  // A carrier that asks what to say does not ask again.
  const lost = (err: unknown) => {
    throttledLog.error({ err, provider }, `a receipt of ${provider} could not be stored, and will not come again`);
    return 0;
  };
  const trusted = await (reply === undefined ? settling : settling.catch(lost));
  const isOurs = trusted > 0 || (sound.length === 0 && url !== undefined) || ignored.some((each) => readReference(messages.keyring, each) !== undefined);
  if (vouched === false && !isOurs)
    throw new VerifierError("forbidden", "Nothing shows that it comes from the carrier: it has no reference of this service, and no secret.");
  return reply === undefined ? answer(200, {}) : { status: reply.status, headers: { "content-type": reply.contentType }, body: reply.body };
}
