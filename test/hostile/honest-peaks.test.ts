import { describe, expect, it } from "vitest";
import { anywhereInFrance, day, faroese, group, hour, manyNetworks, minute, rejectedPercent, town } from "./honest-peaks-kit.js";

const french = { number: anywhereInFrance, ip: manyNetworks };

describe("a young country: the alarm and its strange networks", () => {
  it("lets users in two hours after 200 of them came in the first minute of a launch (docs/contract.md#spam-strange-network, docs/fraud.md#what-an-attacker-can-lock-out)", async () => {
    const here = town();
    const [first, soon, later] = [group(), group(), group()];
    here.come(first, 200, 0, minute, french);
    here.come(soon, 120, minute, 2 * hour, french);
    here.come(later, 120, 2 * hour, 2 * hour, french);
    await here.play();
    expect(rejectedPercent(later), JSON.stringify({ first, soon, later })).toBeLessThanOrEqual(1);
  });

  it("lets users in two hours after a carrier delivered nothing in the first 40 minutes of a launch (docs/contract.md#spam-strange-network, docs/fraud.md#what-an-attacker-can-lock-out)", async () => {
    const here = town();
    const [first, later] = [group(), group()];
    here.come(first, 40, 0, 40 * minute, { ...french, entering: 0 });
    here.come(group(), 120, 40 * minute, 2 * hour, french);
    here.come(later, 120, 160 * minute, 2 * hour, french);
    await here.play();
    expect(
      Object.keys(later.by).filter((rule) => rule === "strangeNetwork"),
      JSON.stringify({ first, later }),
    ).toEqual([]);
  });

  it.each([
    [30, 2],
    [60, 0],
  ])(
    "lets users in two hours after an attack of one minute, if %d an hour come and who is rejected tries again %d times (docs/fraud.md#what-an-attacker-can-lock-out)",
    async (perHour, triesAgain) => {
      const here = town();
      let sent = 0;
      for (let i = 0; i < 60; i++) {
        here.at(i * 1_000, async () => {
          if ((await here.site.create(anywhereInFrance(here.next), { ip: `190.${i}.1.1` })).status === "pending") sent++;
        });
      }
      const later = group();
      here.come(group(), 2 * perHour, minute, 2 * hour, { ...french, triesAgain });
      here.come(later, 2 * perHour, 2 * hour, 2 * hour, { ...french, triesAgain });
      await here.play();
      expect(
        Object.keys(later.by).filter((rule) => rule === "strangeNetwork"),
        JSON.stringify({ sent, later }),
      ).toEqual([]);
    },
  );

  it.each([
    ["some", 50, 20],
    ["none, if policy.spam.strangeNetwork.base is 200,", 0, 200],
  ])("rejects %s of 200 who come within a minute where 50 come a day, and none in the next hour (docs/fraud.md#results)", async (_, percent, base) => {
    const here = town(3, { policy: { spam: { strangeNetwork: { base } } } });
    const [before, spot, after] = [group(), group(), group()];
    here.come(before, 150, 0, 3 * day, french);
    here.come(spot, 200, 3 * day, minute, french);
    here.come(after, 20, 3 * day + 5 * minute, hour, french);
    await here.play();
    expect(rejectedPercent(before)).toBeLessThanOrEqual(1);
    expect(rejectedPercent(spot), JSON.stringify(spot)).toBeLessThanOrEqual(percent);
    expect(rejectedPercent(after), JSON.stringify(after)).toBe(0);
  });
});

describe("the crowd rule where few ranges exist", () => {
  it.each([
    ["300 users of the Faroe Islands", faroese, 300],
    ["a company whose 100 phones are in one range of 10,000", (next: () => number) => `+3361234${faroese(next).slice(-4)}`, 100],
  ])("lets %s sign in each day, after each has verified once (docs/contract.md#trust)", async (_, number, people) => {
    const here = town();
    const users = Array.from({ length: people }, () => ({ number: number(here.next), ip: manyNetworks(here.next) }));
    const [first, daily] = [group(), group()];
    for (const [i, user] of users.entries()) {
      const habits = { number: () => user.number, ip: () => user.ip };
      here.come(first, 1, (i * 12 * day) / people, minute, { ...habits, entering: 1 });
      for (let on = 14; on < 17; on++) here.come(daily, 1, on * day + 7 * hour, 16 * hour, { ...habits, entering: 0.97 });
    }
    await here.play();
    expect(rejectedPercent(first), JSON.stringify(first)).toBe(0);
    // Who asked for a second message yesterday, and signs in again within 24 hours, does not pass.
    expect(rejectedPercent(daily), JSON.stringify(daily)).toBeLessThanOrEqual(3);
  });
});

describe("guards", () => {
  it("takes a number's messages back once, by an unlock and then by its code (docs/contract.md#unlock, docs/contract.md#balance)", async () => {
    const { site } = town();
    const user = { phone_number: "+33612000001" };
    const { authentication_uuid } = await site.create(user.phone_number);
    for (const wait of [31_000, 61_000]) {
      site.clock.advance(wait);
      expect((await site.verifier.retry({ authentication_uuid })).status).toBe("approved");
    }
    expect((await site.verifier.unlock(user)).unlocked).toBe(true);
    await site.enter(authentication_uuid);
    let sent = 0;
    for (let i = 0; i < 20; i++) if ((await site.create(`+336120001${String(i).padStart(2, "0")}`)).status === "pending") sent++;
    expect(sent).toBe(5 + 2);
  });

  it("counts in stats each request that a peak rejected, under the rules of the events (docs/watching.md#statistics)", async () => {
    const refused: string[] = [];
    const here = town(3, { statistics: {} }, (rules) => refused.push(...rules));
    const start = here.site.clock.now();
    const [one, other] = [group(), group()];
    here.come(one, 300, 0, 5 * minute, french);
    here.come(other, 100, 0, 5 * minute, { number: anywhereInFrance, ip: () => "81.7.7.7" });
    await here.play();
    here.site.clock.advance(minute);
    await expect.poll(async () => (await here.site.verifier.stats({ from: new Date(start), to: new Date(start + day) })).refused).toBe(refused.length);
    const { refusals, sends } = await here.site.verifier.stats({ from: new Date(start), to: new Date(start + day) });
    expect(sends).toBe(here.site.messages.length);
    for (const rule of new Set(refused)) {
      const counted = refusals.filter((row) => row.rule === rule).reduce((all, row) => all + row.refused, 0);
      expect(counted, rule).toBe(refused.filter((name) => name === rule).length);
    }
    expect(new Set(refused).size).toBeGreaterThan(1);
  });

  it("rejects no one of 800 who share three addresses of their operator over half a day (docs/decisions/no-caps-per-ip.md)", async () => {
    const here = town();
    const them = group();
    here.come(them, 800, 0, 4 * hour, { number: anywhereInFrance, ip: (next) => `100.7.7.${1 + Math.floor(next() * 3)}` });
    await here.play();
    expect(rejectedPercent(them), JSON.stringify(them)).toBeLessThanOrEqual(1);
  });
});
