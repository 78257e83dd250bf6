import type * as z from "zod";
import { VerifierError } from "../errors.js";

/** Returns the options as their schema reads them. `root`: what they belong to. Throws `invalid_options`. */
export function parse<S extends z.ZodType>(schema: S, value: unknown, ...root: readonly string[]): z.output<S> {
  const parsed = schema.safeParse(value, { error: plainWords });
  if (parsed.success) return parsed.data;
  throw invalidOptions(optionErrors(parsed.error, root, "options"));
}

/** `problems`: what is wrong, one sentence each. */
export function invalidOptions(problems: readonly string[]): VerifierError {
  return new VerifierError("invalid_options", `phoneproof: ${problems.join("; ")}`);
}

/** What is wrong with options, one sentence each: path and fix. `whole`: the name of the value itself. */
export function optionErrors({ issues }: z.ZodError, root: readonly PropertyKey[], whole: string): string[] {
  return issues.flatMap(leaves).map(({ path, message }) => `${[...root, ...path].join(".") || whole} ${message}`);
}

/** A refinement by a rule that returns what is wrong with a value, if anything. */
export function checkedBy<T>(errorOf: (value: T) => string | undefined) {
  return (value: T, { addIssue }: z.RefinementCtx): void => {
    const message = errorOf(value);
    if (message !== undefined) addIssue({ code: "custom", message });
  };
}

/** The same for a text, or for each text of a list or a map. */
export function checkedByEach(errorOf: (value: string) => string | undefined) {
  return (value: string | object, { addIssue }: z.RefinementCtx): void => {
    for (const [key, one] of typeof value === "string" ? [["", value]] : Object.entries(value)) {
      const message = errorOf(one);
      if (message !== undefined) addIssue({ code: "custom", path: typeof value === "string" ? [] : [key], message });
    }
  };
}

/** Words for what a schema has no message for; for `safeParse(value, { error: plainWords })`. */
export function plainWords(issue: z.core.$ZodRawIssue): string {
  if (issue.code === "invalid_type") return issue.input === undefined ? "is missing" : `must be ${kinds[issue.expected] ?? issue.expected}`;
  if (issue.code === "too_small") return Number(issue.minimum) === 1 ? "must not be empty" : `must be at least ${issue.minimum}`;
  return issue.code === "too_big" ? `must be at most ${issue.maximum}` : "is not valid here";
}

const [list, object] = ["a list", "an object"];
const kinds: Readonly<Record<string, string>> = {
  array: list,
  tuple: list,
  object,
  record: object,
  string: "a string",
  number: "a number",
  boolean: "true or false",
};

type Leaf = Pick<z.core.$ZodIssue, "path" | "message">;

/** For a union, the branch that failed for the right reason: the one whose errors are deeper than the union itself. */
function leaves(issue: z.core.$ZodIssue): Leaf[] {
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({ path: [...issue.path, key], message: "is not an option: remove it or fix its spelling" }));
  // The key of a map is invalid; the path already names it.
  if (issue.code === "invalid_key") return issue.issues.flatMap((inner) => leaves({ ...inner, path: issue.path }));
  if (issue.code !== "invalid_union") return [issue];
  // A branch for another kind of value has no useful message about the value's size.
  const inner = issue.errors.filter((branch) => !branch.some(({ code, path }) => code === "invalid_type" && path.length === 0)).flat();
  const deep = inner.filter(({ path }) => path.length > 0);
  const deeper = deep.length > 0 ? deep : inner.filter(({ code }) => code === "too_small");
  if (deeper.length === 0) return [issue];
  return deeper.flatMap((one) => leaves({ ...one, path: [...issue.path, ...one.path] } as z.core.$ZodIssue));
}
