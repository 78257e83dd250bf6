import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exchange } from "./client.js";
import type { Host } from "./hosts.js";
import { type Service, until } from "./service.js";
import type { Traits } from "./wire.js";

/** Bodies that do not come as they should, over one way of mounting, to `/v1` or `/receipts`. */
export function bodySuite(traits: Traits, root: "/v1" | "/receipts", start: () => Promise<{ host: Host; service: Service }>): void {
  describe(`${traits.name}: bodies to ${root}`, () => {
    let host: Host;
    let service: Service;

    beforeAll(async () => {
      ({ host, service } = await start());
    });
    afterAll(() => host?.close());

    const target = () => host.port as number;
    /** The head of a request whose body is read: on `/v1` with a key, on `/receipts` without. */
    const head = (...lines: string[]) => {
      const path = root === "/v1" ? "/v1/authentication" : "/receipts/twilio";
      const key =
        root === "/v1" ? [`x-api-key: ${service.customer.key}`, "Content-Type: application/json"] : ["Content-Type: application/x-www-form-urlencoded"];
      return [`POST ${host.prefix}${path} HTTP/1.1`, "Host: localhost", ...key, ...lines, "", ""].join("\r\n");
    };

    test("M7: a client that goes away in the middle of a body is no error: nothing is logged", async () => {
      const before = { logged: [...(await service.logged())], answers: (await service.answers()).length };
      for (const size of ["Content-Length: 500", "Transfer-Encoding: chunked"]) {
        const start = size.startsWith("C") ? '{"customer_uuid":' : '5\r\n{"cus\r\n';
        for (let count = 0; count < 5; count++) await exchange(target(), head("Expect: 100-continue", size) + start, () => true);
      }
      // A host that reads first may never ask us.
      if (!traits.readsFirst) await until(async () => (await service.answers()).length === before.answers + 10);
      await host.send({ method: "GET", path: `${host.prefix}${root}/none` });
      expect(await service.logged()).toEqual(before.logged);
    });
  });
}
