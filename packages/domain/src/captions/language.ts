/** RFC 5646 §4.4.1: no tag in use is longer. */
const maximumLength = 35;
/** Such as the CDN's paths have: a language first, private and grandfathered tags are none. */
const shape = /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*$/;

/**
 * A BCP 47 tag as it is written by the standard (`pt-br` is `pt-BR`, `iw` is `he`), or null for what is none.
 * `und` says no language, so it names no captions.
 */
export function canonicalLanguage(text: string): string | null {
  if (text.length > maximumLength || !shape.test(text)) return null;
  try {
    const [tag = 'und'] = Intl.getCanonicalLocales(text);
    return shape.test(tag) && !/^und\b/.test(tag) ? tag : null;
  } catch {
    return null;
  }
}

/** What its speakers call a language: `português (Brasil)`; the tag itself where nobody knows. */
export function languageName(tag: string): string {
  return new Intl.DisplayNames([tag, 'en'], { type: 'language' }).of(tag) ?? tag;
}
