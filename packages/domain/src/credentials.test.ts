import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { hashOf, matchesHash, newApiKey, newSessionId, parseApiKey, sessionExpiry } from './credentials.ts';

const now = new Date('2030-01-31T00:00:00.000Z');
const days = (count: number): Date => new Date(now.getTime() + count * 86_400_000);

describe('API key', () => {
  it('has the form svk_<id part>_<secret of 32 bytes>, and its prefix shows no secret [KEY-003]', () => {
    const key = newApiKey(now);
    expect(key.value).toMatch(/^svk_[A-Za-z0-9]{22}_[A-Za-z0-9]{43}$/);
    expect(key.id).toBe(`key_${key.prefix.slice(4)}`);
    expect(key.value.startsWith(`${key.prefix}_`)).toBe(true);
    expect(key.prefix).toMatch(/^svk_[A-Za-z0-9]{22}$/);
  });

  it('is found by its id and proved by its secret alone', () => {
    const key = newApiKey(now);
    const parsed = parseApiKey(key.value);
    expect(parsed?.id).toBe(key.id);
    expect(matchesHash(parsed?.secret ?? '', key.secretHash)).toBe(true);
    expect(matchesHash(key.value, key.secretHash)).toBe(false);
    expect(matchesHash(newApiKey(now).value.slice(-43), key.secretHash)).toBe(false);
  });

  it('never comes twice', () => {
    expect(new Set(Array.from({ length: 1_000 }, () => newApiKey(now).value)).size).toBe(1_000);
  });

  it('is not seen in other text', () => {
    const { value } = newApiKey(now);
    for (const text of [
      '',
      'svk_',
      `${value}x`,
      ` ${value}`,
      `${value}\n`,
      value.toUpperCase(),
      value.slice(4),
    ]) {
      expect(parseApiKey(text)).toBeNull();
    }
    fc.assert(fc.property(fc.string(), (text) => parseApiKey(text) === null));
  });
});

describe('matchesHash', () => {
  it('is false, not an error, for a hash of another length', () => {
    expect(matchesHash('secret', Buffer.from('short'))).toBe(false);
    expect(matchesHash('secret', hashOf('secret'))).toBe(true);
  });
});

describe('session', () => {
  it('has 256 random bits [SES-002]', () => {
    expect(newSessionId()).toMatch(/^ses_[A-Za-z0-9]{43}$/);
    expect(newSessionId()).not.toBe(newSessionId());
  });

  it.each([
    ['7 days after it was last seen', 0, 7],
    ['later when it was seen later', 20, 27],
    ['30 days after its start at most', 23, 30],
    ['30 days after its start at most, seen a day before', 29, 30],
  ])('ends %s [SES-003, SES-004]', (_what, seenDay, endDay) => {
    expect(sessionExpiry(now, days(seenDay))).toEqual(days(endDay));
  });
});
