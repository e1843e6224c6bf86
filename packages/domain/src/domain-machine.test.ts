import { describe, expect, it } from '@jest/globals';
import { decideDomain, type DomainState, readRecord } from './domain-machine.ts';

const at = new Date('2030-01-08T00:00:00.000Z');
const before = (days: number): Date => new Date(at.getTime() - days * 86_400_000);
const pending: DomainState = { status: 'pending', missingSince: null };
const verified: DomainState = { status: 'verified', missingSince: null };
const missing = (days: number): DomainState => ({ status: 'verified', missingSince: before(days) });
const lapsed: DomainState = { status: 'lapsed', missingSince: before(9) };

describe('decideDomain', () => {
  it.each([
    ['pending, customer finds it', pending, 'customer', 'present', verified],
    ['pending, daily finds it', pending, 'daily', 'present', verified],
    ['pending, customer does not', pending, 'customer', 'absent', pending],
    ['pending, daily does not', pending, 'daily', 'absent', pending],
    ['pending, nobody to ask', pending, 'customer', 'unknown', pending],
    ['verified, customer finds it', verified, 'customer', 'present', verified],
    ['verified, customer does not: kept', verified, 'customer', 'absent', verified],
    ['verified, daily misses it first', verified, 'daily', 'absent', missing(0)],
    ['verified, daily misses it for a day less than 7', missing(6), 'daily', 'absent', missing(6)],
    [
      'verified, daily misses it for 7 days',
      missing(7),
      'daily',
      'absent',
      { ...missing(7), status: 'lapsed' },
    ],
    ['verified, nobody to ask for 8 days: kept', missing(8), 'daily', 'unknown', missing(8)],
    ['verified, customer misses it after 8 days: kept', missing(8), 'customer', 'absent', missing(8)],
    ['verified and missed, found again', missing(6), 'daily', 'present', verified],
    ['lapsed, found again', lapsed, 'customer', 'present', verified],
    ['lapsed, daily finds it', lapsed, 'daily', 'present', verified],
    ['lapsed, not found', lapsed, 'customer', 'absent', lapsed],
    ['lapsed, nobody to ask', lapsed, 'daily', 'unknown', lapsed],
  ] as const)('%s [DOM-101, DOM-102, DOM-104]', (_what, state, by, seen, expected) => {
    expect(decideDomain(state, { by, seen, at })).toEqual(expected);
  });
});

describe('readRecord', () => {
  const value = 'svc-verify=0123';
  const read = (...values: string[]) => readRecord({ kind: 'answered', values }, value);

  it('finds the record among others, and only as it must be', () => {
    expect(read('v=spf1 -all', value)).toEqual({ seen: 'present', found: ['v=spf1 -all', value] });
    for (const values of [[], ['v=spf1 -all'], [`${value} `], [value.toUpperCase()]]) {
      expect(read(...values)).toEqual({ seen: 'absent', found: values });
    }
  });

  it('knows nothing when nobody could be asked', () => {
    expect(readRecord({ kind: 'unavailable' }, value)).toEqual({ seen: 'unknown', found: [] });
  });

  it('keeps of foreign records what can be shown: 20 of them, 255 characters each, printable', () => {
    const { seen, found } = read(
      'a\u0000b\u001b[31m\u00e9~',
      'x'.repeat(300),
      ...Array<string>(18).fill(''),
      'last',
      value,
    );
    expect(seen).toBe('present');
    expect(found).toHaveLength(20);
    expect(found.slice(0, 3)).toEqual(['a\ufffdb\ufffd[31m\ufffd~', 'x'.repeat(255), '']);
  });
});
