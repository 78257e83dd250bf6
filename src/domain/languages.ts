/** A language tag, and its language alone. */
export function wantedTags(tag: string | undefined): string[] {
  return tag === undefined ? [] : [tag, ...tag.split(/[-_]/, 1)];
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
