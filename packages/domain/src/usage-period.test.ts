import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { usagePeriodAt } from './usage-period.ts';

const period = (anchorDay: number, now: string): [string, string] => {
  const { start, end } = usagePeriodAt(anchorDay, new Date(now));
  return [start.toISOString().slice(0, 10), end.toISOString().slice(0, 10)];
};

describe('usagePeriodAt', () => {
  it('starts at 00:00 UTC on the anchor day [MET-001]', () => {
    expect(period(15, '2026-03-14T23:59:59.999Z')).toEqual(['2026-02-15', '2026-03-15']);
    expect(period(15, '2026-03-15T00:00:00.000Z')).toEqual(['2026-03-15', '2026-04-15']);
  });

  it('starts on the last day of a month that lacks the anchor day [MET-001]', () => {
    expect(period(31, '2026-02-27T12:00:00Z')).toEqual(['2026-01-31', '2026-02-28']);
    expect(period(31, '2026-02-28T00:00:00Z')).toEqual(['2026-02-28', '2026-03-31']);
    expect(period(30, '2028-02-29T00:00:00Z')).toEqual(['2028-02-29', '2028-03-30']);
  });

  it('crosses the year', () => {
    expect(period(10, '2026-01-05T00:00:00Z')).toEqual(['2025-12-10', '2026-01-10']);
    expect(period(10, '2026-12-10T00:00:00Z')).toEqual(['2026-12-10', '2027-01-10']);
  });

  it('gives periods that hold their instant and follow each other without a gap [MET-002]', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 31 }),
        fc.date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
        (anchorDay, now) => {
          const { start, end } = usagePeriodAt(anchorDay, now);
          expect(start <= now && now < end).toBe(true);
          expect(usagePeriodAt(anchorDay, end).start).toEqual(end);
          expect(usagePeriodAt(anchorDay, new Date(end.getTime() - 1))).toEqual({ start, end });
        },
      ),
    );
  });
});
