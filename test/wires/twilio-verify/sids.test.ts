import { expect, it } from "vitest";
import { attemptSid, authenticationUuidOf, sidOf, uuidOf } from "../../../src/wires/twilio-verify/sids.js";

it("a SID contains the UUID's digits, and converts back to it", () => {
  const uuid = "01890a5d-ac96-774b-bcce-b302099a8057";
  expect(sidOf("VE", uuid)).toBe("VE01890a5dac96774bbcceb302099a8057");
  expect(authenticationUuidOf("VE01890a5dac96774bbcceb302099a8057")).toBe(uuid);
  expect(uuidOf("AC", "AC01890A5DAC96774BBCCEB302099A8057")).toBe(uuid);
});

it("an invalid SID, or one of another kind, gives no UUID", () => {
  for (const text of ["", "VE", `VA${"0".repeat(32)}`, `VE${"0".repeat(31)}`, `VE${"0".repeat(33)}`, `VE${"0".repeat(31)}g`, `ve${"0".repeat(32)}`])
    expect(authenticationUuidOf(text), text).toBeUndefined();
});

it("each message of each verification has its own SID, which never changes", () => {
  const sids = [1, 2].flatMap((attempt) => ["a", "b"].map((uuid) => attemptSid(uuid, attempt)));
  expect(new Set(sids).size).toBe(4);
  for (const sid of sids) expect(sid).toMatch(/^VL[0-9a-f]{32}$/);
  expect(attemptSid("a", 1)).toBe(sids[0]);
});
