import { randomUUID } from "node:crypto";
import type { Verifier } from "../../create-verifier.js";
import type { HttpBody, HttpHandler, HttpRequest } from "../../http/message.js";
import type { Explanation } from "../../operations/explain.js";

/** A call of the service, as the history shows it. */
export interface Call {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Milliseconds until its response. */
  readonly took: number;
  readonly by: "page" | "elsewhere";
  readonly method: string;
  readonly path: string;
  /** The body as a JSON value, or as text if it is not JSON. Absent if it was not read. */
  readonly sent?: unknown;
  /** HTTP status and body of the response. */
  readonly status: number;
  readonly answer: Readonly<Record<string, unknown>>;
  /** The state of its authentication after this call. */
  readonly explanation?: Explanation;
}

/** The verifier's handler, which reports each call after its response. */
export function watchCalls(verifier: Pick<Verifier, "http" | "explain">, tell: (call: Call) => void): HttpHandler {
  return {
    ...verifier.http,
    async handle(request) {
      const at = Date.now();
      const began = performance.now();
      let sent: unknown;
      const watched: HttpRequest = {
        method: request.method,
        path: request.path,
        query: request.query ?? "",
        header: (name) => request.header(name),
        async body(limit) {
          const body = await request.body(limit);
          sent = contentOf(body);
          return body;
        },
      };
      const response = await verifier.http.handle(watched);
      const took = Math.round(performance.now() - began);
      const { method, path } = request;
      const answer = JSON.parse(response.body) as Call["answer"];
      // Only browsers send this header.
      const by = request.header("sec-fetch-site") === "same-origin" ? "page" : "elsewhere";
      const call = { id: randomUUID(), at, took, by, method, path, ...(sent !== undefined && { sent }), status: response.status, answer } as const;
      // In the background: the caller does not wait for it.
      void explain(verifier, sent, answer).then((explanation) => tell({ ...call, ...(explanation !== undefined && { explanation }) }));
      return response;
    },
  };
}

function contentOf(body: HttpBody): unknown {
  if (body.kind !== "bytes") return undefined;
  const text = Buffer.from(body.bytes).toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function explain({ explain }: Pick<Verifier, "explain">, sent: unknown, answer: Call["answer"]): Promise<Explanation | undefined> {
  const { customer_uuid } = (sent ?? {}) as Record<string, unknown>;
  const { authentication_uuid } = answer;
  if (typeof customer_uuid !== "string" || typeof authentication_uuid !== "string") return undefined;
  return explain({ customer_uuid, authentication_uuid }).catch(() => undefined);
}
