import { Uuid } from "../../contract/fields.js";
import { e164 } from "../../domain/phone-number.js";
import { flags, integer, parse, valued } from "../arguments.js";
import type { Environment } from "../carriers.js";
import { readPlace, secretIn } from "../settings.js";

/** The commands for people who help users. */
export const operatorCommands = ["why", "unlock", "erase", "stats"] as const;
export type OperatorCommand = (typeof operatorCommands)[number];

export const defaultDays = 7;

export const notANumber = "this is not a valid number in international form, for example +33612345678";

export const noSecret = "the environment variable PHONEPROOF_SECRET is not set: it is the secret of your verifier";

const options = { ...valued("customer", "store", "data", "prefix", "days"), ...flags("yes", "json") };

export type OperatorSettings = ReturnType<typeof readOperatorSettings>;

/** Reads the arguments after the command, and the environment. Throws a `TypeError` that names the invalid one. */
export function readOperatorSettings(command: OperatorCommand, args: readonly string[], env: Environment) {
  const { values, positionals } = parse(command, args, options, Number.POSITIVE_INFINITY);
  const [typed, module, surplus] = command === "stats" ? ["", ...positionals] : positionals;
  if (typed === undefined) throw new TypeError(`${command} needs the number: phoneproof ${command} +33612345678`);
  if (surplus !== undefined) throw new TypeError(`unexpected argument "${surplus}": put a number that has spaces in quotation marks`);
  const number = typed.replace(/[\s().-]/g, "");
  if (command !== "stats" && !e164.test(number)) throw new TypeError(notANumber);
  if (values.days !== undefined && command !== "stats") throw new TypeError(`--days has no effect with ${command}`);
  if (values.yes && command !== "erase") throw new TypeError(`--yes has no effect with ${command}`);
  if (values.prefix !== undefined && module !== undefined) throw new TypeError("--prefix has no effect with a module");
  const place = readPlace(values, env);
  if ("file" in place && values.prefix !== undefined) throw new TypeError("--prefix has no effect with a file");
  const customer = values.customer ?? (env["PHONEPROOF_CUSTOMER"] || undefined);
  if (customer !== undefined && !Uuid.safeParse(customer).success)
    throw new TypeError(`${values.customer === undefined ? "PHONEPROOF_CUSTOMER" : "--customer"} must be a UUID`);
  const secret = secretIn(env);
  if ("file" in place && place.file === undefined && (module === undefined || place.by === undefined))
    throw new TypeError(`${command} needs a file or a store: --data memory is empty`);
  if (module === undefined && secret === undefined && "driver" in place)
    throw new TypeError(`${command} needs the environment variable PHONEPROOF_SECRET, the secret of your verifier; or name the module that exports it`);
  return {
    command,
    /** As typed, without spaces and punctuation; empty for `stats`. */
    number,
    /** Path of the module that exports the verifier. `undefined`: one is made of `place`, `secret` and `pepper`. */
    module,
    /** Its UUID. `undefined`: the verifier has no customers, or the file of `phoneproof dev` names the customer. */
    customer,
    place: { ...place, ...(values.prefix !== undefined && { prefix: values.prefix }) },
    /** `undefined`: the one that `phoneproof dev` keeps in its file. */
    secret,
    pepper: env["PHONEPROOF_PEPPER"] || undefined,
    /** Days that `stats` counts, up to now. `undefined`: `defaultDays`, or fewer if statistics are not kept as long. */
    days: values.days === undefined ? undefined : integer("--days", values.days, 1, 90),
    /** Whether `erase` acts without asking. */
    yes: values.yes ?? false,
    json: values.json ?? false,
  };
}
