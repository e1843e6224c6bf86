import { type Language, languages } from '@millrace/player';

const isLanguage = (text: string): text is Language => (languages as readonly string[]).includes(text);

/**
 * The language of a page: what `?lang=` names, else the best of `Accept-Language` (RFC 9110 §12.5.4, by the
 * first subtag), else English.
 */
export function languageOf(query: string, acceptLanguage: string): Language {
  const asked = new URLSearchParams(query).get('lang')?.toLowerCase().split('-')[0] ?? '';
  if (isLanguage(asked)) return asked;
  let best: { language: Language; weight: number } = { language: 'en', weight: 0 };
  for (const range of acceptLanguage.split(',')) {
    const [tag = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const language = tag.split('-')[0] ?? '';
    const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const weight = q === undefined ? 1 : Number(q);
    if (isLanguage(language) && weight > best.weight) best = { language, weight };
  }
  return best.language;
}

/** True when an `Accept` header names `text/html`, and does not refuse it with a weight of 0. */
export const wantsPage = (accept: string): boolean =>
  accept
    .split(',')
    .map((range) => range.toLowerCase().replaceAll(/\s/g, ''))
    .some((range) => /^text\/html(;|$)/.test(range) && !/;q=0(\.0*)?(;|$)/.test(range));
