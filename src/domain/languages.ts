/** A language tag; its language with the script of its country, such as `zh-Hant` for `zh-HK`; and its language alone. */
export function wantedTags(tag: string | undefined): string[] {
  if (tag === undefined) return [];
  const [language = "", ...rest] = tag.split(/[-_]/);
  return rest.length === 0 ? [language] : [tag, ...scriptOf(tag).map((script) => `${language}-${script}`), language];
}

/** None if the platform does not know the tag. */
function scriptOf(tag: string): string[] {
  try {
    return [new Intl.Locale(tag.replaceAll("_", "-")).maximize().script ?? []].flat();
  } catch {
    return [];
  }
}

/** Tags of a country's most spoken language, from the platform's data: with the country, with the script, and alone. */
export function spokenTags(country: string | undefined): string[] {
  if (country === undefined) return [];
  const { language, script } = new Intl.Locale("und", { region: country }).maximize();
  return [`${language}-${country}`, `${language}-${script}`, language];
}

/**
 * Normalizes a language tag: BCP 47 ignores case, some write `fr_FR`, and Norwegian is `no` in some data and `nb` in
 * others.
 */
export function sameTag(tag: string): string {
  return tag
    .toLowerCase()
    .replaceAll("_", "-")
    .replace(/^no(?=-|$)/, "nb");
}
