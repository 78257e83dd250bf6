import { optionError } from "./option-error.js";

/** Text with placeholders such as `{to}`. In a URL each value is percent-encoded. */
export type Template = string;

/** JSON with placeholders in its strings. */
export type JsonTemplate = Template | number | boolean | null | readonly JsonTemplate[] | { readonly [key: string]: JsonTemplate };

/** What reads as a placeholder. JSON in a template is not: it contains quotes. */
const placeholder = /\{([\w-]+)\}/g;

/** Fills a template in one pass, so that text in a value is never taken for a placeholder. */
export function fill<Key extends string>(template: Template, value: (key: Key) => string): string {
  return template.replace(placeholder, (_, key: Key) => value(key));
}

/** @throws TypeError for a placeholder that is not `known`. */
export function refuseStrangers(owner: string, templates: readonly Template[], known: readonly string[], fix: string): void {
  for (const [stranger, key = ""] of templates.flatMap((template) => [...template.matchAll(placeholder)]))
    if (!known.includes(key)) throw optionError(owner, "url, headers, form or json", `has an unknown placeholder ${stranger}`, fix);
}

/** Fills each template of a record. */
export function fillEach(templates: Readonly<Record<string, Template>>, plain: (template: Template) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(templates).map(([key, template]) => [key, plain(template)]));
}

/** Fills every string of a JSON template. */
export function fillJson(template: JsonTemplate, plain: (template: Template) => string): unknown {
  if (typeof template === "string") return plain(template);
  if (typeof template !== "object" || template === null) return template;
  if (Array.isArray(template)) return template.map((part: JsonTemplate) => fillJson(part, plain));
  return Object.fromEntries(Object.entries(template).map(([key, part]) => [key, fillJson(part as JsonTemplate, plain)]));
}

/** All strings of a JSON template. */
export function texts(template: JsonTemplate): string[] {
  if (typeof template === "string") return [template];
  return typeof template === "object" && template !== null ? Object.values(template).flatMap((part: JsonTemplate) => texts(part)) : [];
}

/** The method of a templated request. Default: `GET` without a body, else `POST`. */
export function openMethod(name: string, method: string | undefined, hasBody: boolean, known: readonly string[]): string {
  if (method !== undefined && !known.includes(method))
    throw optionError(name, "method", `is not one of ${known.join(", ")}`, "Choose one of them, in capitals.");
  if (method === "GET" && hasBody) throw optionError(name, "method", "GET takes no body", "Put the values into url, or choose POST.");
  return method ?? (hasBody ? "POST" : "GET");
}
