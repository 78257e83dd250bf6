/**
 * The texts that suit a language tag, best first: its own, that of its country if it is in the same script (`zh-CN` for
 * `zh-Hans-CN`), that of its script (`zh-Hant` for `zh-HK`), and that of its language, in today's code (`he` for `iw`).
 */
export function wantedTags(tag: string | undefined): string[] {
  // `und` names no language, unless it has a country.
  if (tag === undefined || /^und([-_][a-z]{4})?$/i.test(tag)) return [];
  const [subtag = "", ...rest] = tag.split(/[-_]/);
  const { language = subtag, script, region } = completed(tag) ?? {};
  if (script === undefined) return [tag, language];
  const regional = `${language}-${region}`;
  const isRegional = rest.length > 0 && completed(regional)?.script === script;
  return [tag, ...(isRegional ? [regional] : []), `${language}-${script}`, language];
}

/** The tag with its likely script and country; `undefined` if the platform does not know it. */
function completed(tag: string): Intl.Locale | undefined {
  try {
    return new Intl.Locale(tag.replaceAll("_", "-")).maximize();
  } catch {
    return undefined;
  }
}

/** Tags of a country's most spoken language, from the platform's data: with the country, with the script, and alone. */
export function spokenTags(country: string | undefined): string[] {
  if (country === undefined) return [];
  const { language, script } = new Intl.Locale("und", { region: country }).maximize();
  return [`${language}-${country}`, `${language}-${script}`, language];
}

/** Normalizes a language tag: BCP 47 ignores case, some write `fr_FR`, and some data has `no` for `nb`. */
export function sameTag(tag: string): string {
  return tag
    .toLowerCase()
    .replaceAll("_", "-")
    .replace(/^no(?=-|$)/, "nb");
}
