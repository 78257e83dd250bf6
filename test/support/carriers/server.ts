import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { SmsSender } from "../../../src/ports/sms-sender.js";
import type { CarrierBehaviour, SenderBench, SenderSubject } from "../../../src/testing/sender-contract.js";

/** A request as the carrier received it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
  readonly contentType?: string;
}

export interface TakenMessage {
  readonly to: string;
  readonly text: string;
  readonly from?: string | undefined;
  readonly receiptUrl?: string | undefined;
  readonly reference?: string | undefined;
}

export type Answer = { readonly message: TakenMessage; readonly reply: Reply } | { readonly reply: Reply };

/** One carrier's API, according to its documentation. */
export interface CarrierScript {
  readonly name: string;
  /**
   * Returns the message and the documented response, or only the documented error if the carrier would reject the
   * request. `index` numbers the messages.
   */
  take(request: SeenRequest, index: number): Answer | Promise<Answer>;
  /** Documented responses: an unusable number, too many requests, an error of the carrier. */
  readonly refusal: Reply;
  readonly throttled: Reply;
  readonly failure: Reply;
  /** A sender that uses `baseUrl`. */
  sender(baseUrl: string): SmsSender;
}

export const json = (status: number, body: unknown): Reply => ({ status, body: JSON.stringify(body), contentType: "application/json" });

/** What the carrier does: a behaviour of the contract, a response that breaks off or never ends, or a fixed reply. */
export type Mood = CarrierBehaviour | "breaks off" | "endless" | Reply;

export interface RunningCarrier {
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  readonly taken: readonly TakenMessage[];
  close(): Promise<void>;
}

/** Starts a carrier on a free port of the loopback. */
export async function startCarrier(script: CarrierScript, mood: Mood): Promise<RunningCarrier> {
  const requests: SeenRequest[] = [];
  const taken: TakenMessage[] = [];
  const server = createServer((request, response) => {
    void readBody(request).then(async (body) => {
      const seen = { method: request.method ?? "", url: new URL(request.url ?? "/", `http://${request.headers.host}`), headers: flat(request), body };
      requests.push(seen);
      const answer = await script.take(seen, requests.length);
      if ("message" in answer) taken.push(answer.message);
      const reply = replyFor(script, mood, answer.reply, "message" in answer);
      if (reply === "cut") return void request.socket.destroy();
      if (reply === undefined) return;
      response.writeHead(reply.status, {
        "content-type": reply.contentType ?? "application/json",
        ...(mood === "breaks off" ? { "content-length": reply.body.length + 10 } : {}),
      });
      if (mood === "breaks off") return void response.write(reply.body, () => request.socket.destroy());
      if (mood === "endless") {
        const pour = () => {
          while (!response.destroyed && response.write("x".repeat(65_536)));
        };
        response.on("drain", pour);
        return pour();
      }
      response.end(reply.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  if (mood === "unreachable") await close();
  return { url, requests, taken, close: mood === "unreachable" ? async () => {} : close };
}

function replyFor(script: CarrierScript, mood: Mood, usual: Reply, understood: boolean): Reply | "cut" | undefined {
  if (typeof mood === "object") return mood;
  // A request that the carrier would reject is rejected in every mood, so that a wrong request is always noticed.
  if (!understood) return usual;
  switch (mood) {
    case "refuses":
      return script.refusal;
    case "throttles":
      return script.throttled;
    case "fails":
      return script.failure;
    case "garbles":
      return { status: 200, body: "<html>It works!</html>", contentType: "text/html" };
    case "withholds":
      return undefined;
    case "cuts":
      return "cut";
    default:
      return usual;
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

function flat(request: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
}

/** The subject of the sender contract for one carrier. */
export function subjectOf(script: CarrierScript): SenderSubject {
  return {
    async open(behaviour): Promise<SenderBench> {
      const carrier = await startCarrier(script, behaviour);
      return { sender: script.sender(carrier.url), received: () => carrier.taken, close: carrier.close };
    },
  };
}
