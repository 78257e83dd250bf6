import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dial, exchange, type Line } from "./client.js";
import type { Host } from "./hosts.js";
import { type Service, until } from "./service.js";
import type { Traits } from "./wire.js";

/** Slow, endless and aborted bodies sent to `/v1` or `/receipts`, over one way of mounting. */
export function bodySuite(traits: Traits, root: "/v1" | "/receipts", start: () => Promise<{ host: Host; service: Service }>): void {
  describe(`${traits.name}: bodies to ${root}`, () => {
    let host: Host;
    let service: Service;

    beforeAll(async () => {
      ({ host, service } = await start());
    });
    afterAll(() => host?.close());

    const target = () => host.port as number;
    const requestOf = (method: string, path: string, ...lines: string[]) =>
      [`${method} ${host.prefix}${path} HTTP/1.1`, "Host: localhost", ...lines, "", ""].join("\r\n");
    /** The head of a request whose body is read: with a key on `/v1`, without one on `/receipts`. */
    const head = (...lines: string[]) =>
      root === "/v1"
        ? requestOf("POST", "/v1/authentication", `x-api-key: ${service.customer.key}`, "Content-Type: application/json", ...lines)
        : requestOf("POST", "/receipts/twilio", "Content-Type: application/x-www-form-urlencoded", ...lines);
    /** The head of a request that is rejected without reading its body. */
    const refusedHead = (...lines: string[]) => requestOf("POST", `${root}/none`, ...lines);
    const waiting = (count: number, ms: number) => until(async () => (await service.waits()).filter((wait) => wait === ms).length === count);
    const ownError = (code: string) => ({ code, message: expect.any(String), doc_url: expect.any(String) });
    /**
     * Expects the connections to be closed five seconds after the response by the clock, or whenever the platform does
     * that.
     */
    const closes = async (...lines: Line[]) => {
      if (!traits.fetch) {
        await waiting(lines.length, 5_000);
        await service.pass(5_000);
      }
      await Promise.all(lines.map((line) => line.closed()));
    };
    /** How much the server has read once it stops reading: both ends are in this process. */
    const readWhenStill = async (read: () => number) => {
      let before = -1;
      for (let turns = 0; turns < 100; turns++) {
        if (read() !== before) turns = 0;
        before = read();
        await new Promise((resolve) => setImmediate(resolve));
      }
      return before;
    };

    test("a client that disconnects during a body is not an error: nothing is logged", async () => {
      const before = { logged: [...(await service.logged())], answers: (await service.answers()).length };
      for (const size of ["Content-Length: 500", "Transfer-Encoding: chunked"]) {
        const start = size.startsWith("C") ? '{"customer_uuid":' : '5\r\n{"cus\r\n';
        for (let count = 0; count < 5; count++) await exchange(target(), head("Expect: 100-continue", size) + start, () => true);
      }
      // A host that reads bodies first may never call us.
      if (!traits.readsFirst) await until(async () => (await service.answers()).length === before.answers + 10);
      await host.send({ method: "GET", path: `${host.prefix}${root}/none` });
      expect(await service.logged()).toEqual(before.logged);
    });

    // A body that the host's parser reads before us may take as long as the host allows.
    if (!traits.readsFirst) {
      test("twenty uploads that trickle in get 408 after ten seconds, and their connections are closed", async () => {
        const logged = [...(await service.logged())];
        const lines = Array.from({ length: 20 }, () => dial(target(), `${head("Content-Length: 500")}{`));
        await waiting(20, 10_000);
        for (let second = 1; second < 10; second++) {
          for (const line of lines) line.write(" ");
          await service.pass(1_000);
        }
        await waiting(20, 1_000);
        await service.pass(1_000);
        for (const line of lines) expect(await line.answer()).toEqual({ status: 408, body: ownError("request_timeout") });
        await closes(...lines);
        expect(await service.logged()).toEqual(logged);
        expect(await service.sent()).toEqual([]);
      });

      const endless = async (status: number, code: string, start: string) => {
        const line = dial(target(), start);
        const before = host.read?.() ?? 0;
        const left = line.pour();
        expect(await line.answer()).toEqual({ status, body: ownError(code) });
        if (host.read) expect((await readWhenStill(host.read)) - before).toBeLessThan(2 * 1024 * 1024);
        await closes(line);
        if (traits.next) expect(left()).toBeGreaterThan(0);
      };

      test("after a 413 an endless chunked body is no longer read, and the connection is closed", async () => {
        await endless(413, "payload_too_large", head("Transfer-Encoding: chunked"));
      });

      test("after a 404, given without reading the body, an endless one is not read, and the connection is closed", async () => {
        await endless(404, "not_found", refusedHead("Transfer-Encoding: chunked"));
      });

      test("a body that trickles in after the response does not keep its connection open", async () => {
        const lines = Array.from({ length: 20 }, () => dial(target(), `${refusedHead("Content-Length: 500")}{`));
        for (const line of lines) expect(await line.answer()).toEqual({ status: 404, body: ownError("not_found") });
        await closes(...lines);
      });

      if (!traits.fetch)
        test("the rest of a body that arrives in time is skipped, and the connection serves more requests", async () => {
          const line = dial(target(), `${refusedHead("Content-Length: 20")}0123456789`);
          expect((await line.answer()).status).toBe(404);
          await waiting(1, 5_000);
          line.write(`0123456789${refusedHead("Content-Length: 10")}0123456789`);
          expect((await line.answer()).status).toBe(404);
          await until(async () => (await service.waits()).length === 0);
          line.close();
        });
    }
  });
}
