import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { Change, Store } from "../../src/ports/store.js";
import { changes, ending, numberAt, sender, service, tallied, wide } from "./kit.js";

/** Tests of odd texts and numbers, next to ordinary requests that go to the database together with them. */
export function oddValues(stored: () => Store | Promise<Store>, odd: readonly string[], numbers: readonly number[]): void {
  it("an odd text in any field is stored unchanged, or rejected without affecting other requests (docs/contract.md#one-commit)", async () => {
    const store = await stored();
    for (const text of odd) {
      const { customer, ends, sum, record } = changes();
      const innocent = () => store.commit({ claims: [sum("innocent")], record: record() });
      const hostile: Change[] = [
        { claims: [sum("data")], record: record({ data: text }) },
        { claims: [sum("token")], record: record({ tokens: [text] }) },
        { claims: [sum("tokens")], record: record({ tokens: [randomUUID(), text, randomUUID()] }) },
        { claims: [sum("id")], record: record({ id: text }) },
        { claims: [sum("member"), { window: `${customer}:w`, member: text, since: 0, ...ends }] },
        { claims: [sum("window"), { window: `${customer}:${text}`, member: "m", since: 0, ...ends }] },
        { claims: [sum("sum"), sum(text)] },
        { claims: [sum("expected")], record: record(), expected: text },
      ];
      void innocent();
      const work = hostile.map((change) => [store.commit(change), innocent()] as const);
      const results = await Promise.allSettled(work.map(([one]) => one));
      const innocents = await Promise.allSettled(work.map(([, one]) => one));
      expect(innocents.map((one) => one.status === "fulfilled" && one.value.done)).toEqual(hostile.map(() => true));
      for (const [at, change] of hostile.entries()) {
        const result = results[at] as (typeof results)[number];
        const done = result.status === "fulfilled" && result.value.done;
        const claim = change.claims?.[0] as ReturnType<typeof sum>;
        const [counted] = await store.commit({ asks: [claim] }).then((answer) => (answer.done ? answer.asked : []));
        expect(counted, claim.sum).toBe(done ? 1 : 0);
        if (!done || !change.record) continue;
        expect(await store.find(customer, change.record.id)).toMatchObject({ data: change.record.data, tokens: change.record.tokens });
      }
      if (results[4]?.status === "fulfilled") expect(await store.members(`${customer}:w`, 5)).toEqual([text]);
    }
  });

  it("numbers at and beyond every range are stored exactly, or rejected without affecting other requests (docs/contract.md#one-commit)", async () => {
    const store = await stored();
    for (const value of numbers) {
      const { customer, ends, sum, record } = changes();
      const hostile: Record<string, Change> = {
        weight: { claims: [{ ...sum("weight"), weight: value }] },
        part: { claims: [{ ...sum("part"), part: value }] },
        parts: { claims: [{ ...sum("parts"), parts: value }] },
        limit: { claims: [{ ...sum("limit"), limit: value }] },
        floor: { claims: [{ ...sum("floor"), floor: value } as never] },
        keepUntil: { claims: [{ ...sum("keep"), keepUntil: value }] },
        since: { claims: [{ window: `${customer}:w`, member: "m", since: value, ...ends }] },
        now: { claims: [{ ...sum("now"), now: value }] },
        ends: { record: record({ keepUntil: value }) },
        wakeAt: { record: record({ wakeAt: value }) },
        counts: { claims: [sum("counts")], counts: [value] },
      };
      void store.commit({ claims: [sum("innocent")] });
      const innocents: Promise<{ done: boolean }>[] = [];
      const work = Object.values(hostile).map((change) => {
        innocents.push(store.commit({ claims: [sum("innocent")], record: record() }));
        return store.commit(change);
      });
      const [weighed] = await Promise.allSettled(work);
      expect((await Promise.allSettled(innocents)).map((one) => one.status === "fulfilled" && one.value.done)).toEqual(innocents.map(() => true));
      expect(await store.commit({ asks: [sum("innocent")] })).toMatchObject({ asked: [innocents.length + 1] });
      if (weighed?.status !== "fulfilled" || !Number.isSafeInteger(value)) continue;
      expect(await store.commit({ asks: [sum("weight")] })).toMatchObject({ asked: [value === 0 ? expect.closeTo(0) : value] });
      await store.lease(0, 1_000, 1);
    }
  });

  it("through the public API, each text is stored or rejected as the caller's error, and no other request fails with it (docs/contract.md#device-fields)", async () => {
    let answers = 0;
    const named = odd.filter((text) => text !== "" && !/[\ud800-\udfff]/u.test(text));
    const carrier = sender();
    carrier.answer = async () => {
      const text = (named[answers++ % named.length] as string).slice(0, 5_000);
      return { outcome: "accepted", route: text, messageId: text, idSpace: text, keepId: true };
    };
    const shared = { store: await stored(), storeTimeout: 60, customer: randomUUID(), statistics: {} };
    const hostile = service({
      ...shared,
      policy: { limits: wide },
      sender: carrier,
      spamRules: [{ name: "own", cell: ({ os_version }) => odd[Number(os_version)], seed: 1_000, perVerified: 2 }],
    });
    const innocent = service({ ...shared, policy: { limits: wide } });
    const [asked, beside]: [Promise<string>[], Promise<string>[]] = [[], []];
    let number = 0;
    for (const [at, text] of odd.entries()) {
      for (const field of ["device_id", "device_model", "app_version", "os_version", "ip", "proof", "callback_url", "channel"])
        asked.push(ending(hostile.create(number++, { os_version: String(at), [field]: text })));
      for (const more of [{ correlation_id: text }, { locale: text }, { callback_form: text }])
        asked.push(ending(hostile.verifier.verifications.start({ customer_uuid: shared.customer, phone_number: numberAt(number++), ...more } as never)));
      asked.push(ending(hostile.create(number++, {}, { idempotencyKey: text })));
      asked.push(ending(hostile.check(text, text)), ending(hostile.retry(text)));
      for (let n = 0; n < 6; n++) beside.push(ending(innocent.create(number++, { device_id: `device ${number}` })));
    }
    expect(tallied(await Promise.all(beside))).toEqual({ pending: beside.length });
    const ends = tallied(await Promise.all(asked));
    expect(Object.keys(ends).filter((end) => !/^(pending|bad_request|invalid_\w+)$/.test(end))).toEqual([]);
    expect(carrier.messages).toHaveLength(ends["pending"] ?? 0);
    await hostile.verifier.flush();
    const checks = carrier.messages.map(({ authentication_uuid: id, code }) => ending(hostile.check(id, code)));
    expect(tallied(await Promise.all(checks))).toEqual({ valid: checks.length });
    for (const { authentication_uuid: id } of carrier.messages.slice(0, named.length))
      expect(await hostile.verifier.explain({ customer_uuid: shared.customer, authentication_uuid: id })).toMatchObject({ authentication_uuid: id });
  });
}
