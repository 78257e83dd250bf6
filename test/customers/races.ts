import { expect } from "vitest";
import { generateApiKey } from "../../src/index.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { errorCode, start } from "../support/verifier.js";
import { type Handles, storedVerifier } from "./life.js";

/** The outcome of a racer's call: done, rejected because of the current state, or asked to retry. */
const outcomes = ["no error", "bad_request", "unavailable"];

/**
 * "of any number of racers exactly one is done" (ports/store.ts): each change of a customer is one commit that expects
 * the state it was based on, so that none undoes another.
 */
export async function raceCustomers({ store, peer }: Handles): Promise<void> {
  const clock = fixedClock(start);
  const verifiers = [store, peer].map((one) => storedVerifier(one, clock).verifier);
  const [here, there] = verifiers.map(({ customers }) => customers) as [(typeof verifiers)[0]["customers"], (typeof verifiers)[0]["customers"]];

  // Twenty keys issued in parallel: never more than two.
  const { customer_uuid } = await here.create();
  const issued = await Promise.all(Array.from({ length: 20 }, (_, i) => errorCode((i % 2 ? here : there).keys.issue({ customer_uuid }))));
  for (const fault of issued) expect(outcomes).toContain(fault);
  expect(issued.filter((fault) => fault === "no error")).toHaveLength(2);
  expect((await here.keys.list({ customer_uuid })).map(({ status }) => status)).toEqual(["active", "active"]);

  // A revocation during all other kinds of writes: once confirmed, it stays.
  for (let round = 0; round < 5; round++) {
    const [last] = await there.keys.list({ customer_uuid });
    const key_id = last?.key_id as string;
    const calls = Array.from({ length: 12 }, (_, i) => {
      const customers = i % 2 ? here : there;
      return [
        () => customers.keys.rotate({ customer_uuid, key_id, overlap: 60 }),
        () => customers.update({ customer_uuid, name: `name ${i}` }),
        () => customers.keys.issue({ customer_uuid }),
        () => (i % 8 < 4 ? customers.suspend({ customer_uuid }) : customers.resume({ customer_uuid })),
      ][i % 4] as () => Promise<unknown>;
    });
    const revoking = errorCode(here.keys.revoke({ customer_uuid, key_id }));
    const faults = await Promise.all(calls.map((call) => errorCode(call())));
    for (const fault of faults) expect(outcomes).toContain(fault);
    expect(await revoking).toBe("no error");
    const after = await there.keys.list({ customer_uuid });
    expect(after.find((key) => key.key_id === key_id)).toMatchObject({ status: "revoked" });
    expect(after.filter(({ status }) => status === "active" || status === "ending").length).toBeLessThanOrEqual(2);
    // Makes room for the next round.
    for (const { key_id: other, status } of after.slice(0, -1)) if (status !== "revoked") await here.keys.revoke({ customer_uuid, key_id: other });
    if ((await here.keys.list({ customer_uuid })).every(({ status }) => status === "revoked")) await here.keys.issue({ customer_uuid });
    clock.advance(1_000);
  }

  // Parallel creates with the same UUID: only one succeeds.
  const [, , ...created] = await Promise.all([
    here.list(),
    there.list(),
    ...Array.from({ length: 10 }, (_, i) => errorCode((i % 2 ? here : there).create({ customer_uuid: "0f0e0d0c-0b0a-4909-8807-060504030201", name: `${i}` }))),
  ]);
  expect(created.filter((fault) => fault === "no error")).toHaveLength(1);
  expect(created.filter((fault) => fault === "bad_request")).toHaveLength(9);
  expect((await here.list()).map((one) => one.customer_uuid).sort()).toEqual(["0f0e0d0c-0b0a-4909-8807-060504030201", customer_uuid].sort());

  // One key given to ten customers in parallel: only one gets it.
  const { key, digest } = generateApiKey();
  const given = await Promise.all(Array.from({ length: 10 }, (_, i) => errorCode((i % 2 ? here : there).create({ keys: [i % 3 ? key : digest] }))));
  expect(given.filter((fault) => fault === "no error")).toHaveLength(1);
  expect(given.filter((fault) => fault === "bad_request")).toHaveLength(9);
  for (const verifier of verifiers) await verifier.close();
}
