import { describe, expect, it } from '@jest/globals';
import { decideDelivery, decideRedelivery, type DeliveryStatus } from './delivery-machine.ts';

const failed = { delivered: false, retryAfterMs: null };
const middle = 0.5;
const minute = 60_000;

describe('decideDelivery', () => {
  it('delivers with a 2xx, on any try [WHD-101]', () => {
    for (let attempts = 0; attempts < 8; attempts++) {
      expect(decideDelivery({ attempts, delivered: true, retryAfterMs: 5 }, middle)).toEqual({
        status: 'delivered',
      });
    }
  });

  it.each([
    [1, 10_000],
    [2, minute],
    [3, 5 * minute],
    [4, 30 * minute],
    [5, 120 * minute],
    [6, 360 * minute],
    [7, 720 * minute],
  ])('waits after try %d for %d ms, 10 %% more or less [WHD-102, WHD-405, WHD-406]', (nth, waitMs) => {
    const after = (random: number): unknown => decideDelivery({ ...failed, attempts: nth - 1 }, random);
    expect(after(0.5)).toEqual({ status: 'pending', waitMs });
    expect(after(0)).toEqual({ status: 'pending', waitMs: Math.round(waitMs * 0.9) });
    expect(after(1)).toEqual({ status: 'pending', waitMs: Math.round(waitMs * 1.1) });
  });

  it('fails after the eighth try [WHD-103]', () => {
    expect(decideDelivery({ ...failed, attempts: 7 }, middle)).toEqual({ status: 'failed' });
    expect(decideDelivery({ ...failed, attempts: 7, retryAfterMs: 1 }, middle)).toEqual({ status: 'failed' });
  });

  it.each([
    ['lengthens a wait', 0, 25_000, 25_000],
    ['does not shorten one', 1, 5_000, minute],
    ['counts up to an hour', 0, 48 * 60 * minute, 60 * minute],
    ['does not cut a longer wait', 6, 48 * 60 * minute, 720 * minute],
  ])('with Retry-After: %s [WHD-407]', (_what, attempts, retryAfterMs, waitMs) => {
    expect(decideDelivery({ attempts, delivered: false, retryAfterMs }, middle)).toEqual({
      status: 'pending',
      waitMs,
    });
  });
});

describe('decideRedelivery', () => {
  it.each<[DeliveryStatus, boolean, string]>([
    ['delivered', false, 'again'],
    ['failed', false, 'again'],
    ['pending', false, 'now'],
    ['pending', true, 'refused'],
    ['delivered', true, 'refused'],
    ['failed', true, 'refused'],
  ])('of one that is %s, in flight %s: %s [WHE-216, WHE-218, WHE-219]', (status, inFlight, decision) => {
    expect(decideRedelivery({ status, inFlight })).toBe(decision);
  });
});
