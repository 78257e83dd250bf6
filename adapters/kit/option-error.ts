/** An error in the options of a sender or source: names the option and the fix. */
export function optionError(owner: string, option: string, problem: string, fix: string): TypeError {
  return new TypeError(`${owner}: option ${option} ${problem}. ${fix}`);
}

/** @throws TypeError unless `value` is true, false or undefined. */
export function requireFlag(owner: string, option: string, value: unknown): boolean | undefined {
  if (value !== undefined && typeof value !== "boolean")
    throw optionError(owner, option, "must be true or false", 'Environment variables are strings: pass `process.env.X === "true"`.');
  return value;
}

/** A text without white space around it: many files end with a line break. @throws TypeError unless `value` is a non-empty string. */
export function requireText(owner: string, option: string, value: unknown, fix: string): string {
  if (typeof value !== "string" || value.trim() === "")
    throw optionError(owner, option, value === undefined ? "is missing" : "must be a non-empty string", fix);
  return value.trim();
}

/** @throws TypeError unless `value` is undefined or an object: the entries of a text or a list would be its characters or places. */
export function requireFields(owner: string, option: string, value: unknown): void {
  if (value !== undefined && (typeof value !== "object" || value === null || Array.isArray(value)))
    throw optionError(owner, option, "must be an object of texts", 'For example { "x-key": "…" }.');
}

/** @throws TypeError unless `value` is undefined, or a number of seconds, above 0 and at most 24 days. */
export function requireSeconds(owner: string, option: string, value: number | undefined, fix: string): number | undefined {
  // A longer timer would end at once.
  if (value !== undefined && !(Number.isFinite(value) && value > 0 && value * 1000 < 2 ** 31))
    throw optionError(owner, option, "must be a number of seconds, above 0 and at most 24 days", fix);
  return value;
}

/** All option names: the compiler reports a missing one. */
export type OptionNames<Options> = Readonly<Record<keyof Options & string, true>>;

/**
 * `fix`: how to fix an unknown option, if it is more than a misspelling. `path`: the option that holds them, if they
 * are not the function's own.
 *
 * @throws TypeError for missing or invalid options and for an unknown option, which would otherwise be ignored.
 */
export function onlyOptions<Options>(
  owner: string,
  options: Options,
  known: OptionNames<Options>,
  { fix = "Remove it or fix its spelling", path }: { readonly fix?: string; readonly path?: string } = {},
): void {
  if (options === undefined) throw new TypeError(`${owner}: the options are missing. Call ${owner}({ … }) with them.`);
  const names = Object.keys(known);
  // A promise and a Map have no names: nothing in them would be read. A module has some.
  if (typeof options !== "object" || options === null || !/^\[object (Object|Module)\]$/.test(Object.prototype.toString.call(options)))
    throw new TypeError(`${owner}: ${path === undefined ? "its options" : `option ${path}`} must be an object with any of these: ${names.join(", ")}.`);
  for (const name of Object.keys(options))
    if (!names.includes(name)) {
      const option = path === undefined ? name : `${path}.${name}`;
      throw optionError(owner, option, "is not an option", `${fix}; there ${names.length === 1 ? "is" : "are"}: ${names.join(", ")}.`);
    }
}
