import { describe, expect, it } from '@jest/globals';
import { decideDomain, type DomainState } from './domain-machine.ts';

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
