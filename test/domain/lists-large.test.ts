import { expect, it } from "vitest";
import { readList } from "../../src/domain/lists.js";

it("a query does not walk through a hundred thousand entries of each kind", () => {
  const many = Array.from({ length: 100_000 }, (_, at) => at);
  const { index, problems } = readList({
    numbers: many.map((at) => (at % 2 === 0 ? `+33${600_000_000 + at}` : `+44${7_000_000 + at}*`)),
    cidrs: many.map((at) => (at % 2 === 0 ? `10.${at >> 9}.${(at >> 1) & 255}.0/24` : `2001:db8:${at.toString(16).slice(-4)}::/48`)),
    devices: many.map((at) => `device ${at}`),
  });
  expect(problems).toEqual([]);
  // 3 × 10^10 comparisons, if each query walked through them.
  for (const at of many) index?.find({ number: `+49${at}`, ip: `192.0.${at >> 9}.${at & 255}`, deviceId: `none ${at}` });
  expect(index?.find({ number: "+33600099998" })?.kind).toBe("number");
  expect(index?.find({ number: "+33612345678", ip: "10.97.1.200" })?.kind).toBe("address");
});
