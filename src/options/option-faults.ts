import type * as z from "zod";

/** What is wrong with options, a sentence for each: the path and the mend. `whole`: what is at fault where no part of it is. */
export function optionFaults({ issues }: z.ZodError, root: readonly PropertyKey[], whole: string): string[] {
  return issues.flatMap(leaves).map(({ path, message }) => `${[...root, ...path].join(".") || whole} ${message}`);
}

/** A rule of ours as a refinement: `faultOf` tells what is wrong with a value, if anything. */
export function told<T>(faultOf: (value: T) => string | undefined) {
  return (value: T, { addIssue }: z.RefinementCtx): void => {
    const message = faultOf(value);
    if (message !== undefined) addIssue({ code: "custom", message });
  };
}

/** Words for what a schema has none of its own for; for `safeParse(value, { error: plainWords })`. */
export function plainWords(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is missing" : `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "too_small":
      return Number(issue.minimum) === 1 ? "must not be empty" : `must be at least ${issue.minimum}`;
    case "too_big":
      return `must be at most ${issue.maximum}`;
    default:
      return "is not valid here";
  }
}

const kinds: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
  tuple: "a list",
};

interface Leaf {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** A union says which of its branches failed for the right reason: the one whose faults lie deeper than the union itself. */
function leaves(issue: z.core.$ZodIssue): Leaf[] {
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({ path: [...issue.path, key], message: "is not an option: remove it or mend its spelling" }));
  // A key of a map is at fault, which the path names as well.
  if (issue.code === "invalid_key") return issue.issues.flatMap((inner) => leaves({ ...inner, path: issue.path }));
  if (issue.code !== "invalid_union") return [issue];
  // Of a branch that takes another kind of value, what it says of the value's size is beside the point.
  const inner = issue.errors.filter((branch) => !branch.some(({ code, path }) => code === "invalid_type" && path.length === 0)).flat();
  const deep = inner.filter(({ path }) => path.length > 0);
  const deeper = deep.length > 0 ? deep : inner.filter(({ code }) => code === "too_small");
  if (deeper.length === 0) return [issue];
  return deeper.flatMap((one) => leaves({ ...one, path: [...issue.path, ...one.path] } as z.core.$ZodIssue));
}
