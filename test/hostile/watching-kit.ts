import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { type CodeMessage, createVerifier, type SendOutcome, type Verifier, type VerifierEvent, type VerifierOptions } from "../../src/index.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { type LogLine, logger, secret } from "../support/verifier.js";

/** A request that reached a vendor's server. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Answer = (asked: Asked, response: ServerResponse) => void;

/** A vendor's HTTP server on loopback. */
export interface Vendor {
  readonly origin: string;
  readonly asked: Asked[];
  answer: Answer;
  close(): void;
}

export async function vendor(answer: Answer): Promise<Vendor> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const one = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks).toString() };
      asked.push(one);
      self.answer(one, response);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const self: Vendor = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    answer,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return self;
}

export const json = (response: ServerResponse, body: unknown, status = 200): void =>
  void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

/** How a failing vendor responds to any request. `sound`: the response without the failure. */
export const troubles: Readonly<Record<string, (sound: (asked: Asked) => unknown) => Answer>> = {
  "never answers": () => () => {},
  "stops in the middle": (sound) => (asked, response) => void response.writeHead(200).write(JSON.stringify(sound(asked)).slice(0, -1)),
  "sends without end": () => (_asked, response) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write("x".repeat(65_536)));
    };
    response.on("drain", more);
    more();
  },
  "sends a megabyte": (sound) => (asked, response) => json(response, { ...(sound(asked) as object), padding: "x".repeat(1_000_000) }),
  "hangs up": () => (_asked, response) => void response.destroy(),
  "sends a page": () => (_asked, response) => void response.end("<html>Bad gateway</html>"),
  "says null": () => (_asked, response) => json(response, null),
  "says a list": (sound) => (asked, response) => json(response, [sound(asked)]),
  "answers 204": () => (_asked, response) => void response.writeHead(204).end(),
  redirects: (sound) => (asked, response) => void response.writeHead(302, { location: "/elsewhere" }).end(JSON.stringify(sound(asked))),
  "answers 401": (sound) => (asked, response) => json(response, sound(asked), 401),
  "answers 429": (sound) => (asked, response) => json(response, sound(asked), 429),
  "answers 503": (sound) => (asked, response) => json(response, sound(asked), 503),
};

export const number = "+33612345678";
/** Valid French mobile numbers. */
export const numberAt = (index: number): string => `+3361${String(2_000_000 + index * 9_973).slice(0, 7)}`;
export const address = "203.0.113.9";
export { secret };

/** A verifier for one app, and everything that it reports. */
export interface Watched {
  readonly verifier: Verifier;
  readonly messages: CodeMessage[];
  readonly log: readonly LogLine[];
  readonly events: VerifierEvent[];
  /** How often each line was logged. */
  lines(): Record<string, number>;
  /** Log, events and metrics, with the stacks of errors. */
  told(): string;
}

export function watched(options: Partial<VerifierOptions> & { answer?: (message: CodeMessage) => Promise<SendOutcome> } = {}): Watched {
  const { answer, ...rest } = options;
  const messages: CodeMessage[] = [];
  const events: VerifierEvent[] = [];
  const log = logger();
  const verifier = createVerifier({
    store: memoryStore({ name: randomUUID() }),
    sender: {
      async send(message) {
        messages.push(message);
        return answer === undefined ? { outcome: "accepted" } : answer(message);
      },
    },
    secret,
    countries: "all",
    logger: log,
    callbacks: { worker: false },
    onEvent: (event) => void events.push(event),
    ...rest,
    policy: rest.policy ?? { spam: noSpamRules },
  });
  return {
    verifier,
    messages,
    log: log.lines,
    events,
    lines() {
      const counts: Record<string, number> = {};
      for (const { message } of log.lines) counts[message] = (counts[message] ?? 0) + 1;
      return counts;
    },
    told: () => `${inspect([log.lines, events], { depth: 12, maxArrayLength: null, maxStringLength: null })}\n${verifier.metrics()}`,
  };
}

/** How a number may be spelled in reports. */
export function spellings(of: string): readonly string[] {
  const national = of.slice(3);
  return [of, of.slice(1), `0${national}`, national, encodeURIComponent(of), `0${national.replace(/(?<=^.)|(?=(?:..)+$)/g, " ").trim()}`];
}

/** The samples of a Prometheus text, each as name, labels and value; throws if the text is not in the format. */
export function samplesOf(text: string): { name: string; labels: Record<string, string>; value: number }[] {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const types = new Map<string, string>();
  return text
    .slice(0, -1)
    .split("\n")
    .flatMap((line) => {
      const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
      if (type !== null) {
        if (types.has(type[1] as string)) throw new Error(`a second type: ${line}`);
        types.set(type[1] as string, type[2] as string);
        return [];
      }
      if (line.startsWith("# HELP ")) return [];
      const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$/.exec(line);
      const value = Number(sample?.[3] === "+Inf" ? Number.POSITIVE_INFINITY : sample?.[3]);
      if (sample === null || Number.isNaN(value)) throw new Error(`not in the format: ${line}`);
      const [, name = "", inside = ""] = sample;
      if (!types.has(name) && types.get(name.replace(/_(?:bucket|sum|count)$/, "")) !== "histogram") throw new Error(`no type: ${line}`);
      const labels = Object.fromEntries([...inside.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"/g)].map(([, key, text]) => [key, text]));
      return [{ name, labels, value }];
    });
}
