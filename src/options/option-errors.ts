import type * as z from "zod";
import { VerifierError } from "../errors.js";

/** Returns the options as their schema reads them. `root`: what they belong to. Throws `invalid_options`. */
export function parse<S extends z.ZodType>(schema: S, value: unknown, ...root: readonly string[]): z.output<S> {
  const parsed = schema.safeParse(value, { error: plainWords });
  if (parsed.success) return parsed.data;
  throw invalidOptions(optionErrors(parsed.error, schema, "options", root));
}

/** `problems`: what is wrong, one sentence each. */
export function invalidOptions(problems: readonly string[]): VerifierError {
  return new VerifierError("invalid_options", `phoneproof: ${problems.join("; ")}`);
}

/** One sentence each: path and fix. `schema`: of the options; `whole`: the value's name; `root`: what it belongs to. */
export function optionErrors({ issues }: z.ZodError, schema: z.ZodType, whole: string, root: readonly PropertyKey[] = []): string[] {
  return issues.flatMap(leaves).map(({ path, message, isUnknown }) => {
    const meant = isUnknown ? meantBy(schema, path) : undefined;
    return `${[...root, ...path].join(".") || whole} ${meant === undefined ? message : `is not an option: did you mean ${meant}?`}`;
  });
}

/** The option that an unknown one should be: one of nearly its name in the same place; else, at the top, one of its name. */
function meantBy(schema: z.ZodType, path: readonly PropertyKey[]): string | undefined {
  const all = [...pathsIn(schema)];
  const place = path.slice(0, -1).filter((key) => typeof key === "string");
  const name = String(path.at(-1));
  const near = nearest(
    name,
    all.filter((one) => one.length === place.length + 1 && place.every((key, at) => key === one[at])).map((one) => one.at(-1) as string),
  );
  if (near !== undefined || path.length > 1) return near;
  const [shortest] = all.filter((one) => one.at(-1) === name).sort((a, b) => a.length - b.length);
  return shortest?.join(".");
}

/** The names of all options of a schema, each with those it is in. */
function* pathsIn(schema: z.core.$ZodType, place: readonly string[] = []): Generator<readonly string[]> {
  const { shape = {}, innerType, in: input, out, element, options = [] } = schema._zod.def as Partial<Inner>;
  for (const [name, inner] of Object.entries(shape)) {
    yield [...place, name];
    yield* pathsIn(inner, [...place, name]);
  }
  for (const inner of [innerType, input, out, element, ...options]) if (inner !== undefined) yield* pathsIn(inner, place);
}

/** What schemas of zod are made of. */
interface Inner {
  readonly shape: Readonly<Record<string, z.core.$ZodType>>;
  readonly innerType: z.core.$ZodType;
  readonly in: z.core.$ZodType;
  readonly out: z.core.$ZodType;
  readonly element: z.core.$ZodType;
  readonly options: readonly z.core.$ZodType[];
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

type Leaf = Pick<z.core.$ZodIssue, "path" | "message"> & { readonly isUnknown?: boolean };

/** For a union, the branch that failed for the right reason: the one whose errors are deeper than the union itself. */
function leaves(issue: z.core.$ZodIssue): Leaf[] {
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({ path: [...issue.path, key], message: "is not an option: remove it or fix its spelling", isUnknown: true }));
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

/** The name that was probably meant: one within two letters inserted, deleted or replaced. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const within = (edits: number) => names.find((name) => edits < given.length && isWithin(edits, given.toLowerCase(), name.toLowerCase()));
  return within(1) ?? within(2);
}

function isWithin(edits: number, one: string, other: string): boolean {
  if (edits < 0) return false;
  if (one === "" || other === "") return one.length + other.length <= edits;
  const [rest, otherRest] = [one.slice(1), other.slice(1)];
  if (one[0] === other[0]) return isWithin(edits, rest, otherRest);
  return isWithin(edits - 1, rest, otherRest) || isWithin(edits - 1, rest, other) || isWithin(edits - 1, one, otherRest);
}
