import { type ParseArgsConfig, parseArgs } from "node:util";
import { nearest } from "../options/option-errors.js";

type OptionsConfig = NonNullable<ParseArgsConfig["options"]>;
type Parsed<Options extends OptionsConfig> = Pick<ReturnType<typeof parseArgs<{ options: Options; allowPositionals: true }>>, "values" | "positionals">;

/** Options with a value, for `parse`. */
export function valued<Name extends string>(...names: readonly Name[]) {
  return Object.fromEntries(names.map((name) => [name, { type: "string" }])) as Record<Name, { readonly type: "string" }>;
}

/** Options without a value, for `parse`. */
export function flags<Name extends string>(...names: readonly Name[]) {
  return Object.fromEntries(names.map((name) => [name, { type: "boolean" }])) as Record<Name, { readonly type: "boolean" }>;
}

/** Reads the arguments after a command. Throws a `TypeError` that names the invalid one. `most`: how many positional arguments are allowed. */
export function parse<Options extends OptionsConfig>(command: string, args: readonly string[], options: Options, most: number): Parsed<Options> {
  // Not strict: Node's errors are for programmers, and a negative number is a value.
  const { values, positionals, tokens } = parseArgs({ args: [...args], options, allowPositionals: true, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    if (!Object.hasOwn(options, name)) throw new TypeError(`${command} has no option ${rawName}: ${suggestion(name, Object.keys(options))}`);
    if (options[name]?.type === "boolean" && value !== undefined) throw new TypeError(`${rawName} takes no value`);
    if (options[name]?.type === "string" && (value === undefined || (!inlineValue && /^-\D/.test(value)))) throw new TypeError(`${rawName} needs a value`);
  }
  if (positionals.length > most) throw new TypeError(`unexpected argument "${positionals[most]}"`);
  return { values, positionals } as Parsed<Options>;
}

function suggestion(name: string, names: readonly string[]): string {
  const meant = nearest(name, names);
  return meant === undefined ? `its options are ${names.map((one) => `--${one}`).join(", ")}` : `did you mean --${meant}?`;
}

/** Reads `--host`, which may have brackets as in a URL: `[::1]`. */
export function hostOf(text: string): string {
  const host = text.replace(/^\[(.*)\]$/, "$1");
  if (host === "") throw new TypeError("--host must not be empty");
  return host;
}

/** Reads an integer option. Throws a `TypeError` that names the option. */
export function integer(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) throw new TypeError(`${option} takes a whole number from ${least} to ${most}, not "${text}"`);
  return value;
}

/** Reads a port; 0: any free one. Throws a `TypeError` that names the option. */
export const portOf = (option: string, text: string): number => integer(option, text, 0, 65_535);
