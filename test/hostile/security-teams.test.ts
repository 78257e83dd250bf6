import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { dumpOfMemory } from "../support/dump.js";
import { team, victim } from "./security-teams-kit.js";

const digits = victim.slice(1);

describe("what a block list leaves behind", () => {
  it("a device on the block list whose id is a phone number is in no event", async () => {
    const { events, status } = team({ lists: { block: { devices: [victim] } } });
    expect(await status(victim, { device_id: victim })).toBe("spam_detected");
    await expect.poll(() => events.some(({ type }) => type === "refused")).toBe(true);
    expect(JSON.stringify(events)).not.toContain(digits);
  });

  it("the address and the device that were blocked are not stored in clear text", async () => {
    const { verifier, store, status } = team({ lists: { block: { cidrs: ["81.2.3.4"], devices: ["b7c8-the-device"] } } });
    expect(await status(victim, { ip: "81.2.3.4" })).toBe("spam_detected");
    expect(await status(victim, { device_id: "b7c8-the-device" })).toBe("spam_detected");
    expect(await verifier.history({ phone_number: victim })).toHaveLength(2);
    const stored = dumpOfMemory(store).join("\n");
    expect([stored.includes("81.2.3.4"), stored.includes("b7c8-the-device")]).toEqual([false, false]);
  });
});

describe("numbers in reasons and errors", () => {
  it.each([
    ["no-break spaces", "+33\u00a06\u00a012\u00a034\u00a056\u00a078"],
    ["narrow no-break spaces", "06\u202f12\u202f34\u202f56\u202f78"],
    ["slashes", "06/12/34/56/78"],
  ])("a number with %s is removed from the reason of an own rule", async (_name, written) => {
    const { events, status } = team({ spamRules: [{ name: "crm", judge: () => ({ reason: `${written} is a known fraud` }) }] });
    expect(await status(victim)).toBe("spam_detected");
    await expect.poll(() => events.some(({ type }) => type === "refused")).toBe(true);
    expect(JSON.stringify(events)).not.toContain(written);
  });

  it("a number with no-break spaces in the error of an own rule is not logged", async () => {
    const written = "+33\u00a06\u00a012\u00a034\u00a056\u00a078";
    const judge = () => {
      throw new Error(`the CRM has no entry for ${written}`);
    };
    const { log, status } = team({ spamRules: [{ name: "crm", judge }] });
    expect(await status(victim)).toBe("pending");
    expect(log.lines).not.toEqual([]);
    expect(JSON.stringify(log.lines)).not.toContain(written);
  });
});

describe("the user's address", () => {
  it("the page's form takes a visitor of the local network, whose address has a zone", async () => {
    const page = await readFile(new URL("../../docs/front-end.md", import.meta.url), "utf8");
    const [, pattern = "", replacement = ""] = /request\.ip\?\.replace\(\/(.+)\/, "(.+?)"\)/.exec(page) ?? [];
    expect(pattern).not.toBe("");
    // What Node and Express report of a phone that opened http://my-laptop.local:3000.
    const ip = "fe80::fc:ff:fe00:1%eth0".replace(new RegExp(pattern), replacement);
    expect(await team().status(victim, { ip })).toBe("pending");
  });
});
