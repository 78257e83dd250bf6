import * as z from "zod";
import { milliseconds } from "../domain/policy.js";
import { isPromise } from "../domain/promises.js";
import { checkedBy } from "./option-errors.js";

// What schemas are made of. All are functions: importing the library must not pay for schemas.

export const object = <Shape extends z.core.$ZodLooseShape>(shape: Shape, error = "must be an object") => plain(z.strictObject(shape, error));
/** The same, and all of it may be left out. */
export const partial = <Shape extends z.core.$ZodLooseShape>(shape: Shape) => plain(z.strictObject(shape, "must be an object").partial());
export const text = () => z.string("must be a string");
export const checkedText = (errorOf: (value: string) => string | undefined) => text().superRefine(checkedBy(errorOf));
export const flag = () => z.boolean("must be true or false");
export const number = (least: number, most: number, tooLittle: string, tooMuch = tooLittle) =>
  z.number("must be a number").min(least, tooLittle).max(most, tooMuch);
export const above0 = (most: number, tooMuch: string) => z.number("must be a number").positive("must be more than 0").max(most, tooMuch);
export const whole = (least: number, tooLittle = `must be ${least} or more`) => z.int("must be a whole number").min(least, tooLittle);
export const wholeIn = (least: number, most: number) => whole(least, `must be ${least} to ${most}`).max(most, `must be ${least} to ${most}`);
export const callable = <F>() => z.custom<NonNullable<F>>((value) => typeof value === "function", "must be a function");

const time = () => z.number("must be a number of seconds");
const above0Seconds = () => time().min(0.001, "must be more than 0, by a millisecond at least");
const [year, tooLong] = [31_536_000, "must be at most a year, in seconds"];
export const seconds = () => above0Seconds().max(year, tooLong);
export const secondsOrNone = () => time().min(0, "must be 0 or more").max(year, tooLong);
export const secondsUpTo = (most: number, words = String(most)) =>
  above0Seconds().max(most, { error: ({ input }) => `is in seconds, and must be at most ${words}; ${unlessMilliseconds(Number(input))}` });
export const interval = () => above0Seconds().superRefine(checkedBy(intervalError));
/** Seconds in, milliseconds out. */
export const duration = (byDefault: number, schema = seconds()) => schema.default(byDefault).transform(milliseconds);

/** Thousands of seconds that are not half-hours are unlikely to be meant. */
function intervalError(given: number): string | undefined {
  if (given > 86_400) return `must be at most a day, and is in seconds: ${given} of them are ${Math.round(given / 3600)} hours; ${unlessMilliseconds(given)}`;
  if (given % 1000 !== 0 || given % 1800 === 0) return undefined;
  return `is in seconds: ${given} of them are ${Math.round(given / 60)} minutes; ${unlessMilliseconds(given)}`;
}

export function unlessMilliseconds(given: number): string {
  return `say ${given / 1000} if you meant milliseconds`;
}

/** Zod reads any object, and finds none of its fields in a promise or a Map. */
export function plain<Out, In>(schema: z.ZodType<Out, In>) {
  const error = ({ input }: { readonly input?: unknown }) => {
    const kind = kindOf(input);
    return kind === "Promise" ? "is a promise: await it first" : `is a ${kind}: make it a plain object, { name: value, … }`;
  };
  return z.custom<In>((value) => kindOf(value) === undefined, { error }).pipe(schema);
}

/** What an object is that is not one of names and values: `"Promise"`, `"Map"`. Instances of classes have names and values. */
function kindOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  if (isPromise(value)) return "Promise";
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return kind === "Object" || kind === "Module" ? undefined : kind;
}

/** The application's own object, passed on unchanged. */
export const methods = <T>(what: string, names: readonly (keyof NonNullable<T> & string)[]) =>
  z.custom<NonNullable<T>>(
    (value) => typeof value === "object" && value !== null && names.every((name) => typeof (value as NonNullable<T>)[name] === "function"),
    orUnready(`must be ${what}: an object with the method${names.length === 1 ? "" : "s"} ${names.join(", ")}`),
  );

/** The error of a value that may have to be called or awaited first. */
export function orUnready(message: string) {
  return { error: ({ input }: { readonly input?: unknown }) => message + unreadyWords(input) };
}

export const isVerifier = (value: unknown): boolean => typeof value === "object" && value !== null && "http" in value;

/** Throws unless `verifier` is one. `owner`: the function that was called with it. */
export function requireVerifier(owner: string, verifier: unknown): void {
  if (isVerifier(verifier)) return;
  throw new TypeError(`${owner}: the first argument must be the verifier that createVerifier returned${unreadyWords(verifier)}`);
}

function unreadyWords(value: unknown): string {
  if (typeof value === "function") return "; it is a function: pass what it returns";
  return isPromise(value) ? "; it is a promise: await it" : "";
}
