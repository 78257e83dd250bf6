/** An error in the options of a hook: names the option and the fix. */
export function optionError(owner: string, option: string, problem: string, fix: string): TypeError {
  return new TypeError(`${owner}: option ${option} ${problem}. ${fix}`);
}

/**
 * One secret, or several for rotation, without white space around them: many files end with a line break.
 *
 * @throws TypeError if there is none, or one is empty.
 */
export function openSecrets(owner: string, option: string, secrets: unknown, fix: string): readonly string[] {
  const list: readonly unknown[] = Array.isArray(secrets) ? secrets : [secrets];
  if (list.length === 0) throw optionError(owner, option, "is an empty list", fix);
  return list.map((secret) => {
    if (typeof secret !== "string" || secret.trim() === "")
      throw optionError(owner, option, secret === undefined ? "is missing" : "must be a non-empty string, or a list of such", fix);
    return secret.trim();
  });
}
