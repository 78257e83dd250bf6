/** `npx tsx bench/health.ts`: what processes that share a store know of the routes' health, and what it costs the store. Three routes; a code is typed in any process. */
import { type Fleet, runFleet } from "../test/routing/fleet.js";
import { machine, number, print, type Row } from "./report.js";

const percent = (share: number) => `${number(share * 100)} %`;
const kilobytes = (bytes: number) => `${number(bytes / 1000)} kB`;

async function measure(fleet: Fleet): Promise<readonly Row[]> {
  const { sent, known, typed, conversion, bytesPerSecond, callsPerSecond, namesPerCall, bytesAtStart } = await runFleet(fleet);
  const [low, high] = conversion;
  return [
    { figure: "messages known to the process that knows least", measured: `${percent(known)} of ${number(sent)}`, target: "≥ 99 %", reached: known >= 0.99 },
    {
      figure: `conversion as counted, where the truth is ${percent(typed)}`,
      measured: `${percent(low)} to ${percent(high)}`,
      target: "± 0.5 %",
      reached: Math.abs(low - typed) <= 0.005 && Math.abs(high - typed) <= 0.005,
    },
    { figure: "traffic of the store", measured: `${kilobytes(bytesPerSecond)}/s in ${number(callsPerSecond)} calls, ${number(namesPerCall)} counters each` },
    { figure: "traffic for each process", measured: `${kilobytes(bytesPerSecond / fleet.processes)}/s` },
    { figure: "until a process that starts late knows all", measured: kilobytes(bytesAtStart) },
  ];
}

console.log(machine());
const one = { messages: 10, seconds: 120, countries: ["DE"], conversion: 1 };
const ten = { ...one, conversion: 0.8, countries: ["DE", "FR", "US", "GB", "ES", "IT", "PL", "NL", "SE", "PT"] };
for (const fleet of [
  { ...one, processes: 10 },
  { ...one, processes: 100 },
  { ...one, processes: 250 },
  { ...ten, processes: 100 },
  { ...ten, processes: 250 },
]) {
  print(`${fleet.processes} processes, 10 messages each in 2 s, to ${fleet.countries.length} countries`, await measure(fleet));
}
