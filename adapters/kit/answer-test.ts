import { pick } from "./json.js";
import { optionFault } from "./option-fault.js";
import type { CarrierAnswer } from "./request.js";

/** How a fact is found in an answer: by a regular expression on its text, by values at a path of its JSON (`"messages.0.status"`), or by a function. */
export type AnswerTest = RegExp | { readonly path: string; readonly values: readonly (string | number | boolean)[] } | ((answer: CarrierAnswer) => boolean);

/** @throws TypeError for what is no test. */
export function openTest(name: string, option: string, test: AnswerTest | undefined): ((answer: CarrierAnswer) => boolean) | undefined {
  if (test === undefined || typeof test === "function") return test;
  // A copy for each answer: one with the flag g or y remembers where it stopped.
  if (test instanceof RegExp) return (answer) => new RegExp(test).test(answer.text);
  if (typeof test?.path !== "string" || !Array.isArray(test.values)) {
    throw optionFault(name, option, "is no test", 'Pass a regular expression, { path: "messages.0.status", values: ["queued"] } or a function of the answer.');
  }
  const path = test.path.split(".");
  return (answer) => test.values.includes(pick(answer.json, ...path) as string);
}
