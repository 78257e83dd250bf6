import { promises } from "node:dns";
import { afterEach, describe, expect, it } from "vitest";
import { guardedSender } from "../../src/callbacks/guarded-sender.js";
import { nameResolver } from "../../src/callbacks/names.js";
import { type NameServer, nameServer, type Zone } from "./name-server.js";

const servers: NameServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

const serve = async (zone: Zone) => {
  const server = await nameServer(zone);
  servers.push(server);
  return server;
};

const six = "2606:4700:0:0:0:0:0:1111";

describe("webhook names are looked up by a separate resolver with a deadline", () => {
  it("returns the addresses of both families, or of one if the other has none", async () => {
    const zone: Record<string, readonly string[]> = { "both.example": ["93.184.216.34", six], "four.example": ["93.184.216.34"], "six.example": [six] };
    const server = await serve((name) => zone[name] ?? []);
    const resolve = nameResolver({ servers: [server.address] });
    expect(await resolve("four.example", "c")).toEqual([{ address: "93.184.216.34", family: 4 }]);
    expect(await resolve("six.example", "c")).toEqual([{ address: "2606:4700::1111", family: 6 }]);
    expect(await resolve("both.example", "c")).toEqual([
      { address: "93.184.216.34", family: 4 },
      { address: "2606:4700::1111", family: 6 },
    ]);
    await expect(resolve("none.example", "c")).rejects.toThrow("ENOTFOUND");
  });

  it("returns one family's addresses at the deadline if the other gets no response", async () => {
    const server = await serve((_name, family) => (family === 6 ? undefined : ["93.184.216.34"]));
    expect(await nameResolver({ servers: [server.address], timeout: 200 })("half.example", "c")).toEqual([{ address: "93.184.216.34", family: 4 }]);
  });

  it("a name whose servers never respond fails at the deadline", async () => {
    const server = await serve(() => undefined);
    const started = Date.now();
    await expect(nameResolver({ servers: [server.address], timeout: 200 })("silent.example", "c")).rejects.toThrow();
    expect(Date.now() - started).toBeLessThan(5_000);
  });

  it("sixty names without a response block neither the host's own lookups nor another customer's", async () => {
    const server = await serve((name) => (name.startsWith("silent") ? undefined : ["93.184.216.34"]));
    const resolve = nameResolver({ servers: [server.address], timeout: 1_000 });
    let settled = 0;
    const hanging = Array.from({ length: 60 }, (_, index) => resolve(`silent${index}.example`, "greedy").catch(() => settled++));
    await promises.lookup("localhost");
    expect(await resolve("well.example", "modest")).toHaveLength(1);
    expect(settled, "silent names that are over").toBe(0);
    expect(new Set(server.asked.filter((name) => name.startsWith("silent"))).size, "at a time for one customer").toBeLessThanOrEqual(8);
    void hanging;
  });

  it("with two lookups at a time for one customer, others wait until one ends, and all of them end", async () => {
    const server = await serve((name) => (name.startsWith("silent") ? undefined : ["93.184.216.34"]));
    const resolve = nameResolver({ servers: [server.address], timeout: 100, perCustomer: 2 });
    const order: string[] = [];
    const ask = (name: string) =>
      resolve(name, "c").then(
        () => order.push(name),
        () => order.push(name),
      );
    await Promise.all(["silent1.example", "silent2.example", "a.example", "b.example"].map(ask));
    // The second unanswered name may end shortly after the lookup that took the place of the first.
    expect(order[0], "the others waited").toMatch(/^silent/);
    expect(order).toHaveLength(4);
  });

  it("a name without an address is remembered for a while; one with an address is looked up for each connection, parallel ones together", async () => {
    let known = false;
    const server = await serve((name) => (name === "late.example" && !known ? [] : ["93.184.216.34"]));
    const resolve = nameResolver({ servers: [server.address], remembered: 100 });
    await expect(resolve("late.example", "c")).rejects.toThrow();
    known = true;
    await expect(resolve("late.example", "other")).rejects.toThrow();
    expect(server.asked).toHaveLength(2);
    await expect.poll(() => resolve("late.example", "c").catch(() => "failed"), { interval: 50 }).toHaveLength(1);
    server.asked.length = 0;
    await Promise.all(Array.from({ length: 16 }, () => resolve("well.example", "c")));
    expect(server.asked).toHaveLength(2);
    await resolve("well.example", "c");
    expect(server.asked).toHaveLength(4);
  });

  it("if the runtime has no such resolver, the system's looks up one name at a time", async () => {
    let most = 0;
    let running = 0;
    const systemLookup = async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
      return [{ address: "93.184.216.34", family: 4 }];
    };
    const { Resolver, lookup: real } = promises;
    Object.assign(promises, { Resolver: undefined, lookup: systemLookup });
    try {
      const resolve = nameResolver();
      const found = await Promise.all(Array.from({ length: 20 }, (_, index) => resolve(`n${index}.example`, `c${index}`)));
      expect([found.flat().length, most]).toEqual([20, 1]);
    } finally {
      Object.assign(promises, { Resolver, lookup: real });
    }
  });

  it("the guard checks what it returns: a name that resolves to an internal address is rejected", async () => {
    const server = await serve(() => ["127.0.0.1"]);
    const sender = guardedSender({ resolve: nameResolver({ servers: [server.address] }) });
    const request = { url: "https://inside.example.com/", customer: "c", headers: {}, body: "{}", timeout: 2_000, allowOrigins: [] };
    expect(await sender.post(request)).toEqual({ failed: "the host of callback_url resolves to 127.0.0.1, which is not on the public internet" });
    sender.close();
  });
});
