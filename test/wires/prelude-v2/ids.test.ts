import { expect, it } from "vitest";
import { typeId } from "../../../src/domain/ids.js";
import { authenticationUuidOf } from "../../../src/wires/prelude-v2/index.js";

const verificationId = (uuid: string) => typeId("vrf", uuid);

it("an id is the UUID in Crockford's base 32, and converts back to it", () => {
  expect(verificationId("00000000-0000-0000-0000-000000000000")).toBe(`vrf_${"0".repeat(26)}`);
  expect(verificationId("ffffffff-ffff-ffff-ffff-ffffffffffff")).toBe(`vrf_7${"z".repeat(25)}`);
  expect(verificationId("01890a5d-ac96-774b-bcce-b302099a8057")).toBe("vrf_01h455vb4pex5vsknk084sn02q");
  for (let drawn = 0; drawn < 1000; drawn++) {
    const uuid = crypto.randomUUID();
    expect(authenticationUuidOf(verificationId(uuid))).toBe(uuid);
  }
});

it("an invalid id gives no UUID", () => {
  for (const text of [
    "",
    "vrf_",
    `vrf_8${"0".repeat(25)}`,
    `vrf_${"0".repeat(25)}`,
    `vrf_${"0".repeat(25)}u`,
    `vrf_${"0".repeat(25)}I`,
    `att_${"0".repeat(26)}`,
  ])
    expect(authenticationUuidOf(text), text).toBeUndefined();
});
