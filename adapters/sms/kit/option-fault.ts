/** A fault in the options of a sender or source: names the option and the mend. */
export function optionFault(owner: string, option: string, problem: string, mend: string): TypeError {
  return new TypeError(`${owner}: option ${option} ${problem}. ${mend}`);
}

/** @throws TypeError unless `value` is text with something in it. */
export function requireText(owner: string, option: string, value: unknown, mend: string): string {
  if (typeof value !== "string" || value.trim() === "")
    throw optionFault(owner, option, value === undefined ? "is missing" : "must be a non-empty string", mend);
  return value;
}
