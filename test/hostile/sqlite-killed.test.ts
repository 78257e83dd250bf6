import { randomUUID } from "node:crypto";
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Service } from "./kit.js";
import { callbackUrl, changes, ending, eventually, numberAt, tallied } from "./kit.js";
import { handle, many, opened, place, processes, serving } from "./sqlite-kit.js";

const start = processes();

const sound = (file: string): unknown[] => handle(file).prepare("pragma integrity_check").all();

describe("processes that are killed", () => {
  it("four under load, killed one after another: each acknowledged or sent create is stored, and acknowledged codes work (docs/contract.md#stored-first)", async () => {
    const { file } = place();
    const customer = randomUUID();
    const all = await Promise.all(many(4, () => start({ file, customer, options: { busyTimeout: 30_000 }, storeTimeout: 60 })));
    for (const [at, child] of all.entries()) void child.call("flood", at * 100_000, 8).catch(() => {});
    for (const child of all) {
      const before = child.told.length;
      await eventually("creates are acknowledged", () => child.told.length > before + 80);
      await child.kill();
    }
    const told = all.flatMap(({ told }) => told);
    const acknowledged = told.filter((one): one is { acknowledged: string; code: string; status: string } => "acknowledged" in one);
    expect(acknowledged.length).toBeGreaterThan(100);
    expect(tallied(acknowledged.map(({ status }) => status))).toEqual({ pending: acknowledged.length });
    const store = opened({ file });
    const missing: string[] = [];
    for (const id of told.flatMap(({ sent, acknowledged: id }) => [sent ?? (id as string)]))
      if ((await store.find(customer, id)) === undefined) missing.push(id);
    expect(missing).toEqual([]);
    const one = serving(store, { customer, storeTimeout: 60 });
    const checks = await Promise.all(acknowledged.slice(-100).map(({ acknowledged: id, code }) => ending(one.check(id, code))));
    expect(tallied(checks)).toEqual({ valid: checks.length });
    expect(sound(file)).toEqual([{ integrity_check: "ok" }]);
  });

  it("while they create the tables, at nine moments: the next process completes the tables and works (docs/stores.md)", async () => {
    const { file } = place();
    for (let moment = 0; moment < 9; moment++) {
      const { file: own } = moment % 3 === 0 ? place() : { file };
      const child = await start({ file: own });
      const woken = child.call("wake").catch(() => {});
      // As soon as the file appears, or some moments later.
      await eventually("the file is there", () => existsSync(own));
      for (let n = 0; n < moment; n++) await new Promise((done) => setImmediate(done));
      await child.kill();
      await woken;
      expect(await ending(serving(opened({ file: own }), { storeTimeout: 60 }).create(moment))).toBe("pending");
      expect(sound(own)).toEqual([{ integrity_check: "ok" }]);
    }
  });

  it("during checks: no more than five wrong codes of an authentication are evaluated, across four killed processes (docs/contract.md#checks)", async () => {
    const { file } = place();
    const customer = randomUUID();
    const one = serving(opened({ file }), { customer, storeTimeout: 60 });
    const { authentication_uuid: id } = await one.create(1);
    let invalid = 0;
    for (let round = 0; round < 4; round++) {
      const child = await start({ file, customer });
      // After one response the process is killed, while the other check is in progress or written without a response.
      const asked = many(2, () => child.call("check", id, [one.wrong(id)]).catch(() => ["killed"]));
      await Promise.race(asked);
      await child.kill();
      invalid += (await Promise.all(asked)).flat().filter((end) => end === "invalid").length;
    }
    const rest: string[] = [];
    for (let n = 0; n < 6; n++) rest.push(await ending(one.check(id, one.wrong(id))));
    invalid += rest.filter((end) => end === "invalid").length;
    expect(invalid).toBeLessThanOrEqual(5);
    expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("rate_limited");
  });

  it("during creates under keys: another process repeats them, with at most one message per number, each counted once (docs/contract.md#keyed-id)", async () => {
    const { file } = place();
    const customer = randomUUID();
    const numbers = many(60, (n) => numberAt(n));
    const child = await start({ file, customer, cap: 61 });
    const asked = numbers.map((number) => child.call("create", [number], true).catch(() => ["killed"]));
    await asked[20];
    await child.kill();
    await Promise.all(asked);
    const other = await start({ file, customer, cap: 61 });
    expect(tallied(await other.call("create", numbers, true))).toEqual({ pending: 60 });
    expect(tallied(await other.call("create", numbers, true))).toEqual({ pending: 60 });
    const sent = [...child.told, ...other.told].map(({ to }) => to);
    expect(child.told.length).toBeGreaterThan(0);
    expect([...new Set(sent)]).toEqual(sent);
    for (const { id, code } of await other.call("sent")) expect(await other.call("check", id, [code])).toEqual(["valid"]);
    expect([await other.call("create", [1_000]), await other.call("create", [1_001])]).toEqual([["pending"], ["rate_limited"]]);
  });

  it("three workers that deliver the callbacks of one file: each event is posted once (docs/contract.md#leases)", async () => {
    const { file } = place();
    const customer = randomUUID();
    const [first, ...others] = many(3, () => serving(opened({ file }), { customer, storeTimeout: 60 })) as [Service, ...Service[]];
    for (let n = 0; n < 30; n++) await first.create(n, { callback_url: callbackUrl });
    const all = [first, ...others];
    await eventually("all are delivered", async () => {
      await Promise.all(all.map(({ verifier }) => verifier.flush()));
      return all.flatMap(({ hook }) => hook.posted).length >= 30;
    });
    await Promise.all(all.map(({ verifier }) => verifier.flush()));
    const ids = all.flatMap(({ hook }) => hook.posted.map(({ id }) => id));
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe("a log after a crash of the machine", () => {
  /** A file with forty commits in its log, none of them in the database itself, and what they counted. */
  async function logged() {
    const { file, folder } = place();
    const store = opened({ file });
    await store.get("made");
    const admin = handle(file);
    admin.exec("pragma wal_autocheckpoint = 0");
    admin.prepare("pragma wal_checkpoint(truncate)").all();
    const { customer, sum, record, ends } = changes();
    const ids: string[] = [];
    for (let n = 0; n < 40; n++) {
      const made = record();
      ids.push(made.id);
      const member = { window: `${customer}:w`, member: made.id, since: 0, limit: 900, ...ends };
      expect(await store.commit({ claims: [{ ...sum("s"), weight: 3 }, member], record: made })).toMatchObject({ done: true });
    }
    const size = statSync(`${file}-wal`).size;
    expect(size).toBeGreaterThan(40_000);
    return { file, folder, customer, sum, ids, size };
  }

  it("cut anywhere: the commits before the cut are whole, those after it are gone, and no claim is without its record (docs/contract.md#one-commit)", async () => {
    const { file, folder, customer, sum, ids, size } = await logged();
    const found: number[] = [];
    for (let cut = 0; cut <= 20; cut++) {
      const copy = `${folder}/copy-${cut}.db`;
      copyFileSync(file, copy);
      writeFileSync(`${copy}-wal`, readFileSync(`${file}-wal`).subarray(0, Math.floor((size * cut) / 20)));
      const store = opened({ file: copy });
      const there = await Promise.all(ids.map((id) => store.find(customer, id)));
      const count = there.filter((record) => record !== undefined).length;
      expect(there.map((record) => record !== undefined)).toEqual(ids.map((_, at) => at < count));
      expect(await store.commit({ asks: [sum("s")] })).toMatchObject({ asked: [3 * count] });
      expect(await store.members(`${customer}:w`, 100)).toHaveLength(count);
      found.push(count);
    }
    expect([found[0], found.at(-1)]).toEqual([0, 40]);
  });

  it("damaged in the middle: later commits are gone, earlier ones are whole, and the store keeps working (docs/contract.md#one-commit)", async () => {
    const { file, folder, customer, sum, ids, size } = await logged();
    const copy = `${folder}/damaged.db`;
    copyFileSync(file, copy);
    const bytes = Buffer.from(readFileSync(`${file}-wal`));
    bytes.fill(0xa5, Math.floor(size / 2), Math.floor(size / 2) + 64);
    writeFileSync(`${copy}-wal`, bytes);
    const store = opened({ file: copy });
    const count = (await Promise.all(ids.map((id) => store.find(customer, id)))).filter((record) => record !== undefined).length;
    expect(count).toBeGreaterThan(5);
    expect(count).toBeLessThan(40);
    expect(await store.commit({ asks: [sum("s")] })).toMatchObject({ asked: [3 * count] });
    expect(await ending(serving(store).create(1))).toBe("pending");
    expect(sound(copy)).toEqual([{ integrity_check: "ok" }]);
  });

  it("a copy of file and log after each acknowledged create has that create: it was written before its response (docs/contract.md#stored-first)", async () => {
    const { file, folder } = place();
    const one = serving(opened({ file }), { storeTimeout: 60 });
    for (let n = 0; n < 10; n++) {
      const { authentication_uuid: id } = await one.create(n);
      const copy = `${folder}/copy-${n}.db`;
      copyFileSync(file, copy);
      copyFileSync(`${file}-wal`, `${copy}-wal`);
      expect(await opened({ file: copy }).find(one.customer, id)).toMatchObject({ id });
    }
  });
});
