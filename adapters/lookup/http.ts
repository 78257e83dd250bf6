import { synchronous } from "../../src/domain/promises.js";
import type { LookupFacts, LookupProvider } from "../../src/ports/lookup-provider.js";
import { type AnswerTest, openPath, openTest } from "../kit/answer-test.js";
import { pick } from "../kit/json.js";
import { onlyOptions, optionError, requireFields, requireText } from "../kit/option-error.js";
import type { CarrierResponse } from "../kit/request.js";
import { digits } from "../kit/spelling.js";
import { fill, fillEach, fillJson, type JsonTemplate, openMethod, refuseStrangers, type Template, texts } from "../kit/template.js";
import { fact, type LookupOptions, lineTypeOf, lookupOver, networkOf } from "./provider.js";

export type { AnswerTest, JsonTemplate };

/** Where a fact is in a response: a path in its JSON (`"results.0.ported"`), or a function. */
export type AnswerField = string | ((answer: CarrierResponse) => unknown);

export interface HttpLookupOptions extends Omit<LookupOptions, "baseUrl"> {
  /** A template with `{number}` (`+14155552671`), `{number_digits}` and `{country}`, percent-encoded in URLs. */
  readonly url: Template;
  /** Default: POST, or GET without `form` and `json`. */
  readonly method?: "POST" | "GET";
  /** Templates; or a function of the number, for APIs with signed requests. */
  readonly headers?: Readonly<Record<string, Template>> | ((number: string) => Readonly<Record<string, string>>);
  /** Form fields. */
  readonly form?: Readonly<Record<string, Template>>;
  readonly json?: JsonTemplate;
  /** Where the facts are; at least one. `mccmnc`, MCC and MNC as `20801` or `208-01`, overrides `mcc` and `mnc`. */
  readonly facts: { readonly [field in "carrier" | "line_type" | "mcc" | "mnc" | "mccmnc" | "number_ported"]?: AnswerField };
  /** Maps the source's line type words, in any case, to ours. Unlisted words are ignored. Default: none. */
  readonly lineTypes?: Readonly<Record<string, NonNullable<LookupFacts["line_type"]>>>;
  /**
   * The source's porting words in addition to `true` and `false`, for example `{ Y: true, N: false }`. Leave out "no"
   * if the source also says it when it does not know. Default: none.
   */
  readonly portedWords?: Readonly<Record<string, boolean>>;
  /** Where the response names its number, with or without `+`: a response about another number is a failure. */
  readonly number: AnswerField;
  /** A response of any status means that the source does not know the number if this matches. Default: status 404. */
  readonly unknown?: AnswerTest;
  /** Where the source's error code is, for the log: a path in the response's JSON. */
  readonly errorCode?: string;
}

const placeholders = ["number", "number_digits", "country"] as const;
type Placeholder = (typeof placeholders)[number];

/**
 * Looks numbers up with any HTTP source that returns JSON: HLR and MNP lookups, an aggregator, your own service.
 *
 * @throws TypeError for an unknown placeholder, a template without the number, missing facts, and invalid options.
 */
export function httpLookup(options: HttpLookupOptions): LookupProvider {
  const name = "httpLookup";
  onlyOptions(name, options, {
    url: true,
    method: true,
    headers: true,
    form: true,
    json: true,
    facts: true,
    lineTypes: true,
    portedWords: true,
    number: true,
    unknown: true,
    errorCode: true,
    price: true,
    fetch: true,
    timeout: true,
  });
  const { headers = {}, form, json } = options;
  if (typeof headers !== "function") requireFields(name, "headers", headers);
  requireFields(name, "form", form);
  const url = requireText(name, "url", options.url, 'Pass the source\'s address, for example "https://hlr.example/v1/{number_digits}".');
  if (!URL.canParse(fill(url, () => "0"))) throw optionError(name, "url", "is not a URL", "Pass an absolute one that starts with https:// or http://.");
  if (form !== undefined && json !== undefined) throw optionError(name, "form", "and json exclude each other", "Keep one of them.");
  const templates = [url, ...(typeof headers === "function" ? [] : Object.values(headers)), ...texts(form ?? null), ...texts(json ?? null)];
  refuseStrangers(name, templates, placeholders, "Those known are {number}, {number_digits} and {country}.");
  if (!templates.some((template) => /\{number(_digits)?\}/.test(template)))
    throw optionError(name, "url, form or json", "has neither {number} nor {number_digits} in it", "Put it where the number goes.");
  const method = openMethod(name, options.method, form !== undefined || json !== undefined, ["GET", "POST"]);
  const facts = Object.entries(options.facts ?? {});
  if (facts.length === 0) throw optionError(name, "facts", "is missing", 'Name them, for example { mccmnc: "mccmnc", number_ported: "is_ported" }.');
  onlyOptions(name, options.facts, { carrier: true, line_type: true, mcc: true, mnc: true, mccmnc: true, number_ported: true }, { path: "facts" });
  const fields = Object.fromEntries(facts.map(([field, place]) => [field, openField(name, `facts.${field}`, place)]));
  const numberOf = openField(name, "number", options.number);
  const isUnknown = openTest(name, "unknown", options.unknown) ?? (({ status }) => status === 404);
  const lineTypes = new Map(Object.entries(options.lineTypes ?? {}).map(([word, type]) => [word.toLowerCase(), type]));
  const ported = new Map<unknown, boolean>([[true, true], [false, false], ...Object.entries(options.portedWords ?? {})]);
  const errorCode = openPath(name, "errorCode", options.errorCode);

  return lookupOver(name, options, {
    url: new URL(fill(url, () => "0")).origin,
    request({ phone_number, country_code = "" }) {
      const values: Record<Placeholder, string> = { number: phone_number, number_digits: digits(phone_number), country: country_code };
      const plain = (template: Template) => fill(template, (key: Placeholder) => values[key]);
      const made = typeof headers === "function" ? synchronous("headers", headers(phone_number)) : fillEach(headers, plain);
      return {
        method,
        url: fill(url, (key: Placeholder) => encodeURIComponent(values[key])),
        headers: Object.fromEntries(Object.entries(made).map(([key, value]) => [key.toLowerCase(), value])),
        ...(form !== undefined && { form: new URLSearchParams(fillEach(form, plain)) }),
        ...(json !== undefined && { json: fillJson(json, plain) }),
      };
    },
    unknown: isUnknown,
    number: numberOf,
    read(answer) {
      if (answer.json === undefined) return undefined;
      const said = (field: keyof HttpLookupOptions["facts"]) => fields[field]?.(answer);
      const moved = said("number_ported");
      const number_ported = ported.get(typeof moved === "number" ? String(moved) : moved);
      return {
        ...fact("carrier", said("carrier")),
        ...lineTypeOf(lineTypes, said("line_type")),
        ...fact("mcc", said("mcc")),
        ...fact("mnc", said("mnc")),
        ...networkOf(said("mccmnc")),
        ...(number_ported !== undefined && { number_ported }),
      };
    },
    errorCode,
  });
}

function openField(name: string, option: string, field: AnswerField): (answer: CarrierResponse) => unknown {
  if (typeof field === "function") return (answer) => synchronous(option, field(answer));
  const path = requireText(name, option, field, 'Pass a path such as "results.0.msisdn", or a function of the response.').split(".");
  return ({ json }) => pick(json, ...path);
}
