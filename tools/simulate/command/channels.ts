/**
 * `npm run simulate:channels`: plays users who can be reached on several channels, and prints what a verified number
 * costs with and without a fallback, and what the rules do to an attack by calls or on WhatsApp.
 */
import { parseArgs } from "node:util";
import { latencyOf } from "../../../bench/report.js";
import { type ChannelResult, type ChannelSetup, callPrice, channelCountries, late, playChannels, silent } from "../channels.js";

const { values } = parseArgs({ options: { users: { type: "string", default: "1000" }, seed: { type: "string", default: "1" } } });
const size = { users: whole("--users", values.users), seed: whole("--seed", values.seed) };

const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
const dollars = (amount: number) => `$${amount.toFixed(amount < 1 ? 4 : 2)}`;

function print(title: string, rows: readonly Readonly<Record<string, string | number>>[]): void {
  console.log(`\n${title}`);
  console.table(rows);
}

async function played(setup: ChannelSetup): Promise<ChannelResult> {
  const result = await playChannels(setup, size);
  if (result.faults > 0) throw new Error(`simulate:channels: ${result.faults} errors`);
  return result;
}

console.log(`${size.users} users of each country over two days, seed ${size.seed}. All of them want the code.`);
print(
  `Assumed: ${percent(silent)} of the messages on WhatsApp and Telegram are not seen in time, ${percent(late)} of these arrive minutes later; a call costs ${dollars(callPrice)}`,
  channelCountries.map(({ code, first, has, price, lost }) => ({ country: code, channel: first, "are on it": has, "its price": price, "SMS lost": lost })),
);

const setups: Readonly<Record<string, ChannelSetup>> = {
  "SMS alone": { first: false, fallback: false },
  "WhatsApp or Telegram first": { first: true, fallback: false },
  "the same, with fallback": { first: true, fallback: true },
};
for (const [title, setup] of Object.entries(setups)) {
  const { countries, all } = await played(setup);
  print(
    title,
    [...countries, ["all", all] as const].map(([country, figures]) => ({
      country,
      verified: percent(figures.verified / figures.users),
      "a verified number costs": dollars(figures.cost / figures.verified),
      seconds: latencyOf(figures.seconds).p50.toFixed(1),
      SMS: figures.sms,
      "WhatsApp, Telegram": figures.other,
    })),
  );
}

const off = { spam: { calls: { mode: "off" } } } as const;
const calls = [
  ["the default policy, none entered", {}, 0],
  ["the default policy, one code in ten entered", {}, 0.1],
  ["without the rule calls, none entered", off, 0],
] as const;
const byCalls = [];
for (const [policy, changes, enters] of calls) {
  const setup = { first: false, fallback: false, calls: true, policy: changes, attack: { country: "ID", requests: 1_000, channel: "voice", enters } } as const;
  const { all, attack } = await played(setup);
  byCalls.push({
    policy,
    "calls to the attacker": attack.calls,
    cost: dollars(attack.cost),
    "users who asked for a call": all.callers,
    "got none": all.uncalled,
  });
}
print("1,000 requests for calls to numbers all over Indonesia", byCalls);

// Seeds twice as high: as if messages on WhatsApp did not count, as a fallback makes two of each.
const twice = {
  spam: { range: { seeds: [10, 24, 60] }, country: { seed: 60 }, newCountries: { seed: 60 }, address: { seed: 16 }, crowd: { messages: 50 } },
} as const;
const bySeeds = [];
for (const [policy, changes] of Object.entries({ "the default policy": {}, "seeds twice as high": twice })) {
  const setup = { first: true, fallback: true, policy: changes, attack: { country: "ID", requests: 2_000, ranges: 50 } } as const;
  const { all, attack } = await played(setup);
  bySeeds.push({
    policy,
    "SMS to the attacker": attack.sms,
    "on WhatsApp, none delivered": attack.other,
    cost: dollars(attack.cost),
    "users with a rejected request": `${all.refused} of ${all.users}`,
  });
}
print("WhatsApp first, with fallback: 2,000 requests to 50 ranges of Indonesia that are not on WhatsApp, none verified", bySeeds);

function whole(option: string, text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  console.error(`simulate:channels: ${option} takes a whole number from 1 to 999,999, not "${text}"`);
  process.exit(2);
}
