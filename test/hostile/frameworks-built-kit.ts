import { fetchHandler } from "phoneproof/fetch";
import { createTestVerifier } from "phoneproof/testing";

/**
 * A request as servers on srvx 0.11 hand it out, such as Elysia on Node, after the framework's parser has read the
 * body: the native request is made at the first use of `bodyUsed` or of the body, and that fails once the stream is
 * consumed.
 */
export async function requestReadByFramework(headers: Readonly<Record<string, string>>, body: string): Promise<Request> {
  const native = new Request("http://127.0.0.1/v1/authentication", { method: "POST", headers: { "content-type": "application/json", ...headers }, body });
  const { body: stream } = native;
  await native.text();
  const late = () => new Request(native.url, { method: "POST", headers: native.headers, body: stream, duplex: "half" } as RequestInit);
  return new Proxy(native, {
    get(target, name) {
      if (name === "body") return stream;
      const request = name === "bodyUsed" || name === "arrayBuffer" || name === "text" ? late() : target;
      const value: unknown = Reflect.get(request, name, request);
      return typeof value === "function" ? value.bind(request) : value;
    },
  });
}

/** `/v1` over `fetchHandler`: calls it with such a request; returns the response, or what was thrown, and the log. */
export function fetchBench() {
  const log: string[] = [];
  const note = (...logged: unknown[]) => void log.push(logged.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(" "));
  const bench = createTestVerifier({ logger: { info() {}, warn: note, error: note } });
  const v1 = fetchHandler(bench.verifier);
  const body = JSON.stringify({ customer_uuid: bench.customer_uuid, phone_number: "+33612345678" });
  return {
    log,
    apiKey: bench.apiKey,
    close: () => bench.close(),
    async create(apiKey: string): Promise<string> {
      const request = await requestReadByFramework({ "x-api-key": apiKey }, body);
      return v1(request).then(
        async (response) => `${response.status} ${((await response.json()) as { code: string }).code}`,
        (error: Error) => `thrown: ${error.message}`,
      );
    },
  };
}
