import { describe, expect, it } from '@jest/globals';
import { errorCodes } from '@millrace/contract';
import { fill, languages, messageKeyOf, texts, type Texts } from './texts.ts';

const places = (text: string): string[] => (text.match(/\{\w+\}/g) ?? []).sort();

describe('the texts', () => {
  it.each(languages)('say something of everything in %s, with the same places to fill', (language) => {
    const own: Texts = texts[language];
    for (const { title, text } of Object.values(own.messages)) {
      expect(title.trim()).not.toBe('');
      expect(text.trim()).not.toBe('');
    }
    for (const [name, label] of Object.entries(own.labels)) {
      expect(places(label)).toEqual(places(texts.en.labels[name as keyof Texts['labels']]));
    }
  });

  it('have words for every refusal of playback, and call the others our fault', () => {
    const refusals = ['not_found', 'token_missing', 'token_invalid', 'token_expired', 'origin_missing'];
    refusals.push('domain_mismatch', 'video_unavailable', 'plan_limit_reached', 'state_unavailable');
    for (const code of refusals) {
      expect(errorCodes).toHaveProperty(code);
      expect(messageKeyOf(code)).toBe(code);
    }
    expect(messageKeyOf('internal_error')).toBe('service_unavailable');
    expect(messageKeyOf('constructor')).toBe('service_unavailable');
  });

  it('are filled in', () => {
    expect(fill('{now} of {all}', { now: '0:01', all: 2 })).toBe('0:01 of 2');
    expect(fill('{other}', {})).toBe('{other}');
  });
});
