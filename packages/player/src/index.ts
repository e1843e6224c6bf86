export { loadPlayer, type PlayerFile, type PlayerFiles } from './build.ts';
export { type PageSettings } from './page-settings.ts';
export { directions, type Language, languages, messageKeyOf, type MessageKey, texts } from './texts.ts';
