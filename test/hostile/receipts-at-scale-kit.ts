import { randomUUID } from "node:crypto";
import { createVerifier, type SmsSender, type VerifierOptions } from "phoneproof";
import { fetchHandler } from "phoneproof/fetch";
import { memoryStore } from "phoneproof/memory";
import { fixedClock } from "phoneproof/testing";

const baseUrl = "https://api.example.com";
const start = Date.parse("2026-03-01T12:00:00.000Z");

/** The callback of one message, as its receiver reads it. */
export interface Told {
  readonly attempt: number;
  readonly status: string;
}

/** A verifier that takes receipts of `source`, with what it logs and posts to webhooks. */
export function service(sender: SmsSender, source: NonNullable<VerifierOptions["receipts"]>["sources"][number], more: Partial<VerifierOptions> = {}) {
  const clock = fixedClock(start);
  const told: Told[] = [];
  const lines: string[] = [];
  const line = (facts: object, message: string) => void lines.push(`${message} ${JSON.stringify(facts)}`);
  const verifier = createVerifier({
    store: memoryStore({ name: randomUUID() }),
    sender,
    secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6",
    countries: ["FR"],
    clock,
    clockSkew: 0,
    logger: { info: line, warn: line, error: line },
    callbacks: {
      worker: false,
      sender: {
        post: async ({ body }) => {
          told.push((JSON.parse(body) as { data: Told }).data);
          return { status: 204 };
        },
      },
    },
    receipts: { baseUrl, sources: [source] },
    ...more,
  });
  const handle = fetchHandler(verifier.receipts);
  const post = async (url: string, init: RequestInit) => {
    const response = await handle(new Request(url, { method: "POST", ...init }));
    return { status: response.status, text: await response.text() };
  };
  return { verifier, clock, told, lines, post };
}
