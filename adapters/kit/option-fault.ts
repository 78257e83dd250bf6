/** A fault in the options of a sender or source: names the option and the mend. */
export function optionFault(owner: string, option: string, problem: string, mend: string): TypeError {
  return new TypeError(`${owner}: option ${option} ${problem}. ${mend}`);
}

/** @throws TypeError unless `value` is true, false or left out. */
export function requireFlag(owner: string, option: string, value: unknown): boolean | undefined {
  if (value !== undefined && typeof value !== "boolean")
    throw optionFault(owner, option, "must be true or false", "A text of the environment is neither: compare it first.");
  return value;
}

/** @throws TypeError unless `value` is text with something in it. */
export function requireText(owner: string, option: string, value: unknown, mend: string): string {
  if (typeof value !== "string" || value.trim() === "")
    throw optionFault(owner, option, value === undefined ? "is missing" : "must be a non-empty string", mend);
  return value;
}

/** @throws TypeError where what is made of options was called without them. */
export function requireOptions(owner: string, options: unknown): void {
  if (typeof options !== "object" || options === null) throw new TypeError(`${owner}: the options are missing. Call ${owner}({ … }) with them.`);
}

/**
 * `known`: the options there are. `mend`: what to do in place of one that is none, where there is more to say than to mend its spelling.
 *
 * @throws TypeError for what is no options, and for one that is none: it would be passed over.
 */
export function onlyOptions<Options>(
  owner: string,
  options: Options,
  known: readonly (keyof Options & string)[],
  mend = "Remove it or mend its spelling",
): void {
  if (typeof options !== "object" || options === null)
    throw new TypeError(`${owner}: its options must be an object with any of these: ${known.join(", ")}. ${mend}.`);
  for (const name of Object.keys(options))
    if (!(known as readonly string[]).includes(name))
      throw optionFault(owner, name, "is not an option", `${mend}; there ${known.length === 1 ? "is" : "are"}: ${known.join(", ")}.`);
}
