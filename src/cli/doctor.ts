import type { Verifier } from "../create-verifier.js";
import type { Finding } from "../operations/diagnose.js";
import { flags, parse, valued } from "./arguments.js";
import type { Environment } from "./carriers.js";
import { verifierOf } from "./module.js";
import { readPlace } from "./settings.js";
import type { DevOutput } from "./start.js";

export type DoctorSettings = ReturnType<typeof readDoctorSettings>;

/** Reads the arguments after `doctor`. Throws a `TypeError` that names the invalid one. */
export function readDoctorSettings(args: readonly string[], env: Environment) {
  const options = { ...valued("data", "store"), ...flags("development", "json") };
  const { values, positionals } = parse("doctor", args, options, 1);
  const [module] = positionals;
  if (!module) throw new TypeError("doctor needs the path of a module that exports your verifier: phoneproof doctor ./verifier.js");
  return {
    /** Path of the module that exports the verifier. */
    module,
    /** For a module that leaves its store to the command. */
    place: readPlace(values, env),
    /** Whether values for development are errors. */
    production: values.development !== true,
    json: values.json ?? false,
  };
}

/**
 * Prints the findings of `diagnose`, errors first. A module that exports no verifier is an error too: invalid options
 * throw there, with a message that explains the fix.
 *
 * @returns The exit code: 1 if there is an error, else 0. Clients that the module opened are still open.
 */
export async function runDoctor({ module, place, production, json }: DoctorSettings, { out, err }: DevOutput): Promise<number> {
  const warn = (line: string) => err(`phoneproof: ${line}\n`);
  const findings = await findingsOf(production, verifierOf(module, place, warn, ["diagnose"], { readsOnly: true }));
  const faults = findings.filter(({ level }) => level === "fault");
  const ok = faults.length === 0;
  if (json) out(`${JSON.stringify({ ok, findings })}\n`);
  else out(report(module, findings, faults.length));
  return ok ? 0 : 1;
}

async function findingsOf(production: boolean, opening: Promise<Verifier>): Promise<readonly Finding[]> {
  try {
    const verifier = await opening;
    const findings = await verifier.diagnose({ production });
    await verifier.close();
    return findings;
  } catch (error) {
    return [{ level: "fault", about: "configuration", message: (error as Error).message, fix: "correct the error above, then run doctor again" }];
  }
}

const levels = ["fault", "warning", "note"] as const;

function report(module: string, findings: readonly Finding[], faults: number): string {
  const sorted = levels.flatMap((level) => findings.filter((finding) => finding.level === level));
  const lines = sorted.map(({ level, about, message, fix }) => `${level.padEnd(8)}${about}: ${message}\n        fix: ${fix}\n`);
  return `${lines.join("")}${module}: ${faults === 0 ? "no faults" : faults === 1 ? "1 fault" : `${faults} faults`}\n`;
}
