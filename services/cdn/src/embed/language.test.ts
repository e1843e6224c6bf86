import { describe, expect, it } from '@jest/globals';
import { languageOf, wantsPage } from './language.ts';

describe('languageOf', () => {
  it.each([
    ['', '', 'en'],
    ['', 'ar', 'ar'],
    ['', 'ar-SA,ar;q=0.9,en;q=0.8', 'ar'],
    ['', 'en-GB,en;q=0.9,ar;q=0.8', 'en'],
    ['', 'fr, ar;q=0.5', 'ar'],
    ['', 'fr', 'en'],
    ['', 'ar;q=0', 'en'],
    ['', 'AR', 'ar'],
    ['', 'ar;q=x', 'en'],
    ['', '*', 'en'],
    ['token=x&lang=ar', 'en', 'ar'],
    ['lang=ar-EG', '', 'ar'],
    ['lang=en', 'ar', 'en'],
    ['lang=fr', 'ar', 'ar'],
    ['lang=', 'ar', 'ar'],
    ['lang=constructor', 'ar', 'ar'],
  ])('%j and Accept-Language %j: %s', (query, header, language) => {
    expect(languageOf(query, header)).toBe(language);
  });
});

describe('wantsPage', () => {
  it.each([
    ['text/html,application/xhtml+xml,*/*;q=0.8', true],
    ['application/json, TEXT/HTML; q=0.5', true],
    ['', false],
    ['*/*', false],
    ['application/json', false],
    ['text/html;q=0', false],
    ['text/html;q=0.0, application/json', false],
    ['text/htmlx', false],
  ])('%j: %s', (accept, wanted) => {
    expect(wantsPage(accept)).toBe(wanted);
  });
});
