export { canonicalLanguage, languageName } from './language.ts';
export { normaliseCaptions } from './normalise.ts';
export { CaptionsError } from './problem.ts';
