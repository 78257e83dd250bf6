import { Uuid } from "../../contract/fields.js";
import { e164 } from "../../domain/phone-number.js";
import { integer, parse } from "../arguments.js";
import type { Environment } from "../carriers.js";
import { type Place, readPlace } from "../settings.js";

/** The commands for people who help users. */
export const operatorCommands = ["why", "unlock", "erase", "stats"] as const;
export type OperatorCommand = (typeof operatorCommands)[number];

/** The settings of `phoneproof why`, `unlock`, `erase` and `stats`. */
export interface OperatorSettings {
  readonly command: OperatorCommand;
  /** As typed, without spaces and punctuation; empty for `stats`. */
  readonly number: string;
  /** Path of the module that exports the verifier. Absent: one is made of `place`, `secret` and `pepper`. */
  readonly module?: string;
  /** The UUID of the customer. Absent: the verifier has no customers, or the file of `phoneproof dev` names it. */
  readonly customer?: string;
  /** Absent: in memory. */
  readonly place?: Place;
  /** The current one first. Absent: the one that `phoneproof dev` keeps in its file. */
  readonly secret?: string | readonly [current: string, previous: string];
  readonly pepper?: string;
  /** Days that `stats` counts, up to now. */
  readonly days: number;
  /** Whether `erase` acts without asking. */
  readonly yes: boolean;
  readonly json: boolean;
}

export const defaultDays = 7;

export const notANumber = "this is not a valid number in international form, for example +33612345678";

const options = {
  customer: { type: "string" },
  store: { type: "string" },
  data: { type: "string" },
  prefix: { type: "string" },
  days: { type: "string" },
  yes: { type: "boolean" },
  json: { type: "boolean" },
} as const;

/** Reads the arguments after the command, and the environment. Throws a `TypeError` that names the invalid one. */
export function readOperatorSettings(command: OperatorCommand, args: readonly string[], env: Environment): OperatorSettings {
  const { values, positionals } = parse(command, args, options, Number.POSITIVE_INFINITY);
  const [first, second] = positionals;
  const [typed, module] = command === "stats" ? ["", first] : [first, second];
  if (typed === undefined) throw new TypeError(`${command} needs the number: phoneproof ${command} +33612345678`);
  const surplus = positionals[command === "stats" ? 1 : 2];
  if (surplus !== undefined) throw new TypeError(`unexpected argument "${surplus}": put a number that has spaces in quotation marks`);
  const number = typed.replace(/[\s().-]/g, "");
  if (command !== "stats" && !e164.test(number)) throw new TypeError(notANumber);
  if (values.days !== undefined && command !== "stats") throw new TypeError(`--days has no effect with ${command}`);
  if (values.yes && command !== "erase") throw new TypeError(`--yes has no effect with ${command}`);
  if (values.prefix !== undefined && module !== undefined) throw new TypeError("--prefix has no effect with a module");
  const place = readPlace(values, env);
  const customer = values.customer ?? (env["PHONEPROOF_CUSTOMER"] || undefined);
  if (customer !== undefined && !Uuid.safeParse(customer).success)
    throw new TypeError(`${values.customer === undefined ? "PHONEPROOF_CUSTOMER" : "--customer"} must be a UUID`);
  const { PHONEPROOF_SECRET: secret, PHONEPROOF_SECRET_PREVIOUS: previous, PHONEPROOF_PEPPER: pepper } = env;
  if (module === undefined && place === undefined) throw new TypeError(`${command} needs a file or a store: --data memory is empty`);
  if (module === undefined && !secret && place !== undefined && "driver" in place)
    throw new TypeError(`${command} needs the environment variable PHONEPROOF_SECRET, the secret of your verifier; or name the module that exports it`);
  return {
    command,
    number,
    ...(module !== undefined && { module }),
    ...(customer !== undefined && { customer }),
    ...(place !== undefined && { place: { ...place, ...(values.prefix !== undefined && { prefix: values.prefix }) } }),
    ...(secret && { secret: previous ? ([secret, previous] as const) : secret }),
    ...(pepper && { pepper }),
    days: values.days === undefined ? defaultDays : integer("--days", values.days, 1, 90),
    yes: values.yes ?? false,
    json: values.json ?? false,
  };
}
