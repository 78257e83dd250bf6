import { errorBody, VerifierError } from "../errors.js";
import type { Metrics } from "../observability/metrics.js";
import { answer, wrongMethod } from "./answer.js";
import type { HttpRequest, HttpResponse } from "./message.js";

/** Prometheus, Text-based format: "text/plain; version=0.0.4". */
const textFormat = "text/plain; version=0.0.4; charset=utf-8";

/** Serves `GET /metrics`; other paths return 404, other methods 405. Never rejects. */
export function createMetricsHandler(metrics: Metrics, docUrl: string): (request: HttpRequest) => Promise<HttpResponse> {
  return async ({ method, path }) => {
    if (path !== "/metrics" && path !== "/metrics/")
      return answer(404, errorBody(new VerifierError("not_found", "There is no such route; the metrics are at /metrics."), docUrl));
    if (method !== "GET" && method !== "HEAD") return wrongMethod(docUrl, ["GET", "HEAD"]);
    return { status: 200, headers: { "content-type": textFormat, "cache-control": "no-store" }, body: metrics.text() };
  };
}
