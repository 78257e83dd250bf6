import { synchronous } from "../../src/domain/promises.js";
import { pick } from "./json.js";
import { optionError, requireText } from "./option-error.js";
import type { CarrierResponse } from "./request.js";

/** Tests a response: a regular expression on its text, values at a path in its JSON, or a function. */
export type AnswerTest = RegExp | { readonly path: string; readonly values: readonly (string | number | boolean)[] } | ((answer: CarrierResponse) => boolean);

/** @throws TypeError for an invalid test. */
export function openTest(name: string, option: string, test: AnswerTest | undefined): ((answer: CarrierResponse) => boolean) | undefined {
  if (test === undefined) return undefined;
  if (typeof test === "function") return (answer) => synchronous(option, test(answer));
  // A copy per response: an expression with the flag g or y keeps its last position.
  if (test instanceof RegExp) return (answer) => new RegExp(test).test(answer.text);
  if (typeof test?.path !== "string" || !Array.isArray(test.values)) {
    throw optionError(
      name,
      option,
      "is not a test of the response",
      'Pass a regular expression, { path: "messages.0.status", values: ["queued"] } or a function of the response.',
    );
  }
  const path = test.path.split(".");
  return (answer) => test.values.includes(pick(answer.json, ...path) as string);
}

/** Reads the text at a path in a response's JSON, `"error.code"`. Returns `undefined` without a path. */
export function openPath(name: string, option: string, path: string | undefined): (answer: CarrierResponse) => unknown {
  if (path === undefined) return () => undefined;
  const steps = requireText(name, option, path, 'Pass a path in the response, such as "error.code".').split(".");
  return ({ json }) => pick(json, ...steps);
}
