import { expect, it } from "vitest";
import { numberOf, onePerTenMinutes, setUp } from "../support/verifier.js";

it("docs/watching.md: statistics by hour, country, route and rule, in order of time", async () => {
  const set = setUp({ statistics: {}, policy: onePerTenMinutes });
  set.box.answer = async () => ({ outcome: "accepted", route: "a/b c" });
  const ask = () => set.verifier.stats({ customer_uuid: set.customer, from: new Date(set.clock.now() - 7_200_000), to: new Date(set.clock.now() + 1) });
  const { authentication_uuid } = await set.create();
  expect(await set.check(authentication_uuid, set.box.code())).toMatchObject({ status: "valid" });
  await set.create();
  await set.create({ phone_number: numberOf(7) });
  set.clock.advance(3_600_000);
  await set.create({ phone_number: numberOf(8) });
  expect(await set.create({ phone_number: numberOf(8) })).toMatchObject({ status: "rate_limited" });
  const stats = await ask();
  const [first, second] = ["2026-03-01T12:00:00.000Z", "2026-03-01T13:00:00.000Z"];
  const of = { country: "FR", route: "a/b c", cost: 0 };
  expect(stats).toMatchObject({ sends: 3, verified: 1, refused: 2, cost: 0 });
  expect(stats.messages).toEqual([
    { ...of, hour: first, sends: 2, verified: 1 },
    { ...of, hour: second, sends: 1, verified: 0 },
  ]);
  expect(stats.refusals).toEqual([first, second].map((hour) => ({ hour, country: "FR", rule: expect.stringContaining("perNumber"), refused: 1 })));
});

it("a route that is not well-formed text is counted, and does not make create fail (docs/contract.md#send-outcome)", async () => {
  const set = setUp({ statistics: {} });
  set.box.answer = async () => ({ outcome: "accepted", route: "\ud800" });
  expect((await set.create()).status).toBe("pending");
  const stats = await set.verifier.stats({ customer_uuid: set.customer, from: new Date(set.clock.now() - 1), to: new Date(set.clock.now() + 1) });
  expect(stats.messages).toMatchObject([{ route: "\ufffd", sends: 1 }]);
});
