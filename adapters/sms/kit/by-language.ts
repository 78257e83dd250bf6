import { sameTag, spokenTags, wantedTags } from "../../../src/domain/languages.js";
import type { CodeMessage } from "../../../src/ports/sms-sender.js";
import { optionError, requireText } from "../../kit/option-error.js";

/** One text for all languages, or one per language by BCP 47 tag in any case, with `default` for the rest. */
export type ByLanguage = string | Readonly<Record<string, string>>;

/**
 * The value for the message's language, chosen as for SMS texts: the language that the request asks for, or else the
 * one most spoken in the number's country. Keys of the map are in the form of `sameTag`.
 */
export function forLanguage<T>(map: ReadonlyMap<string, T>, { locale, country }: Pick<CodeMessage, "locale" | "country">): T | undefined {
  const tag = [...wantedTags(locale), ...spokenTags(country)].map(sameTag).find((one) => map.has(one));
  return map.get(tag ?? "default");
}

/** @throws TypeError unless it is a text, or a map of texts by language with `default`. */
export function openByLanguage(sender: string, option: string, value: ByLanguage | undefined, fix: string): (message: CodeMessage) => string {
  if (typeof value !== "object" || value === null) {
    const one = requireText(sender, option, value, fix);
    return () => one;
  }
  const entries = Object.entries(value).map(([tag, text]) => {
    if (!/^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$/.test(tag)) throw optionError(sender, `${option}.${tag}`, "is not a language tag such as fr or pt-BR", fix);
    return [sameTag(tag), requireText(sender, `${option}.${tag}`, text, fix)] as const;
  });
  const map = new Map(entries);
  const rest = map.get("default");
  if (rest === undefined) throw optionError(sender, `${option}.default`, "is missing", fix);
  // The default names its language too, where values are language codes.
  const own = /^[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*$/.test(rest) ? sameTag(rest).split("-")[0] : undefined;
  const isOwn = (tag: string) => !map.has(sameTag(tag)) && sameTag(tag).split("-")[0] === own;
  return (message) => {
    const [wanted] = wantedTags(message.locale).filter((tag) => map.has(sameTag(tag)) || isOwn(tag));
    return wanted !== undefined && isOwn(wanted) ? rest : (forLanguage(map, message) ?? rest);
  };
}
